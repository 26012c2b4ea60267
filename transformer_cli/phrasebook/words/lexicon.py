"""The lexicon: nouns, adjectives, verbs, adverbs and names, read from the tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from transformer_cli.phrasebook.words import english, italian
from transformer_cli.phrasebook.words.word_tables import read_table


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun in both languages.

    english, italian: singular and plural; equal for a noun that has only one of them.
    form, plural_form: Italian gender and number, such as "ms" for uovo and "fp" for uova.
    number: count, mass or plural; two of them where the languages differ ("mass>plural").
    """

    lemma: str
    english: tuple[str, str]
    italian: tuple[str, str]
    form: str
    plural_form: str
    number: str
    classes: frozenset[str]
    place: str


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective in both languages; adjectives.tsv explains the fields."""

    lemma: str
    english: str
    comparative: str
    superlative: str
    italian: str
    position: str
    is_comparable: bool
    classes: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb in both languages.

    particle: the word after the English verb ("look for"); `splits`: a pronoun stands between.
    frame, objects, flags: verbs.tsv explains them; `barred`: the classes after "!".
    """

    lemma: str
    base: str
    past: str
    participle: str
    particle: str
    splits: bool
    italian: str
    auxiliary: str
    frame: str
    objects: frozenset[str]
    barred: frozenset[str]
    flags: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Adverb:
    """An adverb, or a fixed phrase used as one, in both languages."""

    lemma: str
    english: str
    italian: str
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A proper name in both languages; `form` is its Italian gender and number."""

    lemma: str
    english: str
    italian: str
    form: str
    kind: str


def _surface(entry: str) -> str:
    """An English entry without the explanation in brackets, which keeps two equal words apart."""
    return entry.split(" (")[0]


def _read_noun(row: tuple[str, ...]) -> Noun:
    english_cell, italian_cell, gender, number, classes, place = row
    entry, _, plural = english_cell.partition("/")
    singular = _surface(entry)
    italian_singular, _, italian_plural = italian_cell.partition("/")
    italian_plural, _, plural_gender = italian_plural.partition(":")
    if number == "count":
        plural = plural or english.plural_of(singular)
        italian_plural = italian_plural or italian.plural_of(italian_singular, gender)
    else:
        plural, italian_plural = singular, italian_singular
    return Noun(
        lemma=f"{entry}:noun",
        english=(singular, plural),
        italian=(italian_singular, italian_plural),
        form=gender + "s",
        plural_form=(plural_gender or gender) + "p",
        number=number,
        classes=frozenset(classes.split()),
        place="" if place == "-" else place,
    )


def _read_adjective(row: tuple[str, ...]) -> Adjective:
    english_cell, italian_cell, position, comparable, classes = row
    entry, _, comparative = english_cell.partition("/")
    surface = _surface(entry)
    return Adjective(
        lemma=f"{entry}:adjective",
        english=surface,
        comparative=comparative or english.comparative(surface),
        superlative=english.superlative(surface),
        italian=italian_cell,
        position=position,
        is_comparable=comparable == "yes",
        classes=frozenset(classes.split()),
    )


def _read_verb(row: tuple[str, ...]) -> Verb:
    english_cell, infinitive, auxiliary, frame, objects, flags = row
    forms, _, particle = _surface(english_cell).partition(" ")
    base, *parts = forms.split("/")
    classes = set(objects.split()) - {"-"}
    barred = {x for x in classes if x.startswith("!")}
    past, participle = parts if parts else [english.regular_past(base)] * 2
    return Verb(
        lemma=f"{base}{english_cell[len(forms) :].replace('~', '')}:verb:{infinitive}",
        base=base,
        past=past,
        participle=participle,
        particle=particle.removeprefix("~"),
        splits=particle.startswith("~"),
        italian=infinitive,
        auxiliary=auxiliary,
        frame=frame,
        objects=frozenset(classes - barred),
        barred=frozenset(x[1:] for x in barred),
        flags=frozenset(flags.split()) - {"-"},
    )


NOUNS = tuple(
    _read_noun(row)
    for table in ("living_nouns.tsv", "nouns.tsv", "everyday_nouns.tsv")
    for row in read_table(table, columns=6)
)
ADJECTIVES = tuple(_read_adjective(row) for row in read_table("adjectives.tsv", columns=5))
VERBS = tuple(_read_verb(row) for row in read_table("verbs.tsv", columns=6))
ADVERBS = tuple(Adverb(f"{row[0]}:adverb", *row) for row in read_table("adverbs.tsv", columns=3))
NAMES = tuple(
    Name(f"{row[0]}:name", row[0], row[1], row[2] + "s", row[3])
    for row in read_table("names.tsv", columns=4)
)


@cache
def nouns(*classes: str) -> tuple[Noun, ...]:
    """The nouns that belong to at least one of the classes."""
    wanted = frozenset(classes)
    return tuple(noun for noun in NOUNS if noun.classes & wanted)


@cache
def count_nouns(*classes: str) -> tuple[Noun, ...]:
    """The nouns of the classes that have a singular and a plural."""
    return tuple(noun for noun in nouns(*classes) if noun.number == "count")


@cache
def objects_of(verb: Verb) -> tuple[Noun, ...]:
    """The nouns that the verb can have as its object."""
    return tuple(
        noun for noun in NOUNS if noun.classes & verb.objects and not noun.classes & verb.barred
    )


@cache
def adjectives_for(noun: Noun, *, predicative: bool = False) -> tuple[Adjective, ...]:
    """The adjectives that make sense with a noun, before it or (predicative) after "be"."""
    return tuple(
        adjective
        for adjective in ADJECTIVES
        if adjective.classes & noun.classes and (predicative or adjective.position != "pred")
    )


@cache
def adjectives(*classes: str) -> tuple[Adjective, ...]:
    """The adjectives that go with at least one of the noun classes."""
    wanted = frozenset(classes)
    return tuple(adjective for adjective in ADJECTIVES if adjective.classes & wanted)


@cache
def verbs(*frames: str) -> tuple[Verb, ...]:
    """The verbs that have one of the frames, in the order of the table."""
    return tuple(verb for verb in VERBS if verb.frame in frames)


@cache
def verbs_with(flag: str, *frames: str) -> tuple[Verb, ...]:
    """The verbs that have one of the frames, and the flag."""
    return tuple(verb for verb in verbs(*frames) if flag in verb.flags)


@cache
def verbs_without(flag: str, *frames: str) -> tuple[Verb, ...]:
    """The verbs that have one of the frames, but not the flag."""
    return tuple(verb for verb in verbs(*frames) if flag not in verb.flags)


@cache
def the_verb(infinitive: str, base: str) -> Verb:
    """The verb with this Italian infinitive and this English base form."""
    return next(verb for verb in VERBS if verb.italian == infinitive and verb.base == base)


@cache
def adverbs(*kinds: str) -> tuple[Adverb, ...]:
    """The adverbs of these kinds."""
    return tuple(adverb for adverb in ADVERBS if adverb.kind in kinds)


@cache
def names(*kinds: str) -> tuple[Name, ...]:
    """The names of these kinds."""
    return tuple(name for name in NAMES if name.kind in kinds)


@cache
def places() -> tuple[Noun, ...]:
    """The nouns that name a place where someone can be or go."""
    return tuple(noun for noun in NOUNS if noun.place)


BE = the_verb("essere", "be")
HAVE = the_verb("avere", "have")
