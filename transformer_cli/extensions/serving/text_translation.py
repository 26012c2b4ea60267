"""Translates the texts of a request: each line of a text is translated as `tfm translate` translates a line."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from transformer_cli.decoding import Glossary, Translation, Translator
from transformer_cli.extensions.documents.tagged_xml import TagRules
from transformer_cli.extensions.documents.translation import UNTRANSLATED, TranslatedDocument
from transformer_cli.extensions.serving.document_texts import translated_html, translated_xml
from transformer_cli.extensions.serving.refusals import bad_request

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
    tag_rules: TagRules | None = None
    """Not None: the texts are XML, or parts of it; then they have no alternatives."""
    glossary: Glossary | None = None
    """The terms that the translations contain."""


@dataclass(frozen=True, slots=True)
class TranslatedText:
    """The translation of one text."""

    text: str
    alternatives: tuple[str, ...] = ()
    """Other translations, best first, all different."""
    is_untranslated: bool = False
    """Whether a sentence or clause stands here as in the source, because the model loses text of it."""


def with_options(translator: Translator, options: TextOptions) -> Translator:
    """The translator of a request.

    Raises:
        RefusedRequest: the run cannot give alternatives with its settings.
        UsageError, DataError: it cannot use the glossary; see `Translator.with_glossary`.
    """
    pipeline, decoding = translator.pipeline, translator.decoding
    if not options.splits_sentences:
        pipeline = replace(pipeline, splits_sentences=False)
    if options.num_alternatives:
        num_best = options.num_alternatives + 1
        if decoding.diversity is not None or decoding.mbr is not None:
            raise bad_request("alternatives are not possible with the settings of this server")
        beam_size = max(decoding.beam_size, num_best)
        decoding = decoding.model_copy(update={"num_best": num_best, "beam_size": beam_size})
    changed = replace(translator, pipeline=pipeline, decoding=decoding)
    return changed if options.glossary is None else changed.with_glossary(options.glossary)


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
    if options.is_html:
        return [_of_document(translated_html(translator, text, check)) for text in texts]
    if options.tag_rules is not None:
        rules = options.tag_rules
        return [_of_document(translated_xml(translator, text, rules, check)) for text in texts]
    lines_of = [_lines(text, options.line_breaks) for text in texts]
    translations = translator.translate([line for lines in lines_of for line in lines])
    return [
        _joined([next(translations) for _ in lines], lines, options.num_alternatives)
        for lines in lines_of
    ]


def _of_document(translated: TranslatedDocument) -> TranslatedText:
    is_untranslated = any(doubt.reason == UNTRANSLATED for doubt in translated.doubts)
    return TranslatedText(translated.data.decode(), is_untranslated=is_untranslated)


def _lines(text: str, line_breaks: LineBreaks) -> list[str]:
    lines = text.split("\n")
    if line_breaks == "kept":
        return lines
    return list(_paragraphs(lines))


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """The lines of each paragraph as one line, and each blank line."""
    paragraph: list[str] = []
    for line in lines:
        if line.strip():
            paragraph.append(line.strip() if paragraph else line.rstrip())
            continue
        if paragraph:
            yield " ".join(paragraph)
            paragraph = []
        yield line
    if paragraph:
        yield " ".join(paragraph)


def _joined(
    translations: Sequence[Translation], lines: Sequence[str], num_alternatives: int
) -> TranslatedText:
    ends = ["\r" if line.endswith("\r") else "" for line in lines]

    def joined(texts: Iterable[str]) -> str:
        return "\n".join(text + end for text, end in zip(texts, ends, strict=True))

    best = joined(translation.text for translation in translations)
    alternatives = [
        joined(_ranked(each, rank) for each in translations)
        for rank in range(1, num_alternatives + 1)
    ]
    others = [text for text in dict.fromkeys(alternatives) if text != best]
    return TranslatedText(
        best, tuple(others), is_untranslated=any(each.is_untranslated for each in translations)
    )


def _ranked(translation: Translation, rank: int) -> str:
    """The translation of this rank, from 0; the best one if there are not as many."""
    if rank < len(translation.alternatives):
        return translation.alternatives[rank].text
    return translation.text
