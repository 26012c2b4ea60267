"""The training pairs as ids: in this process, or in several for a large corpus.

Each batch of pairs is encoded on its own, so the number of processes changes no byte of the result.
"""

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transformer_cli.config import Config
from transformer_cli.data.batches.encoded import EncodedPairs, encode_short_pairs
from transformer_cli.data.pairs import Rows, SentencePair, pairs_of
from transformer_cli.data.report import DataReport
from transformer_cli.data.selection.cleaning import excerpt
from transformer_cli.data.text_file import PAIRS_AT_ONCE, read_rows
from transformer_cli.process.errors import TryAgainError
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.tokenizer import Tokenizers, load_tokenizers, tokenizer_files

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
        dict(tokenizer_files(tokenizers)),
        SequenceFormat.of(config.data),
        config.model.max_length,
    )
    num_batches = -(-num_pairs // PAIRS_AT_ONCE)
    num_workers = min(number_of_workers(config, num_pairs), num_batches)
    if num_workers > 1:
        batches = _encoded_by_workers(text, num_batches, encoder, num_workers)
    else:
        batches = (encoder.encode(rows, tokenizers) for rows in read_rows(text))
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
    # A container or a scheduler may allow fewer CPUs than the machine has; Linux tells it. Elsewhere a new process imports
    # the script of the user again, which only a script that expects it survives: one process, unless the user asks.
    allowed: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else 1


@dataclass(frozen=True, slots=True)
class PairEncoder:
    """Encodes batches of pairs; it can be sent to another process."""

    tokenizers: dict[str, str]
    """Name -> content of the files of the tokenizers."""
    sequence_format: SequenceFormat
    max_length: int

    def encode(self, rows: Rows, tokenizers: Tokenizers) -> Batch:
        """The ids of a batch."""
        return encode_short_pairs(rows, tokenizers, self.sequence_format, self.max_length)


class _Worker:
    """A process that encodes some of the batches of a file, in the order of the file."""

    def __init__(self, text: Path, encoder: PairEncoder) -> None:
        files = encoder.tokenizers
        self._tokenizers = load_tokenizers(
            files.__contains__, lambda name: Tokenizer.from_json(files[name])
        )
        self._encoder, self._unread, self._num_passed = encoder, read_rows(text), 0

    def encoded(self, number: int) -> Batch:
        """The batch with this number; numbers never decrease, because processes take the next one that is left."""
        rows = next(islice(self._unread, number - self._num_passed, None))
        self._num_passed = number + 1
        return self._encoder.encode(rows, self._tokenizers)


_workers: list[_Worker] = []
"""In a process that encodes: its worker."""


def _start(text: Path, encoder: PairEncoder) -> None:
    # The main process decides what a signal means; its handlers would print messages here, too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_main_process, daemon=True).start()
    _workers[:] = [_Worker(text, encoder)]


def _end_with_main_process() -> None:
    main = multiprocessing.parent_process()
    assert main is not None
    main.join()
    os._exit(1)


def _encoded(number: int) -> Batch:
    return _workers[0].encoded(number)


def _encoded_by_workers(
    text: Path, num_batches: int, encoder: PairEncoder, num_workers: int
) -> Iterator[Batch]:
    # On Linux a process starts as a copy of this one. Elsewhere it imports the script of the user again.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(num_workers, context, initializer=_start, initargs=(text, encoder))
    numbers = iter(range(num_batches))
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns where a process with threads is copied; the copies use no lock of these threads.
            warnings.filterwarnings("ignore", ".* is multi-threaded, use of fork", DeprecationWarning)  # fmt: skip
            # A few batches wait for each process, and not all results of a large corpus for this one.
            pending = deque(pool.submit(_encoded, number) for number in islice(numbers, 4 * num_workers))  # fmt: skip
        while pending:
            yield pending.popleft().result()
            pending.extend(pool.submit(_encoded, number) for number in islice(numbers, 1))
    except (BrokenProcessPool, OSError) as error:  # OSError: the system refuses a further process
        raise TryAgainError(
            f"{text}: a process that turns pairs into ids was killed or not started, perhaps because memory is short",
            hint="use fewer processes: --set runtime.workers=1",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _pair_at(text: Path, number: int) -> SentencePair:
    """The pair with this number, from 0, of a file of `write_text`."""
    rows = next(islice(read_rows(text), number // PAIRS_AT_ONCE, None))
    return pairs_of(rows.slice(number % PAIRS_AT_ONCE, 1))[0]
