"""Token ids of sentences as arrays: lists in one array, padded rows, ids of columns of Arrow; columns of Arrow from and to texts and arrays; and where words begin and end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from transformer_cli.text.normalization import continues_word

# Lists of ids in one array, and padded rows of them.


Padded = tuple[NDArray[np.int64], NDArray[np.bool_]]
"""(B, L) ids, and (B, L) bool: True where there is a token, False where there is padding."""


def pad_ids(sequences: Sequence[Any], pad_id: int) -> Padded:
    """Pad every sequence at its end with `pad_id`, up to the length L of the longest.

    Args:
        sequences: B sequences of ids, each a list, a tuple or an array.
        pad_id: the id of [PAD].
    """
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    is_real = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(is_real.shape, pad_id, np.int64)
    ids[is_real] = np.concatenate(sequences, dtype=np.int64, casting="unsafe")
    return ids, is_real


def gather_padded(ids: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64], pad_id: int) -> Padded:
    """Pad B sequences that are slices of one long array; the result is that of `pad_ids`.

    Args:
        ids: the array; only the parts with these sequences are read.
        starts: (B,) the place of the first id of each sequence.
        lengths: (B,) the number of ids of each sequence.
        pad_id: the id of [PAD].
    """
    columns = np.arange(lengths.max())
    is_real = columns < lengths[:, None]
    gathered = np.full(is_real.shape, pad_id, np.int64)
    gathered[is_real] = ids[(starts[:, None] + columns)[is_real]]
    return gathered, is_real


class IdLists(NamedTuple):
    """Lists of ids, one after the other."""

    ids: NDArray[np.uint32]
    """The ids of all lists, one list after the other."""
    lengths: NDArray[np.int64]
    """The number of ids of each list."""

    @classmethod
    def from_bytes(cls, lists: Sequence[bytes]) -> Self:
        """From lists of which each is given as the bytes of its ids (uint32)."""
        num_bytes = np.fromiter(map(len, lists), np.int64, len(lists))
        return cls(np.frombuffer(b"".join(lists), np.uint32), num_bytes // 4)

    @classmethod
    def of(cls, lists: Sequence[Any]) -> Self:
        """From lists, tuples or arrays of ids."""
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        empty = np.empty(0, np.uint32)
        return cls(np.concatenate([empty, *lists], dtype=np.uint32, casting="unsafe"), lengths)

    def with_first(self, first: NDArray[np.uint32], has_first: NDArray[np.bool_]) -> Self:
        """With an id before each list where `has_first` is True; the other values of `first` are not used."""
        places, added = self.starts[has_first], first[has_first]
        return type(self)(np.insert(self.ids, places, added), self.lengths + has_first)

    @property
    def starts(self) -> NDArray[np.int64]:
        """The place in `ids` where each list begins."""
        return np.cumsum(self.lengths) - self.lengths

    def padded(self, indices: NDArray[np.int64], pad_id: int) -> Padded:
        """The lists at these indices."""
        return gather_padded(self.ids, self.starts[indices], self.lengths[indices], pad_id)

    def select(self, is_kept: NDArray[np.bool_]) -> Self:
        """Only the lists where `is_kept`, one bool for each list, is True."""
        return type(self)(self.ids[np.repeat(is_kept, self.lengths)], self.lengths[is_kept])


# The ids of a column of texts.


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
        column.dictionary_encode() for column in (lists.values, lists.values.take(number_column(starts, pa.int64())))
    )
    # An entry for each different word; `numbers` has the number of its entry for each word of the column.
    entries = list[bytes | None]()
    for column, known in ((later, words.later_words), (first, words.first_words)):
        for word in column.dictionary.to_pylist():
            try:
                entries.append(known[word])
            except KeyError:
                entries.append(None)
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
    # The entries with these numbers, one after the other, as lists that have so many entries each.
    table = IdLists.from_bytes([entry or b"" for entry in entries])
    lengths = table.lengths[numbers]
    places = np.repeat(table.starts[numbers] - (np.cumsum(lengths) - lengths), lengths)
    places += np.arange(len(places))
    return IdLists(table.ids[places], np.add.reduceat(lengths, np.cumsum(counts) - counts))


# Where words begin and end.


# The first or last character of a token that has only some bytes of it.
_INCOMPLETE = "\ufffd"


@dataclass(frozen=True, slots=True)
class WordEdges:
    """Whether the first and the last character of each token belong to a word that other tokens may go on with."""

    goes_on: NDArray[np.bool_]
    """(V,): whether the token begins inside a word: with a letter, a digit or a combining mark, without a space."""
    ends_in_word: NDArray[np.bool_]
    """(V,): whether the token ends with such a character, so that the next token can go on with the word."""

    @classmethod
    def of(cls, pieces: Sequence[bytes], *, has_spaced_words: bool = False) -> "WordEdges":
        """The edges of the tokens.

        Args:
            pieces: the bytes of each token; empty for a special token, which never belongs to a word. An incomplete
                character counts as a letter.
            has_spaced_words: as in `SplitPatterns.of`.
        """
        texts = [piece.decode("utf-8", errors="replace") for piece in pieces]
        edges = [
            [
                character == _INCOMPLETE or continues_word(character, has_spaced_words=has_spaced_words)
                for character in (text[:1], text[-1:])
            ]
            for text in texts
        ]
        both = np.array(edges, dtype=np.bool_).reshape(-1, 2)
        return cls(both[:, 0].copy(), both[:, 1].copy())

    @classmethod
    def none(cls, vocab_size: int) -> "WordEdges":
        """For a vocabulary in which every token is a whole word or a mark."""
        return cls(np.zeros(vocab_size, dtype=np.bool_), np.zeros(vocab_size, dtype=np.bool_))


# Columns of pyarrow from and to texts and numpy arrays.
#
# pyarrow's own conversions import pandas, if it is installed, and with it 30 MB and 0.2 seconds: these do not.


def text_column(texts: Sequence[str]) -> Any:
    """The texts as an array of `pyarrow.string()`.

    Args:
        texts: without lone surrogates; at most 2 GiB of UTF-8 together.
    """
    import pyarrow as pa

    encoded = list(map(str.encode, texts))
    data = b"".join(encoded)
    if len(data) > np.iinfo(np.int32).max:
        raise ValueError(f"{len(data):,} bytes of text do not fit in one column")
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, encoded), np.int32, len(encoded)), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def number_column(numbers: "Sequence[int] | NDArray[Any]", number_type: Any) -> Any:
    """The numbers as an array of a type of pyarrow, such as `pyarrow.uint16()`.

    Args:
        numbers: they fit in the type.
    """
    import pyarrow as pa

    values = np.ascontiguousarray(numbers, dtype=number_type.to_pandas_dtype())
    return pa.Array.from_buffers(number_type, len(values), [None, pa.py_buffer(values)])


def numbers_of(column: Any) -> "NDArray[Any]":
    """The numbers of an array of pyarrow without missing values, not copied."""

    return np.from_dlpack(column)
