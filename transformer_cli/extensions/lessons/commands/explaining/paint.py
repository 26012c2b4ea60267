"""Colours of a terminal, and blocks whose darkness stands for a number."""

import os
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from tqdm.utils import disp_len, disp_trim

from transformer_cli.process.escaping import on_one_line

_CODES = {"heading": "1", "chosen": "1;32", "finished": "36", "dropped": "2", "weight": "34"}
_BLOCKS = " ·░▒▓█"
_MAX_NAME = 5  # characters of the name of a column


@dataclass(frozen=True, slots=True)
class Paint:
    """Puts colours around texts, or leaves them as they are."""

    has_colors: bool

    @classmethod
    def of(cls, output: TextIO, environment: Mapping[str, str] = os.environ) -> "Paint":
        """Colours for a terminal, unless NO_COLOR is set."""
        is_wanted = not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
        return cls(output.isatty() and is_wanted)

    def __call__(self, text: str, style: str) -> str:
        """The text in the colour of a style; `kept` is an ordinary text."""
        code = _CODES.get(style)
        return text if code is None or not self.has_colors else f"\x1b[{code}m{text}\x1b[0m"


def block(share: float) -> str:
    """A character for a number from 0 to 1; a space stands for less than 0.05."""
    if share < 0.05:
        return _BLOCKS[0]
    return _BLOCKS[min(len(_BLOCKS) - 1, 1 + int(share * (len(_BLOCKS) - 1)))]


def bar(share: float, width: int) -> str:
    """A bar for a number from 0 to 1."""
    return f"{'█' * round(share * width):<{width}}"


def names_downwards(names: Sequence[str]) -> list[str]:
    """Lines that name columns of one character each: every name is written from top to bottom.

    A name is cut to five characters. A name with a character that is not one column wide, such as a Chinese one, becomes
    the number of its column, from 0.
    """
    shown = [
        name if all(map(_is_one_column, name)) else str(place)
        for place, name in enumerate(map(_without_spaces, names))
    ]
    height = min(max(map(len, shown), default=0), _MAX_NAME)
    return ["".join(name[line : line + 1] or " " for name in shown) for line in range(height)]


def _is_one_column(character: str) -> bool:
    return unicodedata.category(character)[0] not in "MC" and disp_len(character) == 1


def _without_spaces(name: str) -> str:
    return on_one_line(name).strip()


def padded(text: str, width: int) -> str:
    """A text of a corpus on one line, cut or filled to a number of columns; a Chinese character takes two."""
    shown = on_one_line(text)
    if disp_len(shown) > width:
        shown = f"{disp_trim(shown, width - 1)}…"
    return shown + " " * (width - disp_len(shown))
