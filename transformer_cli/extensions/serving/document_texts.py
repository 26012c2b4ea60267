"""Documents of a request: HTML as a text with markup, and files of the formats that `tfm translate` reads."""

import re
from collections.abc import Callable
from pathlib import PurePath

from transformer_cli.decoding import Translator
from transformer_cli.extensions.documents import ModelTranslator, read_document, translate_document
from transformer_cli.extensions.documents.formats import (
    FORMATS,
    Format,
    ReadingLimits,
    ReadingOptions,
    ReadingWatch,
    TooMuchText,
    format_named,
    format_of,
)
from transformer_cli.extensions.documents.segments import Document, plain_text
from transformer_cli.extensions.documents.tagged_xml import TagRules, read_tagged_xml
from transformer_cli.extensions.documents.translation import TranslatedDocument
from transformer_cli.extensions.serving.batching.jobs import Job
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.extensions.serving.refusals import RefusedRequest, bad_request, too_large
from transformer_cli.process.errors import TfmError, UsageError
from transformer_cli.process.extras import require_extra

_MAX_DETECTED_CHARACTERS = 2000
_NO_NAME = re.compile(r"[^\w.-]+")


# They need the names of their columns, for which clients of LibreTranslate have no place.
_TABLES = ("csv", "tsv")


def available_formats() -> list[Format]:
    """The formats that every client can send: their packages are installed, and they need no further options."""
    found = []
    for each in FORMATS:
        if each.name in _TABLES:
            continue
        try:
            require_extra("documents", each.modules, purpose=each.name)
        except UsageError:
            continue
        found.append(each)
    return found


def translated_html(
    translator: Translator, text: str, check: Callable[[], None]
) -> TranslatedDocument:
    """HTML, or a part of it, with its texts translated and its tags moved with their words.

    Raises:
        DataError: it cannot be read.
    """
    options = ReadingOptions(watch=ReadingWatch(check))
    document = read_document(text.encode(), format_named("html"), options)
    return translate_document(document, ModelTranslator.of(translator), check)


def translated_xml(
    translator: Translator, text: str, rules: TagRules, check: Callable[[], None]
) -> TranslatedDocument:
    """XML, or a part of it, with its texts translated and its tags moved with their words.

    Raises:
        DataError: it cannot be read.
    """
    document = read_tagged_xml(text, rules)
    return translate_document(document, ModelTranslator.of(translator), check)


def opened_document(name: str, data: bytes, columns: str, *, limits: Limits, job: Job) -> Document:
    """The document of a file that a client has sent.

    Args:
        columns: for a table: the names or numbers of the columns to translate, with commas between them.
        limits: of the server.
        job: the reading ends with it.

    Raises:
        RefusedRequest: its format is unknown, it cannot be read, or it holds too much.
        JobCancelled, DeadlinePassed: as of `Job.check`.
    """
    document_format = format_of(PurePath(name))
    names = tuple(each.strip() for each in columns.split(",") if each.strip())
    is_table = document_format is not None and document_format.name in _TABLES
    if is_table and not names:
        raise bad_request(
            "Invalid request: missing columns parameter: names or numbers of columns, such as title,3"
        )
    if document_format is None or not (is_table or document_format in available_formats()):
        endings = ", ".join(ending for each in available_formats() for ending in each.endings)
        raise bad_request(f"Invalid request: file format not supported; supported: {endings}")
    job.check()
    watch = ReadingWatch(
        job.check,
        max_parts=limits.max_file_parts,
        max_segments=limits.max_segments,
        max_characters=limits.max_file_characters,
    )
    sizes = ReadingLimits(
        max_bytes=limits.max_file_bytes,
        max_part_bytes=limits.max_file_bytes,
        max_unpacked_bytes=4 * limits.max_file_bytes,
    )
    try:
        return read_document(
            data, document_format, ReadingOptions(columns=names, limits=sizes, watch=watch)
        )
    except TooMuchText as error:
        raise too_large(f"Invalid request: {error.message}") from None
    except TfmError as error:
        raise bad_request(f"Invalid request: {error.message}") from None
    except RecursionError:
        raise RefusedRequest(400, "Invalid request: the file is nested too deeply") from None


def sample_of(document: Document) -> str:
    """Text of a document, for the detection of its language."""
    texts, num_characters = [], 0
    for segment in document.segments:
        text = plain_text(segment.pieces)
        texts.append(text)
        num_characters += len(text)
        if num_characters > _MAX_DETECTED_CHARACTERS:
            break
    return " ".join(texts)


def num_characters(document: Document) -> int:
    """The number of characters of the texts of a document."""
    return sum(len(plain_text(segment.pieces)) for segment in document.segments)


def name_of_translation(name: str, target: str) -> str:
    """The name of a translated file: letter.docx becomes letter_it.docx, without characters that a path may not have."""
    path = PurePath(_NO_NAME.sub("_", PurePath(name.replace("\\", "/")).name))
    return f"{path.stem[:80] or 'file'}_{target}{path.suffix[:20]}"
