"""A binary shortlist of Marian and Bergamot, such as lex.50.50.enit.s2t.bin: which target tokens the output layer chooses among.

Source: the format of github.com/browsermt/marian-dev: the class BinaryShortlistGenerator.
"""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.process.errors import DataError

_MAGIC = 0xF11A48D5013417F5
_HEADER = struct.Struct("<6Q")
_WORD = 2**64 - 1
_AGAIN = "copy the files of the model again; without this file the model is imported, too"


class BinaryShortlist(NamedTuple):
    """The content of a file; all ids are those of Marian."""

    frequent: int
    """The first ids, which every sentence may use."""
    best: int
    """The largest number of translations of a source token."""
    starts: NDArray[np.int64]
    """(source vocabulary + 1,): where the translations of each source token begin."""
    translations: NDArray[np.int64]
    """In each list sorted by their ids."""


def read_binary_shortlist(content: bytes, path: Path, sizes: tuple[int, int]) -> BinaryShortlist:
    """The shortlist in a file.

    Args:
        path: what messages call the file.
        sizes: of the vocabularies of source and target.

    Raises:
        DataError: it is no such file, damaged, or made for other vocabularies.
    """
    if len(content) < _HEADER.size:
        raise _damaged(path, f"the file has {len(content)} bytes, fewer than the head of a shortlist")
    magic, checksum, frequent, best, num_starts, num_translations = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise DataError(f"{path}: not a binary shortlist of Marian", hint=_AGAIN)
    expected = _HEADER.size + 8 * num_starts + 4 * num_translations
    if expected != len(content):
        raise _damaged(path, f"its head tells of {expected:,} bytes, but it has {len(content):,}")
    if checksum != _checksum(content):
        raise _damaged(path, "its checksum does not fit its content")
    starts = np.frombuffer(content, "<u8", num_starts, _HEADER.size)
    translations = np.frombuffer(content, "<u4", num_translations, _HEADER.size + 8 * num_starts)
    if num_starts != sizes[0] + 1 or (num_translations and translations.max() >= sizes[1]):
        raise DataError(
            f"{path}: made for other vocabularies than those of the model, which have {sizes[0]:,} and {sizes[1]:,} entries",
            hint=_AGAIN,
        )
    if starts[0] or starts[-1] != num_translations or (starts[1:] < starts[:-1]).any():
        raise _damaged(path, "its lists do not follow each other")
    return BinaryShortlist(frequent, best, starts.astype(np.int64), translations.astype(np.int64))


def binary_shortlist_content(frequent: int, best: int, lists: Sequence[Sequence[int]]) -> bytes:
    """The content of a file.

    Args:
        frequent, best: as in `BinaryShortlist`.
        lists: for each source token its translations.
    """
    starts = np.cumsum([0, *map(len, lists)]).astype("<u8")
    translations = np.array([one for each in lists for one in sorted(each)], "<u4")
    rest = starts.tobytes() + translations.tobytes()

    def content(checksum: int) -> bytes:
        return _HEADER.pack(_MAGIC, checksum, frequent, best, len(starts), len(translations)) + rest

    return content(_checksum(content(0)))


def _checksum(content: bytes) -> int:
    """Of all that follows the checksum, in steps of 8 bytes; what is left of the last step does not count."""
    found = 0
    for number in np.frombuffer(content, "<u8", len(content) // 8)[2:].tolist():
        found ^= (number + 0x9E3779B9 + (found << 6) + (found >> 2)) & _WORD
    return found


def _damaged(path: Path, problem: str) -> DataError:
    return DataError(f"{path}: damaged: {problem}", hint=_AGAIN)
