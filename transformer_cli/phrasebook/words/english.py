"""The forms of English words: articles, plurals, verb forms, comparison, contractions."""

from __future__ import annotations

import re
from functools import cache

VOWELS = frozenset("aeiou")
SOUNDS_LIKE_A_CONSONANT = ("uni", "use", "eu", "one")
SILENT_H = ("hour", "honest")
DOUBLED_WITH_TWO_SYLLABLES = frozenset({"forget", "prefer", "begin", "travel", "cancel"})
PERSON_BE_PRESENT = ("am", "are", "is", "are", "are", "are")
PERSON_BE_PAST = ("was", "were", "was", "were", "were", "were")
CONTRACTIONS = (
    ("cannot", "can't"),
    ("will not", "won't"),
    ("do not", "don't"),
    ("does not", "doesn't"),
    ("did not", "didn't"),
    ("is not", "isn't"),
    ("are not", "aren't"),
    ("was not", "wasn't"),
    ("were not", "weren't"),
    ("has not", "hasn't"),
    ("have not", "haven't"),
    ("I am", "I'm"),
    ("it is", "it's"),
    ("It is", "It's"),
    ("let us", "let's"),
)
CONTRACTIONS_BEFORE_A_WORD = (
    ("you are", "you're"),
    ("we are", "we're"),
    ("they are", "they're"),
    ("he is", "he's"),
    ("she is", "she's"),
    ("that is", "that's"),
    ("there is", "there's"),
    ("where is", "where's"),
    ("what is", "what's"),
    ("I will", "I'll"),
    ("you will", "you'll"),
    ("he will", "he'll"),
    ("she will", "she'll"),
    ("we will", "we'll"),
    ("they will", "they'll"),
    ("I would", "I'd"),
    ("we would", "we'd"),
)
_CONTRACTIBLE = re.compile(
    r"(?<!and )\b(?:(?:"
    + "|".join(long for long, _ in CONTRACTIONS)
    # Not at the end ("I know where he is.") and not before a pronoun ("Where is he?").
    + r")|(?:"
    + "|".join(long for long, _ in CONTRACTIONS_BEFORE_A_WORD)
    + r")(?= (?!(?:not|he|she|it)\b)))\b"
)
_SHORT_FORMS = dict(CONTRACTIONS + CONTRACTIONS_BEFORE_A_WORD)


@cache
def indefinite_article(word: str) -> str:
    """ "a " or "an ", by the sound of the word that follows."""
    lower = word.lower()
    if lower.startswith(SILENT_H):
        return "an "
    sounds_open = lower[0] in VOWELS and not lower.startswith(SOUNDS_LIKE_A_CONSONANT)
    return "an " if sounds_open else "a "


@cache
def plural_of(noun: str) -> str:
    """The regular plural; irregular ones stand in the tables."""
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in VOWELS:
        return noun[:-1] + "ies"
    return noun + "s"


@cache
def third_person(verb: str) -> str:
    """The form after he, she, it: eats, goes, cries, has."""
    if verb == "have":
        return "has"
    if verb.endswith("o"):
        return verb + "es"
    return plural_of(verb)


def _doubles(word: str) -> bool:
    """Whether the last consonant is doubled before a vowel: stop (stopping), big (bigger)."""
    if word in DOUBLED_WITH_TWO_SYLLABLES:
        return True
    if len(word) < 3 or word[-1] in "wxy" or word[-1] in VOWELS or word[-2] not in VOWELS:
        return False
    return word[-3] not in VOWELS and sum(letter in "aeiouy" for letter in word) == 1


@cache
def ing_form(verb: str) -> str:
    """The present participle: eating, writing, swimming, dying."""
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith("ee") and verb != "be":
        return verb[:-1] + "ing"
    return (verb + verb[-1] if _doubles(verb) else verb) + "ing"


@cache
def regular_past(verb: str) -> str:
    """The past of a regular verb: called, loved, tried, stopped."""
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in VOWELS:
        return verb[:-1] + "ied"
    return (verb + verb[-1] if _doubles(verb) else verb) + "ed"


@cache
def _has_short_degrees(adjective: str) -> bool:
    num_groups = len(re.findall(r"[aeiouy]+", adjective.removesuffix("e")))
    return num_groups <= 1 or (num_groups == 2 and adjective.endswith(("y", "ple")))


def _with_ending(adjective: str, ending: str) -> str:
    if adjective.endswith("e"):
        return adjective + ending[1:]
    if adjective.endswith("y") and adjective[-2] not in VOWELS:
        return adjective[:-1] + "i" + ending
    return (adjective + adjective[-1] if _doubles(adjective) else adjective) + ending


@cache
def comparative(adjective: str) -> str:
    """ "bigger", "more expensive"."""
    if _has_short_degrees(adjective):
        return _with_ending(adjective, "er")
    return f"more {adjective}"


@cache
def superlative(adjective: str) -> str:
    """ "biggest", "most expensive", without the article."""
    if adjective == "good":
        return "best"
    if _has_short_degrees(adjective):
        return _with_ending(adjective, "est")
    return f"most {adjective}"


def contracted(sentence: str) -> str:
    """The sentence with the contractions of everyday speech: don't, isn't, I'm."""
    return _CONTRACTIBLE.sub(lambda match: _SHORT_FORMS[match.group()], sentence)
