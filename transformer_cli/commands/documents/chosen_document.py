"""Whether `tfm translate` reads a document or lines: by `--format`, or by the ending of the name of the input."""

from dataclasses import dataclass
from pathlib import Path

from transformer_cli.commands.streams.open_descriptors import STANDARD
from transformer_cli.documents.formats import LINES, Format, format_named, format_of
from transformer_cli.documents.reading_options import ReadingOptions
from transformer_cli.errors import UsageError


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
    has_text: bool,
) -> ChosenDocument | None:
    """The document to translate; None if the input is lines or sentences.

    Args:
        given: the option --input; None or - is standard input.
        format_name: the option --format.
        columns: the option --columns.
        values: the option --values.
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
    if found is None or found.name == LINES:
        return None
    names = tuple(name.strip() for name in (columns or "").split(",") if name.strip())
    return ChosenDocument(path, found, ReadingOptions(columns=names, values=tuple(values)))
