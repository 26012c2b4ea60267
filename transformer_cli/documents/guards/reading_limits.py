"""The limits of documents: sizes, numbers and depths, beyond which a file is refused before it takes the memory."""

from dataclasses import dataclass

from transformer_cli.errors import DataError

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
