"""Finds the local files of a corpus and reads their sentence pairs, or the part of one process; paths of a config."""

import difflib
import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple, TypeVar

from transformer_cli.config.data import FilesData, HubData
from transformer_cli.data.pairs import ReadingReport
from transformer_cli.data.sources.lines import (
    COMPRESSIONS,
    RawPair,
    UnequalLinesError,
    beginning_digest,
    decode_pairs,
    file_digest,
    read_lines,
)
from transformer_cli.data.sources.records import read_jsonl, read_parquet, read_saved, saved_files, saved_splits
from transformer_cli.data.sources.tables import Fields, read_table
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.process.messages import counted

# The part of a streamed corpus that one of several processes reads.


Row = TypeVar("Row")

_LEAST_SHARE = 0.9
"""The size of the smallest part, divided by that of the largest one, from which parts count as equal."""


class CorpusPart(NamedTuple):
    """One of several parts of a corpus; together they have each row once."""

    number: int = 0
    """From 0."""
    num_parts: int = 1

    def rows(self, rows: Iterable[Row], *, first: int = 0) -> Iterator[Row]:
        """The rows of this part, from its row `first` on: of n parts, part p has the rows p, p + n, p + 2n, ..."""
        return islice(rows, self.row(first), None, self.num_parts)

    def row(self, number: int) -> int:
        """The number that a row of this part has in the whole corpus."""
        return self.number + number * self.num_parts

    def num_rows(self, total: int) -> int:
        """How many of the first `total` rows of the corpus are in this part."""
        return max(0, -(-(total - self.number) // self.num_parts))

    def files(self, files: Sequence[Row], sizes: Sequence[int]) -> list[Row] | None:
        """The files of this part, if the files can be dealt out equally; None: each file must be split by rows.

        Args:
            files: of a corpus.
            sizes: of the files, in bytes. Each part gives as many batches as the others, so a part with less text would be
                read more often.
        """
        dealt = [sizes[number :: self.num_parts] for number in range(self.num_parts)]
        part_sizes = list(map(sum, dealt))
        if len(files) % self.num_parts or min(part_sizes) < _LEAST_SHARE * max(part_sizes):
            return None
        return list(files[self.number :: self.num_parts])


WHOLE = CorpusPart()


# The files of a corpus.


_FORMATS = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
_HINTS = {
    "a spreadsheet: tfm data import makes text files of .xlsx; else save it as CSV": (
        ".xlsx",
        ".xls",
        ".xlsm",
        ".ods",
        ".numbers",
    ),
    "a translation memory: tfm data import makes text files of TMX and XLIFF 1.2": (
        ".tmx",
        ".xliff",
        ".xlf",
        ".sdlxliff",
        ".sdltm",
        ".xml",
    ),
    "an archive: unpack it, and give the path of a file in it": (".zip", ".tar", ".tgz", ".7z", ".rar"),
    "a document: save its sentences as plain text or in a table": (".docx", ".doc", ".odt", ".rtf", ".pdf", ".html"),
    "a file of a saved data set: give the path of its folder": (".arrow",),
}
CLEANING_RECORDS, CLEANING_REPORT = ("line_numbers.tsv", "removed.tsv", "changed.tsv"), "report.json"
"""What `tfm data clean` writes beside the pairs that are left: of a file a.tsv a.tsv.removed.tsv and the like, and one report."""
_ABSENT = b"\n"  # stands for a missing line; no line contains a line feed


class CorpusFiles(NamedTuple):
    """Two plain-text files, or one file of another format that holds both sides."""

    format: str
    source: Path
    target: Path

    @property
    def num_bytes(self) -> int:
        """The size on disk of both sides."""
        return sum(path.stat().st_size for path in {self.source, self.target})


def read_pair_files(data: FilesData, index: int, report: ReadingReport) -> Iterator[tuple[str, str]]:
    """Yield the pairs of `data.corpora[index]`, file by file.

    Raises:
        MissingInputError: a file does not exist.
        DataError: a file cannot be read as a corpus, or no file has a pair.
    """
    num_rows_before = report.num_rows
    found = find_files(data, index)
    for files in found:
        yield from read_file(files, data, index, report)
    if report.num_rows == num_rows_before:
        names = ", ".join(dict.fromkeys(str(path) for files in found for path in files[1:]))
        raise DataError(f"data.corpora.{index} is empty: no sentence pair in {names}")


def read_file(
    files: CorpusFiles, data: FilesData, index: int, report: ReadingReport, *, first: int = 0, part: CorpusPart = WHOLE
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a part of one of the files of `data.corpora[index]`, from row `first` of the part on."""
    places = str(files.source), str(files.target)
    rows = part.rows(raw_pairs(files, data, index), first=first)
    encoding = data.corpora[index].encoding
    return decode_pairs(rows, places, data.undecodable, report, encoding=encoding)


def find_files(data: FilesData, index: int) -> list[CorpusFiles]:
    """The files that `data.corpora[index]` names, in the order in which they are read.

    Raises:
        MissingInputError: a path names no file.
        DataError: source and target files do not match, or a file has an unknown format.
    """
    corpus = data.corpora[index]
    if corpus.source_path is not None and corpus.target_path is not None:
        return _two_sides(data, index)
    assert corpus.path is not None
    languages = data.directions_of(index)[0]
    paths = expand_path(corpus.path, data.root)
    if len(paths) == 1 and paths[0].is_dir():
        folder = paths[0]
        if (splits := saved_splits(folder)) is not None:
            return [_saved(folder, splits)]
        paths = without_records([path for path in sorted(folder.iterdir()) if not path.name.startswith(".")])
        wanted = {corpus.format} if corpus.format else {*_FORMATS.values(), "text"}
        formats = {path: _format(path, languages) for path in paths if not path.is_dir()}
        files = _assemble({path: kind for path, kind in formats.items() if kind in wanted}, languages)
        if not files:
            content = f"found {_first_names(paths)}" if paths else "it is empty"
            raise DataError(
                f"{folder}: no corpus in this folder, {content}",
                hint="a folder holds .tsv, .csv, .jsonl or .parquet files, or pairs such as "
                f"NAME.{languages[0]} and NAME.{languages[1]}, compressed or not",
            )
        return files
    formats = {path: corpus.format or _format(path, languages) for path in paths}
    return _assemble(formats, languages)


def without_records(paths: Sequence[Path]) -> list[Path]:
    """The files of a folder without what `tfm data clean` has recorded there."""
    records = {f"{path.name}.{ending}" for path in paths for ending in CLEANING_RECORDS}
    if records.isdisjoint(path.name for path in paths):
        return list(paths)
    return [path for path in paths if path.name not in {*records, CLEANING_REPORT}]


def _saved(folder: Path, splits: Sequence[str]) -> CorpusFiles:
    if splits:
        raise DataError(
            f"{folder}: a saved DatasetDict, where one data set is expected",
            hint=f"write one entry for each split under data.corpora: path: {folder}/{splits[0]}; "
            f"its splits: {', '.join(splits)}",
        )
    return CorpusFiles("saved", folder, folder)


def fingerprint_files(data: FilesData, index: int) -> dict[str, str]:
    """Name -> SHA-256 of the stored bytes, for each file of `data.corpora[index]`; of their beginning if streamed."""
    digest = beginning_digest if is_streamed(data, index) else file_digest
    return {name: digest(path) for name, path in stored_files(data, index).items()}


def is_streamed(data: FilesData | HubData, index: int) -> bool:
    """Whether the pairs of `data.corpora[index]` are read during the training, and not before."""
    return data.streaming and data.corpora[index].split == "train"


def stored_files(data: FilesData, index: int) -> dict[str, Path]:
    """Name in the fingerprint -> path, for each file of `data.corpora[index]`."""
    paths = [path for files in find_files(data, index) for path in _files_on_disk(files)]
    if (alignments := alignment_path(data, index)) is not None:
        paths.append(alignments)
    return {name_under_root(path, data.root): path for path in paths}


def alignment_path(data: FilesData | HubData, index: int) -> Path | None:
    """The file with the word alignments of `data.corpora[index]`; None: it has none.

    Raises:
        MissingInputError: there is no such file.
    """
    if not isinstance(data, FilesData):
        return None
    given = data.corpora[index].alignment_path
    return None if given is None else expand_path(given, data.root)[0]


def _files_on_disk(files: CorpusFiles) -> list[Path]:
    return saved_files(files.source) if files.format == "saved" else list(dict.fromkeys(files[1:]))


def _two_sides(data: FilesData, index: int) -> list[CorpusFiles]:
    corpus, setting = data.corpora[index], f"data.corpora.{index}"
    if corpus.format not in (None, "text"):
        raise DataError(f"{setting}.format: {corpus.format} needs path; source_path and target_path are for plain text")
    sources = expand_path(str(corpus.source_path), data.root)
    targets = expand_path(str(corpus.target_path), data.root)
    if len(sources) != len(targets):
        raise DataError(
            f"{setting}: {corpus.source_path} names {len(sources)} files, {corpus.target_path} names {len(targets)}",
            hint="the files of both sides are matched in sorted order",
        )
    return [CorpusFiles("text", *sides) for sides in zip(sources, targets, strict=True)]


def _assemble(formats: dict[Path, str | None], languages: tuple[str, str]) -> list[CorpusFiles]:
    """Group files, sorted: each table alone, plain text as pairs NAME.SOURCE and NAME.TARGET."""
    files = []
    texts: dict[str, dict[str, Path]] = {}
    for path, kind in formats.items():
        if kind is None:
            raise DataError(
                f"{path}: its name does not tell its format",
                hint=hint_for_unknown_format(
                    path,
                    "set format to tsv, csv, jsonl or parquet; plain text needs source_path and target_path; "
                    "tfm data import makes text files of a spreadsheet (.xlsx)",
                ),
            )
        if kind != "text":
            files.append(CorpusFiles(kind, path, path))
            continue
        name, _, language = str(without_compression(path)).rpartition(".")
        other = texts.setdefault(name, {}).setdefault(language.lower(), path)
        if other != path:
            raise DataError(f"{other} and {path}: two files for the same side", hint="remove one of them")
    for name, sides in texts.items():
        source, target = (sides.get(language.lower()) for language in languages)
        if source is None or target is None:
            alone = ", ".join(str(path) for path in sides.values())
            raise DataError(
                f"{alone}: the other side is missing: {name}.{languages[0] if source is None else languages[1]}",
                hint="plain text comes in pairs NAME.SOURCE_LANGUAGE and NAME.TARGET_LANGUAGE, "
                "or as source_path and target_path",
            )
        files.append(CorpusFiles("text", source, target))
    return sorted(files, key=lambda found: str(found.source))


def hint_for_unknown_format(path: Path, otherwise: str) -> str:
    """What to do with a file that another program has made, by its name; `otherwise` if its name says nothing."""
    suffixes = {suffix.lower() for suffix in path.suffixes[-2:]}
    return next((f"this looks like {hint}" for hint, known in _HINTS.items() if suffixes & {*known}), otherwise)


def _format(path: Path, languages: tuple[str, str]) -> str | None:
    suffix = without_compression(path).suffix.lower()
    if suffix in (f".{language.lower()}" for language in languages):
        return "text"
    return corpus_format(path)


def corpus_format(path: Path) -> str | None:
    """The format that the end of a file name tells: tsv, csv, jsonl or parquet."""
    return _FORMATS.get(without_compression(path).suffix.lower())


def without_compression(path: Path) -> Path:
    """The path without .gz, .bz2, .xz or .zst at its end."""
    is_compressed = path.suffix.lower() in COMPRESSIONS
    return Path(str(path).removesuffix(path.suffix)) if is_compressed else path


def raw_pairs(files: CorpusFiles, data: FilesData, index: int) -> Iterator[RawPair]:
    """The pairs of one of the files of `data.corpora[index]` as bytes, with their line numbers."""
    corpus = data.corpora[index]
    if files.format == "text":
        return _read_text(files.source, files.target, corpus.encoding)
    fields = Fields.of(data, index)
    if files.format == "jsonl":
        return read_jsonl(files.source, fields, corpus.encoding)
    if files.format in ("parquet", "saved") and corpus.encoding is not None:
        raise DataError(
            f"{files.source}: data.corpora.{index}.encoding is for text, and this is always UTF-8",
            hint="leave out encoding",
        )
    if files.format == "parquet":
        return read_parquet(files.source, fields)
    if files.format == "saved":
        return read_saved(files.source, fields)
    return read_table(files.source, files.format, fields, has_header=corpus.has_header, encoding=corpus.encoding)


def _read_text(source: Path, target: Path, encoding: str | None) -> Iterator[RawPair]:
    return pair_lines((source, target), read_lines(source, encoding), read_lines(target, encoding))


def pair_lines(
    names: tuple[Path, Path], source_lines: Iterator[bytes | None], target_lines: Iterator[bytes | None]
) -> Iterator[RawPair]:
    """Line N of the source with line N of the target.

    Raises:
        UnequalLinesError: the sides have different numbers of lines; it gives both numbers and names.
    """
    sides = zip_longest(source_lines, target_lines, fillvalue=_ABSENT)
    for number, lines in enumerate(sides, start=1):
        if _ABSENT in lines:
            num_longer = number + sum(1 for _ in sides)
            counts = [number - 1 if line == _ABSENT else num_longer for line in lines]
            raise UnequalLinesError(
                f"{names[0]} has {counted(counts[0], 'line')}, {names[1]} has {counted(counts[1], 'line')}",
                hint="line N of one must translate line N of the other; empty lines count",
            )
        yield RawPair(number, *lines)


def _first_names(paths: Sequence[Path]) -> str:
    names = [path.name for path in paths]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


# Paths and globs of a config.


def with_home(path: str) -> Path:
    """The path, with ~ at its beginning as the home folder; it stays where no such user is known."""
    return Path(os.path.expanduser(path))


class MissingCorpusError(MissingInputError):
    """A file of a corpus is not there; the hint is for the person who wrote its config."""

    def __init__(self, message: str, *, hint: str, is_under_root: bool) -> None:
        super().__init__(message, hint=hint)
        self.is_under_root = is_under_root
        """Whether another `data.root` would change where the file is looked for."""


def expand_path(pattern: str, root: str) -> list[Path]:
    """The path itself if it exists, else the files that it matches as a glob, sorted.

    Raises:
        MissingCorpusError: no file has this name or matches this glob.
    """
    folder, given = with_home(root), with_home(pattern)
    path = folder / given
    if os.path.exists(path):
        return [path]
    if glob.has_magic(pattern):
        anchored = str(given) if given.is_absolute() else f"{glob.escape(str(folder))}/{given}"
        matches = sorted(glob.glob(anchored, recursive=True))
        files = [Path(match) for match in matches if not os.path.isdir(match)]
        if files:
            return files
    raise _missing(path, root, is_glob=glob.has_magic(pattern), is_under_root=not given.is_absolute())


def _missing(path: Path, root: str, *, is_glob: bool, is_under_root: bool) -> MissingCorpusError:
    folder = path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    wanted = path.relative_to(folder).parts[0] if path != folder else ""
    names = sorted(os.listdir(folder)) if os.access(folder, os.R_OK) else []
    close = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    hint = f"relative paths start at data.root ({root}); set another one with --set data.root=PATH"
    if close:
        hint += f"; similar names in {folder.absolute()}: {', '.join(close)}"
    kind = "no file matches" if is_glob else "no such file"
    return MissingCorpusError(f"{path.absolute()}: {kind}", hint=hint, is_under_root=is_under_root)


def name_under_root(path: Path, root: str) -> str:
    """The path relative to its root, so that a corpus keeps its name when the root moves."""
    folder = with_home(root)
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()
