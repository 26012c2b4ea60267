"""`tfm translate --input page.html`: which inputs are documents, their translation, and what a person should look at.

The core finds this file by its name, in `commands/translate.py`.
"""

import logging
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from transformer_cli.commands.input_lines import input_status
from transformer_cli.commands.output import (
    STANDARD,
    check_output,
    opened_output,
    require_no_corpus,
    require_other_file,
)
from transformer_cli.commands.translate_lines import (
    TranslateOptions,
    check_read_files,
    drift_of,
    open_translator,
)
from transformer_cli.config.data import known_encoding
from transformer_cli.data.sources.lines import COMPRESSIONS
from transformer_cli.decoding import Translator
from transformer_cli.decoding.translation import GlossaryUse
from transformer_cli.extensions.documents import ModelTranslator, read_document, translate_document
from transformer_cli.extensions.documents.character_encoding import encoding_beside_memory
from transformer_cli.extensions.documents.formats import (
    FORMATS,
    LINES,
    Format,
    ReadingOptions,
    format_named,
    format_of,
)
from transformer_cli.extensions.documents.translation import NotGreen, TranslatedDocument
from transformer_cli.extensions.documents.translator import CUT
from transformer_cli.process.errors import DataError, MissingInputError, UsageError
from transformer_cli.process.signals import ended_after

logger = logging.getLogger(__name__)

MAX_SHOWN_DOUBTS = 20

# Formats that are not read. As lines, their names and signs would be translated too.
_STRUCTURED = {
    ".ass": "subtitles; save them as .srt",
    ".ssa": "subtitles; save them as .srt",
    ".sub": "subtitles; save them as .srt",
    ".sbv": "subtitles; save them as .srt",
    ".smi": "subtitles; save them as .srt",
    ".ttml": "subtitles; save them as .srt",
    ".dfxp": "subtitles; save them as .srt",
    ".plist": "texts of an app; export them as .xliff",
    ".ftl": "texts of a program; convert them to .po or .json",
    ".toml": "settings or texts of a program; convert them to .json or .yaml",
    ".ini": "settings or texts of a program; convert them to .json or .yaml",
    ".jsonc": "JSON with comments; take them out, and rename it to .json",
    ".json5": "JSON with comments; convert it to .json",
    ".xmb": "texts of a program; write them as .xlf",
    ".xtb": "texts of a program; write them as .xlf",
    ".xlb": "texts of a program; write them as .xlf",
    ".txml": "a file of Wordfast; save it as .xlf",
    ".ttx": "a file of Trados; save it as .sdlxliff",
    ".tbx": "a collection of terms; save them as a table, .csv or .tsv",
    ".opml": "an outline or a list of feeds; save it as .html or .md",
    ".svg": "a picture; put it into a page, as .html",
    ".php": "a page with code; rename a file without code to .html",
    ".jsp": "a page with code; rename a file without code to .html",
    ".erb": "a page with code; rename a file without code to .html",
    ".cshtml": "a page with code; rename a file without code to .html",
    ".vue": "a page with code; rename a file without code to .html",
    ".svelte": "a page with code; rename a file without code to .html",
    ".twig": "a template; rename one of a page to .html",
    ".ejs": "a template; rename one of a page to .html",
    ".hbs": "a template; rename one of a page to .html",
    ".handlebars": "a template; rename one of a page to .html",
    ".njk": "a template; rename one of a page to .html",
    ".liquid": "a template; rename one of a page to .html",
    ".mjml": "a template; rename one of a page to .html",
    ".markdoc": "Markdown with tags; rename it to .md",
    ".mdx": "Markdown with code; rename a file without code to .md",
    ".rmd": "Markdown with code; rename a file without code to .md",
    ".qmd": "Markdown with code; rename a file without code to .md",
    ".rst": "reStructuredText; Sphinx makes .po files of it",
    ".adoc": "AsciiDoc; convert it to .html or .md",
    ".asciidoc": "AsciiDoc; convert it to .html or .md",
    ".asc": "AsciiDoc; convert it to .html or .md",
    ".wiki": "MediaWiki; convert it to .html or .md",
    ".mediawiki": "MediaWiki; convert it to .html or .md",
    ".textile": "Textile; convert it to .html or .md",
    ".org": "Org; convert it to .html or .md",
    ".dita": "DITA; convert it to .html or .docx",
    ".ditamap": "DITA; convert it to .html or .docx",
    ".dbk": "DocBook; convert it to .html or .docx",
    ".docbook": "DocBook; convert it to .html or .docx",
    ".tex": "LaTeX; convert it to .md or .docx",
    ".rtf": "rich text; save it as .docx or .odt",
    ".fb2": "a book; convert it to .epub",
    ".ipynb": "a notebook; convert it to .md",
    ".fodt": "a document of OpenDocument in one file; save it as .odt",
    ".fods": "a spreadsheet of OpenDocument in one file; save it as .ods",
    ".fodp": "slides of OpenDocument in one file; save them as .odp",
    ".xlsx": "a spreadsheet of Excel; save its sheet as CSV UTF-8 or as .ods",
    ".xls": "a spreadsheet of Excel; save its sheet as CSV UTF-8 or as .ods",
    ".pptx": "slides of PowerPoint; save them as .odp",
    ".ppt": "slides of PowerPoint; save them as .odp",
    ".doc": "a document of an old Word; save it as .docx",
    ".pdf": "a PDF file; open it with Word, or write its text with pdftotext, and save that as .docx or .txt",
}

