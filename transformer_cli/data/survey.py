"""Inspects an unknown corpus: its files, columns, languages and sizes."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from transformer_cli.config import Config, FilesData, SplitName
from transformer_cli.data.columns import Column
from transformer_cli.data.pairs import CleaningReport, ReadingReport, SentencePair, pair_digest
from transformer_cli.data.selection import clean, compared, rules_of_given_splits
from transformer_cli.data.sources.corpus import has_split, read_pairs
from transformer_cli.data.unknown_files import FoundCorpus, GivenFacts, find_corpus
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import UNKNOWN_LANGUAGE

NUM_EXAMPLES = 3
# Of two European languages, neither needs so many times the characters of the other.
_UNLIKE = 1.5
_NUM_COMPARED_PAIRS = 1000
# Words and characters are counted in at most this many pairs; the pairs themselves are all counted.
NUM_MEASURED_PAIRS = 100_000
_RULES = {
    "drop_empty": "a side is empty",
    "drop_equal": "the source equals the target",
    "drop_duplicates": "the same pair stands above",
    "min_words": "a side has too few words",
    "max_words": "a side has too many words",
    "max_characters": "a side has too many characters",
    "max_length_ratio": "one side is much longer than the other",
}


@dataclass(slots=True)
class Side:
    """The sentences of one language."""

    num_words: float = 0.0
    """Number of words, which white space separates."""
    num_characters: float = 0.0
    characters: Counter[str] = field(default_factory=Counter)
    """How often each character occurs in the measured pairs."""
    words: set[str] = field(default_factory=set)
    """The different words of the measured pairs."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a corpus holds."""

    data: FilesData
    """The data section of a config that reads the corpus."""
    columns: list[Column]
    """The columns of the first table; empty for plain text."""
    num_rows: int
    num_pairs: dict[str, int]
    """Split -> number of pairs after cleaning; pairs without a split count for train."""
    source: Side
    target: Side
    examples: list[SentencePair]
    dropped: dict[str, int]
    """Reason -> number of pairs that are not used for this reason."""
    doubts: list[str]
    """What is odd about the corpus, such as a column whose name says another language than its text."""

    left_out: list[str]
    """The names of the files of a folder that are not read."""

    @property
    def has_splits(self) -> bool:
        """Whether the files themselves are split into training and validation."""
        return any(corpus.split == "validation" for corpus in self.data.corpora)


def survey(paths: Sequence[str], facts: GivenFacts) -> Survey:
    """Find out how to read a corpus, then read it once.

    Args:
        paths: one table or folder, or the two sides of plain text.

    Raises:
        MissingInputError: a path does not exist.
        DataError: there are no sentence pairs, or the files cannot be read.
    """
    return _measured(find_corpus(paths, facts))


def _measured(found: FoundCorpus) -> Survey:
    data = _with_fitting_ratio(found.data)
    reading, cleaning = ReadingReport(), CleaningReport()
    source, target = Side(), Side()
    examples: list[SentencePair] = []
    num_pairs: Counter[str] = Counter()
    whole = _undrawn(data)
    for split in _splits_of(data):
        pairs = read_pairs(whole, split, seed=0, report=reading)
        rules = data.cleaning if split == "train" else rules_of_given_splits(data.cleaning)
        for pair in clean(pairs, rules, cleaning):
            num_pairs[split] += 1
            if split == "train" and num_pairs[split] <= NUM_MEASURED_PAIRS:
                _measure(source, pair.source)
                _measure(target, pair.target)
                examples += [pair] if len(examples) < NUM_EXAMPLES else []
    if not num_pairs["train"]:
        raise _no_pairs(reading, cleaning, has_columns=bool(found.columns))
    scale = max(1.0, num_pairs["train"] / NUM_MEASURED_PAIRS)
    for side in (source, target):
        side.num_words, side.num_characters = side.num_words * scale, side.num_characters * scale
    return Survey(
        data=data,
        columns=found.columns,
        num_rows=reading.num_rows,
        num_pairs=dict(num_pairs),
        source=source,
        target=target,
        examples=examples,
        dropped=_losses(reading, cleaning),
        doubts=found.doubts,
        left_out=found.left_out,
    )


