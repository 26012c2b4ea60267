"""Encodes a column of texts: each different word of the column is looked up once, and numpy joins the ids."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from transformer_cli.storage.arrow_columns import number_column, numbers_of
from transformer_cli.text.id_lists import IdLists


class Words(Protocol):
    """What a cache of words offers; ids are bytes (uint32 in the byte order of the machine)."""

    @property
    def first_words(self) -> Mapping[str, bytes]:
        """The ids of a word that begins a text; KeyError if it must be encoded together with its neighbours."""

    @property
    def later_words(self) -> Mapping[str, bytes]:
        """The same for a word that does not begin a text."""

    def encode(self, text: str) -> bytes:
        """The ids of a text with any words."""


def encode_column(texts: Any, words: Words, end: bytes = b"") -> IdLists:
    """The ids of each text, with the ids `end` after them.

    Args:
        texts: an array of strings of pyarrow.
        words: the cache.
    """
    import pyarrow as pa
    from pyarrow import compute

    if not len(texts):
        return IdLists.from_bytes([])
    lists = compute.split_pattern(texts, " ")  # a text has one word at least, which may be empty
    counts = np.diff(numbers_of(lists.offsets)).astype(np.int64)
    starts = np.cumsum(counts) - counts
    later, first = (
        column.dictionary_encode()
        for column in (lists.values, lists.values.take(number_column(starts, pa.int64())))
    )
    # An entry for each different word; `numbers` has the number of its entry for each word of the column.
    entries = [
        *_looked_up(later.dictionary.to_pylist(), words.later_words),
        *_looked_up(first.dictionary.to_pylist(), words.first_words),
    ]
    numbers = numbers_of(later.indices).astype(np.int64)
    numbers[starts] = numbers_of(first.indices) + len(later.dictionary)
    is_missing = np.array([entry is None for entry in entries])
    # These texts are encoded by themselves, and each becomes a single entry.
    is_whole = np.logical_or.reduceat(is_missing[numbers], starts)
    if is_whole.any():
        chosen = np.flatnonzero(is_whole)
        numbers[starts[chosen]] = len(entries) + np.arange(len(chosen))
        entries += [words.encode(texts[index].as_py()) for index in chosen.tolist()]
        is_kept = ~np.repeat(is_whole, counts)
        is_kept[starts[chosen]] = True
        numbers, counts = numbers[is_kept], np.where(is_whole, 1, counts)
    if end:
        numbers = np.insert(numbers, np.cumsum(counts), len(entries))
        entries, counts = [*entries, end], counts + 1
    return _joined([entry or b"" for entry in entries], numbers, counts)


def _looked_up(words: Iterable[str], known: Mapping[str, bytes]) -> list[bytes | None]:
    found: list[bytes | None] = []
    for word in words:
        try:
            found.append(known[word])
        except KeyError:
            found.append(None)
    return found


def _joined(entries: list[bytes], numbers: NDArray[np.int64], counts: NDArray[np.int64]) -> IdLists:
    """The entries with these numbers, one after the other, as lists that have so many entries each."""
    table = IdLists.from_bytes(entries)
    lengths = table.lengths[numbers]
    ends = np.cumsum(lengths)
    places = np.repeat(table.starts[numbers] - (ends - lengths), lengths)
    places += np.arange(len(places))
    return IdLists(table.ids[places], np.add.reduceat(lengths, np.cumsum(counts) - counts))
