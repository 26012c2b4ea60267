"""Sentence patterns with two clauses: because, when, if, while, relative and infinitive clauses."""

from __future__ import annotations

from functools import cache, partial

from transformer_cli.data.phrasebook.adverbials import Both, to_place
from transformer_cli.data.phrasebook.clauses import (
    VerbPhrase,
    finished,
    joined_words,
    statement,
)
from transformer_cli.data.phrasebook.draw import DeadEndError, Draw
from transformer_cli.data.phrasebook.english import ing_form
from transformer_cli.data.phrasebook.italian import adjective_forms
from transformer_cli.data.phrasebook.italian_verbs import (
    REFLEXIVE_CLITICS,
    infinitive_with,
    is_reflexive,
    plain_infinitive,
)
from transformer_cli.data.phrasebook.lexicon import (
    Adjective,
    Verb,
    adjectives,
    adjectives_for,
    nouns,
    objects_of,
    the_verb,
    verbs,
    verbs_with,
)
from transformer_cli.data.phrasebook.noun_phrases import (
    HE,
    THEY,
    NounPhrase,
    noun_phrase,
    person_subject,
)
from transformer_cli.data.phrasebook.pattern import Pattern
from transformer_cli.data.phrasebook.patterns_commands import commanded_verbs
from transformer_cli.data.phrasebook.patterns_liking import STATES
from transformer_cli.data.phrasebook.patterns_verbs import (
    active_verbs,
    intransitive,
    motion,
    object_phrase,
    reflexive,
    transitive_verbs,
    with_object,
)

BE = the_verb("essere", "be")
HAVE = the_verb("avere", "have")
MOODS = ("tired", "happy", "sad", "ill", "busy", "worried", "angry", "nervous", "ready", "alone")
LINKS = {
    "hope": ("sperare", "hope", "to", "di"),
    "try": ("provare", "try", "to", "a"),
    "start": ("cominciare", "start", "to", "a"),
    "decide": ("decidere", "decide", "to", "di"),
    "forget": ("dimenticare", "forget", "to", "di"),
    "learn": ("imparare", "learn", "to", "a"),
    "need": ("bisognare", "need", "to", "di"),
}


def _act(draw: Draw, tense: str) -> VerbPhrase:
    """What someone does, of any frame."""
    frame = draw.choose((_active, _active, intransitive, motion, reflexive))
    return frame(draw, tense)


def _active(draw: Draw, tense: str) -> VerbPhrase:
    verb = draw.pick(active_verbs(tense))
    return with_object(verb, object_phrase(draw, verb))


def _errand(draw: Draw, tense: str) -> VerbPhrase:
    verb = draw.pick(_errands())
    return with_object(verb, object_phrase(draw, verb))


@cache
def _errands() -> tuple[Verb, ...]:
    """What one goes somewhere for."""
    wanted = {"comprare", "vendere", "cercare", "incontrare", "prendere", "aspettare", "vedere"}
    wanted |= {"fotografare", "aiutare", "chiamare"}
    return tuple(verb for verb in verbs("transitive") if verb.italian in wanted)


def _skill(draw: Draw, tense: str) -> VerbPhrase:
    verb = draw.pick(verbs_with("skill", "transitive", "intransitive"))
    return with_object(verb, object_phrase(draw, verb)) if verb.objects else VerbPhrase(verb)


def _deed(draw: Draw, tense: str) -> VerbPhrase:
    verb = draw.pick(commanded_verbs())
    return with_object(verb, object_phrase(draw, verb))


@cache
def _moods() -> tuple[Adjective, ...]:
    return tuple(x for x in adjectives("person") if x.english in MOODS)


