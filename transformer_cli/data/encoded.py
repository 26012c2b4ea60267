"""The training pairs as token ids: encoded in one process or in several, stored in a memory-mapped Arrow file, and counted."""

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from transformer_cli.config import Config, DataConfig
from transformer_cli.data.alignments import links_of_tokens
from transformer_cli.data.order import Indices
from transformer_cli.data.pairs import (
    PAIRS_AT_ONCE,
    PairRows,
    ReportRow,
    ReversedText,
    SentencePair,
    TrainingText,
    pairs_of_rows,
    table_lines,
)
from transformer_cli.data.selection import excerpt
from transformer_cli.process.errors import TryAgainError
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.seen_words import (
    KNOWS_POSSESSED,
    MAY_POSSESS,
    SeenWords,
    WordCounts,
    has_endings,
    written_words,
)
from transformer_cli.text.token_ids import IdLists, Padded, gather_padded, number_column, numbers_of
from transformer_cli.text.tokenizer import MAX_CHARACTERS_PER_TOKEN, Tokenizers, read_tokenizers, tokenizer_files
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
    links: IdLists | None = None
    """The links between the tokens of each pair, as `links_of_tokens` lists them; None: no alignments are given."""

    def select(self, is_kept: NDArray[np.bool_]) -> Self:
        """Only the pairs where `is_kept`, one bool for each pair, is True."""
        return type(self)(
            self.source.select(is_kept),
            self.target.select(is_kept),
            self.corpora[is_kept],
            None if self.links is None else self.links.select(is_kept),
        )

    def lengths(self, indices: Indices) -> tuple[Indices, Indices]:
        """Number of source ids and number of target ids of the pairs at these indices."""
        return self.source.lengths[indices], self.target.lengths[indices]

    def padded(self, indices: Indices, pad_id: int) -> tuple[Padded, Padded]:
        """The source ids and the target ids of the pairs at these indices."""
        return self.source.padded(indices, pad_id), self.target.padded(indices, pad_id)


@dataclass(eq=False, repr=False)
class EncodedCorpus:
    """Pairs in a memory-mapped Arrow file; only the parts that are read are loaded."""

    _source_ids: "_Lists"
    _target_ids: "_Lists"
    _links: "_Lists | None"
    corpus_sizes: list[int]

    @classmethod
    def open(cls, path: Path, *, num_corpora: int = 1) -> "EncodedCorpus":
        """Map a file of `write_encoded` into memory.

        Args:
            path: the file.
            num_corpora: how many corpora are seen; the last ones may have no pairs, and pairs of further ones are not seen.
        """
        import pyarrow as pa

        content = pa.memory_map(str(path)).read_buffer()
        with pa.ipc.open_stream(content) as reader:
            table = reader.read_all()
        sizes = np.zeros(num_corpora, np.int64)
        for chunk in table.column("corpus").chunks:
            sizes += np.bincount(numbers_of(chunk), minlength=num_corpora)[:num_corpora]
        return cls(
            _Lists(table.column("source_ids"), content),
            _Lists(table.column("target_ids"), content),
            _Lists(table.column("links"), content) if "links" in table.column_names else None,
            sizes.tolist(),
        )

    def __len__(self) -> int:
        return sum(self.corpus_sizes)

    def __getitem__(self, index: int) -> TokenPair:
        return TokenPair(self._source_ids[index], self._target_ids[index])

    def lengths(self, indices: Indices) -> tuple[Indices, Indices]:
        """Number of source tokens and number of target tokens of the pairs at these indices."""
        return self._source_ids.places(indices)[1], self._target_ids.places(indices)[1]

    def padded(self, indices: Indices, pad_id: int) -> tuple[Padded, Padded]:
        """The source ids and the target ids of the pairs at these indices."""
        source, target = (
            gather_padded(side.ids, *side.places(indices), pad_id) for side in (self._source_ids, self._target_ids)
        )
        return source, target

    def links(self, indices: Indices) -> list[NDArray[np.integer[Any]]] | None:
        """The links between the tokens of the pairs at these indices, as `links_of_tokens` lists them; None: there are none."""
        links = self._links
        return None if links is None else [links[index] for index in indices.tolist()]


