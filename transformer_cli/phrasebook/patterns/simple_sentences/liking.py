"""Sentence patterns in which the person is a dative in Italian: like, miss, be interested, hurt."""

from __future__ import annotations

from functools import cache, partial

from transformer_cli.phrasebook.grammar.adverbials import Both
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    finished,
    joined_words,
    question,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, determined, noun_phrase
from transformer_cli.phrasebook.grammar.people import person_subject
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.words.english import ing_form
from transformer_cli.phrasebook.words.italian import definite_article
from transformer_cli.phrasebook.words.italian_verbs import future, plain_infinitive, present
from transformer_cli.phrasebook.words.lexicon import (
    BE,
    Noun,
    Verb,
    nouns,
    objects_of,
    the_verb,
    verbs,
    verbs_with,
)

INDIRECT = ("mi", "ti", "gli", "ci", "vi", "gli")
LIKEABLE = (
    "food",
    "drink",
    "show",
    "tune",
    "clothing",
    "vehicle",
    "sight",
    "pet",
    "town",
    "plant",
    "nature",
    "tale",
)


def to_whom(subject: NounPhrase) -> tuple[str, str]:
    """The Italian dative of the subject, as a phrase ("ad Anna", "") or as a clitic ("", "mi")."""
    if subject.bare and subject.person in {3, 4}:
        raise DeadEndError  # "io e Anna" has no dative
    if subject.bare:
        return subject.after("a"), ""
    if subject.english == "she":
        return "", "le"
    return "", INDIRECT[subject.person]


def _liked_thing(draw: Draw) -> tuple[Noun, NounPhrase, str]:
    """What is liked: noun, phrase and English words, without "the" for things in general."""
    noun = draw.pick(nouns(*LIKEABLE))
    is_kind = bool(noun.classes & {"food", "drink", "pet"}) and draw.choose((True, False))
    if is_kind:
        phrase = determined(
            draw, "the", noun, noun.number == "count" and "drink" not in noun.classes
        )
        return noun, phrase, draw.expect(phrase.english.removeprefix("the "))
    phrase = noun_phrase(draw, noun, ("the", "the", "this", "that", "my"))
    return noun, phrase, phrase.english


