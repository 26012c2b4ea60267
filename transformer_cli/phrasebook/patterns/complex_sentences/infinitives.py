"""Sentence patterns with an infinitive: hope to, try to, in order to, before doing."""

from __future__ import annotations

from functools import cache, partial

from transformer_cli.phrasebook.grammar.adverbials import Both, to_place
from transformer_cli.phrasebook.grammar.clauses import VerbPhrase, finished, joined_words, statement
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.people import person_subject
from transformer_cli.phrasebook.patterns.complex_sentences.conjunctions import some_act
from transformer_cli.phrasebook.patterns.pattern import Pattern, in_tenses
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import (
    object_phrase,
    with_object,
)
from transformer_cli.phrasebook.patterns.simple_sentences.imperatives import commanded_verbs
from transformer_cli.phrasebook.words.english import ing_form
from transformer_cli.phrasebook.words.italian_verbs import (
    REFLEXIVE_CLITICS,
    infinitive_with,
    is_reflexive,
    plain_infinitive,
)
from transformer_cli.phrasebook.words.lexicon import HAVE, Verb, the_verb, verbs, verbs_with

LINKS = {
    "hope": ("sperare", "hope", "to", "di"),
    "try": ("provare", "try", "to", "a"),
    "start": ("cominciare", "start", "to", "a"),
    "decide": ("decidere", "decide", "to", "di"),
    "forget": ("dimenticare", "forget", "to", "di"),
    "learn": ("imparare", "learn", "to", "a"),
    "need": ("bisognare", "need", "to", "di"),
}


def _errand(draw: Draw, tense: str) -> VerbPhrase:
    verb = draw.pick(_errands())
    return with_object(verb, object_phrase(draw, verb))


@cache
def _errands() -> tuple[Verb, ...]:
    """The verbs for a purpose: people go somewhere to do this."""
    wanted = {"comprare", "vendere", "cercare", "incontrare", "prendere", "aspettare", "vedere"}
    wanted |= {"fotografare", "aiutare", "chiamare"}
    return tuple(verb for verb in verbs("transitive") if verb.italian in wanted)


def _skill(draw: Draw, tense: str) -> VerbPhrase:
    verb = draw.pick(verbs_with("skill", "transitive", "intransitive"))
    return with_object(verb, object_phrase(draw, verb)) if verb.objects else VerbPhrase(verb)


def _deed(draw: Draw, tense: str) -> VerbPhrase:
    verb = draw.pick(commanded_verbs())
    return with_object(verb, object_phrase(draw, verb))


def to_do(phrase: VerbPhrase, person: int) -> Both:
    """The infinitive; a reflexive one agrees with the person: "get up", "alzarmi" for io."""
    infinitive = plain_infinitive(phrase.verb.italian)
    clitic = REFLEXIVE_CLITICS[person] if is_reflexive(phrase.verb.italian) else ""
    particle = "" if phrase.verb.splits else phrase.verb.particle
    english = joined_words(phrase.verb.base, particle, phrase.english)
    return english, joined_words(infinitive_with(infinitive, clitic), phrase.italian)


def linked(draw: Draw, tense: str, link: str) -> Both:
    """ "She decided to buy the house", "Ha deciso di comprare la casa"."""
    subject = person_subject(draw)
    infinitive, base, to, preposition = LINKS[link]
    frame = {"learn": _skill, "start": _deed, "forget": _deed}.get(link, some_act)
    action = to_do(frame(draw, "want"), subject.person)
    negative = tense != "past" and draw.choose((True, False, False))
    if link == "need":
        verb = the_verb("bisognare", "need")
        english = statement(subject, VerbPhrase(verb, f"to {action[0]}"), tense, negative=negative)[
            0
        ]
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
    action = to_do(_errand(draw, "want"), subject.person)
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
    act = some_act(draw, tense)
    if act.verb.base == verb.base == "have":
        raise DeadEndError  # nobody says "Before having lunch, she has dinner"
    second = statement(subject, act, tense)
    return finished(draw, f"before {doing}, {second[0]}", f"{lead}, {second[1]}")


@cache
def _preludes() -> tuple[Verb, ...]:
    wanted = {
        "mangiare",
        "dormire",
        "lavorare",
        "partire",
        "uscire",
        "pranzare",
        "cenare",
        "alzarsi",
    }
    wanted |= {"studiare", "cucinare", "riposarsi", "addormentarsi", "viaggiare", "ballare"}
    return tuple(
        verb
        for verb in verbs("transitive", "intransitive", "idiom", "reflexive")
        if verb.italian in wanted
    )


def asks_politely(draw: Draw) -> Both:
    """ "Can you close the window, please?", "Può chiudere la finestra, per favore?"."""
    action = to_do(_deed(draw, "want"), 2)
    if "your" in action[0]:
        raise DeadEndError
    return finished(draw, f"can you {action[0]}, please", f"può {action[1]}, per favore", "?")


PATTERNS = (
    *(
        Pattern(f"{link}.present", partial(linked, tense="present", link=link), 15)
        for link in LINKS
    ),
    *(Pattern(f"{link}.past", partial(linked, tense="past", link=link), 20) for link in LINKS),
    *in_tenses(
        "in_order_to", in_order_to, {"progressive": 25, "past": 40, "future": 30, "present": 20}
    ),
    *in_tenses("before_doing", before_doing, {"past": 30, "present": 30, "future": 20}),
    Pattern("asks_politely", asks_politely, 40),
)
