"""Noun phrases in both languages: article, possessive, number or quantity, adjective and noun."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from transformer_cli.phrasebook.grammar.draw import Draw
from transformer_cli.phrasebook.words import english, italian
from transformer_cli.phrasebook.words.lexicon import Adjective, Noun, adjectives_for

NUMBERS = (
    ("two", "due"),
    ("three", "tre"),
    ("four", "quattro"),
    ("five", "cinque"),
    ("six", "sei"),
    ("seven", "sette"),
    ("eight", "otto"),
    ("nine", "nove"),
    ("ten", "dieci"),
    ("twelve", "dodici"),
    ("twenty", "venti"),
)
ENGLISH_POSSESSIVES = ("my", "your", "his", "our", "your", "their")
ITALIAN_POSSESSIVES = (
    {"ms": "mio", "fs": "mia", "mp": "miei", "fp": "mie"},
    {"ms": "tuo", "fs": "tua", "mp": "tuoi", "fp": "tue"},
    {"ms": "suo", "fs": "sua", "mp": "suoi", "fp": "sue"},
    {"ms": "nostro", "fs": "nostra", "mp": "nostri", "fp": "nostre"},
    {"ms": "vostro", "fs": "vostra", "mp": "vostri", "fp": "vostre"},
    dict.fromkeys(italian.FORMS, "loro"),
)
OWNERS = (("my", 0), ("my", 0), ("your", 1), ("his", 2), ("her", 2), ("our", 3), ("their", 5))

SUBJECT_DETERMINERS = (
    "the",
    "the",
    "the",
    "the",
    "this",
    "that",
    "my",
    "my",
    "number-the",
    "many-the",
)
OBJECT_DETERMINERS = (
    ("the",) * 4
    + ("a",) * 4
    + ("this", "that", "my", "my", "number", "some", "many", "another", "bare")
)
DEFINITE_DETERMINERS = ("the", "the", "the", "this", "that", "my")

UNIQUE = ("the", "the", "this", "my")  # nobody asks for "a bill"
MOSTLY_MANY = (True, True, False)  # the mountains, flowers
COMMUNAL = frozenset(
    {"nature", "public-place", "outdoors", "sight", "wild", "job", "grown", "stranger"}
)

# These nouns take no article in English, but the definite one in Italian: "history", "la storia".
NAMELIKE = frozenset({"tongue", "studied", "sport"})
# What can stand without a determiner after a verb: "she reads books", "he eats bread".
SORTS = frozenset({"food", "drink", "ware", "reading", "clothing", "writing", "gift", "money"})

# Which determiner replaces one that does not suit a mass noun, a plural or a singular.
FOR_MASS = {
    "a": "some",
    "number": "the",
    "many": "much",
    "another": "some",
    "every": "the",
    "number-the": "the",
    "many-the": "the",
}
FOR_PLURAL = {
    "a": "some",
    "another": "some",
    "every": "the",
    "number-the": "number",
    "many-the": "many",
}
FOR_SINGULAR = {
    "number": "a",
    "bare": "a",
    "some": "a",
    "many": "a",
    "number-the": "the",
    "many-the": "the",
}


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A noun phrase, name or pronoun in both languages.

    bare: the Italian words without the definite article; empty for a subject pronoun.
    is_definite: whether the Italian phrase begins with the definite article.
    form: Italian gender and number, such as "fp".
    person, english_person: 0 to 5 for I, you, he or she, we, you all, they.
    """

    english: str
    bare: str
    form: str
    is_definite: bool = False
    person: int = 2
    english_person: int = 2

    @property
    def italian(self) -> str:
        """The Italian phrase with its article."""
        return plain(self.bare, self.form, self.is_definite)

    def after(self, preposition: str) -> str:
        """The Italian phrase after a preposition: "della macchina", "a Roma"."""
        if self.is_definite:
            return italian.joined(preposition, self.bare, self.form) + self.bare
        return italian.preposition_before(preposition, self.bare) + self.bare


def plain(bare: str, form: str, is_definite: bool) -> str:
    """Italian words with or without the definite article."""
    return italian.definite_article(bare, form) + bare if is_definite else bare


@cache
def _core(noun: Noun, is_plural: bool, adjective: Adjective | None) -> tuple[str, str, str]:
    """Noun and adjective: the English words, the Italian words, and the Italian form."""
    english_core = noun.english[is_plural]
    italian_core = noun.italian[is_plural]
    is_italian_plural = is_plural or noun.number in {"plural", "mass>plural"}
    form = noun.plural_form if is_italian_plural else noun.form
    if adjective is None:
        return english_core, italian_core, form
    if adjective.position == "before":
        italian_core = (
            italian.adjective_before(adjective.italian, italian_core, form) + italian_core
        )
    else:
        italian_core += " " + italian.adjective_forms(adjective.italian)[form]
    return f"{adjective.english} {english_core}", italian_core, form


def _is_english_plural(noun: Noun, is_plural: bool) -> bool:
    return is_plural or noun.number in {"plural", "plural>mass"}