def _mood(draw: Draw, subject: NounPhrase, tense: str) -> Both:
    """ "I am hungry", "she is tired" as a clause."""
    if draw.choose((True, False)):
        english, italian = draw.choose(STATES[:5])
        words = statement(subject, VerbPhrase(BE, english), tense)[0]
        return words, statement(subject, VerbPhrase(HAVE, "", italian), tense)[1]
    adjective = draw.pick(_moods())
    italian = adjective_forms(adjective.italian)[subject.form]
    return statement(subject, VerbPhrase(BE, adjective.english, italian), tense)


def _again(subject: NounPhrase) -> NounPhrase:
    """The same person mentioned again: a pronoun."""
    english = ("I", "you", "she" if subject.form[0] == "f" else "he", "we", "you", "they")
    return NounPhrase(
        english[subject.english_person],
        "",
        subject.form,
        False,
        subject.person,
        subject.english_person,
    )


def because(draw: Draw, tense: str) -> Both:
    """ "I am eating because I am hungry", "Sto mangiando perché ho fame"."""
    subject = person_subject(draw)
    negative = draw.choose((True, False, False))
    first = statement(subject, _act(draw, tense), tense, negative=negative)
    second = _mood(draw, _again(subject), "past" if tense == "past" else "present")
    return finished(draw, f"{first[0]} because {second[0]}", f"{first[1]} perché {second[1]}")


def when_clause(draw: Draw, tense: str) -> Both:
    """ "When I am tired, I sleep", "Quando sono stanco, dormo"."""
    subject = person_subject(draw)
    state = {"present": "present", "used_to": "past", "future": "present"}[tense]
    first = _mood(draw, subject, state)
    if tense == "future":
        raise DeadEndError
    second = statement(_again(subject), _act(draw, tense), tense)
    return finished(draw, f"when {first[0]}, {second[0]}", f"quando {first[1]}, {second[1]}")


def if_clause(draw: Draw) -> Both:
    """ "If it rains, we will stay at home", "Se piove, resteremo ..."."""
    subject = person_subject(draw)
    weather = draw.choose(
        (
            ("it rains", "piove"),
            ("it snows", "nevica"),
            ("it is hot", "fa caldo"),
            ("it is cold", "fa freddo"),
            ("the weather is nice", "il tempo è bello"),
            ("you want", "vuoi"),
        )
    )
    tense = draw.choose(("future", "future", "must", "can"))
    negative = tense != "must" and draw.choose((True, False, False))
    second = statement(subject, _act(draw, tense), tense, negative=negative)
    if draw.choose((True, False)):
        return finished(draw, f"if {weather[0]}, {second[0]}", f"se {weather[1]}, {second[1]}")
    return finished(draw, f"{second[0]} if {weather[0]}", f"{second[1]} se {weather[1]}")


def while_clause(draw: Draw) -> Both:
    """ "While I was cooking, Anna was reading", "Mentre cucinavo, Anna leggeva"."""
    first, second = person_subject(draw), person_subject(draw)
    if not second.bare or first.english == second.english:
        raise DeadEndError
    one = statement(first, _act(draw, "was_doing"), "was_doing")
    two = statement(second, _act(draw, "was_doing"), "was_doing")
    return finished(draw, f"while {one[0]}, {two[0]}", f"mentre {one[1]}, {two[1]}")


def both_do(draw: Draw, tense: str) -> Both:
    """ "Anna is cooking and Marco is reading", "Anna sta cucinando e Marco sta leggendo"."""
    first, second = person_subject(draw), person_subject(draw)
    if not first.bare or not second.bare:
        raise DeadEndError
    word = draw.choose((("and", "e"), ("but", "ma")))
    one = statement(first, _act(draw, tense), tense)
    two = statement(second, _act(draw, tense), tense, negative=word[0] == "but")
    comma = "," if word[0] == "but" else ""
    return finished(draw, f"{one[0]}{comma} {word[0]} {two[0]}", f"{one[1]}{comma} {word[1]} {two[1]}")


