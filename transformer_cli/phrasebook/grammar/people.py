"""Noun phrases for people: pronouns, names, family, pairs of people."""

from __future__ import annotations

from dataclasses import replace

from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, noun_phrase
from transformer_cli.phrasebook.words.lexicon import Name, names, nouns

PRONOUNS = (
    NounPhrase("I", "", "ms", person=0, english_person=0),
    NounPhrase("you", "", "ms", person=1, english_person=1),
    NounPhrase("he", "", "ms"),
    NounPhrase("she", "", "fs"),
    NounPhrase("we", "", "mp", person=3, english_person=3),
    NounPhrase("they", "", "mp", person=5, english_person=5),
)


def named(name: Name) -> NounPhrase:
    """The noun phrase for the name of a person or a place."""
    return NounPhrase(name.english, name.italian, name.form)


def joined_by_and(name: str) -> str:
    """A name after "e", which becomes "ed" before another e: "ed Elena"."""
    return f"{'ed' if name[0] in 'eE' else 'e'} {name}"


def together(first: NounPhrase, second: NounPhrase) -> NounPhrase:
    """ "Anna and Marco": feminine only if both are feminine."""
    form = "fp" if first.form[0] == second.form[0] == "f" else "mp"
    return NounPhrase(
        f"{first.english} and {second.english}",
        f"{first.italian} {joined_by_and(second.italian)}",
        form,
        person=5,
        english_person=5,
    )


_, YOU, HE, SHE, _, THEY = PRONOUNS

# Stressed pronouns: English, Italian (after a preposition), person
STRESSED = (
    ("me", "me", 0),
    ("you", "te", 1),
    ("him", "lui", 2),
    ("her", "lei", 2),
    ("us", "noi", 3),
    ("them", "loro", 5),
)
# For each person of the subject: which persons its object or companion cannot be ("I see me").
SELF = {0: {0, 3}, 1: {1}, 2: set[int](), 3: {0, 3}, 4: {1}, 5: set[int]()}
EXPLICIT = ("io", "tu", "lui", "noi", "voi", "loro")

KNOWN: tuple[str, ...] = ("the", "the", "this", "that", "my", "every")
UNKNOWN: tuple[str, ...] = ("the", "the", "this", "that")
SUBJECT_KINDS = ("pronoun",) * 9 + ("name",) * 3 + ("person",) * 3 + ("family",) * 2 + ("pair",)


def person_subject(draw: Draw) -> NounPhrase:
    """A subject: a pronoun, a name, a noun for a person, or two people."""
    kind = draw.choose(SUBJECT_KINDS)
    if kind == "pronoun":
        phrase = draw.choose((*PRONOUNS, PRONOUNS[0], HE, SHE))
    elif kind == "name":
        phrase = named(draw.pick(names("person")))
    elif kind == "family":
        return noun_phrase(draw, draw.pick(nouns("family")))
    elif kind == "pair":
        phrase = _pair(draw)
    else:
        noun = draw.pick(nouns("grown", "young", "known", "job"))
        return noun_phrase(draw, noun, KNOWN if "known" in noun.classes else UNKNOWN)
    draw.expect(phrase.english)
    return phrase


def _pair(draw: Draw) -> NounPhrase:
    name = named(draw.pick(names("person")))
    kind = draw.choose(("I", "you", "name"))
    if kind == "I":
        return NounPhrase(
            f"{name.english} and I", f"io {joined_by_and(name.bare)}", "mp", False, 3, 3
        )
    if kind == "you":
        return NounPhrase(
            f"you and {name.english}", f"tu {joined_by_and(name.bare)}", "mp", False, 4, 4
        )
    other = named(draw.pick(names("person")))
    if other.english == name.english:
        return name
    return together(name, other)


def person_object(draw: Draw) -> NounPhrase:
    """An object: the name of a person, or a noun for a person."""
    if draw.choose(("name", "noun")) == "name":
        phrase = named(draw.pick(names("person")))
        draw.expect(phrase.english)
        return phrase
    noun = draw.pick(nouns("grown", "young", "known", "family"))
    return noun_phrase(draw, noun, ("the", "the", "a", "my"))


def companion(draw: Draw, subject: NounPhrase) -> tuple[str, str]:
    """The person who accompanies the subject: "with us", "con noi"; "with my mother"."""
    kind = draw.choose(("pronoun", "pronoun", "name", "noun"))
    if kind == "pronoun":
        english, italian, person = draw.choose(STRESSED)
        if person in SELF[subject.person]:
            raise DeadEndError
        return draw.expect(f"with {english}"), f"con {italian}"
    if kind == "name":
        name = draw.pick(names("person"))
        if name.english in subject.english:
            raise DeadEndError
        return draw.expect(f"with {name.english}"), f"con {name.italian}"
    noun = draw.pick(nouns("family", "friendly", "young"))
    phrase = noun_phrase(draw, noun, ("my", "my", "the", "a"), with_adjective=(False,))
    return draw.expect(f"with {phrase.english}"), phrase.after("con")


def named_outright(subject: NounPhrase) -> NounPhrase:
    """The subject with its Italian pronoun, which stands where two people are contrasted."""
    if subject.bare:
        return subject
    pronoun = "lei" if subject.english == "she" else EXPLICIT[subject.person]
    return replace(subject, bare=pronoun)


def told_apart(subject: NounPhrase) -> NounPhrase:
    """The subject of a clause that follows one with another subject.

    Italian verbs do not tell he, she, it and they from the earlier subject: "Il negozio era chiuso
    perché lui era malato". The pronouns I, you and we can be left out.
    """
    return named_outright(subject) if subject.person in {2, 5} else subject
