"""The training pairs as ids: in this process, or in several for a large corpus.

Each batch of pairs is encoded on its own, so the number of processes changes no byte of the result.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_cli.config import Config
from transformer_cli.data.batches.encoded import EncodedPairs, encode_short_pairs, list_array
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.report import DataReport
from transformer_cli.data.selection.cleaning import excerpt
from transformer_cli.data.text_file import PAIRS_AT_ONCE, pairs_of, read_text
from transformer_cli.errors import TryAgainError
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.id_lists import IdLists
from transformer_cli.text.tokenizer_pair import Tokenizers, load_tokenizers, tokenizer_files

PAIRS_PER_WORKER = 250_000
"""A further process is started for each of so many pairs; for fewer, its start takes longer than it saves."""

Batch = tuple[EncodedPairs, NDArray[np.bool_]]
"""The pairs of a batch that are kept, as ids; and for each pair of the batch whether it is kept."""


def encoded_text(
    text: Path, num_pairs: int, tokenizers: Tokenizers, config: Config, report: DataReport
) -> Iterator[EncodedPairs]:
    """The pairs of a file of `write_text` as ids; pairs that are too long are left out.

    Args:
        text: the file.
        num_pairs: how many pairs it has.
        report: gets the numbers of tokens and of pairs that are left out.

    Raises:
        TryAgainError: a process that encodes was killed.
    """
    encoder = PairEncoder(
        tuple(tokenizer_files(tokenizers).items()),
        SequenceFormat.of(config.data),
        config.model.max_length,
    )
    num_workers = number_of_workers(config, num_pairs)
    if num_workers > 1:
        batches = _encoded_by_workers(text, encoder, num_workers)
    else:
        batches = (encoder.encode(pairs, tokenizers) for pairs in read_text(text))
    num_seen = 0
    for encoded, is_kept in batches:
        if not is_kept.all():
            report.num_too_long += len(is_kept) - int(is_kept.sum())
            first = num_seen + int(is_kept.argmin())
            report.longest_example = report.longest_example or excerpt(_pair_at(text, first))
        num_seen += len(is_kept)
        report.count(encoded, "train")
        yield encoded


def number_of_workers(config: Config, num_pairs: int) -> int:
    """`runtime.workers`; by default one for each 250,000 pairs, and at most one for each CPU of this process."""
    if config.runtime.workers is not None:
        return config.runtime.workers
    return max(1, min(_num_cpus(), num_pairs // PAIRS_PER_WORKER))


def _num_cpus() -> int:
    # A container or a scheduler may allow fewer CPUs than the machine has.
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class PairEncoder:
    """Encodes batches of pairs; it can be sent to another process."""

    tokenizers: tuple[tuple[str, str], ...]
    """The name and the content of each file of the tokenizers."""
    sequence_format: SequenceFormat
    max_length: int

    def encode(self, pairs: list[SentencePair], tokenizers: Tokenizers) -> Batch:
        """The ids of a batch."""
        return encode_short_pairs(pairs, tokenizers, self.sequence_format, self.max_length)

    def __call__(self, table: Any) -> Any:
        """The same for tables of Arrow: a row for each pair, without ids if it is not kept."""
        import pyarrow as pa

        encoded, is_kept = self.encode(pairs_of(table), _loaded(self.tokenizers))
        lengths = np.zeros((2, len(is_kept)), np.int64)
        lengths[:, is_kept] = encoded.source.lengths, encoded.target.lengths
        return pa.table(
            {
                "source_ids": list_array(IdLists(encoded.source.ids, lengths[0]), pa.uint32()),
                "target_ids": list_array(IdLists(encoded.target.ids, lengths[1]), pa.uint32()),
                "corpus": table.column("corpus").combine_chunks(),
                "is_kept": pa.array(is_kept),
            }
        )


@lru_cache(maxsize=1)
def _loaded(files: tuple[tuple[str, str], ...]) -> Tokenizers:
    """The tokenizers of a process, with the words that they have met."""
    contents = dict(files)
    return load_tokenizers(
        lambda name: name in contents, lambda name: Tokenizer.from_json(contents[name])
    )


def _encoded_by_workers(text: Path, encoder: PairEncoder, num_workers: int) -> Iterator[Batch]:
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory(dir=text.parent) as folder:
        stored = datasets.Dataset.from_file(str(text)).with_format("arrow")
        try:
            rows = stored.map(
                encoder,
                batched=True,
                batch_size=PAIRS_AT_ONCE,
                num_proc=num_workers,
                remove_columns=stored.column_names,
                cache_file_name=f"{folder}/ids.arrow",
                new_fingerprint="ids",
                desc="encoding",
            )
        except RuntimeError as error:  # the library raises it when a process of its own ends
            raise TryAgainError(
                f"{text}: a process that turned pairs into ids was killed, perhaps because memory was short: {error}",
                hint="use fewer processes: --set runtime.workers=1",
            ) from error
        for first in range(0, len(rows), PAIRS_AT_ONCE):
            yield _batch_of(rows[first : first + PAIRS_AT_ONCE].combine_chunks())


def _batch_of(table: Any) -> Batch:
    source, target = (_id_lists(table.column(name)) for name in ("source_ids", "target_ids"))
    corpora, is_kept = (table.column(name).to_numpy() for name in ("corpus", "is_kept"))
    return EncodedPairs(source, target, corpora).select(is_kept), is_kept


def _id_lists(column: Any) -> IdLists:
    lists = column.combine_chunks()
    return IdLists(lists.flatten().to_numpy(), np.diff(lists.offsets.to_numpy()).astype(np.int64))


def _pair_at(text: Path, number: int) -> SentencePair:
    """The pair with this number, from 0, of a file of `write_text`."""
    pairs = next(islice(read_text(text), number // PAIRS_AT_ONCE, None))
    return pairs[number % PAIRS_AT_ONCE]