_BINARY = (".xlsx", ".xls", ".pptx", ".ppt", ".doc", ".pdf")
_NEVER_WRITTEN = (*_BINARY, ".rtf")
"""Endings that promise another format than any document or text that is written."""


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
    if path is not None and format_name is None and name == LINES and encoding is None:
        _refuse_structured(path)
    for option, value in (("--columns", columns), ("--values", values)):
        formats = [each.name for each in FORMATS if option in each.options]
        if value and name not in formats:
            raise UsageError(
                f"{option} has no effect on the format {name}",
                hint=f"it is for {' and '.join(formats)}; name one with --format",
            )
    if encoding is not None:
        found = _in_encoding(found, encoding, has_text=has_text)
        if path is not None and path.suffix.lower() in COMPRESSIONS:
            raise UsageError(f"{path}: with --encoding, a compressed file is not read", hint="unpack it first")
    elif found is None or found.name == LINES:
        return None
    names = tuple(name.strip() for name in (columns or "").split(",") if name.strip())
    return ChosenDocument(path, found, ReadingOptions(names, tuple(values), encoding))


def _refuse_structured(path: Path) -> None:
    """Refuse a file whose ending says that lines are not what it consists of."""
    if path.suffix.lower() not in _STRUCTURED:
        return
    what, _, remedy = _STRUCTURED[path.suffix.lower()].partition("; ")
    nevertheless = "" if path.suffix.lower() in _BINARY else "; --format txt translates each line nevertheless"
    raise UsageError(
        f"{path}: {what}, a format that is not read"
        + (": line by line, its signs and names would be translated too" if nevertheless else ""),
        hint=f"{remedy}{nevertheless}",
    )


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
    if found.names_its_encoding:
        raise UsageError(
            f"--encoding has no effect on the format {found.name}: XML names its encoding itself",
            hint="leave it out",
        )
    return found


def check_output_of_text(output: Path) -> None:
    """Refuse to write lines of text into a file whose name says that it is no text, such as .docx or .pdf.

    Raises:
        UsageError: the name says so.
    """
    named, ending = format_of(output), output.suffix.lower()
    if (named is not None and named.is_archive) or ending in _NEVER_WRITTEN:
        raise UsageError(
            f"the input is plain text, and {output} has the ending of {ending.removeprefix('.') if named is None else named.name}",
            hint="name an --output that ends with .txt: plain text is not converted",
        )


def translate_document_file(given: ChosenDocument, output_file: Path | None, options: TranslateOptions) -> None:
    """Translate a document; its translation appears whole or not at all.

    Args:
        output_file: None or - is standard output.
    """
    _check_options(options)
    output = None if output_file == STANDARD else output_file
    _check_ending(given, output)
    if output is None and given.format.is_archive and sys.stdout.isatty():
        raise UsageError(
            f"{given.name}: a {given.format.name} file cannot be shown in a terminal",
            hint=f"name a file for the translation: --output NAME{given.format.endings[0]}",
        )
    data = _read(given, output)
    check_read_files(output, options)
    if options.memory is not None and given.path is None:
        encoding = encoding_beside_memory(data, given.options.encoding)
        given = replace(given, options=replace(given.options, encoding=encoding))
    given = replace(given, options=replace(given.options, has_trust=options.mark))
    try:
        # The document is read before the model, because a file in another format is found at once.
        document = read_document(data, given.format, given.options)
    except (DataError, UsageError) as error:
        raise type(error)(f"{given.name}: {error.message}", hint=error.hint) from error
    loaded, translator = open_translator(options)
    require_no_corpus(output, loaded)
    model_translator = _model_translator(translator, options)
    if given.format.needs_languages:
        # Only the model tells in which language a page is that does not say it, and into which one it is translated.
        source, target = model_translator.languages
        reading = replace(given.options, language=source, target_language=target, is_repeated=True)
        document = read_document(data, given.format, reading)
    not_green = NotGreen.WRITTEN
    if options.needs_quality:
        not_green = NotGreen.LEFT_OUT if options.only_green else NotGreen.MARKED
        model_translator = replace(model_translator, drift=drift_of(translator))
    try:
        found = translate_document(document, model_translator, not_green=not_green)
    except DataError as error:  # the languages of the file are not those of the model
        raise DataError(f"{given.name}: {error.message}", hint=error.hint) from error
    cut = next((doubt for doubt in found.doubts if doubt.reason == CUT), None)
    if options.is_strict and cut is not None:
        raise DataError(
            f"{given.name}: {cut.place}: a sentence of more than {translator.pipeline.max_length} tokens, which the model cannot read at once",
            hint="divide the sentence, or leave out --strict to translate it in parts",
        )
    with opened_output(output) as write, ended_after():
        write(found.data)
    _report(found, given, options)
    _report_uses(model_translator, found)


