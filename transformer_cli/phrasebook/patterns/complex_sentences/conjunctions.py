"""Sentence patterns with a conjunction: because, when, if, while, and, but, that, who."""

from __future__ import annotations

from functools import cache

from transformer_cli.phrasebook.grammar.adverbials import Both, at_place
from transformer_cli.phrasebook.grammar.clauses import VerbPhrase, and_then, finished, statement
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, noun_phrase
from transformer_cli.phrasebook.grammar.people import HE, THEY, person_subject, told_apart
from transformer_cli.phrasebook.patterns.pattern import Pattern, in_tenses
from transformer_cli.phrasebook.patterns.simple_sentences.being import (
    adjective_phrase,
    thing_subject,
)
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import (
    active_verbs,
    intransitive,
    motion,
    object_phrase,
    reflexive,
    transitive_verbs,
    with_object,
)
from transformer_cli.phrasebook.patterns.simple_sentences.having import STATES
from transformer_cli.phrasebook.words.italian import adjective_forms
from transformer_cli.phrasebook.words.lexicon import (
    BE,
    HAVE,
    Adjective,
    adjectives,
    adjectives_for,
    nouns,
    objects_of,
    the_verb,
)

MOODS = ("tired", "happy", "sad", "ill", "busy", "worried", "angry", "nervous", "ready", "alone")


def some_act(draw: Draw, tense: str) -> VerbPhrase:
    """An action: a verb phrase of any frame."""
    frame = draw.choose((active, active, active, intransitive, motion, reflexive, staying))
    return frame(draw, tense)


def staying(draw: Draw, tense: str) -> VerbPhrase:
    """ "stay at home"."""
    if tense in {"progressive", "was_doing"}:
        raise DeadEndError  # nobody says "sta rimanendo" for "is staying"
    return VerbPhrase(the_verb("rimanere", "stay"), *at_place(draw))


def active(draw: Draw, tense: str) -> VerbPhrase:
    verb = draw.pick(active_verbs(tense))
    return with_object(verb, object_phrase(draw, verb))


@cache
def _moods() -> tuple[Adjective, ...]:
    return tuple(x for x in adjectives("person") if x.english in MOODS)


def mood(draw: Draw, subject: NounPhrase, tense: str) -> Both:
    """ "I am hungry", "she is tired" as a clause."""
    if draw.choose((True, False)):
        english, italian = draw.choose(STATES[:5])
        words = statement(subject, VerbPhrase(BE, english), tense)[0]
        return words, statement(subject, VerbPhrase(HAVE, "", italian), tense)[1]
    adjective = draw.pick(_moods())
    italian = adjective_forms(adjective.italian)[subject.form]
    return statement(subject, VerbPhrase(BE, adjective.english, italian), tense)


def again(subject: NounPhrase) -> NounPhrase:
    """The pronoun that refers to the subject."""
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
    first = statement(subject, some_act(draw, tense), tense, negative=negative)
    second = mood(draw, again(subject), "past" if tense == "past" else "present")
    return finished(draw, f"{first[0]} because {second[0]}", f"{first[1]} perché {second[1]}")


def when_clause(draw: Draw, tense: str) -> Both:
    """ "When I am tired, I sleep", "Quando sono stanco, dormo"."""
    subject = person_subject(draw)
    state = {"present": "present", "used_to": "past", "future": "present"}[tense]
    first = mood(draw, subject, state)
    if tense == "future":
        raise DeadEndError
    second = statement(again(subject), some_act(draw, tense), tense)
    return finished(draw, f"when {first[0]}, {second[0]}", f"quando {first[1]}, {second[1]}")


def if_clause(draw: Draw) -> Both:
    """ "If it rains, we will stay at home", "Se piove, resteremo ..."."""
    subject = person_subject(draw)
    weather = draw.choose(
        (
            ("it rains", "piove"),
            ("it does not rain", "non piove"),
            ("it is sunny", "c'è il sole"),
            ("it is windy", "c'è vento"),
            ("it snows", "nevica"),
            ("it is hot", "fa caldo"),
            ("it is cold", "fa freddo"),
            ("the weather is nice", "il tempo è bello"),
            ("you want", "vuoi"),
        )
    )
    tense = draw.choose(("future", "future", "must", "can"))
    negative = tense != "must" and draw.choose((True, False, False))
    second = statement(subject, some_act(draw, tense), tense, negative=negative)
    if draw.choose((True, False)):
        return finished(draw, f"if {weather[0]}, {second[0]}", f"se {weather[1]}, {second[1]}")
    return finished(draw, f"{second[0]} if {weather[0]}", f"{second[1]} se {weather[1]}")


