"""Whether `tfm translate` reads a document or lines: by `--format`, or by the ending of the name of the input."""

from dataclasses import dataclass
from pathlib import Path

from transformer_cli.commands.streams.open_descriptors import STANDARD
from transformer_cli.config.data import known_encoding
from transformer_cli.data.sources.decompression import COMPRESSIONS
from transformer_cli.extensions.documents.formats import (
    LINES,
    XML,
    Format,
    ReadingOptions,
    format_named,
    format_of,
)
from transformer_cli.process.errors import UsageError


@dataclass(frozen=True, slots=True)
class ChosenDocument:
    """A document that a command translates."""

    path: Path | None
    """None is standard input."""
    format: Format
    options: ReadingOptions

    @property
    def name(self) -> str:
        """For messages."""
        return "standard input" if self.path is None else str(self.path)


def chosen_document(
    given: Path | None,
    format_name: str | None,
    *,
    columns: str | None,
    values: list[str],
    encoding: str | None = None,
    has_text: bool,
) -> ChosenDocument | None:
    """The document to translate; None if the input is lines or sentences.

    Args:
        given: the option --input; None or - is standard input.
        format_name: the option --format.
        columns: the option --columns.
        values: the option --values.
        encoding: the option --encoding.
        has_text: whether sentences are given as arguments.

    Raises:
        UsageError: there is no such format, or an option has no effect on it.
    """
    path = None if given is None or given == STANDARD else given
    found = None
    if format_name is not None:
        if has_text:
            raise UsageError("--format is for a file or standard input, not for sentences")
        found = format_named(format_name)
    elif path is not None:
        found = format_of(path)
    name = LINES if found is None else found.name
    for option, value, formats in (
        ("--columns", columns, ("csv", "tsv")),
        ("--values", values, ("json", "yaml")),
    ):
        if value and name not in formats:
            raise UsageError(
                f"{option} has no effect on the format {name}",
                hint=f"it is for {' and '.join(formats)}; name one with --format",
            )
    if encoding is not None:
        found = _in_encoding(found, encoding, has_text=has_text)
        if path is not None and path.suffix.lower() in COMPRESSIONS:
            raise UsageError(
                f"{path}: with --encoding, a compressed file is not read", hint="unpack it first"
            )
    elif found is None or found.name == LINES:
        return None
    names = tuple(name.strip() for name in (columns or "").split(",") if name.strip())
    return ChosenDocument(path, found, ReadingOptions(names, tuple(values), encoding))


def _in_encoding(found: Format | None, encoding: str, *, has_text: bool) -> Format:
    """The format that is read in an encoding: lines, too, are read as a document then.

    Raises:
        UsageError: there is no such encoding, or the option has no effect.
    """
    if has_text:
        raise UsageError("--encoding is for a file or standard input, not for sentences")
    if known_encoding(encoding) is None:
        raise UsageError(
            f"--encoding {encoding}: no such encoding is known",
            hint="such as windows-1252, iso-8859-2, shift_jis or utf-16",
        )
    found = found or format_named(LINES)
    if found.is_archive or found.name in XML:
        raise UsageError(
            f"--encoding has no effect on the format {found.name}: XML names its encoding itself",
            hint="leave it out",
        )
    return found