def likes(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "I like the red shoes", "Mi piacciono le scarpe rosse"."""
    negative = not asks and draw.choose((True, False, False))
    words = liking(draw, person_subject(draw), tense, negative=negative, asks=asks)
    return finished(draw, *words, "?" if asks else ".")


def liking(
    draw: Draw, subject: NounPhrase, tense: str, *, negative: bool, asks: bool = False
) -> Both:
    """The clause "I like the red shoes", "mi piacciono le scarpe rosse"."""
    _, phrase, thing = _liked_thing(draw)
    is_many = phrase.form[1] == "p"
    verb = {"present": ("piace", "piacciono"), "past": ("piaceva", "piacevano")}[tense][is_many]
    english = _english_like(subject, thing, tense, negative=negative, asks=asks)
    dative, clitic = to_whom(subject)
    no = "non" if negative else ""
    return english, joined_words(dative, no, clitic, verb, phrase.italian)


LIKE = the_verb("piacere", "like")


def _english_like(
    subject: NounPhrase, thing: str, tense: str, *, negative: bool, asks: bool
) -> str:
    phrase = VerbPhrase(LIKE, thing)
    if asks:
        if subject.person in {0, 3}:
            raise DeadEndError
        return question(subject, phrase, tense)[0]
    return statement(subject, phrase, tense, negative=negative)[0]


@cache
def pleasures() -> tuple[Verb, ...]:
    """The intransitive verbs for things that people like doing."""
    return tuple(x for x in verbs("intransitive") if x.base not in {"have", "cry", "smile", "wait"})


def likes_doing(draw: Draw, *, asks: bool = False) -> Both:
    """ "Anna likes swimming", "Ad Anna piace nuotare"."""
    subject = person_subject(draw)
    if draw.choose((True, False)):
        verb = draw.pick(pleasures())
        english, italian = "", ""
    else:
        verb = draw.pick(verbs_with("pastime", "transitive"))
        noun = draw.pick(objects_of(verb))
        phrase = noun_phrase(draw, noun, ("the", "this", "my", "bare"))
        english, italian = phrase.english, phrase.italian
    doing = ing_form(verb.base) + (f" {verb.particle}" if verb.particle else "")
    negative = not asks and draw.choose((True, False, False))
    words = _english_like(
        subject, joined_words(doing, english), "present", negative=negative, asks=asks
    )
    dative, clitic = to_whom(subject)
    liked = joined_words(
        dative, "non" if negative else "", clitic, "piace", plain_infinitive(verb.italian), italian
    )
    return finished(draw, words, liked, "?" if asks else ".")


def misses(draw: Draw, *, asks: bool = False) -> Both:
    """ "I miss my mother", "Mi manca mia madre"."""
    subject = person_subject(draw)
    missed = noun_phrase(draw, draw.pick(nouns("family", "pet", "friendly", "homelike")), ("my",))
    verb = "mancano" if missed.form[1] == "p" else "manca"
    phrase = VerbPhrase(the_verb("mancare", "miss"), missed.english)
    dative, clitic = to_whom(subject)
    if asks:
        if subject.person in {0, 3}:
            raise DeadEndError
        english = question(subject, phrase, "present")[0]
    else:
        english = statement(subject, phrase, "present")[0]
    return finished(
        draw, english, joined_words(dative, clitic, verb, missed.italian), "?" if asks else "."
    )


def misses_you(draw: Draw, *, asks: bool = False) -> Both:
    """ "I miss you a lot", "Mi manchi molto"."""
    subject = person_subject(draw)
    if asks and subject.person in {0, 3}:
        raise DeadEndError
    negative = not asks and draw.choose((True, False, False, False))
    tense = draw.choose(("present", "present", "future"))
    english, italian = missing(draw, subject, tense, negative=negative, asks=asks)
    return finished(draw, english, italian, "?" if asks else ".")


def missing(
    draw: Draw, subject: NounPhrase, tense: str, *, negative: bool, asks: bool = False
) -> Both:
    """The clause "I miss you a lot", "mi manchi molto"."""
    missed = draw.choose((("you", 1), ("him", 2), ("her", 2), ("them", 5), ("me", 0), ("us", 3)))
    if subject.person == missed[1] or {subject.person, missed[1]} == {0, 3}:
        raise DeadEndError
    tail = draw.choose((("", ""), ("", ""), ("a lot", "molto"), ("so much", "così tanto")))
    phrase = VerbPhrase(the_verb("mancare", "miss"), joined_words(missed[0], tail[0]))
    make = question if asks else partial(statement, negative=negative)
    english = make(subject, phrase, tense)[0]
    dative, clitic = to_whom(subject)
    verb = (present if tense == "present" else future)("mancare", missed[1])
    return english, joined_words(dative, "non" if negative else "", clitic, verb, tail[1])


def is_interested(draw: Draw, *, asks: bool = False) -> Both:
    """ "He is interested in history", "Gli interessa la storia"."""
    subject = person_subject(draw)
    if asks and subject.person in {0, 3}:
        raise DeadEndError
    noun = draw.pick(nouns("studied"))
    phrase = VerbPhrase(BE, f"interested in {noun.english[0]}")
    english = (
        question(subject, phrase, "present")[0]
        if asks
        else statement(subject, phrase, "present")[0]
    )
    dative, clitic = to_whom(subject)
    thing = definite_article(noun.italian[0], noun.form) + noun.italian[0]
    return finished(
        draw, english, joined_words(dative, clitic, "interessa", thing), "?" if asks else "."
    )


def hurts(draw: Draw, *, asks: bool = False) -> Both:
    """ "My feet hurt", "Mi fanno male i piedi"."""
    noun = draw.pick(nouns("pain"))
    is_plural = "pair" in noun.classes and draw.choose((True, False))
    owner, clitic = draw.choose(
        (("my", "mi"), ("my", "mi"), ("your", "ti"), ("his", "gli"), ("her", "le"))
    )
    if asks:
        owner, clitic = draw.choose((("your", "ti"), ("his", "gli"), ("her", "le")))
    english_noun, italian_noun = noun.english[is_plural], noun.italian[is_plural]
    form = noun.plural_form if is_plural else noun.form
    thing = definite_article(italian_noun, form) + italian_noun
    verb = "fanno male" if is_plural else "fa male"
    if asks:
        english = f"{'do' if is_plural else 'does'} {owner} {english_noun} hurt"
    else:
        english = f"{owner} {english_noun} {'hurt' if is_plural else 'hurts'}"
    return finished(draw, english, joined_words(clitic, verb, thing), "?" if asks else ".")


PATTERNS = (
    Pattern("likes.present", partial(likes, tense="present"), 150),
    Pattern("likes.present.question", partial(likes, tense="present", asks=True), 60),
    Pattern("likes.past", partial(likes, tense="past"), 40),
    Pattern("likes_doing", likes_doing, 70),
    Pattern("likes_doing.question", partial(likes_doing, asks=True), 25),
    Pattern("misses", misses, 60),
    Pattern("misses.question", partial(misses, asks=True), 22),
    Pattern("misses_you", misses_you, 120),
    Pattern("misses_you.question", partial(misses_you, asks=True), 40),
    Pattern("is_interested", is_interested, 20),
    Pattern("is_interested.question", partial(is_interested, asks=True), 30),
    Pattern("hurts", hurts, 40),
    Pattern("hurts.question", partial(hurts, asks=True), 60),
)