def while_clause(draw: Draw) -> Both:
    """ "While I was cooking, Anna was reading", "Mentre cucinavo, Anna leggeva"."""
    first, second = person_subject(draw), person_subject(draw)
    if not second.bare or first.english == second.english:
        raise DeadEndError
    one = statement(told_apart(first), some_act(draw, "was_doing"), "was_doing")
    two = statement(second, some_act(draw, "was_doing"), "was_doing")
    return finished(draw, f"while {one[0]}, {two[0]}", f"mentre {one[1]}, {two[1]}")


def both_do(draw: Draw, tense: str) -> Both:
    """ "Anna is cooking and Marco is reading", "Anna sta cucinando e Marco sta leggendo"."""
    first, second = person_subject(draw), person_subject(draw)
    if not first.bare or not second.bare:
        raise DeadEndError
    word = draw.choose((("and", "e"), ("but", "ma")))
    one = statement(first, some_act(draw, tense), tense)
    two = statement(second, some_act(draw, tense), tense, negative=word[0] == "but")
    comma = "," if word[0] == "but" else ""
    return finished(
        draw, f"{one[0]}{comma} {word[0]} {two[0]}", f"{one[1]}{comma} {word[1]} {two[1]}"
    )


def does_two_things(draw: Draw, tense: str) -> Both:
    """ "I got up and washed the car", "Mi sono alzato e ho lavato la macchina"."""
    subject = person_subject(draw)
    one = statement(subject, some_act(draw, tense), tense)
    silent = again(subject)
    two = statement(silent, some_act(draw, tense), tense)
    english = two[0].removeprefix(silent.english + " ")
    return finished(draw, f"{one[0]} and {english}", f"{one[1]} {and_then(two[1])}")


def who_clause(draw: Draw, tense: str) -> Both:
    """ "The woman who is reading the book is my aunt", "La donna che ..."."""
    noun = draw.pick(nouns("grown", "young", "job"))
    subject = noun_phrase(draw, noun, ("the", "the", "that"))
    silent = THEY if subject.form[1] == "p" else HE
    inner = NounPhrase("", "", subject.form, False, subject.person, silent.english_person)
    relative = statement(inner, some_act(draw, tense), tense)
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


def says_that_is(draw: Draw, *, tense: str) -> Both:
    """ "I know that the shop is closed", "So che il negozio è chiuso"."""
    subject = person_subject(draw)
    verb = the_verb(*draw.choose((("dire", "say"), ("sapere", "know"))))
    noun, thing = thing_subject(draw)
    adjective = draw.pick(adjectives_for(noun, predicative=True))
    quality = VerbPhrase(BE, *adjective_phrase(draw, adjective, thing.form))
    inner = statement(thing, quality, tense, negative=draw.choose((True, False, False)))
    outer = VerbPhrase(verb, f"that {inner[0]}", f"che {inner[1]}")
    return finished(draw, *statement(subject, outer, "present"))


def says_that(draw: Draw, tense: str) -> Both:
    """ "Anna says that the soup is cold", "Anna dice che la zuppa è fredda"; "I know that"."""
    subject = person_subject(draw)
    verb = the_verb(*draw.choose((("dire", "say"), ("sapere", "know"))))
    other = person_subject(draw)
    if other.english == subject.english:
        raise DeadEndError
    inner = statement(
        told_apart(other), some_act(draw, tense), tense, negative=draw.choose((True, False, False))
    )
    outer = statement(subject, VerbPhrase(verb, f"that {inner[0]}", f"che {inner[1]}"), "present")
    return finished(draw, *outer)


PATTERNS = (
    *in_tenses("says_that_is", says_that_is, {"present": 40, "past": 20}),
    *in_tenses("because", because, {"present": 30, "progressive": 25, "past": 50}),
    *in_tenses("when_clause", when_clause, {"present": 40, "used_to": 20}),
    Pattern("if_clause", if_clause, 60),
    Pattern("while_clause", while_clause, 60),
    *in_tenses("both_do", both_do, {"progressive": 90, "past": 80, "future": 90}),
    *in_tenses("does_two_things", does_two_things, {"past": 70, "future": 40, "present": 40}),
    *in_tenses("who_clause", who_clause, {"present": 30, "progressive": 30, "past": 30}),
    *in_tenses(
        "that_clause", that_clause, {"past": 70, "progressive": 25, "present": 20, "want": 30}
    ),
    *in_tenses("says_that", says_that, {"past": 40, "future": 40, "present": 40}),
)