@cache
def _with_fixed_determiner(
    determiner: str, noun: Noun, is_plural: bool, adjective: Adjective | None
) -> NounPhrase:
    words, bare, form = _core(noun, is_plural, adjective)
    many_in_english = _is_english_plural(noun, is_plural)
    is_definite = determiner == "the"
    if determiner == "a":
        words, bare = english.indefinite_article(words) + words, _a(bare, form)
    elif determiner == "this":
        words = ("these " if many_in_english else "this ") + words
        bare = italian.this_before(bare, form) + bare
    elif determiner == "that":
        words = ("those " if many_in_english else "that ") + words
        bare = italian.like_the_article("que", bare, form) + bare
    elif determiner == "another":
        words, bare = "another " + words, "un" + ("'altra " if form == "fs" else " altro ") + bare
    elif determiner == "every":
        words, bare = "every " + words, "ogni " + bare
    elif determiner == "some":
        words, bare = "some " + words, _some(noun, bare, form)
    elif determiner in {"many", "much"}:
        words = ("many " if determiner == "many" else "a lot of ") + words
        bare = italian.adjective_forms("molto")[form] + " " + bare
    elif determiner == "the":
        words = "the " + words
    return _third_person(words, bare, form, is_definite, many_in_english)


def _third_person(
    words: str, bare: str, form: str, is_definite: bool, many_in_english: bool
) -> NounPhrase:
    return NounPhrase(
        words,
        bare,
        form,
        is_definite,
        person=5 if form[1] == "p" else 2,
        english_person=5 if many_in_english else 2,
    )


def _a(bare: str, form: str) -> str:
    return italian.indefinite_article(bare, form) + bare


def _some(noun: Noun, bare: str, form: str) -> str:
    if noun.number == "count":
        return f"alcun{'i' if form == 'mp' else 'e'} {bare}"
    return italian.joined("di", bare, form) + bare


@cache
def possessed(
    owner: tuple[str, int], noun: Noun, is_plural: bool, adj: Adjective | None
) -> NounPhrase:
    """ "my mother", "his new cars"; in Italian a single relative takes no article."""
    words, bare, form = _core(noun, is_plural, adj)
    owner_word, person = owner
    is_relative = "family" in noun.classes and not is_plural and adj is None and person != 5
    bare = f"{ITALIAN_POSSESSIVES[person][form]} {bare}"
    many_in_english = _is_english_plural(noun, is_plural)
    return _third_person(f"{owner_word} {words}", bare, form, not is_relative, many_in_english)


@cache
def counted(number: tuple[str, str], noun: Noun, adjective: Adjective | None) -> NounPhrase:
    """ "three red cars"."""
    words, bare, form = _core(noun, True, adjective)
    return _third_person(f"{number[0]} {words}", f"{number[1]} {bare}", form, False, True)


def determined(
    draw: Draw, determiner: str, noun: Noun, is_plural: bool, adjective: Adjective | None = None
) -> NounPhrase:
    """The noun with a determiner, or with a similar one where that does not suit the noun."""
    if determiner == "my" and noun.classes & COMMUNAL and not noun.classes & {"own", "known"}:
        determiner = "the"
    if determiner == "bare" and not noun.classes & SORTS:
        determiner = "the"
    if noun.number != "count":
        determiner = FOR_MASS.get(determiner, determiner)
    else:
        turns = FOR_PLURAL if is_plural else FOR_SINGULAR
        determiner = turns.get(determiner, determiner)
    if determiner == "my":
        return possessed(draw.choose(OWNERS), noun, is_plural, adjective)
    if determiner == "number":
        return counted(draw.choose(NUMBERS), noun, adjective)
    return _with_fixed_determiner(determiner, noun, is_plural, adjective)


def noun_phrase(
    draw: Draw,
    noun: Noun,
    determiners: tuple[str, ...] = OBJECT_DETERMINERS,
    *,
    with_adjective: tuple[bool, ...] = (True, False, False),
    plurals: tuple[bool, ...] = (False, False, True),
) -> NounPhrase:
    """A noun with a determiner, sometimes plural, sometimes with an adjective."""
    if "mostly-many" in noun.classes and True in plurals:
        plurals = MOSTLY_MANY
    if "unique" in noun.classes:
        determiners, plurals = UNIQUE, (False,)
    is_plural = noun.number == "count" and draw.choose(plurals)
    adjective = None
    if noun.classes & NAMELIKE:
        phrase = _without_english_article(determined(draw, "the", noun, False))
    elif "family" in noun.classes:
        phrase = relative(draw, noun, is_plural)
    elif "pair" in noun.classes:
        if draw.choose(with_adjective):
            adjective = draw.pick(adjectives_for(noun))
        determiners = tuple(x for x in determiners if x != "number")
        phrase = determined(draw, draw.choose(determiners), noun, True, adjective)
    else:
        if draw.choose(with_adjective) and adjectives_for(noun):
            adjective = draw.pick(adjectives_for(noun))
        if is_plural and "drink" in noun.classes:
            # People order "two coffees", but nobody prefers "two coffees": such sentences have no number.
            is_plural = "a" in determiners or "number" in determiners
            determiners = ("number",) if is_plural else determiners
        phrase = determined(draw, draw.choose(determiners), noun, is_plural, adjective)
    draw.expect(phrase.english)
    return phrase


def _without_english_article(phrase: NounPhrase) -> NounPhrase:
    return replace(phrase, english=phrase.english.removeprefix("the "))


def relative(draw: Draw, noun: Noun, is_plural: bool) -> NounPhrase:
    """A member of someone's family: my mother, his brothers."""
    if "single" in noun.classes:
        is_plural = False
    owners: tuple[tuple[str, int], ...] = OWNERS
    if "of-her" in noun.classes:
        owners = (("my", 0), ("your", 1), ("her", 2))
    elif "of-him" in noun.classes:
        owners = (("my", 0), ("your", 1), ("his", 2))
    return possessed(draw.choose(owners), noun, is_plural, None)