def does_two_things(draw: Draw, tense: str) -> Both:
    """ "I got up and washed the car", "Mi sono alzato e ho lavato la macchina"."""
    subject = person_subject(draw)
    one = statement(subject, _act(draw, tense), tense)
    silent = _again(subject)
    two = statement(silent, _act(draw, tense), tense)
    english = two[0].removeprefix(silent.english + " ")
    return finished(draw, f"{one[0]} and {english}", f"{one[1]} e {two[1]}")


def who_clause(draw: Draw, tense: str) -> Both:
    """ "The woman who is reading the book is my aunt", "La donna che ..."."""
    noun = draw.pick(nouns("grown", "young", "job"))
    subject = noun_phrase(draw, noun, ("the", "the", "that"))
    silent = THEY if subject.form[1] == "p" else HE
    inner = NounPhrase("", "", subject.form, False, subject.person, silent.english_person)
    relative = statement(inner, _act(draw, tense), tense)
    adjective = draw.pick(adjectives("person"))
    italian = adjective_forms(adjective.italian)[subject.form]
    outer = NounPhrase(
        f"{subject.english} who {relative[0]}",
        f"{subject.bare} che {relative[1]}",
        subject.form,
        subject.is_definite,
        subject.person,
        subject.english_person,
    )
    return finished(draw, *statement(outer, VerbPhrase(BE, adjective.english, italian), "present"))


def that_clause(draw: Draw, tense: str) -> Both:
    """ "The book that I bought is interesting", "Il libro che ho comprato è interessante"."""
    verb = draw.pick(transitive_verbs(tense))
    noun = draw.pick(objects_of(verb))
    pool = adjectives_for(noun, predicative=True)
    if not pool or "family" in noun.classes or verb.splits:
        raise DeadEndError
    thing = noun_phrase(draw, noun, ("the",), with_adjective=(False,))
    inner = statement(person_subject(draw), VerbPhrase(verb), tense)
    adjective = draw.pick(pool)
    italian = adjective_forms(adjective.italian)[thing.form]
    outer = NounPhrase(
        f"{thing.english} that {inner[0]}",
        f"{thing.bare} che {inner[1]}",
        thing.form,
        True,
        thing.person,
        thing.english_person,
    )
    now = draw.choose(("present", "past"))
    negative = draw.choose((True, False, False))
    words = VerbPhrase(BE, adjective.english, italian)
    return finished(draw, *statement(outer, words, now, negative=negative))


def says_that(draw: Draw, tense: str) -> Both:
    """ "Anna says that the soup is cold", "Anna dice che la zuppa è fredda"; "I know that"."""
    subject = person_subject(draw)
    verb = the_verb(*draw.choose((("dire", "say"), ("sapere", "know"))))
    other = person_subject(draw)
    if other.english == subject.english:
        raise DeadEndError
    inner = statement(other, _act(draw, tense), tense, negative=draw.choose((True, False, False)))
    outer = statement(subject, VerbPhrase(verb, f"that {inner[0]}", f"che {inner[1]}"), "present")
    return finished(draw, *outer)


def _to_do(phrase: VerbPhrase, person: int) -> Both:
    """ "get up", "alzarsi" for the person."""
    infinitive = plain_infinitive(phrase.verb.italian)
    clitic = REFLEXIVE_CLITICS[person] if is_reflexive(phrase.verb.italian) else ""
    particle = "" if phrase.verb.splits else phrase.verb.particle
    english = joined_words(phrase.verb.base, particle, phrase.english)
    return english, joined_words(infinitive_with(infinitive, clitic), phrase.italian)


