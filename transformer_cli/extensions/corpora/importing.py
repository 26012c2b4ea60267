"""Imports files of pairs: finds their format and languages, and writes text files or a TSV file."""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from transformer_cli.config import Direction, FileCorpus, FilesData
from transformer_cli.data.columns import NUM_SAMPLED_ROWS, Column, choose_columns, columns_of
from transformer_cli.data.sources.lines import (
    HALF_CHARACTER,
    HOW_TO_CONVERT,
    TOO_LONG,
)
from transformer_cli.data.sources.local_files import corpus_format, without_compression
from transformer_cli.data.sources.tables import first_rows, has_quoted_fields
from transformer_cli.data.unknown_files import GivenFacts, encoding_of_table, find_corpus
from transformer_cli.decoding.memory import MemoryPair
from transformer_cli.extensions.corpora.archives import unpacked_corpus
from transformer_cli.extensions.corpora.pairs import (
    NOT_UTF_8,
    NUL_BYTE,
    ImportedPair,
    ImportReport,
    NumberedPairs,
    corpus_parts,
    one_line,
)
from transformer_cli.extensions.corpora.spreadsheets import sheet_as_tsv
from transformer_cli.extensions.corpora.translation_memories import (
    elements_of_file,
    languages_of_tmx,
    languages_of_xliff,
    local_name,
    pairs_of_tmx,
    pairs_of_xliff,
)
from transformer_cli.process.errors import DataError, MissingInputError, TfmError, UsageError
from transformer_cli.process.imports import require_extra
from transformer_cli.process.messages import for_shell
from transformer_cli.storage import staged_file, temporary_folder
from transformer_cli.text.languages import (
    UNKNOWN_LANGUAGE,
    best_match,
    code_with_region,
    name_of,
    named_language,
    plain_code,
    primary_language,
)
from transformer_cli.text.normalization import is_blank

logger = logging.getLogger(__name__)

