"""Translates the texts of a request: lines as `tfm translate` translates them, markup and files as documents."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from transformer_cli.decoding import Translation, Translator
from transformer_cli.decoding.glossary import RequiredTerms
from transformer_cli.decoding.translation import Estimate, least_of
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
from transformer_cli.extensions.documents.segments import Document, SplicedDocument, plain_text
from transformer_cli.extensions.documents.tagged_xml import TagRules, read_tagged_xml
from transformer_cli.extensions.documents.translator import UNTRANSLATED
from transformer_cli.extensions.serving.batcher import Job
from transformer_cli.extensions.serving.limits import Limits, RefusedRequest, bad_request, too_large
from transformer_cli.process.errors import TfmError, UsageError
from transformer_cli.process.imports import require_extra

_MAX_DETECTED_CHARACTERS = 2000
_NO_NAME = re.compile(r"[^\w.-]+")
# Before and behind code in a message; without a language, prose may stand between them.
_FENCE = re.compile(r"[ \t>]*(`{3,})([a-z][\w+#.-]*)?\s*")


class _Line(NamedTuple):
    """A line of a text."""

    text: str
    end: str
    """Its line end; empty behind the last line."""


_LINE_END = re.compile(r"(\r\n?|\n)")

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


def _translated_markup(
    translator: Translator, text: str, options: "TextOptions", check: Callable[[], None]
) -> "TranslatedText":
    """XML or HTML, or a part of it, with its texts translated and its tags moved with their words.

    Raises:
        DataError: it cannot be read.
    """
    model_translator = ModelTranslator.of(translator)
    if options.tag_rules is not None:
        document: Document = read_tagged_xml(text, options.tag_rules)
    else:
        reading = ReadingOptions(
            language=model_translator.languages.source,
            kept_elements=options.kept_elements,
            watch=ReadingWatch(check),
        )
        document = read_document(text.encode(), format_named("html"), reading)
    document = _with_line_breaks(document, options.line_breaks)
    translated = translate_document(document, model_translator, check)
    return TranslatedText(
        translated.data.decode(),
        is_untranslated=any(doubt.reason == UNTRANSLATED for doubt in translated.doubts),
        estimate=least_of(translated.estimates),
    )


def _with_line_breaks(document: Document, line_breaks: "LineBreaks") -> Document:
    """The document of a text with tags; if its line breaks are kept, each line of a segment is translated by itself."""
    if line_breaks == "joined" or not isinstance(document, SplicedDocument):
        return document
    slots = (slot._replace(segment=replace(slot.segment, keeps_spaces=True)) for slot in document.slots)
    return replace(document, slots=tuple(slots))


def opened_document(
    name: str,
    data: bytes,
    columns: str,
    *,
    language: str | None,
    target: str,
    limits: Limits,
    job: Job,
) -> Document:
    """The document of a file that a client has sent.

    Args:
        columns: for a table: the names or numbers of the columns to translate, with commas between them.
        language: of the text, as the client says; None: it is to be detected.
        target: the language of the translation.
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
        raise bad_request("Invalid request: missing columns parameter: names or numbers of columns, such as title,3")
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
            data,
            document_format,
            ReadingOptions(columns=names, language=language, target_language=target, limits=sizes, watch=watch),
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


