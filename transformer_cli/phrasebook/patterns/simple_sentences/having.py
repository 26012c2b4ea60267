"""Sentence patterns with avere: possession, hunger and thirst, age, appearance, pain, need."""

from __future__ import annotations

from functools import partial

from transformer_cli.phrasebook.grammar.adverbials import Both, when
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    finished,
    italian_predicate,
    joined_words,
    question,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, determined, noun_phrase
from transformer_cli.phrasebook.grammar.people import person_subject
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.words.italian_verbs import present
from transformer_cli.phrasebook.words.lexicon import BE, HAVE, nouns, the_verb
from transformer_cli.phrasebook.words.number_words import english_number, italian_number

STATES = (
    ("hungry", "fame"),
    ("thirsty", "sete"),
    ("sleepy", "sonno"),
    ("hot", "caldo"),
    ("cold", "freddo"),
    ("afraid", "paura"),
    ("right", "ragione"),
    ("in a hurry", "fretta"),
)
EYE_COLOURS = (("blue", "azzurri"), ("green", "verdi"), ("brown", "castani"), ("black", "neri"))
HAIR = (
    ("long", "lunghi"),
    ("short", "corti"),
    ("black", "neri"),
    ("brown", "castani"),
    ("blond", "biondi"),
    ("white", "bianchi"),
    ("grey", "grigi"),
    ("curly", "ricci"),
)
AGES = (*range(2, 31), 35, 40, 45, 50, 55, 60, 65, 70, 75, 80)


