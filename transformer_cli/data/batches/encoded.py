"""Sentence pairs as token ids, in a memory-mapped Arrow file."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.data.batches.order import Indices
from transformer_cli.data.pairs import SentencePair
from transformer_cli.text import SequenceFormat, Tokenizer


class TokenPair(NamedTuple):
    """One pair; both sides end with [EOS], unless the data has no end symbol."""

    source_ids: Sequence[int] | NDArray[np.integer[Any]]
    target_ids: Sequence[int] | NDArray[np.integer[Any]]


class EncodedCorpus:
    """Pairs in a memory-mapped Arrow file; only the parts that are read are loaded.

    Args:
        table: columns `source_ids`, `target_ids` and `corpus`, as `write_encoded` writes them.
        num_corpora: how many corpora there are; the last ones may have no pairs.
    """

    def __init__(self, table: Any, *, num_corpora: int) -> None:
        self._source_ids = _Lists(table.column("source_ids"))
        self._target_ids = _Lists(table.column("target_ids"))
        corpora = table.column("corpus").to_numpy()
        self.corpus_sizes: list[int] = np.bincount(corpora, minlength=num_corpora).tolist()

    @classmethod
    def open(cls, path: Path, *, num_corpora: int = 1) -> "EncodedCorpus":
        """Map a file into memory."""
        from datasets import Dataset  # this import takes half a second

        return cls(Dataset.from_file(str(path)).data.table, num_corpora=num_corpora)

    def __len__(self) -> int:
        return sum(self.corpus_sizes)

    def __getitem__(self, index: int) -> TokenPair:
        return TokenPair(self._source_ids[index], self._target_ids[index])

    def lengths(self, indices: Indices) -> tuple[Indices, Indices]:
        """Number of source tokens and number of target tokens of the pairs at these indices."""
        return self._source_ids.lengths(indices), self._target_ids.lengths(indices)


class _Lists:
    """A column of lists as NumPy views of its chunks: much faster than reading rows by Arrow."""

    def __init__(self, column: Any) -> None:
        chunks = [chunk for chunk in column.chunks if len(chunk)]
        self._offsets = [chunk.offsets.to_numpy() for chunk in chunks]
        self._values = [chunk.values.to_numpy() for chunk in chunks]
        self._ends: list[int] = np.cumsum([len(chunk) for chunk in chunks], dtype=np.int64).tolist()
        self._starts = [0, *self._ends]

    def __getitem__(self, index: int) -> NDArray[np.integer[Any]]:
        chunk = bisect_right(self._ends, index)
        offsets, row = self._offsets[chunk], index - self._starts[chunk]
        return self._values[chunk][offsets[row] : offsets[row + 1]]

    def lengths(self, indices: Indices) -> Indices:
        lengths = np.empty_like(indices)
        chunks = np.searchsorted(self._ends, indices, side="right")
        by_chunk = np.argsort(chunks, kind="stable")
        numbers, firsts = np.unique(chunks[by_chunk], return_index=True)
        parts = np.split(by_chunk, firsts[1:])  # without indices: one empty part, no chunk number
        for number, here in zip(numbers.tolist(), parts, strict=False):
            rows, offsets = indices[here] - self._starts[number], self._offsets[number]
            lengths[here] = offsets[rows + 1] - offsets[rows]
        return lengths


def write_encoded(
    path: Path, chunks: Iterable[tuple[Sequence[TokenPair], Sequence[int]]], *, vocab_size: int
) -> None:
    """Write pairs to an Arrow file that `EncodedCorpus.open` reads.

    Args:
        chunks: lists of pairs, and lists of their corpus numbers, which never decrease.
        vocab_size: size of the larger vocabulary; up to 65,536 an id takes 2 bytes, else 4.
    """
    import pyarrow as pa

    id_type = pa.uint16() if vocab_size <= 2**16 else pa.uint32()
    ids = pa.list_(id_type)
    schema = pa.schema({"source_ids": ids, "target_ids": ids, "corpus": pa.uint16()})
    last_corpus = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for pairs, corpora in chunks:
            if not pairs:
                continue
            order = [last_corpus, *corpora]
            if order != sorted(order):
                raise ValueError("pairs of different corpora are mixed")
            last_corpus = order[-1]
            sides = (_lists([pair[side] for pair in pairs], id_type) for side in (0, 1))
            writer.write_batch(
                pa.record_batch([*sides, pa.array(corpora, pa.uint16())], schema=schema)
            )


def _lists(sequences: Sequence[Any], id_type: Any) -> Any:
    import pyarrow as pa

    offsets = np.cumsum([0, *map(len, sequences)], dtype=np.int32)
    values = np.concatenate(sequences, dtype=id_type.to_pandas_dtype(), casting="unsafe")
    return pa.ListArray.from_arrays(offsets, values)


def encode_pair(
    pair: SentencePair,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    sequence_format: SequenceFormat,
) -> TokenPair:
    """The ids of a pair, each side with [EOS] if the format has one."""
    return TokenPair(
        sequence_format.with_end(source_tokenizer.encode(pair.source), source_tokenizer.eos_id),
        sequence_format.with_end(target_tokenizer.encode(pair.target), target_tokenizer.eos_id),
    )
