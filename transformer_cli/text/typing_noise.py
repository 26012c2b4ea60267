"""Training noise: a pair of sentences, changed as people change a text when they type it.

The changes are those of OpusTrainer's modifiers (Bogoychev et al. 2023, "OpusCleaner and OpusTrainer, open source
toolkits for training Machine Translation and Large Language Models"), as far as they concern typing."""

import re
import unicodedata
from random import Random

from transformer_cli.config import NoiseConfig

# A typing error in a word of less than four letters often gives another word.
_WORD = re.compile(r"[^\W\d_]{4,}")
_END_MARK = re.compile(r"\s*[.!?。！？]$")  # noqa: RUF001 - marks of Chinese and Japanese
_STRAIGHT_MARKS = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u201e": '"',
        "\u00ab": '"',
        "\u00bb": '"',
        "\u2013": "-",
        "\u2014": "-",
        "\u2026": "...",
    }
)
_OPENING_QUOTE = re.compile(r'(?<!\S)"|(?<=[(\[])"')
_OPENING_APOSTROPHE = re.compile(r"(?<!\S)'")


def with_noise(source: str, target: str, noise: NoiseConfig, numbers: Random) -> tuple[str, str]:
    """A pair with the changes that are drawn for it.

    Args:
        source, target: one pair of sentences.
        noise: the probability of each change.
        numbers: the same random numbers give the same pair.
    """
    if numbers.random() < noise.typographic_marks:
        source = _with_other_marks(source)
    if numbers.random() < noise.missing_accents:
        source = _without_accents(source)
    if numbers.random() < noise.missing_end and _END_MARK.search(target):
        source, target = _without_end(source, target)
    if noise.typos:
        source = _with_typos(source, noise.typos, numbers)
    if numbers.random() < noise.small_letters:
        source = source.lower()
    elif numbers.random() < noise.capitals:
        source, target = source.upper(), target.upper()
    return source, target


def _with_other_marks(text: str) -> str:
    straight = text.translate(_STRAIGHT_MARKS)
    if straight != text:
        return straight
    text = _OPENING_QUOTE.sub("\u201c", text).replace('"', "\u201d")
    text = _OPENING_APOSTROPHE.sub("\u2018", text).replace("'", "\u2019")
    return text.replace("...", "\u2026").replace(" - ", " \u2013 ")


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    letters = (sign for sign in decomposed if not unicodedata.combining(sign))
    return unicodedata.normalize("NFC", "".join(letters))


def _without_end(source: str, target: str) -> tuple[str, str]:
    shorter = _END_MARK.sub("", source), _END_MARK.sub("", target)
    # A text such as "..." would be empty, and a source without a mark loses nothing.
    return shorter if all(shorter) and shorter[0] != source else (source, target)


def _with_typos(text: str, share: float, numbers: Random) -> str:
    letters = sorted({sign for word in _WORD.findall(text) for sign in word.lower()})

    def typed(match: re.Match[str]) -> str:
        word = match[0]
        if numbers.random() >= share:
            return word
        place = numbers.randrange(1, len(word) - 1)  # the first letter is rarely wrong
        before, at, after = word[:place], word[place], word[place + 1 :]
        kind = numbers.randrange(4)
        if kind == 0:
            return before + after[0] + at + after[1:]
        middle = ["", at + at, numbers.choice(letters)][kind - 1]
        return before + middle + after

    return _WORD.sub(typed, text)
