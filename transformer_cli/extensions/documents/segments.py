"""Segments: the texts of a document that are translated, with the markup inside them, and what a document must offer.

A format reads a `Document` from bytes. Each block of text (a paragraph, a cell, a title) is one segment. The markup
inside a segment, such as <b>, is not text: it is a `Markup` between the pieces of text. `document_translation.py`
translates all segments and moves the markup with its words; then the document writes itself with the translations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol


class Role(Enum):
    """What a piece of markup does with the text beside it."""

    OPEN = "open"
    """It begins a range of text, such as <b>."""
    CLOSE = "close"
    """It ends the range that the OPEN with the same number has begun."""
    POINT = "point"
    """It stands between two words, such as an image or the mark of a footnote."""
    WORD = "word"
    """It takes the place of a word and is not translated, such as a placeholder or <code>x</code>."""


class Markup(NamedTuple):
    """A piece of markup inside a segment."""

    role: Role
    number: int
    """Of a segment: each POINT and WORD has its own number, and OPEN and CLOSE of one range have the same."""
    raw: str
    """What stands in the file; only the format reads it."""
    start: int | None = None
    """Where it stands in the text of a file, if other parts of the file that change may lie in it."""


Piece = str | Markup
"""Plain text, in which all escapes of the format are resolved, or markup."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A text to translate.

    Ranges are nested: each OPEN has a CLOSE behind it in the same segment, and two ranges never overlap in part.
    """

    pieces: tuple[Piece, ...]
    place: str
    """Where it stands, for messages, such as "line 12"."""
    keeps_spaces: bool = False
    """Whether line breaks and several spaces in a row have a meaning, as in a plain text; then each line is translated
    by itself. Else all white space between two words is one space, as in HTML."""

    @classmethod
    def plain(cls, text: str, place: str, *, keeps_spaces: bool = True) -> "Segment":
        """A segment without markup."""
        return cls((text,), place, keeps_spaces)


@dataclass(frozen=True, slots=True)
class TranslatedSegment:
    """The translation of a segment: the same markup, each exactly once, with the translated text around it."""

    pieces: tuple[Piece, ...]
    """As those of the segment if nothing was translated."""
    doubts: tuple[str, ...] = ()
    """Why a person should look at it; a format that can mark a translation (fuzzy, needs-review) does so."""

    @property
    def text(self) -> str:
        """The text without markup."""
        return plain_text(self.pieces)


class Languages(NamedTuple):
    """The languages of a translation, such as en and it."""

    source: str
    target: str


class Document(Protocol):
    """A file that holds text: it gives its segments, and writes itself with their translations."""

    @property
    def segments(self) -> Sequence[Segment]:
        """What is to translate, in order."""

    def write(self, translations: Sequence[TranslatedSegment], languages: Languages) -> bytes:
        """The document with other texts. A segment whose pieces did not change keeps its bytes.

        Args:
            translations: one for each segment, in order.
            languages: a document that names its language names the target language afterwards.
        """


def plain_text(pieces: Sequence[Piece]) -> str:
    """The text of pieces, without markup."""
    return "".join(piece for piece in pieces if isinstance(piece, str))


def has_letter(text: str) -> bool:
    """Whether there is anything to translate in a text."""
    return any(map(str.isalpha, text))


def merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces in which two texts never stand side by side."""
    result: list[Piece] = []
    for piece in pieces:
        last = result[-1] if result else None
        if isinstance(piece, str) and isinstance(last, str):
            result[-1] = last + piece
        elif piece:
            result.append(piece)
    return result
