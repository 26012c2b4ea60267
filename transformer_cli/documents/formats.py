"""The formats of documents: their names, the endings of their files, and how each is read."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from transformer_cli.documents.reading_options import DEFAULTS, ReadingOptions
from transformer_cli.documents.segments import Document
from transformer_cli.errors import UsageError
from transformer_cli.extras import require_extra

Read = Callable[[bytes, ReadingOptions], Document]
LINES = "txt"
"""The format of lines: `tfm translate` itself reads it line by line, however large it is."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of documents."""

    name: str
    """As in `--format`."""
    endings: tuple[str, ...]
    """Of file names, such as .html."""
    load: Callable[[], Read]
    """Imports what reads it, and gives the function."""
    modules: tuple[str, ...] = ()
    """The optional packages that it needs, as modules; they belong to the extra `documents`."""


def _read_txt() -> Read:
    from transformer_cli.documents.plain_lines import read_plain_text

    return read_plain_text


def _read_html() -> Read:
    from transformer_cli.documents.markup.html_pages import read_html

    return read_html


FORMATS = (
    Format(LINES, (".txt",), _read_txt),
    Format("html", (".html", ".htm", ".xhtml"), _read_html),
)
NAMES = tuple(each.name for each in FORMATS)


def format_of(path: PurePath) -> Format | None:
    """The format of a file by the ending of its name; None if the ending says nothing."""
    ending = path.suffix.lower()
    return next((each for each in FORMATS if ending in each.endings), None)


def format_named(name: str) -> Format:
    """The format with a name.

    Raises:
        UsageError: there is no such format.
    """
    for each in FORMATS:
        if each.name == name.lower():
            return each
    raise UsageError(f"there is no document format {name}", hint=f"one of {', '.join(NAMES)}")


def read_document(
    data: bytes, document_format: Format, options: ReadingOptions = DEFAULTS
) -> Document:
    """A document from the bytes of its file.

    Raises:
        UsageError: a package that the format needs is not installed.
        DataError: the bytes are no document of this format.
    """
    require_extra(
        "documents", document_format.modules, purpose=f"the document format {document_format.name}"
    )
    options.limits.check_size(data)
    return document_format.load()(data, options)
