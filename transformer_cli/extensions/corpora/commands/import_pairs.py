"""`tfm data import`: pairs out of a translation memory, a spreadsheet or an archive, as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_cli.commands.command_line import (
    EncodingOption,
    JsonOption,
    SourceFieldOption,
    TargetFieldOption,
)
from transformer_cli.commands.output import STANDARD, fitting, show
from transformer_cli.config import Direction
from transformer_cli.data.pairs import finding_rows, table_lines
from transformer_cli.data.unknown_files import GivenFacts
from transformer_cli.extensions.corpora.commands.config_lines import WrittenCorpus, config_lines
from transformer_cli.extensions.corpora.commands.given_corpus import (
    DroppedShareOption,
    SourceLanguageOption,
    TargetLanguageOption,
)
from transformer_cli.process.errors import CannotCreateError, UsageError
from transformer_cli.process.messages import for_shell

if TYPE_CHECKING:
    from transformer_cli.extensions.corpora.importing import Imported


def import_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="TMX, XLIFF 1.2, XLSX, TSV, CSV or another table, a zip of such files; or two text files.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write: NAME makes NAME.en and NAME.it; NAME.tsv makes one table.",
        ),
    ],
    source_language: SourceLanguageOption = None,
    target_language: TargetLanguageOption = None,
    source_field: SourceFieldOption = None,
    target_field: TargetFieldOption = None,
    sheet: Annotated[
        str | None,
        typer.Option("--sheet", help="Sheet of a spreadsheet, by its name. Default: the first."),
    ] = None,
    encoding: EncodingOption = None,
    max_dropped_share: DroppedShareOption = 0.05,
    force: Annotated[bool, typer.Option("--force", help="Replace the output.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Turn a translation memory or a table into text files. Spreadsheets and archives, too; a config reads the files."""
    from transformer_cli.extensions.corpora.importing import import_pairs

    if len(files) > 2:
        raise UsageError("give one file, or two text files")

    def outputs(direction: Direction) -> tuple[Path, ...]:
        return _outputs(output, direction, files, force=force)

    _check_output(output)
    given = GivenFacts(source_field, target_field, source_language, target_language, encoding)
    imported = import_pairs(files, given, sheet=sheet, max_dropped_share=max_dropped_share, output=outputs)
    report = imported.report
    facts = {
        "files": [str(path) for path in imported.files],
        "source_language": imported.direction.source,
        "target_language": imported.direction.target,
        "num_units": report.num_units,
        "num_pairs": report.num_written,
        "skipped": {what: finding.count for what, finding in report.skipped.items()},
        "noticed": {what: finding.count for what, finding in report.noticed.items()},
        "doubts": report.doubts,
    }
    doubts = [f"warning: {doubt}" for doubt in report.doubts]
    show(facts, [*doubts, *fitting(_table(imported)), "", *_config(imported)], as_json=as_json)


def _check_output(output: Path) -> None:
    if output == STANDARD or output.name in ("", ".."):
        raise UsageError(
            f"--output {output}: not the beginning of two file names",
            hint=f"--output {for_shell((Path() if output == STANDARD else output) / 'corpus')} writes corpus.en and corpus.it there, for English and Italian",
        )
    if output.exists() and not output.is_dir() and not output.is_file():
        raise CannotCreateError(
            f"--output {output}: a pipe or a device, where the beginning of two file names is expected",
            hint="such as --output corpus",
        )


def _outputs(output: Path, direction: Direction, paths: Sequence[Path], *, force: bool) -> tuple[Path, ...]:
    if output.suffix.lower() == ".tsv":
        files: tuple[Path, ...] = (output,)
    else:
        files = tuple(output.with_name(f"{output.name}.{language}") for language in direction)
    if len({*files}) < len(files):
        raise UsageError(
            f"both sides are in {direction.source}",
            hint="give --source-language and --target-language, or an --output that ends in .tsv",
        )
    if not output.absolute().parent.is_dir():
        raise CannotCreateError(f"{output}: there is no folder {output.absolute().parent}")
    for file in files:
        if any(path.exists() and file.exists() and path.samefile(file) for path in paths):
            raise CannotCreateError(f"{file}: is the file that is imported", hint="give another --output")
        if file.exists() and not force:
            raise CannotCreateError(
                f"{file}: exists already",
                hint="give another --output, or add --force to replace it",
            )
    return files


def _table(imported: Imported) -> list[str]:
    report = imported.report
    rows = [
        ("units read", report.num_units, ""),
        *finding_rows("skipped", report.skipped),
        *finding_rows("noticed", report.noticed),
        ("pairs written", report.num_written, " and ".join(map(str, imported.files))),
    ]
    return [f"{imported.direction}:", *table_lines(rows)]


def _config(imported: Imported) -> list[str]:
    written = WrittenCorpus([path.name for path in imported.files])
    return config_lines(imported.files[0].parent, imported.direction, [written])
