"""The limits of documents: sizes, numbers and depths, beyond which a file is refused before it takes the memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from transformer_cli.extensions.documents.segments import Segment, plain_text
from transformer_cli.process.errors import DataError

Part = TypeVar("Part")

MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What a document may have at most."""

    max_bytes: int = 64 * MEBIBYTE
    """Of the file."""
    max_unpacked_bytes: int = 256 * MEBIBYTE
    """Of all parts of a zip file together, after decompression."""
    max_part_bytes: int = 64 * MEBIBYTE
    """Of a part of a zip file that is read, after decompression."""
    max_ratio: int = 200
    """How many bytes one byte of a zip file may become; ordinary office files stay below 30."""
    max_parts: int = 10_000
    """The number of files in a zip file."""
    max_depth: int = 200
    """How deep elements or values may be nested."""

    def check_size(self, data: bytes) -> None:
        """Refuse a file that is too large.

        Raises:
            DataError: it has more than `max_bytes`.
        """
        if len(data) > self.max_bytes:
            raise DataError(
                f"the document has {len(data) / MEBIBYTE:.0f} MiB; at most {self.max_bytes / MEBIBYTE:.0f} MiB are read",
                hint="divide the document",
            )

    def check_depth(self, depth: int, place: str) -> None:
        """Refuse values or elements that are nested too deeply.

        Args:
            depth: how many of them are around a place, itself included.
            place: for the message, such as "line 12".

        Raises:
            DataError: there are more than `max_depth`.
        """
        if depth > self.max_depth:
            raise DataError(
                f"{place}: nested more than {self.max_depth} deep",
                hint="no ordinary document is nested so deeply; was the file made by a program in error?",
            )


LIMITS = ReadingLimits()
"""The limits of `tfm translate`; a server may have lower ones."""

# A look costs about as much as reading one part.
_PARTS_BETWEEN_LOOKS = 64


class TooMuchText(DataError):
    """A document holds more than whoever reads it has room for."""


class ReadingWatch:
    """Looks at a document while it is read: whether anybody still waits for it, and how much it holds so far.

    One watch is for one document, with all of its parts.
    """

    def __init__(
        self,
        check: Callable[[], None] | None = None,
        *,
        max_parts: int | None = None,
        max_segments: int | None = None,
        max_characters: int | None = None,
    ) -> None:
        """A watch; without arguments, every document is read to its end.

        Args:
            check: called often while a document is read; it raises an exception to end the reading.
            max_parts: most lines, tags, values and other parts that a reader looks at.
            max_segments: most texts to translate.
            max_characters: most characters of these texts together.
        """
        self._check = check
        self._limits = (
            (max_parts, "parts (lines, tags, values)"),
            (max_segments, "texts to translate"),
            (max_characters, "characters to translate"),
        )
        self._num_parts = self._num_segments = self._num_characters = 0

    def check(self) -> None:
        """Raise whatever the `check` of this watch raises."""
        if self._check is not None:
            self._check()

    def look(self) -> None:
        """Count one part.

        Raises:
            TooMuchText: there are too many. Whatever `check` raises.
        """
        self._num_parts += 1
        if self._num_parts % _PARTS_BETWEEN_LOOKS == 0:
            self._refuse_more(0, self._num_parts)
            self.check()

    def over(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Parts of a file, one by one, each counted; see `look`."""
        for part in parts:
            self.look()
            yield part

    def counted(self, segment: Segment) -> Segment:
        """A segment, counted with its characters.

        Raises:
            TooMuchText: there are too many of one or the other.
        """
        self._num_segments += 1
        self._num_characters += len(plain_text(segment.pieces))
        self._refuse_more(1, self._num_segments, segment.place)
        self._refuse_more(2, self._num_characters, segment.place)
        return segment

    def _refuse_more(self, number: int, found: int, place: str = "") -> None:
        most, what = self._limits[number]
        if most is not None and found > most:
            where = f"up to {place}" if place else "in a part of it"
            raise TooMuchText(
                f"the document has more than {most} {what}: {found} {where}",
                hint="divide the document",
            )