_KINDS = {
    ".tmx": "tmx",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".sdlxliff": "xliff",
    ".mqxliff": "xliff",
    ".xml": "xml",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".zip": "zip",
}
_ROOTS = {
    "tmx": (pairs_of_tmx, languages_of_tmx),
    "xliff": (pairs_of_xliff, languages_of_xliff),
}
EMPTY = "an empty side"
MAX_DROPPED_SHARE = 0.05
"""If more of the units are damaged (not UTF-8, a NUL byte, a line of more than 1 MB), nothing is written."""
_DAMAGES = (NOT_UTF_8, NUL_BYTE, TOO_LONG)


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import has written."""

    files: tuple[Path, ...]
    """Two text files, source and target; or one TSV file."""
    direction: Direction
    report: ImportReport


@contextmanager
def _named_as_given(path: Path, scratch: Path) -> Iterator[None]:
    """Let errors about a file that was unpacked name the one that was given."""
    try:
        yield
    except TfmError as error:
        for inside in (f"{_table_of_sheet(path, scratch)}: ", f"{scratch}/"):
            error.message = error.message.replace(inside, f"{path}: ")
        raise


def _table_of_sheet(path: Path, scratch: Path) -> Path:
    return scratch / f"{path.stem}.tsv"


class OpenSegments(NamedTuple):
    """The pairs of a file, which are read when they are iterated."""

    segments: Iterator[ImportedPair]
    direction: Direction


OpenTable = Callable[[Sequence[Path], GivenFacts, ImportReport, str], OpenSegments]
"""Opens a table, or two text files, by what is known of them; the name of the given file is for messages."""


def import_pairs(
    paths: Sequence[Path],
    facts: GivenFacts,
    *,
    sheet: str | None,
    max_dropped_share: float = MAX_DROPPED_SHARE,
    output: Callable[[Direction], tuple[Path, ...]],
) -> Imported:
    """Read the pairs of one file, or of two text files, and write those with two sides.

    Args:
        paths: TMX, XLIFF, XLSX, a table, a zip archive, or two text files.
        facts: languages and columns, where they are not to be found out.
        sheet: the sheet of a spreadsheet.
        max_dropped_share: the largest share of damaged pairs that may be left out.
        output: the files to write, for the languages that were found: two text files, or one TSV file.

    Raises:
        MissingInputError: a file does not exist.
        DataError: a file is damaged, dangerous, or has no pair in these languages; or its encoding is not clear.
    """
    for path in paths:
        if path.is_dir():
            raise DataError(f"{path}: a folder, where a file is expected", hint="name the files in it")
        if path.exists() and not path.is_file():
            raise DataError(
                f"{path}: a pipe or device; a corpus is read more than once",
                hint="write it to a file first",
            )
        if not path.is_file():
            raise MissingInputError(f"{path.absolute()}: no such file")
    report, facts = ImportReport(), facts.with_codes()
    with temporary_folder("tfm-corpora-") as scratch, _named_as_given(paths[0], scratch):
        segments, direction = open_segments(paths, facts, sheet, report, scratch)
        files = output(direction)
        write_segments(segments, files, report, ", ".join(map(str, paths)), max_dropped_share)
    return Imported(files, direction, report)


def read_memory(
    path: Path, source_language: str, target_language: str, encoding: str | None = None
) -> list[MemoryPair]:
    """The pairs of a translation memory or a table, in the languages of a run; a table may have a header, or none.

    Args:
        encoding: of a table that is not UTF-8; None: it is found out.

    Raises:
        MissingInputError: there is no such file.
        DataError: it is damaged, dangerous, or has no pair in these languages; or its encoding is not clear.
        UsageError: a package is missing.
    """
    if not path.is_file():
        raise MissingInputError(f"--memory {path}: no such file")
    report = ImportReport()
    facts = GivenFacts(None, None, source_language, target_language, encoding)
    with (
        _hints_of_a_memory(path),
        temporary_folder("tfm-corpora-") as scratch,
        _named_as_given(path, scratch),
    ):
        segments, _ = open_segments([path], facts, None, report, scratch, _table_of_memory)
        pairs = [
            MemoryPair(one.source, one.target, f"{path}:{one.line}")
            for one in segments
            if not is_blank(one.source) and not is_blank(one.target)
        ]
        _require_little_damage(report, str(path), MAX_DROPPED_SHARE)
    for doubt in report.doubts:
        logger.warning("%s", doubt)
    if not pairs:
        raise DataError(
            f"{path}: no pair in {source_language} and {target_language} was found in {report.num_units:,} units",
            hint="a table needs a column for each language; a TMX needs units in both",
        )
    return pairs


_FOREIGN_OPTION = re.compile(r"--(?!encoding)|data\.corpora|source_field|format:|tfm init|two text files")


@contextmanager
def _hints_of_a_memory(path: Path) -> Iterator[None]:
    """Replace hints that name options of other commands, or settings, which `tfm translate` does not have."""
    try:
        yield
    except DataError as error:
        hint = error.hint or ""
        if hint.startswith("name its encoding"):
            error.hint = (
                "name its encoding with --encoding; an input in UTF-8 stays UTF-8. If the input has a third encoding, make a table in UTF-8, and give "
                f"that to --memory: tfm data import {for_shell(path)} --encoding NAME --output NEW.tsv"
            )
        elif _FOREIGN_OPTION.search(hint):
            error.hint = (
                "a memory has two columns, the texts and their translations, with the names of the languages in the first row; "
                "save it with a spreadsheet as .xlsx or as CSV (UTF-8)"
            )
        raise


def open_segments(
    paths: Sequence[Path],
    facts: GivenFacts,
    sheet: str | None,
    report: ImportReport,
    scratch: Path,
    open_table: OpenTable | None = None,
) -> OpenSegments:
    """The pairs of one file, or of two text files.

    Args:
        open_table: reads a table, or two text files; None: as `tfm init` does.
    """
    kind = _kind(paths[0]) if len(paths) == 1 else "text"
    if open_table is None:
        _refuse_needless(facts, kind, paths[0])
    open_table = open_table or _table
    if sheet is not None and kind != "xlsx":
        raise UsageError(f"--sheet is for spreadsheets (.xlsx); {paths[0]} is none")
    if kind == "zip":
        languages = (facts.source_language, facts.target_language)
        return open_segments(unpacked_corpus(paths[0], scratch, languages), facts, sheet, report, scratch, open_table)
    if kind in _ROOTS:
        return _memory(paths[0], kind, facts, report)
    if kind == "xlsx":
        require_extra("corpora", ("openpyxl",), purpose="a spreadsheet (.xlsx)")
        table = _table_of_sheet(paths[0], scratch)
        sheet_as_tsv(paths[0], table, sheet)
        return open_table([table], facts, report, str(paths[0]))
    return open_table(paths, facts, report, str(paths[0]))


def _refuse_needless(facts: GivenFacts, kind: str, path: Path) -> None:
    """Raise UsageError for facts that have no effect on a format."""
    if facts.encoding is not None and kind in ("xlsx", *_ROOTS):
        raise UsageError(
            f"--encoding is for text, and {path} says itself how it is encoded", hint="leave out --encoding"
        )
    if (facts.source_field, facts.target_field) != (None, None) and kind in _ROOTS:
        raise UsageError(
            f"--source-field and --target-field are for tables; {path} is none",
            hint="choose its languages with --source-language and --target-language",
        )


def _kind(path: Path) -> str:
    kind = _KINDS.get(without_compression(path).suffix.lower(), "table")
    if kind in ("xml", *_ROOTS):
        require_extra("corpora", ("lxml",), purpose="TMX or XLIFF")
    if kind != "xml":
        return kind
    root = local_name(next(elements_of_file(path, names=())))
    if root not in _ROOTS:
        raise DataError(
            f"{path}: XML with the root <{root}>, where <tmx> or <xliff> is expected",
            hint="export it as TMX or XLIFF 1.2",
        )
    return root


def _memory(path: Path, kind: str, facts: GivenFacts, report: ImportReport) -> OpenSegments:
    read, languages_of = _ROOTS[kind]
    wanted = facts.source_language, facts.target_language
    source, target = wanted if None not in wanted else _chosen(languages_of(path), wanted, path)
    direction = Direction(str(source), str(target))
    return OpenSegments(read(path, *direction, report), direction)


def _chosen(found: Sequence[str], wanted: tuple[str | None, str | None], path: Path) -> tuple[str, str]:
    """The two languages of a file, as plain codes: en for en-US, unless both sides are English."""
    form = plain_code if len({*map(plain_code, found)}) > 1 else code_with_region
    codes = list(dict.fromkeys(map(form, found)))
    given = [form(code) for code in wanted if code is not None]
    others = [code for code in codes if code not in given]
    if not given:
        others, rest = others[2:], others[:2]
        source, target = rest if len(rest) == 2 else ("", "")
    else:
        other, others = (others[0], others[1:]) if others else ("", [])
        source, target = wanted[0] or other, wanted[1] or other
    if others or not (source and target):
        raise DataError(
            f"{path}: it holds {', '.join(found) or 'no language'}; which two are wanted is not clear",
            hint="choose them with --source-language and --target-language",
        )
    return source, target


def _table(paths: Sequence[Path], facts: GivenFacts, report: ImportReport, name: str) -> OpenSegments:
    found = find_corpus([str(path) for path in paths], facts)
    report.doubts += found.doubts
    return _segments_of(found.data, report, name)


def _table_of_memory(paths: Sequence[Path], facts: GivenFacts, report: ImportReport, name: str) -> OpenSegments:
    """The pairs of a table in the languages of a run, which the names of its columns must not contradict.

    Args:
        name: of the file that was given; of a spreadsheet, the table is another file.
    """
    if len(paths) == 2:
        return _table(paths, facts, report, name)
    [path] = paths
    wanted = str(facts.source_language), str(facts.target_language)
    kind, encoding = corpus_format(path), None
    if kind != "parquet":
        encoding, how = encoding_of_table(path, facts.encoding)
        report.doubts += [how] if how else []
    is_of_spreadsheet = name != str(path)
    if kind in (None, "tsv") or (kind == "csv" and _has_tabs(path, encoding)):
        kind = "csv" if not is_of_spreadsheet and has_quoted_fields(path, encoding) else "tsv"
    assert kind is not None
    columns, has_header = columns_of(path, kind, encoding=encoding)
    source, target = _columns_of_memory(columns, wanted, name)
    corpus = FileCorpus.model_validate(
        {
            "path": str(path),
            "format": kind,
            "encoding": encoding,
            "source_field": source.field,
            "target_field": target.field,
            "has_header": has_header if kind in ("tsv", "csv") else None,
        }
    )
    data = FilesData(source="files", source_language=wanted[0], target_language=wanted[1], corpora=(corpus,))
    return _segments_of(data, report, name, also_by_line=True)


def _has_tabs(path: Path, encoding: str | None) -> bool:
    """Whether the first lines have equally many tabs, so that these separate the columns, whatever the file is called."""
    widths = set(map(len, first_rows(path, "tsv", NUM_SAMPLED_ROWS, encoding)))
    return len(widths) == 1 and widths != {1}


def _columns_of_memory(columns: Sequence[Column], wanted: tuple[str, str], name: str) -> tuple[Column, Column]:
    """The columns of the source and the target: by the languages that their names say, else by their text and their place.

    Raises:
        DataError: the names say other languages; or there are no two columns of text.
    """
    is_prose = [one.holds not in ("numbers", "dates", "links") for one in columns]
    codes = [(named_language(one.title) or "") if prose else "" for one, prose in zip(columns, is_prose, strict=True)]
    chosen: list[Column | None] = []
    left = list(codes)
    for language in wanted:
        number = best_match(language, left)
        chosen.append(None if number is None else columns[number])
        if number is not None:
            left[number] = ""
    if None in chosen and any(left) and all(map(named_language, wanted)):
        found, expected = (
            " and ".join(f"{name_of(code)} ({code})" for code in some if code) for some in (codes, wanted)
        )
        raise DataError(
            f"{name}: its columns are in {found}, as their names say, where {expected} are expected",
            hint="give a table in the languages of the run; if only the names are wrong, correct them in its first row",
        )
    fields = tuple(None if one is None else one.field for one in chosen)
    source, target = choose_columns(columns, (fields[0], fields[1]), wanted, name)
    for column, language in zip((source, target), wanted, strict=True):
        if column.language != UNKNOWN_LANGUAGE and primary_language(column.language) != primary_language(language):
            logger.warning(
                "%s: column %s looks like %s, where %s is expected",
                name,
                column.title or column.field,
                name_of(column.language),
                name_of(language),
            )
    return source, target


def _segments_of(data: FilesData, report: ImportReport, name: str, *, also_by_line: bool = False) -> OpenSegments:
    """The pairs of a corpus, each on one line.

    Args:
        also_by_line: whether cells of several lines, as many in both languages, give a pair for each line, too: a document is
            translated line by line.
    """
    [part] = corpus_parts(data)

    def segments() -> Iterator[ImportedPair]:
        pairs = NumberedPairs(part, data)
        for pair in pairs:
            report.num_units += 1
            if pair.damage:
                report.skip(pair.damage, f"{name}:{pair.line}")
            else:
                yield ImportedPair(pair.line, one_line(pair.source), one_line(pair.target))
                lines = [[each for each in text.splitlines() if each.strip()] for text in (pair.source, pair.target)]
                if also_by_line and len(lines[0]) == len(lines[1]) > 1:
                    yield from (ImportedPair(pair.line, *each) for each in zip(*lines, strict=True))
        if pairs.unequal is not None:
            raise pairs.unequal

    return OpenSegments(segments(), part.direction)


def write_segments(
    segments: Iterator[ImportedPair],
    files: Sequence[Path],
    report: ImportReport,
    name: str,
    max_dropped_share: float = MAX_DROPPED_SHARE,
) -> None:
    """Write the segments with two sides, into two text files or one TSV file.

    Raises:
        DataError: there are none, or a larger share is damaged.
    """
    with ExitStack() as stack:
        unfinished = [stack.enter_context(staged_file(path)) for path in files]
        opened = [stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in unfinished]
        for segment in segments:
            if is_blank(segment.source) or is_blank(segment.target):
                report.skip(EMPTY, f"{name}:{segment.line}")
                continue
            report.num_written += 1
            if len(opened) == 1:
                opened[0].write(f"{segment.source}\t{segment.target}\n")
            else:
                opened[0].write(f"{segment.source}\n")
                opened[1].write(f"{segment.target}\n")
        _require_little_damage(report, name, max_dropped_share)
        if not report.num_written:
            reasons = "; ".join(f"{what}: {finding.count:,}" for what, finding in report.skipped.items())
            hint = "choose the languages with --source-language and --target-language"
            if set(report.skipped) == {EMPTY}:
                hint = "each unit must have text in both languages; other languages are chosen with --source-language and --target-language"
            raise DataError(
                f"{name}: no pair was found in {report.num_units:,} units" + (f"; {reasons}" if reasons else ""),
                hint=hint,
            )


def _require_little_damage(report: ImportReport, name: str, max_share: float) -> None:
    damaged = {what: report.skipped[what] for what in _DAMAGES if what in report.skipped}
    num_damaged = sum(finding.count for finding in damaged.values())
    if num_damaged <= max_share * report.num_units:
        return
    what = "; ".join(f"{what}, first {finding.example}" for what, finding in damaged.items())
    how = f"{HOW_TO_CONVERT}; or " if NOT_UTF_8 in damaged else ""
    if how and ".json" in name:
        how = f"{HALF_CHARACTER}; {how}"
    raise DataError(
        f"{name}: {num_damaged:,} of {report.num_units:,} units are damaged ({what}), more than the share of "
        f"{max_share:.0%} that may be left out; nothing was written",
        hint=f"{how}leave out more: --max-dropped-share 1",
    )