def state(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "I am hungry", "Ho fame"."""
    subject = person_subject(draw)
    if asks and subject.person in {0, 3}:
        raise DeadEndError
    english, italian = draw.choose(STATES)
    draw.expect(english)
    if english not in {"right", "in a hurry"} and draw.choose((True, False, False)):
        english, italian = (
            f"very {english}",
            f"molt{'a' if italian in {'fame', 'sete', 'paura'} else 'o'} {italian}",
        )
    negative = not asks and draw.choose((True, False, False))
    make = question if asks else partial(statement, negative=negative)
    words = make(subject, VerbPhrase(BE, english), tense)[0]
    have = italian_predicate(subject, VerbPhrase(HAVE, "", italian), tense, negative=negative)
    return finished(draw, words, joined_words(subject.italian, have), "?" if asks else ".")


def age(draw: Draw, tense: str) -> Both:
    """ "I am twenty years old", "Ho vent'anni"."""
    subject = person_subject(draw)
    years = draw.choose(AGES)
    draw.expect(english_number(years))
    number = italian_number(years)
    is_elided = years >= 20 and years % 10 == 0
    years_in_italian = f"{number[:-1]}'anni" if is_elided else f"{number} anni"
    words = statement(subject, VerbPhrase(BE, f"{english_number(years)} years old"), tense)[0]
    have = italian_predicate(subject, VerbPhrase(HAVE, "", years_in_italian), tense)
    return finished(draw, words, joined_words(subject.italian, have))


def how_old(draw: Draw) -> Both:
    """ "How old is your sister?", "Quanti anni ha tua sorella?"."""
    subject = person_subject(draw)
    if subject.person in {0, 3}:
        raise DeadEndError
    english = f"how old {question(subject, VerbPhrase(BE), 'present')[0]}"
    verb = present("avere", subject.person)
    return finished(draw, english, joined_words("quanti anni", verb, subject.italian), "?")


def has(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "She has a red car"."""
    subject = person_subject(draw)
    if asks and subject.person in {0, 3}:
        raise DeadEndError
    pool = nouns("thing", "ownable", "pet", "clothing", "dwelling", "errand", "several", "money")
    noun = draw.pick(pool)
    if "family" in noun.classes:
        phrase = determined(
            draw, draw.choose(("a", "number", "many")), noun, draw.choose((True, False))
        )
    else:
        phrase = noun_phrase(draw, noun, ("a", "a", "a", "number", "the", "my", "many"))
    words = VerbPhrase(HAVE, phrase.english, phrase.italian)
    negative = not asks and draw.choose((True, False, False))
    make = question if asks else partial(statement, negative=negative)
    english, italian = make(subject, words, tense)
    return finished(draw, english, italian, "?" if asks else ".")


def looks(draw: Draw, *, asks: bool = False) -> Both:
    """ "Anna has green eyes", "Anna ha gli occhi verdi"."""
    subject = person_subject(draw)
    if asks and subject.person in {0, 3}:
        raise DeadEndError
    english, italian = draw.choose(EYE_COLOURS + HAIR)
    colours = {colour for colour, _ in EYE_COLOURS}
    has_eyes = (english, italian) in EYE_COLOURS and draw.choose((True, False))
    if has_eyes:
        words = VerbPhrase(HAVE, f"{english} eyes", f"gli occhi {italian}")
    elif english in colours and (english, italian) not in HAIR:
        raise DeadEndError
    else:
        words = VerbPhrase(HAVE, f"{english} hair", f"i capelli {italian}")
    make = question if asks else statement
    sentence = make(subject, words, "present")
    return finished(draw, *sentence, "?" if asks else ".")


def pain(draw: Draw) -> Both:
    """ "I have a headache", "Ho mal di testa"."""
    subject = person_subject(draw)
    english, italian = draw.choose(
        (
            ("a headache", "mal di testa"),
            ("a stomach ache", "mal di stomaco"),
            ("a sore throat", "mal di gola"),
            ("a toothache", "mal di denti"),
            ("a fever", "la febbre"),
            ("a cold", "il raffreddore"),
        )
    )
    tense = draw.choose(("present", "present", "past"))
    time = when(draw, tense) if tense == "past" else ("", "")
    words = statement(subject, VerbPhrase(HAVE, english, italian), tense)
    return finished(draw, joined_words(words[0], time[0]), joined_words(words[1], time[1]))


def needs(draw: Draw, *, asks: bool = False) -> Both:
    """ "We need two tickets", "Abbiamo bisogno di due biglietti"."""
    subject = person_subject(draw)
    if asks and subject.person in {0, 3}:
        raise DeadEndError
    noun = draw.pick(nouns("thing", "clothing", "device", "money", "counsel", "job"))
    phrase = noun_phrase(draw, noun, ("the", "a", "a", "my", "number", "this"))
    if noun.number != "count" and phrase.english.startswith("some "):
        phrase = NounPhrase(
            phrase.english, noun.italian[0], phrase.form, False, 2, phrase.english_person
        )
    need = the_verb("bisognare", "need")
    negative = not asks and draw.choose((True, False, False))
    make = question if asks else partial(statement, negative=negative)
    english = make(subject, VerbPhrase(need, phrase.english), "present")[0]
    have = italian_predicate(
        subject, VerbPhrase(HAVE, "", f"bisogno {phrase.after('di')}"), "present", negative=negative
    )
    return finished(draw, english, joined_words(subject.italian, have), "?" if asks else ".")


PATTERNS = (
    Pattern("state.present", partial(state, tense="present"), 50),
    Pattern("state.past", partial(state, tense="past"), 25),
    Pattern("state.question", partial(state, tense="present", asks=True), 20),
    Pattern("age.present", partial(age, tense="present"), 40),
    Pattern("age.past", partial(age, tense="past"), 20),
    Pattern("how_old", how_old, 45),
    Pattern("has.present", partial(has, tense="present"), 100),
    Pattern("has.past", partial(has, tense="past"), 50),
    Pattern("has.future", partial(has, tense="future"), 30),
    Pattern("has.present.question", partial(has, tense="present", asks=True), 50),
    Pattern("looks", looks, 30),
    Pattern("looks.question", partial(looks, asks=True), 30),
    Pattern("pain", pain, 30),
    Pattern("needs", needs, 70),
    Pattern("needs.question", partial(needs, asks=True), 25),
)