class _Lists:
    """A column of lists; the file is seen as one array of ids, and as one array of offsets.

    Args:
        column: a chunked array of pyarrow, whose buffers lie in `content`.
        content: the bytes of the whole file.
    """

    def __init__(self, column: Any, content: Any) -> None:
        chunks = [chunk for chunk in column.chunks if len(chunk)]
        self._ends = np.cumsum([len(chunk) for chunk in chunks], dtype=np.int64)
        arrays, firsts = [], []
        for dtype, buffers in (
            (column.type.value_type.to_pandas_dtype(), [chunk.values.buffers()[1] for chunk in chunks]),
            (np.int32, [chunk.buffers()[1] for chunk in chunks]),
        ):
            # The bytes of the file; those at its end that fill no whole item are left out.
            array = np.frombuffer(content, dtype, count=content.size // np.dtype(dtype).itemsize)
            # For each chunk, the index in the file of its first id, or of its first offset.
            num_bytes = [buffer.address - content.address if buffer.size else 0 for buffer in buffers]
            assert all(number % array.itemsize == 0 for number in num_bytes)
            arrays.append(array)
            firsts.append(np.array(num_bytes, np.int64) // array.itemsize)
        (self.ids, self._offsets), (self._first_ids, first_offsets) = arrays, firsts
        # The number of pairs before the chunk is subtracted: the offset of a pair is at this index plus that of the pair.
        self._first_offsets = first_offsets - np.concatenate([[0], self._ends])[:-1]

    def __getitem__(self, index: int) -> NDArray[np.integer[Any]]:
        (start,), (length,) = self.places(np.array([index]))
        return self.ids[start : start + length]

    def places(self, indices: Indices) -> tuple[Indices, Indices]:
        """The place of the first id of each list in the file, and the number of its ids."""
        chunks = np.searchsorted(self._ends, indices, side="right")
        offsets = self._first_offsets[chunks] + indices
        starts = self._offsets[offsets].astype(np.int64)
        return self._first_ids[chunks] + starts, self._offsets[offsets + 1] - starts


def write_encoded(path: Path, chunks: Iterable[EncodedPairs], *, vocab_size: int, has_links: bool = False) -> None:
    """Write pairs to an Arrow file that `EncodedCorpus.open` reads.

    Args:
        chunks: pairs; the numbers of their corpora never decrease.
        vocab_size: size of the larger vocabulary; up to 65,536 an id takes 2 bytes, else 4.
        has_links: whether the pairs have links between tokens.
    """
    import pyarrow as pa

    id_type = pa.uint16() if vocab_size <= 2**16 else pa.uint32()
    ids = pa.list_(id_type)
    fields = {"source_ids": ids, "target_ids": ids, "corpus": pa.uint16()}
    if has_links:
        fields["links"] = pa.list_(pa.uint32())
    schema = pa.schema(fields)
    last_corpus = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for chunk in chunks:
            if not len(chunk.corpora):
                continue
            if np.any(np.diff(chunk.corpora, prepend=last_corpus) < 0):
                raise ValueError("pairs of different corpora are mixed")
            last_corpus = int(chunk.corpora[-1])
            columns = {"corpus": number_column(chunk.corpora, pa.uint16())}
            for name, lists in (("source_ids", chunk.source), ("target_ids", chunk.target), ("links", chunk.links)):
                if name in fields:
                    assert lists is not None
                    offsets = number_column(np.concatenate([[0], np.cumsum(lists.lengths)]), pa.int32())
                    items = number_column(lists.ids, fields[name].value_type)
                    columns[name] = pa.ListArray.from_arrays(offsets, items)
            writer.write_batch(pa.record_batch(columns, schema=schema))


def encode_pairs(
    rows: PairRows,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    sequence_format: SequenceFormat,
    *,
    has_links: bool = False,
) -> EncodedPairs:
    """The ids of pairs: each side ends with [EOS] if the format has one, and the source begins with its tags.

    Args:
        rows: the pairs, as of `rows_of_pairs`.
        has_links: whether the links between tokens are wanted too.
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
        ids = np.array([source_tokenizer.id_of(tag) if tag else unused for tag in corpus_tags], np.uint32)
        source = source.with_first(ids[corpora], np.array(corpus_tags, bool)[corpora])
    links = None
    if has_links:
        tokenizers = source_tokenizer, target_tokenizer
        links = IdLists.of(
            [
                links_of_tokens(
                    pair.links,
                    (pair.source, pair.target),
                    tokenizers,
                    len(sequence_format.tags_of(pair.corpus, pair.direction)),
                )
                for pair in pairs_of_rows(rows)
            ]
        )
    return EncodedPairs(source, target, corpora, links)


def encode_short_pairs(
    rows: PairRows, tokenizers: Tokenizers, sequence_format: SequenceFormat, max_length: int, *, has_links: bool = False
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
    encoded = encode_pairs(rows, *tokenizers, sequence_format, has_links=has_links)
    is_short = np.maximum(encoded.source.lengths, encoded.target.lengths) <= max_length
    is_kept[is_kept] = is_short
    return encoded if is_short.all() else encoded.select(is_short), is_kept


def seen_words_in(batches: Iterable[PairRows], data: DataConfig) -> SeenWords:
    """The words of the sources of a corpus, and those of their translations."""
    import pyarrow as pa
    from pyarrow import compute

    counts = [WordCounts(direction.source) for direction in data.directions]
    written = WordCounts(data.directions[0].target, knows_numbers=True)
    is_written = all(has_endings(direction.target) for direction in data.directions)
    for rows in batches:
        for number, count in enumerate(counts):
            direction_rows = rows
            if len(counts) > 1:
                places = np.flatnonzero(numbers_of(rows.column("direction")) == number)
                direction_rows = rows.take(number_column(places, pa.int64()))
            sources = direction_rows.column("source")
            if count.knows_possessed:
                likely = compute.match_substring_regex(sources, MAY_POSSESS)
                count.add_possessed(sources.filter(likely).to_pylist())
            pieces = compute.utf8_split_whitespace(sources).flatten()
            found = pieces.value_counts()
            count.add(found.field(0).to_pylist(), found.field(1).to_pylist())
        if is_written:
            found = compute.utf8_split_whitespace(rows.column("target")).flatten().value_counts()
            written.add(found.field(0).to_pylist(), found.field(1).to_pylist())
    words: Counter[str] = Counter()
    for count in counts:
        words.update(count.word_counts())
    if any(count.knows_possessed for count in counts):
        words[KNOWS_POSSESSED] = words.total()  # never left out
    return replace(SeenWords.of(words), written=written_words(written.word_counts()))


# The numbers of a corpus on its way to token ids: pairs read, dropped and kept, tokens, padding.


@dataclass(slots=True)
class TokenCount:
    """Numbers of tokens of some sentences, without [EOS]."""

    num_sentences: int = 0
    num_tokens: int = 0
    num_unknown: int = 0

    @property
    def unknown_rate(self) -> float:
        """Share of the tokens that are [UNK]."""
        return self.num_unknown / max(1, self.num_tokens)


@dataclass(slots=True)
class SideReport:
    """The tokens of one language."""

    vocab_size: int = 0
    train: TokenCount = field(default_factory=TokenCount)
    validation: TokenCount = field(default_factory=TokenCount)


@dataclass(slots=True)
class DataReport:
    """The numbers of a corpus."""

    num_pairs: dict[str, int] = field(default_factory=dict)
    """Split -> number of pairs after cleaning."""
    reading: list[ReportRow] = field(default_factory=list)
    """Problems in the files of the training split, and of corpora whose pairs get a split by hash."""
    cleaning: list[ReportRow] = field(default_factory=list)
    """Training split: pairs that each rule dropped or changed, and pairs that are held-out pairs (leakage)."""
    held_out: dict[str, list[ReportRow]] = field(default_factory=dict)
    """Split -> pairs that were skipped, dropped or changed."""
    num_too_long: int = 0
    """Number of training pairs dropped because they have more tokens than model.max_length."""
    longest_example: str = ""
    """The first of these pairs."""
    source: SideReport = field(default_factory=SideReport)
    target: SideReport = field(default_factory=SideReport)
    padding_share: float = 0.0
    """Share of padding among the tokens of training batches."""
    examples: dict[str, list[SentencePair]] = field(default_factory=dict)
    """Split -> its first pairs after cleaning."""
    warnings: list[str] = field(default_factory=list)
    """What was odd about the corpus when it was read."""

    def count(self, pairs: EncodedPairs, split: str) -> None:
        """Add encoded pairs to the numbers of a split."""
        for side, sentences in ((self.source, pairs.source), (self.target, pairs.target)):
            counted: TokenCount = getattr(side, split)
            counted.num_sentences += len(sentences.lengths)
            counted.num_tokens += int((sentences.ids != Tokenizer.eos_id).sum())
            counted.num_unknown += int((sentences.ids == Tokenizer.unk_id).sum())

    def dropped_share(self) -> float:
        """The share (0 to 1) of the training pairs that reading skipped or cleaning dropped."""
        skipped = sum(count for what, count, _ in self.reading if what.startswith("skipped:"))
        dropped = sum(count for what, count, _ in self.cleaning if what.startswith("dropped:"))
        num_read = sum(count for what, count, _ in self.cleaning if what == "pairs read")
        return (skipped + dropped) / max(1, skipped + num_read)

    def lines(self) -> list[str]:
        """Lines for people."""
        splits = ", ".join(f"{split} {count:,}" for split, count in self.num_pairs.items())
        lost = ("dropped: more tokens than model.max_length", self.num_too_long, self.longest_example)
        return [
            f"pairs: {splits}",
            *_table("reading the training split", self.reading),
            *_table("cleaning the training split", [*self.cleaning, lost]),
            *(
                line
                for split, rows in self.held_out.items()
                for line in _table(f"reading and cleaning the {split} split", rows)
            ),
            f"{'tokens':9}{'vocabulary':>12}{'per sentence':>14}{'unknown':>10}{'in validation':>15}",
            *(
                f"  {name:7}{side.vocab_size:>12,}{side.train.num_tokens / max(1, side.train.num_sentences):>14.1f}"
                f"{side.train.unknown_rate:>10.2%}{side.validation.unknown_rate:>15.2%}"
                for name, side in (("source", self.source), ("target", self.target))
            ),
            f"padding: {self.padding_share:.1%} of a training batch",
        ]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "DataReport":
        """The report from its plain values, those of `dataclasses.asdict`, which a file has."""
        return TypeAdapter(cls).validate_python(values)


def _table(title: str, rows: Sequence[ReportRow]) -> list[str]:
    """A table of the rows whose number is not 0."""
    lines = table_lines([row for row in rows if row[1]])
    return [f"{title}:", *lines] if lines else []


# The training pairs as ids: in this process, or in several for a large corpus.
#
# Each batch of pairs is encoded on its own, so the number of processes changes no byte of the result.


PAIRS_PER_WORKER = 250_000
"""A further process is started for each of so many pairs; for fewer, its start takes longer than it saves."""

EncodedBatch = tuple[EncodedPairs, NDArray[np.bool_]]
"""The pairs of a batch that are kept, as ids; and for each pair of the batch whether it is kept."""
Text = TrainingText | ReversedText
Encode = Callable[[PairRows, Tokenizers], EncodedBatch]
"""`encode_short_pairs` with the settings of a config; it can be sent to another process."""


def encoded_text(
    text: Text, num_pairs: int, tokenizers: Tokenizers, config: Config, report: DataReport
) -> Iterator[EncodedPairs]:
    """The pairs of a text as ids; pairs that are too long are left out.

    Args:
        text: the pairs.
        num_pairs: how many they are.
        report: gets the numbers of tokens and of pairs that are left out.

    Raises:
        TryAgainError: a process that encodes was killed.
    """
    encode = partial(
        encode_short_pairs,
        sequence_format=SequenceFormat.of(config.data),
        max_length=config.model.max_length,
        has_links=config.training.guided_alignment is not None,
    )
    num_batches = -(-num_pairs // PAIRS_AT_ONCE)
    num_workers = min(number_of_workers(config, num_pairs), num_batches)
    if num_workers > 1:
        files = tokenizer_files(tokenizers)
        batches = encoded_by_workers(text, num_batches, encode, files, num_workers)
    else:
        batches = (encode(rows, tokenizers) for rows in text)
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
    # A container or a scheduler may allow fewer CPUs than the machine has; Linux tells it. Elsewhere a new process imports
    # the script of the user again, which only a script that expects it survives: one process, unless the user asks.
    allowed: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    num_cpus = len(allowed(0)) if allowed is not None else 1
    return max(1, min(num_cpus, num_pairs // PAIRS_PER_WORKER))


class _Worker:
    """A process that encodes some of the batches of a text, in the order of the text."""

    def __init__(self, text: Text, encode: Encode, files: Mapping[str, bytes]) -> None:
        self._tokenizers = read_tokenizers(files)
        self._encode, self._unread, self._num_passed = encode, iter(text), 0

    def encoded(self, number: int) -> EncodedBatch:
        """The batch with this number; numbers never decrease, because processes take the next one that is left."""
        rows = next(islice(self._unread, number - self._num_passed, None))
        self._num_passed = number + 1
        return self._encode(rows, self._tokenizers)


_workers: list[_Worker] = []
"""In a process that encodes: its worker."""


def _start(text: Text, encode: Encode, files: Mapping[str, bytes]) -> None:
    # The main process decides what a signal means; its handlers would print messages here, too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_main_process, daemon=True).start()
    _workers[:] = [_Worker(text, encode, files)]


def _end_with_main_process() -> None:
    main = multiprocessing.parent_process()
    assert main is not None
    main.join()
    os._exit(1)


def _encoded(number: int) -> EncodedBatch:
    return _workers[0].encoded(number)


def encoded_by_workers(
    text: Text, num_batches: int, encode: Encode, files: Mapping[str, bytes], num_workers: int
) -> Iterator[EncodedBatch]:
    """The batches of a text; each process loads the tokenizers from the content of their files."""
    # On Linux a process starts as a copy of this one. Elsewhere it imports the script of the user again.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    given = text, encode, files
    pool = ProcessPoolExecutor(num_workers, context, initializer=_start, initargs=given)
    numbers = iter(range(num_batches))
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns where a process with threads is copied; the copies use no lock of these threads.
            warnings.filterwarnings("ignore", ".* is multi-threaded, use of fork", DeprecationWarning)
            # A few batches wait for each process, and not all results of a large corpus for this one.
            pending = deque(pool.submit(_encoded, number) for number in islice(numbers, 4 * num_workers))
        while pending:
            yield pending.popleft().result()
            pending.extend(pool.submit(_encoded, number) for number in islice(numbers, 1))
    except (BrokenProcessPool, OSError) as error:  # OSError: the system refuses a further process
        raise TryAgainError(
            "a process that turns pairs into ids was killed or not started, perhaps because memory is short",
            hint="use fewer processes: --set runtime.workers=1",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _pair_at(text: Text, number: int) -> SentencePair:
    """The pair with this number, from 0, of a text."""
    rows = next(islice(text, number // PAIRS_AT_ONCE, None))
    return pairs_of_rows(rows.slice(number % PAIRS_AT_ONCE, 1))[0]
