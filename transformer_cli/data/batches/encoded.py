"""Sentence pairs as token ids, in a memory-mapped Arrow file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from transformer_cli.data.batches.order import Indices
from transformer_cli.data.pairs import Rows
from transformer_cli.storage.arrow_columns import number_column, numbers_of
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.token_arrays import IdLists, Padded, gather_padded
from transformer_cli.text.tokenizer import MAX_CHARACTERS_PER_TOKEN, Tokenizers
from transformer_cli.text.vocabulary import MAX_LEARNED_CHARACTERS


class TokenPair(NamedTuple):
    """One pair; both sides end with [EOS], unless the data has no end symbol."""

    source_ids: Sequence[int] | NDArray[np.integer[Any]]
    target_ids: Sequence[int] | NDArray[np.integer[Any]]


class EncodedPairs(NamedTuple):
    """Some pairs as ids; both sides end with [EOS], unless the data has no end symbol."""

    source: IdLists
    target: IdLists
    corpora: NDArray[np.uint16]
    """The number of the corpus of each pair."""

    @classmethod
    def of(cls, pairs: Sequence[TokenPair], corpora: Sequence[int]) -> Self:
        """From single pairs, and the number of the corpus of each."""
        source, target = (IdLists.of([pair[side] for pair in pairs]) for side in (0, 1))
        return cls(source, target, np.array(corpora, np.uint16))

    def select(self, is_kept: NDArray[np.bool_]) -> Self:
        """Only the pairs where `is_kept`, one bool for each pair, is True."""
        return type(self)(
            self.source.select(is_kept), self.target.select(is_kept), self.corpora[is_kept]
        )

    def lengths(self, indices: Indices) -> tuple[Indices, Indices]:
        """Number of source ids and number of target ids of the pairs at these indices."""
        return self.source.lengths[indices], self.target.lengths[indices]

    def padded(self, indices: Indices, pad_id: int) -> tuple[Padded, Padded]:
        """The source ids and the target ids of the pairs at these indices."""
        return self.source.padded(indices, pad_id), self.target.padded(indices, pad_id)

    def longest(self) -> NDArray[np.int64]:
        """The number of ids of the longer side of each pair."""
        return np.maximum(self.source.lengths, self.target.lengths)


class EncodedCorpus:
    """Pairs in a memory-mapped Arrow file; only the parts that are read are loaded.

    Args:
        content: the bytes of a file of `write_encoded`, as a buffer of pyarrow.
        num_corpora: how many corpora there are; the last ones may have no pairs.
    """

    def __init__(self, content: Any, *, num_corpora: int) -> None:
        import pyarrow as pa

        with pa.ipc.open_stream(content) as reader:
            table = reader.read_all()
        self._source_ids = _Lists(table.column("source_ids"), content)
        self._target_ids = _Lists(table.column("target_ids"), content)
        sizes = np.zeros(num_corpora, np.int64)
        for chunk in table.column("corpus").chunks:
            sizes += np.bincount(numbers_of(chunk), minlength=num_corpora)
        self.corpus_sizes: list[int] = sizes.tolist()

    @classmethod
    def open(cls, path: Path, *, num_corpora: int = 1) -> "EncodedCorpus":
        """Map a file into memory."""
        import pyarrow as pa

        return cls(pa.memory_map(str(path)).read_buffer(), num_corpora=num_corpora)

    def __len__(self) -> int:
        return sum(self.corpus_sizes)

    def __getitem__(self, index: int) -> TokenPair:
        return TokenPair(self._source_ids[index], self._target_ids[index])

    def lengths(self, indices: Indices) -> tuple[Indices, Indices]:
        """Number of source tokens and number of target tokens of the pairs at these indices."""
        return self._source_ids.places(indices)[1], self._target_ids.places(indices)[1]

    def padded(self, indices: Indices, pad_id: int) -> tuple[Padded, Padded]:
        """The source ids and the target ids of the pairs at these indices."""
        return self._source_ids.padded(indices, pad_id), self._target_ids.padded(indices, pad_id)


class _Lists:
    """A column of lists; the file is seen as one array of ids, and as one array of offsets.

    Args:
        column: a chunked array of pyarrow, whose buffers lie in `content`.
        content: the bytes of the whole file.
    """

    def __init__(self, column: Any, content: Any) -> None:
        chunks = [chunk for chunk in column.chunks if len(chunk)]
        id_type = column.type.value_type.to_pandas_dtype()
        self._ids = _seen_as(content, id_type)
        self._offsets = _seen_as(content, np.int32)
        self._ends = np.cumsum([len(chunk) for chunk in chunks], dtype=np.int64)
        # For each chunk, the indices of its first id and of its first offset in the file.
        self._first_ids = _places(
            [chunk.values.buffers()[1] for chunk in chunks], content, self._ids
        )
        firsts = _places([chunk.buffers()[1] for chunk in chunks], content, self._offsets)
        # The number of pairs before the chunk is subtracted: the offset of a pair is at this index plus that of the pair.
        self._first_offsets = firsts - np.concatenate([[0], self._ends])[:-1]

    def __getitem__(self, index: int) -> NDArray[np.integer[Any]]:
        (start,), (length,) = self.places(np.array([index]))
        return self._ids[start : start + length]

    def places(self, indices: Indices) -> tuple[Indices, Indices]:
        """The place of the first id of each list in the file, and the number of its ids."""
        chunks = np.searchsorted(self._ends, indices, side="right")
        offsets = self._first_offsets[chunks] + indices
        starts = self._offsets[offsets].astype(np.int64)
        return self._first_ids[chunks] + starts, self._offsets[offsets + 1] - starts

    def padded(self, indices: Indices, pad_id: int) -> Padded:
        starts, lengths = self.places(indices)
        return gather_padded(self._ids, starts, lengths, pad_id)


def _seen_as(content: Any, dtype: Any) -> NDArray[Any]:
    """The bytes as an array of a type; bytes at the end of the file that fill no whole item are left out."""
    size = np.dtype(dtype).itemsize
    return np.frombuffer(content, dtype, count=content.size // size)


def _places(buffers: Sequence[Any], content: Any, array: NDArray[Any]) -> NDArray[np.int64]:
    """The indices in `array`, which begins where `content` begins, at which the buffers begin."""
    num_bytes = [buffer.address - content.address if buffer.size else 0 for buffer in buffers]
    assert all(number % array.itemsize == 0 for number in num_bytes)
    return np.array(num_bytes, np.int64) // array.itemsize


def write_encoded(path: Path, chunks: Iterable[EncodedPairs], *, vocab_size: int) -> None:
    """Write pairs to an Arrow file that `EncodedCorpus.open` reads.

    Args:
        chunks: pairs; the numbers of their corpora never decrease.
        vocab_size: size of the larger vocabulary; up to 65,536 an id takes 2 bytes, else 4.
    """
    import pyarrow as pa

    id_type = pa.uint16() if vocab_size <= 2**16 else pa.uint32()
    ids = pa.list_(id_type)
    schema = pa.schema({"source_ids": ids, "target_ids": ids, "corpus": pa.uint16()})
    last_corpus = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for chunk in chunks:
            if not len(chunk.corpora):
                continue
            if np.any(np.diff(chunk.corpora, prepend=last_corpus) < 0):
                raise ValueError("pairs of different corpora are mixed")
            last_corpus = int(chunk.corpora[-1])
            sides = (_list_array(side, id_type) for side in (chunk.source, chunk.target))
            columns = [*sides, number_column(chunk.corpora, pa.uint16())]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _list_array(lists: IdLists, id_type: Any) -> Any:
    import pyarrow as pa

    offsets = number_column(np.concatenate([[0], np.cumsum(lists.lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, number_column(lists.ids, id_type))


def encode_pairs(
    rows: Rows,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    sequence_format: SequenceFormat,
) -> EncodedPairs:
    """The ids of pairs: each side ends with [EOS] if the format has one, and the source begins with its tags.

    Args:
        rows: the pairs, as of `rows_of`.
    """
    with_end = sequence_format.has_end
    source = source_tokenizer.encode_column(rows.column("source"), with_end=with_end)
    target = target_tokenizer.encode_column(rows.column("target"), with_end=with_end)
    corpora: NDArray[np.uint16] = numbers_of(rows.column("corpus"))
    if tags := sequence_format.tags:
        ids = np.array([source_tokenizer.tag_id(tag) for tag in tags], np.uint32)
        first = ids[numbers_of(rows.column("direction"))]
        source = source.with_first(first, np.ones(len(first), bool))
    if corpus_tags := sequence_format.corpus_tags:
        unused = source_tokenizer.unk_id
        ids = np.array(
            [source_tokenizer.id_of(tag) if tag else unused for tag in corpus_tags], np.uint32
        )
        source = source.with_first(ids[corpora], np.array(corpus_tags, bool)[corpora])
    return EncodedPairs(source, target, corpora)


def encode_short_pairs(
    rows: Rows,
    tokenizers: Tokenizers,
    sequence_format: SequenceFormat,
    max_length: int,
) -> tuple[EncodedPairs, NDArray[np.bool_]]:
    """The pairs whose sides both have at most `max_length` ids, encoded; and a mask of `rows`: True if kept."""
    import pyarrow as pa
    from pyarrow import compute

    # A line with more characters counts as too long, because encoding it would take seconds and gigabytes.
    max_characters = max(MAX_LEARNED_CHARACTERS, MAX_CHARACTERS_PER_TOKEN * max_length)
    lengths = (compute.utf8_length(rows.column(side)) for side in ("source", "target"))
    is_kept: NDArray[np.bool_] = np.maximum(*map(numbers_of, lengths)) <= max_characters
    if not is_kept.all():
        rows = rows.take(number_column(np.flatnonzero(is_kept), pa.int64()))
    encoded = encode_pairs(rows, *tokenizers, sequence_format)
    is_short = encoded.longest() <= max_length
    is_kept[is_kept] = is_short
    return encoded.select(is_short), is_kept
