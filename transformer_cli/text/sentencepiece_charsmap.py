"""The normalisation table of a SentencePiece model: checked, before a library follows its offsets.

The table consists of a trie of byte strings (a double array as in Darts, 32 bits per unit) and of the texts that replace them, each ended
by a zero byte. A unit has the label of its byte, the offset of its children, and whether a value hangs below it.
"""

import base64
import binascii
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_cli.process.errors import DataError

MAX_TABLE_BYTES = 8 << 20
_LABELS = np.arange(1, 256, dtype=np.uint32)

Units = NDArray[np.uint32]


def checked_charsmap(text: Any) -> str:
    """The text of a table in base64, which is safe to use; an empty text is no table.

    Raises:
        DataError: it is no such table: an offset in it points outside, or a text is not UTF-8.
    """
    if not isinstance(text, str) or len(text) > MAX_TABLE_BYTES * 4 // 3 + 4:
        raise _refusal("it is no text, or too long")
    if text:
        _check_text(text)
    return text


def _check_text(text: str) -> None:
    try:
        table = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _refusal(f"it is not base64: {error}") from error
    check_table(table)


def charsmap_text(table: bytes) -> str:
    """A table of bytes, such as the one in an .spm file, in base64; it is checked first."""
    if table:
        check_table(table)
    return base64.b64encode(table).decode()


# Both tokenizers of a model usually have the same table, of which a check takes 20 ms.
@functools.lru_cache(maxsize=4)
def check_table(table: bytes) -> None:
    """Check every place that a search in the table can reach.

    Raises:
        DataError: it is no such table.
    """
    trie_size = int.from_bytes(table[:4], "little")
    if len(table) < 4 or trie_size < 4 or trie_size % 4 or 4 + trie_size > len(table):
        raise _refusal(f"{len(table):,} bytes cannot hold a trie of {trie_size:,} bytes")
    units = np.frombuffer(table[4 : 4 + trie_size], "<u4")
    texts = table[4 + trie_size :]
    try:
        texts.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refusal("a text in it is not UTF-8") from error
    values = _reachable_values(units)
    if values.size == 0:
        raise _refusal("it holds no entry")
    if not texts.endswith(b"\0") or values.max() >= len(texts):
        raise _refusal("an entry points outside its texts")
    starts = np.frombuffer(texts, np.uint8)[values]
    if ((starts & 0xC0) == 0x80).any():
        raise _refusal("an entry points into the middle of a character")


def _reachable_values(units: Units) -> Units:
    """The values of all entries, found by a walk from the root; no step leaves the array."""
    labels = units & np.uint32(0x800000FF)
    places = _child_offsets(np.zeros(1, np.uint32), units)
    seen = np.zeros(len(units), dtype=np.bool_)
    values = [np.zeros(0, np.uint32)]
    while places.size:
        beside = places[:, None] ^ _LABELS  # (places, bytes)
        if beside.max() >= len(units):
            raise _refusal("an offset points outside its trie")
        children = np.unique(beside[labels[beside] == _LABELS])
        children = children[~seen[children]]
        seen[children] = True
        places = _child_offsets(children, units)
        leaves = places[(units[children] & 0x100) != 0]
        if leaves.size and leaves.max() >= len(units):
            raise _refusal("an offset points outside its trie")
        values.append(units[leaves] & 0x7FFFFFFF)
    return np.concatenate(values)


def _child_offsets(places: Units, units: Units) -> Units:
    """For each unit, the place from which the places of its children are counted."""
    found = units[places]
    offsets = (found >> np.uint32(10)) << ((found & np.uint32(0x200)) >> np.uint32(6))
    return (places ^ offsets).astype(np.uint32)


def _refusal(problem: str) -> DataError:
    return DataError(
        f"tokenizer refused: the normalisation table (precompiled_charsmap) is damaged: {problem}",
        hint="copy the folder of the model again",
    )
