"""The formats of documents, and how each is read: what a person chooses, and within which limits."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import PurePath
from typing import TypeVar

from transformer_cli.data.sources.lines import kind_without_text, refuse_binary
from transformer_cli.extensions.documents.character_encoding import (
    DecodedText,
    decoded,
    has_byte_order_mark,
    require_utf_8_document,
)
from transformer_cli.extensions.documents.segments import (
    Document,
    LineNumbers,
    Markup,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    plain_text,
)
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.imports import require_extra
from transformer_cli.text.normalization import has_letter

Part = TypeVar("Part")

MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What a document may have at most."""

    max_bytes: int = 64 * MEBIBYTE
    """Of the file."""
    max_unpacked_bytes: int = 256 * MEBIBYTE
    """Of all parts of a zip file together, after decompression."""
    max_part_bytes: int = 64 * MEBIBYTE
    """Of a part of a zip file that is read, after decompression."""
    max_ratio: int = 200
    """How many bytes one byte of a zip file may become; ordinary office files stay below 30, and texts that repeat themselves do not."""
    max_bytes_of_any_ratio: int = 16 * MEBIBYTE
    """The ratio does not count while all parts together take so many bytes or less: they do no harm."""
    max_parts: int = 10_000
    """The number of files in a zip file."""
    max_depth: int = 200
    """How deep elements or values may be nested."""

    def check_size(self, data: bytes) -> None:
        """Refuse a file that is too large.

        Raises:
            DataError: it has more than `max_bytes`.
        """
        if len(data) > self.max_bytes:
            raise DataError(
                f"the document has {len(data) / MEBIBYTE:.0f} MiB; at most {self.max_bytes / MEBIBYTE:.0f} MiB are read",
                hint="divide the document",
            )

    def check_depth(self, depth: int, place: str) -> None:
        """Refuse values or elements that are nested too deeply.

        Args:
            depth: how many of them are around a place, itself included.
            place: for the message, such as "line 12".

        Raises:
            DataError: there are more than `max_depth`.
        """
        if depth > self.max_depth:
            raise DataError(
                f"{place}: nested more than {self.max_depth} deep",
                hint="no ordinary document is nested so deeply; was the file made by a program in error?",
            )


LIMITS = ReadingLimits()
"""The limits of `tfm translate`; a server may have lower ones."""

# A look costs about as much as reading one part.
_PARTS_BETWEEN_LOOKS = 64


class TooMuchText(DataError):
    """A document holds more than whoever reads it has room for."""