LineBreaks = Literal["kept", "joined"]
"""Whether a line break ends a sentence, or is white space as any other; a blank line ends a sentence in both cases."""


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How the texts of a request are translated."""

    num_alternatives: int = 0
    splits_sentences: bool = True
    """Whether sentences are translated one by one; a run whose config says no never splits."""
    line_breaks: LineBreaks = "kept"
    is_html: bool = False
    """Whether the texts are HTML, or parts of it; then they have no alternatives."""
    kept_elements: frozenset[str] = frozenset()
    """Of HTML: elements whose content is not translated, by their names in small letters."""
    tag_rules: TagRules | None = None
    """Not None: the texts are XML, or parts of it; then they have no alternatives."""
    terms: RequiredTerms | None = None
    """Of a glossary for the model: the translations contain them."""


@dataclass(frozen=True, slots=True)
class TranslatedText:
    """The translation of one text."""

    text: str
    alternatives: tuple[str, ...] = ()
    """Other translations, best first, all different."""
    is_untranslated: bool = False
    """Whether a sentence or clause stands here as in the source, because the model loses text of it."""
    estimate: Estimate | None = None
    """How far it can be trusted; None if the run has no calibration, or no model has translated the text."""
    pivot: str | None = None
    """The translation into a third language that a second model has read; None for one model, and for markup."""

    @property
    def details(self) -> dict[str, Any]:
        """The fields that are in no interface of other servers, for clients that ask for them: others may refuse an answer with fields that they do not know."""
        return {
            **({"untranslated": True} if self.is_untranslated else {}),
            **fields_of(self.estimate),
            **({} if self.pivot is None else {"pivot": self.pivot}),
        }


def fields_of(estimate: Estimate | None) -> dict[str, Any]:
    """The fields of an answer that say how far a translation can be trusted; none if nothing is known."""
    if estimate is None:
        return {}
    return {"quality": round(estimate.probability, 4), "green": estimate.is_green}


def with_options(translator: Translator, options: TextOptions) -> Translator:
    """The translator of a request.

    Raises:
        RefusedRequest: the run cannot give alternatives with its settings, or two models cannot keep the terms of a glossary.
    """
    pipeline, decoding = translator.pipeline, translator.decoding
    if not options.splits_sentences:
        pipeline = replace(pipeline, splits_sentences=False)
    before = translator.before
    if before is not None and options.terms is not None:
        raise bad_request("Invalid request: a glossary is not possible here, because two models translate in a row")
    if before is not None and not options.splits_sentences:
        before = replace(before, pipeline=replace(before.pipeline, splits_sentences=False))
    if options.terms is not None:
        pipeline = replace(pipeline, glossary=options.terms)
    if options.num_alternatives:
        num_best = options.num_alternatives + 1
        if decoding.diversity or decoding.mbr or decoding.rescore:
            raise bad_request("alternatives are not possible with the settings of this server")
        beam_size = max(decoding.beam_size, num_best)
        decoding = decoding.model_copy(update={"num_best": num_best, "beam_size": beam_size})
    return replace(translator, pipeline=pipeline, decoding=decoding, before=before)


def translate_texts(
    translator: Translator,
    texts: Sequence[str],
    options: TextOptions,
    check: Callable[[], None] = lambda: None,
) -> list[TranslatedText]:
    """One translation for each text, in order; a translation has as many lines as its text.

    Args:
        translator: as of `with_options`.
        check: called often; it raises an exception to end the work.
    """
    if options.is_html or options.tag_rules is not None:
        return [_translated_markup(translator, text, options, check) for text in texts]
    lines_of = [_lines(text, options.line_breaks) for text in texts]
    code_of = [_lines_of_code(lines) if translator.protects_spans else frozenset() for lines in lines_of]
    translations = translator.translate(
        [
            "" if place in code else line.text
            for lines, code in zip(lines_of, code_of, strict=True)
            for place, line in enumerate(lines)
        ]
    )
    return [
        _joined(
            [
                _kept(next(translations), line.text) if place in code else next(translations)
                for place, line in enumerate(lines)
            ],
            lines,
            options.num_alternatives,
        )
        for lines, code in zip(lines_of, code_of, strict=True)
    ]


def _lines_of_code(lines: Sequence[_Line]) -> frozenset[int]:
    """The numbers of the lines of code, and of the fences around it, if the first one names a language: ```python."""
    found: set[int] = set()
    start, marks, language = 0, "", ""
    for place, line in enumerate(lines):
        fence = _FENCE.fullmatch(line.text)
        if fence is None:
            continue
        if not marks:
            start, marks, language = place, fence[1], fence[2] or ""
        elif fence[1].startswith(marks) and not fence[2]:
            if language:
                found.update(range(start, place + 1))
            marks = ""
    return frozenset(found)


def _kept(blank: Translation, text: str) -> Translation:
    """The translation of a blank line, with a line that stays in its place."""
    return replace(blank, text=text, pivot=blank.pivot and replace(blank.pivot, text=text))


def _lines(text: str, line_breaks: LineBreaks) -> list[_Line]:
    parts = _LINE_END.split(text)
    lines = [_Line(*each) for each in zip(parts[::2], [*parts[1::2], ""], strict=True)]
    if line_breaks == "kept":
        return lines
    return list(_paragraphs(lines))


def _paragraphs(lines: Sequence[_Line]) -> Iterator[_Line]:
    """The lines of each paragraph as one line, and each blank line."""
    paragraph: list[str] = []
    end = ""
    for line in lines:
        if line.text.strip():
            paragraph.append(line.text.strip() if paragraph else line.text.rstrip())
            end = line.end
            continue
        if paragraph:
            yield _Line(" ".join(paragraph), end)
            paragraph = []
        yield line
    if paragraph:
        yield _Line(" ".join(paragraph), end)


def _joined(translations: Sequence[Translation], lines: Sequence[_Line], num_alternatives: int) -> TranslatedText:
    def joined(texts: Iterable[str]) -> str:
        return "".join(text + line.end for text, line in zip(texts, lines, strict=True))

    best = joined(translation.text for translation in translations)
    alternatives = [joined(_ranked(each, rank) for each in translations) for rank in range(1, num_alternatives + 1)]
    others = [text for text in dict.fromkeys(alternatives) if text != best]
    is_untranslated = any(each.is_untranslated for each in translations)
    estimate = least_of(each.estimate for each in translations if each.estimate is not None)
    pivots = [each.pivot.text for each in translations if each.pivot is not None]
    pivot = joined(pivots) if len(pivots) == len(translations) else None
    return TranslatedText(best, tuple(others), is_untranslated, estimate, pivot)


def _ranked(translation: Translation, rank: int) -> str:
    """The translation of this rank, from 0; the best one if there are not as many."""
    if rank < len(translation.alternatives):
        return translation.alternatives[rank].text
    return translation.text