def linked(draw: Draw, tense: str, link: str) -> Both:
    """ "She decided to buy the house", "Ha deciso di comprare la casa"."""
    subject = person_subject(draw)
    infinitive, base, to, preposition = LINKS[link]
    frame = {"learn": _skill, "start": _deed, "forget": _deed}.get(link, _act)
    action = _to_do(frame(draw, "want"), subject.person)
    negative = tense != "past" and draw.choose((True, False, False))
    if link == "need":
        verb = the_verb("bisognare", "need")
        english = statement(subject, VerbPhrase(verb, f"to {action[0]}"), tense, negative=negative)[0]
        have = VerbPhrase(HAVE, "", f"bisogno di {action[1]}")
        return finished(draw, english, statement(subject, have, tense, negative=negative)[1])
    verb = the_verb(infinitive, base)
    preposition = "ad" if preposition == "a" and action[1][0] == "a" else preposition
    phrase = VerbPhrase(verb, f"{to} {action[0]}", f"{preposition} {action[1]}")
    return finished(draw, *statement(subject, phrase, tense, negative=negative))


def in_order_to(draw: Draw, tense: str) -> Both:
    """ "I went to the market to buy apples", "Sono andato al mercato per comprare le mele"."""
    subject = person_subject(draw)
    place = to_place(draw)
    action = _to_do(_errand(draw, "want"), subject.person)
    phrase = VerbPhrase(
        the_verb("andare", "go"), f"{place[0]} to {action[0]}", f"{place[1]} per {action[1]}"
    )
    return finished(draw, *statement(subject, phrase, tense))


def before_doing(draw: Draw, tense: str) -> Both:
    """ "Before eating, I wash the plates", "Prima di mangiare, ..."."""
    subject = person_subject(draw)
    verb = draw.pick(_preludes())
    doing = joined_words(ing_form(verb.base), verb.particle)
    clitic = REFLEXIVE_CLITICS[subject.person] if is_reflexive(verb.italian) else ""
    lead = f"prima di {infinitive_with(plain_infinitive(verb.italian), clitic)}"
    second = statement(subject, _act(draw, tense), tense)
    return finished(draw, f"before {doing}, {second[0]}", f"{lead}, {second[1]}")


@cache
def _preludes() -> tuple[Verb, ...]:
    wanted = {"mangiare", "dormire", "lavorare", "partire", "uscire", "pranzare", "cenare", "alzarsi"}
    wanted |= {"studiare", "cucinare", "riposarsi", "addormentarsi", "viaggiare", "ballare"}
    return tuple(verb for verb in verbs("transitive", "intransitive", "idiom", "reflexive") if verb.italian in wanted)


def asks_politely(draw: Draw) -> Both:
    """ "Can you close the window, please?", "Può chiudere la finestra, per favore?"."""
    action = _to_do(_deed(draw, "want"), 2)
    if "your" in action[0]:
        raise DeadEndError
    return finished(
        draw, f"can you {action[0]}, please", f"può {action[1]}, per favore", "?"
    )


def _in(name: str, build: object, tenses: dict[str, int]) -> list[Pattern]:
    return [
        Pattern(f"{name}.{tense}", partial(build, tense=tense), weight)  # type: ignore[call-overload]
        for tense, weight in tenses.items()
    ]


PATTERNS = (
    *_in("because", because, {"present": 30, "progressive": 25, "past": 50}),
    *_in("when_clause", when_clause, {"present": 40, "used_to": 20}),
    Pattern("if_clause", if_clause, 60),
    Pattern("while_clause", while_clause, 60),
    *_in("both_do", both_do, {"progressive": 40, "past": 40, "future": 30}),
    *_in("does_two_things", does_two_things, {"past": 70, "future": 40, "present": 40}),
    *_in("who_clause", who_clause, {"progressive": 30, "past": 30}),
    *_in("that_clause", that_clause, {"past": 70, "present": 20, "want": 30}),
    *_in("says_that", says_that, {"past": 40, "future": 40, "present": 40}),
    *(Pattern(f"{link}.present", partial(linked, tense="present", link=link), 15) for link in LINKS),
    *(Pattern(f"{link}.past", partial(linked, tense="past", link=link), 20) for link in LINKS),
    *_in("in_order_to", in_order_to, {"past": 40, "future": 30, "present": 20}),
    *_in("before_doing", before_doing, {"past": 30, "present": 30, "future": 20}),
    Pattern("asks_politely", asks_politely, 40),
)