def _model_translator(translator: Translator, options: TranslateOptions) -> ModelTranslator:
    use = None if options.glossary is None else GlossaryUse(unit="texts")
    return replace(ModelTranslator.of(translator), glossary_use=use)


def _report_uses(model_translator: ModelTranslator, found: TranslatedDocument) -> None:
    """Tell what the memory and the glossary had, and whether the text is like that of the calibration."""
    if model_translator.translator.memory is not None:
        model_translator.translator.memory.report(found.num_from_memory)
    for each in (model_translator.glossary_use, model_translator.drift):
        if each is not None:
            each.report()


def _report(found: TranslatedDocument, given: ChosenDocument, options: TranslateOptions) -> None:
    """Tell what a person should look at, and how much was translated."""
    if not found.num_segments:
        logger.warning("%s", given.format.without_texts)
    # Where the format has no state for a segment, the messages are the only place that names those that are not green.
    names_all = options.mark and not given.format.has_states
    messages = found.messages
    num_shown = len(messages) if names_all else MAX_SHOWN_DOUBTS
    for message in messages[:num_shown]:
        logger.warning("%s", message)
    if len(messages) > num_shown:
        states = "the translated file marks all of them as in need of a look"
        mark = "of a run with a calibration (tfm calibrate), --mark names all of them"
        hint = states if given.format.has_states else mark
        logger.warning("and %d more of this kind; %s", len(messages) - num_shown, hint)
    if options.needs_quality:
        num_green = sum(estimate.is_green for estimate in found.estimates)
        others = "".join(f"; from the {mark}: {number}" for mark, number in found.num_without_model.items())
        by_model = " that the model has translated" if others else ""
        logger.info("%s: green: %d of %d segments%s%s", given.name, num_green, len(found.estimates), by_model, others)
    logger.info(
        "%s: segments with words to translate: %d; segments that a person should look at: %d",
        given.name,
        found.num_segments,
        len(messages),
    )


def _check_ending(given: ChosenDocument, output: Path | None) -> None:
    """Refuse to write a document of one format into a file whose name says another."""
    if output is None or output.suffix.lower() == ".xml":
        return  # a name that says nothing more
    named, ending = format_of(output), output.suffix.lower()
    is_as_input = given.path is not None and given.path.suffix.lower() == ending
    is_other = ending in _NEVER_WRITTEN or (ending in _STRUCTURED and not is_as_input)
    if is_other if named is None else named != given.format:
        other = ending.removeprefix(".") if named is None else named.name
        raise UsageError(
            f"{given.name} is a document of the format {given.format.name}, and {output} has the ending of {other}",
            hint=f"name an --output that ends with {given.format.endings[0]}: documents are not converted",
        )


def _read(given: ChosenDocument, output: Path | None) -> bytes:
    limit = given.options.limits.max_bytes
    check_output(output)
    if given.path is None:
        return sys.stdin.buffer.read(limit + 1)
    status = input_status(given.path, "--input takes the path of a document; - is standard input")
    require_other_file(output, status, "the input")
    try:
        with given.path.open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise MissingInputError(f"{given.path}: cannot be read: {error.strerror}") from error


def _check_options(options: TranslateOptions) -> None:
    """Refuse options that are for lines, before anything is read."""
    if options.dictionary is not None and not options.replace_unknown:
        raise UsageError("--dictionary works only with --replace-unknown", hint="add --replace-unknown")
    for is_given, option in (
        (options.as_json, "--json"),
        (options.num_best is not None, "--n-best"),
        (options.prefix is not None, "--prefix"),
        (options.prefixes is not None, "--prefixes"),
        (options.alignment, "--alignment"),
        (options.details, "--details"),
        (options.attention, "--attention"),
        (options.resume, "--resume"),
    ):
        if is_given:
            raise UsageError(
                f"{option} is for lines, but the input is a document",
                hint=f"leave out {option}, or translate a file in UTF-8 line by line with --format txt",
            )
