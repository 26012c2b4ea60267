"""The formats of documents: their names, the endings of their files, and how each is read."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath

from transformer_cli.extensions.documents.character_encoding import DecodedText, require_utf_8
from transformer_cli.extensions.documents.reading_options import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import Document
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.extras import require_extra

Read = Callable[[bytes, ReadingOptions], Document]
XML = ("xliff", "tmx")
"""The formats whose files name their encoding in their first line."""
LINES = "txt"
"""The format of lines: `tfm translate` itself reads it line by line, however large it is."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of documents."""

    name: str
    """As in `--format`."""
    endings: tuple[str, ...]
    """Of file names, such as .html."""
    reader: str
    """The module in this folder and the function in it that read the format; imported when it is needed."""
    modules: tuple[str, ...] = ()
    """The optional packages that it needs, as modules; they belong to the extra `documents`."""
    is_archive: bool = False
    """Whether a file is a zip archive, which a terminal cannot show."""


FORMATS = (
    Format(LINES, (".txt",), "plain_lines.read_plain_text"),
    Format("md", (".md", ".markdown"), "markup.markdown_pages.read_markdown", ("markdown_it",)),
    Format("po", (".po", ".pot"), "strings.message_catalogues.read_po", ("polib",)),
    Format("srt", (".srt",), "subtitles.subtitle_files.read_srt"),
    Format("vtt", (".vtt",), "subtitles.subtitle_files.read_vtt"),
    Format("csv", (".csv",), "strings.table_columns.read_csv"),
    Format("tsv", (".tsv",), "strings.table_columns.read_tsv"),
    Format("json", (".json", ".jsonl"), "strings.json_values.read_json"),
    Format("yaml", (".yaml", ".yml"), "strings.yaml_values.read_yaml"),
    Format("html", (".html", ".htm", ".xhtml"), "markup.html_pages.read_html"),
    Format("docx", (".docx",), "office.docx.read_docx", is_archive=True),
    Format("odt", (".odt", ".ott"), "office.odt.read_odt", is_archive=True),
    Format("epub", (".epub",), "office.epub.read_epub", is_archive=True),
    Format("xliff", (".xlf", ".xliff"), "xml.xliff.read_xliff"),
    Format("tmx", (".tmx",), "xml.tmx.read_tmx"),
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
        DataError: the bytes are no document of this format, or no text in its encoding.
    """
    require_extra(
        "documents", document_format.modules, purpose=f"the document format {document_format.name}"
    )
    options.limits.check_size(data)
    module, _, function = document_format.reader.rpartition(".")
    read: Read = getattr(import_module(f"transformer_cli.extensions.documents.{module}"), function)
    names_its_encoding = document_format.is_archive or document_format.name in XML
    if options.encoding is not None or names_its_encoding:
        return read(data, options)
    try:
        document = read(data, options)
    except DataError:
        require_utf_8(data, None)  # that is the reason, then
        raise
    content = getattr(document, "content", None)
    if isinstance(content, DecodedText):
        require_utf_8(data, content)
    return document