def _undrawn(data: FilesData) -> FilesData:
    """The data section that gives all pairs without a split to training."""
    return data.model_copy(update={"validation_share": 0.0, "test_share": 0.0})


def _with_fitting_ratio(data: FilesData) -> FilesData:
    """The data section; where one language needs far more characters than the other, its pairs may differ as much more in length.

    Chinese has a third of the characters of English, so the usual limit would drop its long sentences.
    """
    usual = data.cleaning.max_length_ratio
    first = [*islice(read_pairs(_undrawn(data), _splits_of(data)[0], seed=0), _NUM_COMPARED_PAIRS)]
    lengths = [sum(map(len, side)) for side in list(zip(*first, strict=True))[:2]]
    if usual is None or not all(lengths) or not lengths:
        return data
    ratio = max(lengths) / min(lengths)
    if ratio < _UNLIKE:
        return data
    rules = data.cleaning.model_copy(update={"max_length_ratio": float(math.ceil(usual * ratio))})
    return data.model_copy(update={"cleaning": rules})


def _losses(reading: ReadingReport, cleaning: CleaningReport) -> dict[str, int]:
    found = [*reading.skipped.items(), *cleaning.dropped.items()]
    return {in_words(reason): finding.count for reason, finding in found if finding.count}


def _no_pairs(reading: ReadingReport, cleaning: CleaningReport, *, has_columns: bool) -> DataError:
    """The error for a corpus of which every row is dropped, with the reasons."""
    losses = _losses(reading, cleaning)
    why = "; ".join(f"{count:,} of {reading.num_rows:,} dropped: {reason}" for reason, count in losses.items())
    hint = "the source and the target must differ, and neither may be empty"
    if set(losses) == {"a NUL byte"}:
        hint = "these files are no text, or hold needless bytes: tr -d '\\000' < FILE > NEW removes them"
    if has_columns:
        hint += "; other columns are chosen with --source-field and --target-field"
    return DataError(f"no usable sentence pair was found: {why or 'the files are empty'}", hint=hint)


def num_pairs_by_split(config: Config) -> dict[str, int]:
    """How many pairs each split of a config will have, after cleaning; the corpus is read once for each split."""
    counts: dict[str, int] = {}
    held_out: set[bytes] = set()
    order: list[SplitName] = ["validation", "test", "train"]
    for split in order:
        if not has_split(config.data, split):
            continue
        pairs = read_pairs(config.data, split, seed=config.seed)
        leaked = held_out if split == "train" else frozenset[bytes]()
        rules = config.applied_cleaning
        digests = [
            pair_digest(compared(pair, rules)) for pair in clean(pairs, rules, CleaningReport(), held_out=leaked)
        ]
        counts[split] = len(digests)
        held_out.update(digests if split != "train" else ())
    return {split: counts[split] for split in ("train", "validation", "test") if split in counts}


def _splits_of(data: FilesData) -> list[SplitName]:
    given = {corpus.split for corpus in data.corpora}
    splits: list[SplitName] = ["train", "validation", "test"]
    return [split for split in splits if split in given or (split == "train" and None in given)]


def _measure(side: Side, text: str) -> None:
    words = text.split()
    side.words.update(words)
    side.num_words += len(words)
    side.num_characters += len(text)
    side.characters.update(text)


def has_unknown_language(data: FilesData) -> bool:
    """Whether the language of a side is not known."""
    return UNKNOWN_LANGUAGE in (data.source_language, data.target_language)


def in_words(reason: str) -> str:
    """Why pairs were dropped: a rule of cleaning in words, with the name of its setting."""
    return f"{_RULES[reason]} (data.cleaning.{reason})" if reason in _RULES else reason