class ReadingWatch:
    """Looks at a document while it is read: whether anybody still waits for it, and how much it holds so far.

    One watch is for one document, with all of its parts.
    """

    def __init__(
        self,
        check: Callable[[], None] | None = None,
        *,
        max_parts: int | None = None,
        max_segments: int | None = None,
        max_characters: int | None = None,
    ) -> None:
        """A watch; without arguments, every document is read to its end.

        Args:
            check: called often while a document is read; it raises an exception to end the reading.
            max_parts: most lines, tags, values and other parts that a reader looks at.
            max_segments: most texts to translate.
            max_characters: most characters of these texts together.
        """
        self._check = check
        self._limits = (
            (max_parts, "parts (lines, tags, values)"),
            (max_segments, "texts to translate"),
            (max_characters, "characters to translate"),
        )
        self._num_parts = self._num_segments = self._num_characters = 0

    def check(self) -> None:
        """Raise whatever the `check` of this watch raises."""
        if self._check is not None:
            self._check()

    def look(self) -> None:
        """Count one part.

        Raises:
            TooMuchText: there are too many. Whatever `check` raises.
        """
        self._num_parts += 1
        if self._num_parts % _PARTS_BETWEEN_LOOKS == 0:
            self._refuse_more(0, self._num_parts)
            self.check()

    def over(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Parts of a file, one by one, each counted; see `look`."""
        for part in parts:
            self.look()
            yield part

    def counted(self, segment: Segment) -> Segment:
        """A segment, counted with its characters.

        Raises:
            TooMuchText: there are too many of one or the other.
        """
        for piece in segment.pieces:
            if isinstance(piece, Markup) and piece.inner is not None:
                for inner in piece.inner.document.segments:
                    self.counted(inner)
        self._num_segments += 1
        self._num_characters += len(plain_text(segment.pieces))
        self._refuse_more(1, self._num_segments, segment.place)
        self._refuse_more(2, self._num_characters, segment.place)
        return segment

    def _refuse_more(self, number: int, found: int, place: str = "") -> None:
        most, what = self._limits[number]
        if most is not None and found > most:
            where = f"up to {place}" if place else "in a part of it"
            raise TooMuchText(
                f"the document has more than {most} {what}: {found} {where}",
                hint="divide the document",
            )


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How a document is read; each format uses what concerns it."""

    columns: tuple[str, ...] = ()
    """For tables: the names or numbers (from 1) of the columns that are translated, or SOURCE=TARGET."""
    values: tuple[str, ...] = ()
    """For json and yaml: patterns of the values that are translated; nothing: all strings."""
    encoding: str | None = None
    """Of a text file, such as windows-1252; None: its byte-order mark or its own name of it decides, else it is UTF-8."""
    language: str | None = None
    """The language of a page or book that does not name its own: parts in another language are not translated. That of
    subtitles: its words and capital letters tell which cues are a sentence."""
    target_language: str | None = None
    """Of the translation, for files with several languages, whose texts that have it already are not translated, and for plurals."""
    kept_elements: frozenset[str] = frozenset()
    """Of HTML: the names of elements whose content is not translated, beside those of the format itself."""
    is_repeated: bool = False
    """Whether the same document was read before, so that its faults are named already."""
    has_trust: bool = False
    """For tables: whether a column behind each new one says how far each translation can be trusted."""
    limits: ReadingLimits = LIMITS
    watch: ReadingWatch = field(default_factory=ReadingWatch)
    """Of this document: every reader shows it what it reads."""


DEFAULTS = ReadingOptions()


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
    reader: str
    """The module in this folder and the function in it that read the format; imported when it is needed."""
    modules: tuple[str, ...] = ()
    """The optional packages that it needs, as modules; they belong to the extra `documents`."""
    is_archive: bool = False
    """Whether a file is a zip archive, which a terminal cannot show."""
    is_xml: bool = False
    """Whether a file names its encoding in its first line."""
    needs_languages: bool = False
    """Whether it is read by the languages of the model, which its files do not always name."""
    has_states: bool = False
    """Whether it says of each translation whether a person should look at it: fuzzy, needs-review-translation."""
    options: tuple[str, ...] = ()
    """The options of `tfm translate` that have an effect on it, of those that are not for all formats."""
    without_texts: str = "no text to translate was found"
    """Why a file has nothing to translate."""

    @property
    def names_its_encoding(self) -> bool:
        """Whether the encoding of a file cannot be chosen."""
        return self.is_archive or self.is_xml


_ALL_TRANSLATED = "every message has a translation, and those stay"
_NO_STRINGS = "no string looks like text; choose some by their keys: --values"
FORMATS = (
    Format(LINES, (".txt",), "formats.read_plain_text"),
    Format("md", (".md", ".markdown", ".mdown", ".mkd", ".mkdn"), "markdown.read_markdown", ("markdown_it",)),
    Format(
        "po",
        (".po", ".pot"),
        "po.read_po",
        ("polib",),
        needs_languages=True,
        has_states=True,
        without_texts=_ALL_TRANSLATED,
    ),
    Format("srt", (".srt",), "subtitles.read_srt", needs_languages=True),
    Format("vtt", (".vtt",), "subtitles.read_vtt", needs_languages=True),
    Format("csv", (".csv",), "tables.read_csv", options=("--columns",)),
    Format("tsv", (".tsv",), "tables.read_tsv", options=("--columns",)),
    Format("json", (".json", ".jsonl", ".arb"), "json.read_json", options=("--values",), without_texts=_NO_STRINGS),
    Format("yaml", (".yaml", ".yml"), "yaml.read_yaml", options=("--values",), without_texts=_NO_STRINGS),
    Format("html", (".html", ".htm", ".xhtml"), "html.read_html", needs_languages=True),
    Format("docx", (".docx", ".docm", ".dotx", ".dotm"), "docx.read_docx", is_archive=True),
    Format("odt", (".odt", ".ott"), "odt.read_odt", is_archive=True),
    Format("odp", (".odp", ".otp"), "odt.read_odt", is_archive=True),
    Format("ods", (".ods", ".ots"), "odt.read_odt", is_archive=True),
    Format("epub", (".epub",), "epub.read_epub", is_archive=True, needs_languages=True),
    Format(
        "xliff",
        (".xlf", ".xliff", ".sdlxliff", ".mqxliff"),
        "xliff.read_xliff",
        is_xml=True,
        has_states=True,
        without_texts="no unit waits for a translation: one without a target, with an empty one, or in the state new",
    ),
    Format(
        "tmx",
        (".tmx",),
        "tmx.read_tmx",
        is_xml=True,
        needs_languages=True,
        without_texts="no unit is in the source language alone, and units with several languages stay",
    ),
    Format("android", (".xml",), "android.read_android", is_xml=True, needs_languages=True),
    Format("strings", (".strings",), "apple.read_strings", needs_languages=True),
    Format("stringsdict", (".stringsdict",), "apple.read_stringsdict", is_xml=True, needs_languages=True),
    Format(
        "xcstrings",
        (".xcstrings",),
        "apple.read_string_catalog",
        needs_languages=True,
        has_states=True,
        without_texts="every text has a translation, or is not to be translated",
    ),
    Format("properties", (".properties",), "properties.read_properties"),
    Format("resx", (".resx", ".resw"), "resx.read_resx", is_xml=True),
    Format("qt", (".ts",), "qt.read_qt", is_xml=True, has_states=True, without_texts=_ALL_TRANSLATED),
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
        if name.lower() == each.name or f".{name.lower()}" in each.endings:
            return each
    raise UsageError(f"there is no document format {name}", hint=f"one of {', '.join(NAMES)}")


def read_document(data: bytes, document_format: Format, options: ReadingOptions = DEFAULTS) -> Document:
    """A document from the bytes of its file.

    Raises:
        UsageError: a package that the format needs is not installed.
        DataError: the bytes are no document of this format, or no text in its encoding.
    """
    require_extra("documents", document_format.modules, purpose=f"the document format {document_format.name}")
    options.limits.check_size(data)
    other = None if document_format.names_its_encoding else kind_without_text(data[:16])
    if other is not None and not other[0].startswith("XML"):  # XHTML is XML
        raise DataError(f"not a document of the format {document_format.name} but {other[0]}", hint=other[1])
    module, _, function = document_format.reader.rpartition(".")
    read: Read = getattr(import_module(f"transformer_cli.extensions.documents.{module}"), function)
    if options.encoding is not None or document_format.names_its_encoding:
        return read(data, options)
    if not has_byte_order_mark(data):
        refuse_binary(data)
    try:
        document = read(data, options)
    except DataError:
        require_utf_8_document(data, None)  # that is the reason, then
        raise
    content = getattr(document, "content", None)
    if isinstance(content, DecodedText):
        require_utf_8_document(data, content)
    return document


_LINE = re.compile(r"[^\r\n]+")


def read_plain_text(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A plain text; line ends, blank lines and the layout of each line stay."""
    content = decoded(data, given=options.encoding)
    lines = LineNumbers(content.text)
    slots = [
        Slot(
            line.start(),
            line.end(),
            options.watch.counted(Segment.plain(line[0], f"line {lines.number_at(line.start())}")),
            _text_of,
        )
        for line in options.watch.over(_LINE.finditer(content.text))
        if has_letter(line[0])
    ]
    return SplicedDocument(content, tuple(slots))


def _text_of(found: TranslatedSegment) -> str:
    return found.text
