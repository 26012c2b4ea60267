"""Inspects an unknown corpus: its files, columns, languages and sizes."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from transformer_cli.config import FileCorpus, FilesData, SplitName
from transformer_cli.data.columns import Column, choose_columns, columns_of
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.selection.cleaning import CleaningReport, clean
from transformer_cli.data.sources import read_pairs
from transformer_cli.data.sources.lines import read_lines
from transformer_cli.data.sources.local_files import corpus_format, without_compression
from transformer_cli.errors import DataError, MissingInputError, UsageError
from transformer_cli.text.languages import (
    LANGUAGE_OF_NAME,
    UNKNOWN_LANGUAGE,
    guess_language,
    language_in,
)

NUM_EXAMPLES = 3
# Words and characters are counted in at most this many pairs; the pairs themselves are all counted.
NUM_MEASURED_PAIRS = 100_000
_NUM_GUESSED_LINES = 300
_SPLIT_OF_NAME: dict[str, SplitName] = {
    "train": "train", "training": "train",
    "dev": "validation", "devel": "validation", "val": "validation", "valid": "validation", "validation": "validation",
    "test": "test", "tst": "test",
}  # fmt: skip


class Wishes(NamedTuple):
    """Facts that the user gives; the survey finds the ones that are None."""

    source_field: str | None = None
    target_field: str | None = None
    source_language: str | None = None
    target_language: str | None = None


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

    @property
    def has_splits(self) -> bool:
        """Whether the files themselves are split into training and validation."""
        return any(corpus.split is not None for corpus in self.data.corpora)


def survey(paths: Sequence[str], wishes: Wishes) -> Survey:
    """Find out how to read a corpus, then read it once.

    Args:
        paths: one table or folder, or the two sides of plain text.

    Raises:
        MissingInputError: a path does not exist.
        DataError: there are no sentence pairs, or the files cannot be read.
    """
    for path in paths:
        if not Path(path).exists():
            raise MissingInputError(f"{Path(path).absolute()}: no such file or folder")
    if len(paths) == 2:
        return _measured(_two_texts(paths[0], paths[1], wishes), [])
    if Path(paths[0]).is_dir():
        return _folder(Path(paths[0]), wishes)
    return _table(Path(paths[0]), paths[0], wishes)


def _two_texts(source: str, target: str, wishes: Wishes) -> FilesData:
    for path in (source, target):
        if (kind := corpus_format(Path(path))) is not None:
            raise DataError(
                f"{path}: a {kind.upper()} file has both sides, so give this file alone",
                hint=f"tfm init {path}",
            )
    languages = _languages(
        [wishes.source_language, wishes.target_language],
        [_language_of_file(Path(path)) for path in (source, target)],
        [_first_lines(Path(path)) for path in (source, target)],
    )
    return _data([{"source_path": source, "target_path": target}], languages)


def _folder(folder: Path, wishes: Wishes) -> Survey:
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    sides: dict[str, dict[str, Path]] = {}
    for path in files:
        language = _language_of_file(path)
        if language and corpus_format(path) is None:
            sides.setdefault(without_compression(path).stem, {})[language] = path
    found = list(dict.fromkeys(language for both in sides.values() for language in both))
    if len(found) == 2:
        source = wishes.source_language if wishes.source_language in found else None
        target = wishes.target_language if wishes.target_language in found else None
        source = source or next(one for one in found if one != target)
        target = target or next(one for one in found if one != source)
        return _measured(_split_texts(sides, source, target), [])
    tables = [path for path in files if corpus_format(path) is not None]
    if not tables:
        names = ", ".join(path.name for path in files[:8]) or "nothing"
        raise DataError(
            f"{folder}: no corpus in this folder, found {names}",
            hint="a folder holds tables (.csv, .tsv, .jsonl, .parquet), or text in pairs of files such as train.en and train.it",
        )
    return _table(tables[0], str(folder), wishes)


def _split_texts(sides: dict[str, dict[str, Path]], source: str, target: str) -> FilesData:
    whole = {name: both for name, both in sides.items() if len(both) == 2}
    splits = {name: _SPLIT_OF_NAME.get(re.split(r"[\W_]+", name.casefold())[0]) for name in whole}
    is_split = set(splits.values()) >= {"train", "validation"}
    corpora = [
        {"source_path": str(both[source]), "target_path": str(both[target])}
        | ({"split": splits[name] or "train"} if is_split else {})
        for name, both in whole.items()
    ]
    if not corpora:
        raise DataError(
            "the folder has no pair of files with one name and both languages, such as train.en and train.it"
        )
    return _data(corpora, (source, target))


def _table(path: Path, given: str, wishes: Wishes) -> Survey:
    kind = corpus_format(path)
    corpus: dict[str, Any] = {"path": given}
    if kind is None:
        first = next(read_lines(path), b"") or b""
        if b"\t" not in first:
            raise DataError(
                f"{path}: its name does not tell its format, and its first line has no tab",
                hint="plain text comes in two files: tfm init train.en train.it; a spreadsheet is saved as CSV (UTF-8)",
            )
        kind = corpus["format"] = "tsv"
    fields = (wishes.source_field, wishes.target_field)
    columns, has_header = columns_of(path, kind, names=fields)
    wanted = (wishes.source_language, wishes.target_language)
    source, target = choose_columns(columns, fields, wanted, str(path))
    corpus |= {"source_field": source.field, "target_field": target.field}
    if kind in ("tsv", "csv"):
        corpus["has_header"] = has_header
    languages = _languages(wanted, [source.language, target.language], [[], []])
    return _measured(_data([corpus], languages), columns)


def _languages(
    wanted: Sequence[str | None], named: Sequence[str | None], texts: Sequence[Sequence[str]]
) -> tuple[str, str]:
    source, target = (
        wish or name or guess_language(lines)
        for wish, name, lines in zip(wanted, named, texts, strict=True)
    )
    return source, target


def _data(corpora: Sequence[dict[str, Any]], languages: tuple[str, str]) -> FilesData:
    try:
        return FilesData(
            source="files",
            source_language=languages[0],
            target_language=languages[1],
            corpora=tuple(FileCorpus(**corpus) for corpus in corpora),
        )
    except ValidationError as error:
        what = error.errors()[0]
        place = ".".join(map(str, what["loc"]))
        raise UsageError(
            f"{place}: {what['input']!r} cannot be used: {what['msg']}",
            hint="a language is a code such as en, it or zh-CN",
        ) from error


def _language_of_file(path: Path) -> str | None:
    """The language in a file name: at its end, as in train.en.gz, or before it, as in english.txt."""
    bare = without_compression(path)
    suffix = bare.suffix.removeprefix(".").casefold()
    if suffix in LANGUAGE_OF_NAME:
        return suffix if len(suffix) == 2 else LANGUAGE_OF_NAME[suffix]
    return language_in(bare.stem)


def _first_lines(path: Path) -> list[str]:
    lines = islice(read_lines(path), _NUM_GUESSED_LINES)
    return [line.decode(errors="replace") for line in lines if line]


def _measured(data: FilesData, columns: list[Column]) -> Survey:
    reading, cleaning = ReadingReport(), CleaningReport()
    source, target = Side(), Side()
    examples: list[SentencePair] = []
    num_pairs: Counter[str] = Counter()
    whole = data.model_copy(update={"validation_share": 0.0, "test_share": 0.0})
    for split in _splits_of(data):
        pairs = read_pairs(whole, split, seed=0, report=reading)
        kept = clean(pairs, data.cleaning, cleaning) if split == "train" else pairs
        for pair in kept:
            num_pairs[split] += 1
            if split == "train" and num_pairs[split] <= NUM_MEASURED_PAIRS:
                _measure(source, pair.source)
                _measure(target, pair.target)
                examples += [pair] if len(examples) < NUM_EXAMPLES else []
    if not num_pairs["train"]:
        raise DataError(
            "no usable sentence pair was found",
            hint="check that the columns hold sentences: --source-field, --target-field",
        )
    scale = max(1.0, num_pairs["train"] / NUM_MEASURED_PAIRS)
    for side in (source, target):
        side.num_words, side.num_characters = side.num_words * scale, side.num_characters * scale
    losses = [*reading.skipped.items(), *cleaning.dropped.items()]
    return Survey(
        data=data,
        columns=columns,
        num_rows=reading.num_rows,
        num_pairs=dict(num_pairs),
        source=source,
        target=target,
        examples=examples,
        dropped={reason: finding.count for reason, finding in losses if finding.count},
    )


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
