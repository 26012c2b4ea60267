"""Sentence patterns read from sentence_templates.tsv: two sentences with the same slots.

The English sentence says what fills a slot, {key:filler}; both sentences can then refer to it:

{key}          the words
{key/di}       Italian: the words after a preposition ("della macchina")
{key?è|sono}   one of two words: the first for a singular, the second for a plural
{key~rotto}    Italian: an adjective or participle that agrees
{key!be}       the present of a verb, English or Italian ({key!essere}), for the person of the slot
{key^}         the words without their definite article; {key^di}, Italian: after a preposition
[a|b|c]        alternatives; the choice in the first brackets of the English sentence is
               also the choice in the first brackets of the Italian one, and so on
[1=a|b|c]      alternatives with a name; all brackets with this name make the same choice

The fillers are noun classes and determiners (machinery:the,my), then "s" for plurals only, "*" for
both numbers and "+" for an adjective now and then; >departure for "the next train"; @city for a
name; #when for one of `FILLERS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import count

from transformer_cli.phrasebook.grammar.adverbials import (
    HOURS,
    Both,
    at_place,
    at_time,
    in_named_place,
    to_place,
    when,
)
from transformer_cli.phrasebook.grammar.clauses import finished, joined_words
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import (
    NUMBERS,
    NounPhrase,
    determined,
    noun_phrase,
)
from transformer_cli.phrasebook.grammar.people import named, person_subject
from transformer_cli.phrasebook.patterns.complex_sentences.infinitives import to_do
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import (
    object_phrase,
    with_object,
)
from transformer_cli.phrasebook.words.english import PERSON_BE_PRESENT, third_person
from transformer_cli.phrasebook.words.italian import adjective_forms, preposition_before
from transformer_cli.phrasebook.words.italian_verbs import present
from transformer_cli.phrasebook.words.lexicon import (
    Adverb,
    Verb,
    adverbs,
    names,
    nouns,
    verbs,
    verbs_with,
)
from transformer_cli.phrasebook.words.word_tables import read_table

PACKAGE = __name__.rpartition(".")[0]
SLOT = re.compile(r"\{(\w+)(\^)?(?::([^}/?~!^]*))?(?:([/?~!^])([^}]*))?\}")
CHOICE = re.compile(r"\[(?:(\w)=)?([^\]]*)\]")
POLITE = re.compile("please|could you|excuse me")
ORDER = (("next", "prossimo"), ("next", "prossimo"), ("last", "ultimo"), ("first", "primo"))
ADJECTIVES_NOW_AND_THEN = (True, False, False)


def _both(words: Both) -> NounPhrase:
    return NounPhrase(words[0], words[1], "ms")


def _one_adverb(*kinds: str) -> Callable[[Draw], NounPhrase]:
    def build(draw: Draw) -> NounPhrase:
        adverb = draw.pick(adverbs(*kinds))
        return _both((adverb.english, adverb.italian))

    return build


def _number(draw: Draw) -> NounPhrase:
    return _both(draw.choose(NUMBERS))


def _hour(draw: Draw) -> NounPhrase:
    return _both(draw.choose(HOURS[1:]))


def _day(draw: Draw) -> NounPhrase:
    day = draw.pick(adverbs("weekday"))
    form = "fs" if day.italian == "domenica" else "ms"
    return NounPhrase(day.english, day.italian, form)


@cache
def _soon() -> tuple[Adverb, ...]:
    far = ("week", "month", "year", "soon", "later", "moment", "now")
    return tuple(x for x in adverbs("today", "future") if not x.english.endswith(far))


def _near_day(draw: Draw) -> NounPhrase:
    """A time in the next days: "tomorrow", "on Friday", "this evening"."""
    if draw.choose((True, False, False)):
        day = draw.pick(adverbs("weekday"))
        return _both((f"on {day.english}", day.italian))
    adverb = draw.pick(_soon())
    return _both((adverb.english, adverb.italian))


def _deed(draw: Draw, *, pool: tuple[Verb, ...], person: int) -> NounPhrase:
    """The infinitive of an action: "close the window", "chiudere la finestra"."""
    verb = draw.pick(pool)
    phrase = with_object(verb, object_phrase(draw, verb, ("the", "the", "this", "a", "my")))
    if "your " in phrase.english or "some " in phrase.english:
        raise DeadEndError
    return _both(to_do(phrase, person))


@cache
def _favours() -> tuple[Verb, ...]:
    return tuple(x for x in verbs_with("asked", "transitive") if "pastime" not in x.flags)


@cache
def _liberties() -> tuple[Verb, ...]:
    """Actions for which people ask permission."""
    wanted = {"aprire", "chiudere", "accendere", "spegnere", "usare", "prendere", "provare"}
    wanted |= {"tenere", "alzare", "abbassare", "annullare", "ordinare", "controllare", "lavare"}
    return tuple(x for x in _favours() if x.italian in wanted)


@cache
def _outings() -> tuple[Verb, ...]:
    wanted = {"visitare", "comprare", "guardare", "ascoltare", "ordinare", "mangiare", "bere"}
    wanted |= {"prendere", "chiamare", "aspettare", "invitare", "noleggiare", "prenotare"}
    return tuple(x for x in verbs("transitive") if x.italian in wanted)


def _we_do(draw: Draw) -> NounPhrase:
    """What we do: "call a taxi", "chiamiamo un taxi"."""
    verb = draw.pick(_outings())
    phrase = object_phrase(draw, verb, ("the", "the", "this", "a"))
    if "some " in phrase.english:
        raise DeadEndError
    words = with_object(verb, phrase)
    english = joined_words(verb.base, "" if verb.splits else verb.particle, words.english)
    return _both((english, f"{present(verb.italian, 3)} {words.italian}"))


@cache
def _movable() -> tuple[Verb, ...]:
    return verbs_with("booked", "transitive")


Filler = Callable[[Draw], NounPhrase]
FILLERS: dict[str, Filler] = {
    "when": lambda draw: _both(when(draw, "future")),
    "past": lambda draw: _both(when(draw, "past")),
    "near": _near_day,
    "today": _one_adverb("today", "now"),
    "day": _day,
    "time": lambda draw: _both(at_time(draw)),
    "to": lambda draw: _both(to_place(draw)),
    "at": lambda draw: _both(at_place(draw)),
    "town": lambda draw: _both(in_named_place(draw)),
    "number": _number,
    "hour": _hour,
    "subject": person_subject,
    "favour": lambda draw: _deed(draw, pool=_favours(), person=2),
    "outing": lambda draw: _deed(draw, pool=_outings(), person=3),
    "may": lambda draw: _deed(draw, pool=_liberties(), person=0),
    "plan": lambda draw: _deed(draw, pool=_outings(), person=0),
    "we": _we_do,
    "booking": lambda draw: _deed(draw, pool=_movable(), person=0),
}


@dataclass(frozen=True, slots=True)
class Template:
    """One row of the table."""

    english: str
    italian: str


def _filled(draw: Draw, filler: str, *, is_bare: bool) -> NounPhrase:
    """What a slot contains; `is_bare`: the sentence does not have its article."""
    if filler.startswith("#"):
        return FILLERS[filler[1:]](draw)
    if filler.startswith("@"):
        return named(draw.pick(names(*filler[1:].split("+"))))
    if filler.startswith(">"):
        return _in_order(draw, filler[1:])
    classes, _, rest = filler.partition("=")
    determiners, *options = rest.split(" ")
    plurals = {"s": (True,), "*": (False, False, True)}
    plural = next((plurals[x] for x in options if x in plurals), (False,))
    noun = draw.pick(nouns(*classes.split("+")))
    if is_bare:
        is_plural = noun.number == "count" and ("pair" in noun.classes or draw.choose(plural))
        return determined(draw, "the", noun, is_plural)
    return noun_phrase(
        draw,
        noun,
        tuple(determiners.split(",")),
        with_adjective=ADJECTIVES_NOW_AND_THEN if "+" in options else (False,),
        plurals=plural,
    )


def _in_order(draw: Draw, classes: str) -> NounPhrase:
    """ "the next train", "il prossimo treno"."""
    order = draw.choose(ORDER)
    noun = draw.pick(nouns(*classes.split("+")))
    bare = f"{adjective_forms(order[1])[noun.form]} {noun.italian[0]}"
    return NounPhrase(f"the {order[0]} {noun.english[0]}", bare, noun.form, True)


def build_from(draw: Draw, *, template: Template) -> Both:
    """Choose the alternatives, fill the slots and write both sentences."""
    turns: dict[str, int] = {}
    english = _decided(template.english, draw, turns)
    italian = _decided(template.italian, draw, turns)
    for words in re.split(r"\{[^}]*\}", english[:-1]):
        draw.expect(words.strip())
    filled = {
        match[1]: _filled(draw, match[3], is_bare=match[2] is not None)
        for match in SLOT.finditer(english)
        if match[3]
    }
    english = SLOT.sub(lambda match: _written(filled[match[1]], match, is_english=True), english)
    italian = SLOT.sub(lambda match: _written(filled[match[1]], match, is_english=False), italian)
    if "your " in english and POLITE.search(english):
        raise DeadEndError  # the grammar translates "your" as tuo, but a polite sentence needs suo
    english, italian = " ".join(english.split()), " ".join(italian.split())
    return finished(draw, english[:-1], italian[:-1], english[-1])


def _decided(words: str, draw: Draw, turns: dict[str, int]) -> str:
    """The words with one of the alternatives in each pair of brackets.

    Args:
        turns: the choice for each name; the English brackets fill it, the Italian ones read it.
    """
    unnamed = count()

    def one(match: re.Match[str]) -> str:
        alternatives = match[2].split("|")
        name = match[1] or f"brackets {next(unnamed)}"
        if name not in turns:
            turns[name] = draw.choose(tuple(range(len(alternatives))))
        return alternatives[turns[name]]

    return CHOICE.sub(one, words)


def _written(phrase: NounPhrase, match: re.Match[str], *, is_english: bool) -> str:
    """The words for one slot."""
    sign, argument = match[4] or match[2], match[5] or ""
    if sign == "?":
        is_many = phrase.english_person > 2 if is_english else phrase.form[1] == "p"
        return argument.split("|")[is_many]
    if sign == "!":
        return _verb(phrase, argument, is_english=is_english)
    if sign == "^":
        if is_english:
            return phrase.english.removeprefix("the ")
        return preposition_before(argument, phrase.bare) + phrase.bare if argument else phrase.bare
    if sign == "~":
        return adjective_forms(argument)[phrase.form]
    if sign == "/":
        return phrase.after(argument)
    return phrase.english if is_english else phrase.italian


def _verb(phrase: NounPhrase, infinitive: str, *, is_english: bool) -> str:
    """The present of the verb for the person of the phrase."""
    if not is_english:
        return present(infinitive, phrase.person)
    if infinitive == "be":
        return PERSON_BE_PRESENT[phrase.english_person]
    return third_person(infinitive) if phrase.english_person == 2 else infinitive


PATTERNS = tuple(
    Pattern(name, partial(build_from, template=Template(english, italian)), int(weight))
    for name, weight, english, italian in read_table(
        "sentence_templates.tsv", columns=4, package=PACKAGE
    )
)
