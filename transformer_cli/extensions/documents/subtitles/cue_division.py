"""Divides a translated sentence among cues and lines: at word ends, in proportion to given shares."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from transformer_cli.extensions.documents.segments import Markup, Piece, Role
from transformer_cli.text.languages import has_spaces
from transformer_cli.text.layout import display_width

MAX_WIDTH = 42
"""The characters of a line of subtitles."""
MAX_LINES = 2
_PAUSE = tuple(",;:.!?\u2026\u3002\u3001\uff0c")
# How many characters farther away the end of a clause may be, to be preferred to the end of another word.
_BONUS = 6
_WORD = re.compile(r"\s*\S+")
_CHARACTER = re.compile(r"\s*(?:[!-~]+|\S)")


class Word(NamedTuple):
    """A word with the markup that touches it."""

    pieces: tuple[Piece, ...]
    gap: str
    """The white space before it."""

    @property
    def text(self) -> str:
        """Without markup."""
        return "".join(piece for piece in self.pieces if isinstance(piece, str))


def words_of(pieces: Sequence[Piece], language: str) -> list[Word]:
    """The words of a text; in a language without spaces, its characters."""
    pattern = _WORD if has_spaces(language) else _CHARACTER
    words: list[Word] = []
    waiting: list[Piece] = []
    gap = ""  # the white space before the next word
    for piece in pieces:
        if isinstance(piece, str):
            for match in pattern.finditer(piece):
                text = match[0].lstrip()
                gap += match[0][: len(match[0]) - len(text)]
                if words and not gap and pattern is _WORD:
                    last = words.pop()  # markup stands inside a word
                    words.append(Word((*last.pieces, *waiting, text), last.gap))
                else:
                    words.append(Word((*waiting, text), gap))
                waiting, gap = [], ""
            gap += piece[len(piece.rstrip()) :]
        elif piece.role is Role.CLOSE and words and not waiting:
            words[-1] = Word((*words[-1].pieces, piece), words[-1].gap)
        else:
            waiting.append(piece)
    if waiting and words:
        words[-1] = Word((*words[-1].pieces, *waiting), words[-1].gap)
    return words


def width_of(words: Sequence[Word]) -> int:
    """The width of words on one line."""
    text = "".join(word.gap + word.text for word in words)
    return display_width(text.strip())


def divided(words: Sequence[Word], shares: Sequence[float]) -> list[list[Word]]:
    """Words in as many parts as there are shares; a part has at least one word, as long as there are enough words.

    Args:
        shares: how long each part is to be; only their proportions count.
    """
    ends = _ends(words)
    parts: list[list[Word]] = []
    first, passed = 0, 0.0
    for number, share in enumerate(shares):
        passed += share
        num_left = len(shares) - number - 1
        if not num_left:
            parts.append(list(words[first:]))
            break
        wanted = ends[-1] * passed / sum(shares) if ends else 0.0
        candidates = range(first + 1, max(first + 1, len(words) - num_left) + 1)
        last = min(
            (place for place in candidates if place <= len(words)),
            key=lambda place: abs(ends[place - 1] - wanted) - _BONUS * _is_pause(words[place - 1]),
            default=len(words),
        )
        parts.append(list(words[first:last]))
        first = last
    return parts


def lines_of(words: Sequence[Word]) -> list[list[Word]]:
    """Words on one line, or on two of about the same width."""
    if width_of(words) <= MAX_WIDTH or len(words) < 2:
        return [list(words)]
    best = min(
        range(1, len(words)),
        key=lambda place: (
            max(MAX_WIDTH, width_of(words[:place]), width_of(words[place:])),
            abs(width_of(words[:place]) - width_of(words[place:])) - _BONUS * _is_pause(words[place - 1]),
        ),
    )  # fmt: skip
    return [list(words[:best]), list(words[best:])]


def screens_of(words: Sequence[Word], max_screens: int) -> list[list[Word]]:
    """Words in parts that fit on two lines each; fewer and wider ones, if there may not be as many."""
    widths = [display_width(word.text) for word in words]
    if max(widths, default=0) > MAX_WIDTH:
        return divided(words, [1.0] * max(1, min(max_screens, len(words))))
    fewest = max(1, -(-sum(widths) // (MAX_LINES * MAX_WIDTH)))
    for number in range(fewest, max_screens):
        parts = divided(words, [1.0] * number)
        if all(all(width_of(line) <= MAX_WIDTH for line in lines_of(part)) for part in parts):
            return parts
    return divided(words, [1.0] * max(1, min(max_screens, len(words))))


def balanced(screens: Sequence[Sequence[Sequence[Word]]]) -> list[list[Piece]]:
    """The pieces of each screen, with its line breaks; a range that goes on is closed and opened again."""
    result: list[list[Piece]] = []
    opened: list[Markup] = []
    every = [piece for lines in screens for line in lines for word in line for piece in word.pieces]
    closing = {
        piece.number: piece
        for piece in every
        if isinstance(piece, Markup) and piece.role is Role.CLOSE
    }
    for lines in screens:
        pieces: list[Piece] = list(opened)
        for line_number, line in enumerate(lines):
            pieces += ["\n"] if line_number else []
            for number, word in enumerate(line):
                pieces += [" "] if number and word.gap else []
                pieces += word.pieces
                opened = _still_open(opened, word)
        pieces += [closing[each.number] for each in reversed(opened)]
        result.append(pieces)
    return result


def _still_open(opened: Sequence[Markup], word: Word) -> list[Markup]:
    """The ranges that are open after a word."""
    result = list(opened)
    for piece in word.pieces:
        if isinstance(piece, Markup) and piece.role is Role.OPEN:
            result.append(piece)
        elif isinstance(piece, Markup) and piece.role is Role.CLOSE:
            result.pop()
    return result


def _ends(words: Sequence[Word]) -> list[int]:
    """The width of the words up to each of them."""
    ends, total = [], 0
    for word in words:
        total += display_width(word.gap + word.text)
        ends.append(total)
    return ends


def _is_pause(word: Word) -> bool:
    return word.text.endswith(_PAUSE)
