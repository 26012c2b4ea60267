"""Short clauses of every kind, without capital letter and final mark: parts of longer sentences."""

from __future__ import annotations

from transformer_cli.phrasebook.grammar.adverbials import Both, at_place
from transformer_cli.phrasebook.grammar.clauses import VerbPhrase, joined_words, statement
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import (
    SUBJECT_DETERMINERS,
    NounPhrase,
    noun_phrase,
)
from transformer_cli.phrasebook.patterns.complex_sentences.conjunctions import some_act
from transformer_cli.phrasebook.patterns.simple_sentences.being import (
    THERE_IS,
    adjective_phrase,
    located,
    passing_adjectives,
    personal_adjectives,
    thing_subject,
)
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import looks_past
from transformer_cli.phrasebook.patterns.simple_sentences.having import STATES
from transformer_cli.phrasebook.patterns.simple_sentences.liking import liking, missing
from transformer_cli.phrasebook.patterns.simple_sentences.weather import weather_words
from transformer_cli.phrasebook.words.lexicon import (
    BE,
    HAVE,
    adjectives_for,
    nouns,
    objects_of,
    the_verb,
)

PERSONAL = ("act",) * 6 + (
    "quality",
    "quality",
    "state",
    "place",
    "having",
    "wish",
    "liking",
    "missing",
)
IMPERSONAL = ("thing", "thing", "thing_place", "there_is", "weather")


def personal_clause(draw: Draw, subject: NounPhrase, tense: str, *, may_like: bool = True) -> Both:
    """A clause about what a person does, is, has or likes.

    Args:
        tense: present, past, future or progressive; a state takes the present for progressive.
        may_like: whether it may be a clause with another Italian subject ("mi piace la zuppa").
    """
    kind = draw.choose(PERSONAL)
    negative = draw.choose((True, False, False, False))
    if kind == "act":
        phrase = some_act(draw, tense)
        draw.expect(phrase.english)
        if not negative and looks_past(phrase.verb, tense, subject):
            raise DeadEndError
        return statement(subject, phrase, tense, negative=negative)
    tense = "present" if tense == "progressive" else tense
    if kind == "liking":
        if not may_like or tense == "future":
            raise DeadEndError
        return liking(draw, subject, tense, negative=negative)
    if kind == "missing":
        if not may_like or tense == "past":
            raise DeadEndError
        return missing(draw, subject, tense, negative=negative)
    if kind == "state":
        english, italian = draw.choose(STATES)
        draw.expect(english)
        words = statement(subject, VerbPhrase(BE, english), tense, negative=negative)[0]
        return words, statement(subject, VerbPhrase(HAVE, "", italian), tense, negative=negative)[1]
    return statement(subject, _being(draw, subject, tense, kind), tense, negative=negative)


def _being(draw: Draw, subject: NounPhrase, tense: str, kind: str) -> VerbPhrase:
    """A verb phrase for a quality, a place, a possession or a wish."""
    if kind == "quality":
        adjective = draw.pick(personal_adjectives(tense))
        return VerbPhrase(BE, *adjective_phrase(draw, adjective, subject.form))
    if kind == "place":
        return VerbPhrase(BE, *at_place(draw))
    if kind == "wish" and tense != "future":
        wish = the_verb("volere", "want")
        thing = noun_phrase(draw, draw.pick(objects_of(wish)), ("a", "a", "the", "number"))
        return VerbPhrase(wish, thing.english, thing.italian)
    pool = nouns("thing", "ownable", "clothing", "errand", "money", "dwelling")
    thing = noun_phrase(draw, draw.pick(pool), ("a", "a", "number", "the", "my", "many"))
    return VerbPhrase(HAVE, thing.english, thing.italian)


def impersonal_clause(draw: Draw, tense: str) -> Both:
    """A clause about a thing or the weather: what it is like, where it is, or what there is."""
    kind = draw.choose(IMPERSONAL)
    tense = "present" if tense == "progressive" else tense
    negative = draw.choose((True, False, False, False))
    if kind == "weather":
        return weather_words(draw, tense, negative=negative)
    if kind == "there_is":
        return _there_is(draw, tense)
    if kind == "thing_place":
        thing, place, _ = located(draw, SUBJECT_DETERMINERS)
        return statement(thing, VerbPhrase(BE, *place), tense, negative=negative)
    noun, thing = thing_subject(draw)
    pool = (
        adjectives_for(noun, predicative=True) if tense == "present" else passing_adjectives(noun)
    )
    adjective = draw.pick(pool)
    quality = VerbPhrase(BE, *adjective_phrase(draw, adjective, thing.form))
    return statement(thing, quality, tense, negative=negative)


def _there_is(draw: Draw, tense: str) -> Both:
    thing, place, _ = located(draw, ("a", "a", "a", "number", "many"))
    english = THERE_IS[tense, thing.english_person == 5][0]
    italian = THERE_IS[tense, thing.form[1] == "p"][2]
    return joined_words(english, thing.english, place[0]), joined_words(
        italian, thing.italian, place[1]
    )
