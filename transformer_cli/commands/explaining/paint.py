"""Colours of a terminal, and blocks whose darkness stands for a number."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from tqdm.utils import disp_len, disp_trim

from transformer_cli.escaping import on_one_line

_CODES = {"heading": "1", "chosen": "1;32", "finished": "36", "dropped": "2", "weight": "34"}
_BLOCKS = " ·░▒▓█"


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


def padded(text: str, width: int) -> str:
    """A text of a corpus on one line, cut or filled to a number of columns; a Chinese character takes two."""
    shown = on_one_line(text)
    if disp_len(shown) > width:
        shown = f"{disp_trim(shown, width - 1)}…"
    return shown + " " * (width - disp_len(shown))
