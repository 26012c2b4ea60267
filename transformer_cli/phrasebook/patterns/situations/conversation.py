"""Sentence patterns of conversation: fixed phrases, and greetings or names before a sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, partial

from transformer_cli.phrasebook.grammar.adverbials import NOTHING, Both
from transformer_cli.phrasebook.grammar.clauses import finished
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.patterns.complex_sentences import infinitives
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.patterns.simple_sentences import (
    being,
    full_verbs,
    having,
    liking,
    object_pronouns,
    questions,
    weather,
)
from transformer_cli.phrasebook.patterns.situations import daily_life, directions, travel
from transformer_cli.phrasebook.patterns.situations.small_talk import ADDRESSES
from transformer_cli.phrasebook.words.lexicon import ADJECTIVES, ADVERBS, NAMES, NOUNS, names
from transformer_cli.phrasebook.words.word_tables import read_table


@dataclass(frozen=True, slots=True)
class Phrase:
    """A fixed phrase; `polite`: the Italian for a stranger, empty where nobody says it to one."""

    english: str
    italian: str
    polite: str
    mark: str


def _read_phrase(row: tuple[str, ...]) -> Phrase:
    english, italian, polite, mark = row
    return Phrase(english, italian, {"=": italian, "-": ""}.get(polite, polite), mark)


PHRASES = tuple(_read_phrase(row) for row in read_table("phrases.tsv", columns=4))
NEUTRAL_OPENERS = (("good morning", "buongiorno"), ("good evening", "buonasera"))
FRIENDLY_OPENERS = (("hello", "ciao"), ("hi", "ciao"))
ANSWERS: tuple[str, ...] = ("yes", "no", "very well", "maybe", "thank", "I agree", "I hope")
ANSWERS += ("you are welcome", "see you", "of course", "I think", "it does not matter")
ANSWERS += ("everything",)
POLITE_OPENERS = (("excuse me", "scusi"),)


def phrase_among_friends(draw: Draw) -> Both:
    """ "How are you, Anna?", "Come stai, Anna?"."""
    phrase = draw.choose(PHRASES)
    draw.expect(phrase.english)
    turn = draw.choose(("plain", "name_first", "name_last", "name_last", "hello"))
    if turn == "plain":
        return finished(draw, phrase.english, phrase.italian, phrase.mark)
    name = draw.pick(names("person"))
    draw.expect(name.english)
    if turn == "name_first":
        words = f"{name.english}, {phrase.english}", f"{name.italian}, {phrase.italian}"
    elif turn == "name_last":
        words = f"{phrase.english}, {name.english}", f"{phrase.italian}, {name.italian}"
    else:
        hello = draw.choose(FRIENDLY_OPENERS)
        words = (
            f"{hello[0]} {name.english}, {phrase.english}",
            f"{hello[1]} {name.italian}, {phrase.italian}",
        )
    return finished(draw, *words, phrase.mark)


def phrase_to_a_stranger(draw: Draw) -> Both:
    """ "Excuse me, can you help me?", "Scusi, mi può aiutare?"."""
    phrase = draw.choose(PHRASES)
    draw.expect(phrase.english)
    if not phrase.polite:
        raise DeadEndError
    lead = draw.choose((NOTHING, *NEUTRAL_OPENERS, *POLITE_OPENERS))
    title = draw.choose((("", ""), *((f", {x}", f", {y}") for x, y in ADDRESSES)))
    please = draw.choose((NOTHING, (", please", ", per favore")))
    if please[0] and not phrase.english.startswith(("can ", "the ", "one ", "wait ", "come ")):
        raise DeadEndError
    if lead[0] and phrase.english.startswith(ANSWERS):
        raise DeadEndError
    if lead[0] == "excuse me" and phrase.mark != "?":
        raise DeadEndError  # nobody says "Excuse me, I am fine"
    if (please[0] and title[0]) or not (please[0] or title[0] or lead[0] == "excuse me"):
        raise DeadEndError  # "please", "sir" or "excuse me" must make the English polite
    english = ", ".join(x for x in (lead[0], phrase.english) if x)
    italian = ", ".join(x for x in (lead[1], phrase.polite) if x)
    tail = please[0] + title[0], please[1] + title[1]
    return finished(draw, english + tail[0], italian + tail[1], phrase.mark)


@cache
def _capitalised() -> frozenset[str]:
    """The words of both languages, except "I", that have a capital letter everywhere."""
    names_of = {name.english for name in NAMES} | {name.italian for name in NAMES}
    english = {word.english for word in ADVERBS} | {word.english for word in ADJECTIVES}
    english |= {noun.english[0] for noun in NOUNS}
    return frozenset(word for word in names_of | english if word[0].isupper())


def continued(sentence: str, *always_capital: str) -> str:
    """A sentence as it follows an opening word: with a small first letter.

    Args:
        always_capital: words that keep their capital letter, as names do.
    """
    first = re.split(r"\W", sentence, maxsplit=1)[0]
    if first in _capitalised() or first in always_capital:
        return sentence
    return sentence[0].lower() + sentence[1:]


def _any_of(draw: Draw, patterns: tuple[Pattern, ...]) -> Both:
    pattern = draw.choose(tuple(range(len(patterns))))
    return patterns[pattern].build(draw)


def opened(draw: Draw, *, openers: tuple[Both, ...], patterns: tuple[Pattern, ...]) -> Both:
    """An opening, then a sentence of one of the patterns: "Good morning, where is the bank?"."""
    lead = draw.choose(openers)
    draw.expect(lead[0])
    english, italian = _any_of(draw, patterns)
    return _behind(lead, english, italian)


def _behind(lead: Both, english: str, italian: str) -> Both:
    english, italian = f"{lead[0]}, {continued(english, 'I')}", f"{lead[1]}, {continued(italian)}"
    return english[0].upper() + english[1:], italian[0].upper() + italian[1:]


def called(draw: Draw, *, patterns: tuple[Pattern, ...]) -> Both:
    """ "Anna, where are the keys?", "Anna, dove sono le chiavi?"."""
    name = draw.pick(names("person"))
    draw.expect(name.english)
    return _behind((name.english, name.italian), *_any_of(draw, patterns))


def _named(*modules_and_names: tuple[tuple[Pattern, ...], tuple[str, ...]]) -> tuple[Pattern, ...]:
    return tuple(
        pattern
        for patterns, wanted in modules_and_names
        for pattern in patterns
        if pattern.name in wanted
    )


WISHES = _named(
    (
        travel.PATTERNS,
        (
            "would_like_thing",
            "would_like_thing.please",
            "order_plainly",
            "can_i_have",
            "ticket",
            "room",
        ),
    ),
)
ENQUIRIES = _named(
    (being.PATTERNS, ("where_is", "there_is.question", "thing_is.present.question")),
    (travel.PATTERNS, ("how_much", "do_you_have.sir")),
    (directions.PATTERNS, ("far_from.question",)),
    (infinitives.PATTERNS, ("asks_politely",)),
    (weather.PATTERNS, ("weather.what", "weather.question")),
)
STATED = _named(
    (
        being.PATTERNS,
        (
            "person_is.present",
            "thing_is.present",
            "person_is_at.present",
            "thing_is_at.present",
            "person_is.past",
            "there_is",
        ),
    ),
    (having.PATTERNS, ("has.present", "state.present", "needs")),
    (liking.PATTERNS, ("likes.present", "likes_doing")),
    (
        full_verbs.PATTERNS,
        (
            "transitive.present",
            "transitive.progressive",
            "transitive.past",
            "transitive.future",
            "transitive.want",
            "motion.past",
            "motion.want",
            "motion.future",
            "motion.must",
        ),
    ),
    (daily_life.PATTERNS, ("speaks.present", "lives.present", "plays.present")),
    (object_pronouns.PATTERNS, ("sees_you.past", "sees_you.present", "gives_you.past")),
    (weather.PATTERNS, ("weather",)),
)
ASKED = _named(
    (being.PATTERNS, ("where_is", "person_is.present.question", "there_is.question")),
    (having.PATTERNS, ("has.present.question", "state.question")),
    (liking.PATTERNS, ("likes.present.question",)),
    (
        questions.PATTERNS,
        ("what_doing", "what.progressive", "what.past", "why.progressive", "where.present"),
    ),
    (
        full_verbs.PATTERNS,
        ("transitive.past.question", "transitive.want.question", "motion.want.question"),
    ),
)
YES_OR_NO = (("yes", "sì"), ("yes", "sì"), ("no", "no"))

PATTERNS = (
    Pattern("phrase.tu", phrase_among_friends, 1_350),
    Pattern("phrase.lei", phrase_to_a_stranger, 1_050),
    Pattern("greeted_wish", partial(opened, openers=NEUTRAL_OPENERS, patterns=WISHES), 70),
    Pattern("greeted_question", partial(opened, openers=NEUTRAL_OPENERS, patterns=ENQUIRIES), 40),
    Pattern("excused_question", partial(opened, openers=POLITE_OPENERS, patterns=ENQUIRIES), 50),
    Pattern("answered", partial(opened, openers=YES_OR_NO, patterns=STATED), 140),
    Pattern("called", partial(called, patterns=ASKED), 70),
)
