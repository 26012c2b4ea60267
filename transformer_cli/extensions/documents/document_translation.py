"""Translates a document: all texts in one batch, with the markup moved and everything that must stay checked."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transformer_cli.extensions.documents.character_encoding import DecodedText
from transformer_cli.extensions.documents.inline_text import InlineText, has_too_much_markup
from transformer_cli.extensions.documents.kept_spans import CheckedAnswer, with_kept_spans
from transformer_cli.extensions.documents.segments import (
    Document,
    Languages,
    Piece,
    Segment,
    TranslatedSegment,
    has_letter,
    merged,
    plain_text,
)
from transformer_cli.extensions.documents.tag_placement import place_markup
from transformer_cli.extensions.documents.text_translator import (
    AskedText,
    LinkedWords,
    TextTranslator,
)
from transformer_cli.text.sentences import Sentence, gap_between

EMPTY = "a tag has no words in the translation, so it is empty there"
NOT_TEXT = "it has bytes that are no text, so it was left as it is"
_NOT_TEXT = re.compile(
    "[\ud800-\udfff]"
)  # bytes that are not valid in the encoding, and half characters
TOO_MARKED = "a text with so much markup inside it that it was left as it is"
# Every character that `str.splitlines` takes for the end of a line.
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


class Doubt(NamedTuple):
    """A segment that a person should look at."""

    place: str
    reason: str
    text: str
    """Of the source."""


@dataclass(frozen=True, slots=True)
class TranslatedDocument:
    """A document in another language."""

    data: bytes
    num_segments: int
    """How many segments have text to translate."""
    doubts: tuple[Doubt, ...]
    """One for each reason to look at a segment, in the order of the segments."""

    @property
    def num_marked(self) -> int:
        """How many segments a person should look at."""
        return len({doubt[:1] + doubt[2:] for doubt in self.doubts})


def translate_document(
    document: Document, translator: TextTranslator, check: Callable[[], None] = lambda: None
) -> TranslatedDocument:
    """The document in the target language of the translator.

    Each segment is divided into sentences, and the sentences of all segments are translated together. Markup moves
    with its words. Placeholders, URLs, code and other protected spans are in the translation as often as in the
    source: where the model loses one, the sentence is translated in pieces around them, and its segment is marked.

    Args:
        check: called for each segment; it raises an exception to end the work.

    Raises:
        DataError: the encoding of the document lacks letters of the translation; if they are usual ones of its
            language, this is known before anything is translated.
    """
    content = getattr(document, "content", None)
    if isinstance(content, DecodedText) and document.segments:
        content.require_letters_of(translator.languages.target)
    segments = []
    for segment in document.segments:
        check()
        segments.append(_SegmentInWork.of(segment, translator))
    asked = list(dict.fromkeys(part.asked for each in segments for part in each.parts))
    answers = dict(zip(asked, translator.translate(asked), strict=True))
    checked = with_kept_spans(answers, translator)
    translations = []
    for each in segments:
        check()
        translations.append(each.translation(checked, translator.languages))
    return TranslatedDocument(
        document.write(translations, translator.languages),
        num_segments=sum(bool(each.parts) for each in segments),
        doubts=tuple(
            Doubt(each.segment.place, doubt, each.shown)
            for each, translation in zip(segments, translations, strict=True)
            for doubt in translation.doubts
        ),
    )


class _Part(NamedTuple):
    """A sentence or line of a segment."""

    gap: str
    """What stands before it."""
    start: int
    """Where its text begins in the text of the segment."""
    asked: AskedText


@dataclass(frozen=True, slots=True)
class _SegmentInWork:
    segment: Segment
    inline: InlineText
    parts: tuple[_Part, ...]
    end: str
    """What stands behind the last part."""
    doubts: tuple[str, ...] = ()

    @classmethod
    def of(cls, segment: Segment, translator: TextTranslator) -> "_SegmentInWork":
        if has_too_much_markup(segment.pieces):
            plain = Segment.plain(plain_text(segment.pieces), segment.place, keeps_spaces=False)
            return cls(segment, InlineText.of(plain), (), "", (TOO_MARKED,))
        inline = InlineText.of(segment)
        has_markup = bool(inline.ranges or inline.points)
        parts, place, gap = [], 0, ""
        lines = inline.text.splitlines(keepends=True) if segment.keeps_spaces else [inline.text]
        if _NOT_TEXT.search(inline.text):
            return cls(segment, inline, (), inline.text)
        for line in lines:
            text = line.rstrip(_LINE_ENDS) if segment.keeps_spaces else line
            # Without markup, the translator itself divides a line into sentences and keeps its layout.
            sentences = translator.sentences(text) if has_markup else [Sentence(text, "")]
            for sentence in sentences:
                gap += sentence.gap
                place += len(sentence.gap)
                if has_letter(_without_labels(sentence.text, inline)):
                    parts.append(_Part(gap, place, AskedText(sentence.text, has_markup)))
                    gap = ""
                else:
                    gap += sentence.text
                place += len(sentence.text)
            gap += line[len(text) :]
            place += len(line) - len(text)
        return cls(segment, inline, tuple(parts), gap)

    @property
    def shown(self) -> str:
        """The text for a message, with what stands in the place of words."""
        pieces = self.inline.with_words(self.inline.text)
        return "".join(piece if isinstance(piece, str) else piece.raw for piece in pieces)

    def translation(
        self, answers: dict[AskedText, CheckedAnswer], languages: Languages
    ) -> TranslatedSegment:
        """The segment with the translations of its parts."""
        if _NOT_TEXT.search(self.inline.text):
            return TranslatedSegment(self.segment.pieces, (NOT_TEXT,))
        found = [answers[part.asked] for part in self.parts]
        doubts = tuple(dict.fromkeys(doubt for answer in found for doubt in answer.doubts))
        doubts += self.doubts
        if all(
            answer.text == part.asked.text for answer, part in zip(found, self.parts, strict=True)
        ):
            return TranslatedSegment(self.segment.pieces, doubts)
        text = ""
        links: list[LinkedWords] = []
        for part, answer in zip(self.parts, found, strict=True):
            text += _gap(part.gap, text, languages)
            links += _moved(answer.links, part.start, len(text))
            text += answer.text
        text += self.end
        inner: list[Piece] = self.inline.with_words(text)
        if self.inline.ranges or self.inline.points:
            placed = place_markup(self.inline, text, links)
            inner = placed.pieces
            doubts += (EMPTY,) if placed.num_empty else ()
        pieces = merged([*self.inline.before, *inner, *self.inline.after])
        return TranslatedSegment(tuple(pieces), doubts)


def _without_labels(text: str, inline: InlineText) -> str:
    for label in inline.words:
        text = text.replace(label, " ")
    return text


def _gap(of_source: str, text: str, languages: Languages) -> str:
    """What stands before a translated sentence; white space as the target language has it."""
    if not of_source.isspace() or "\n" in of_source or not text:
        return of_source
    return gap_between(of_source, *languages)


def _moved(links: Sequence[LinkedWords], by_source: int, by_target: int) -> Iterator[LinkedWords]:
    for (first, last), (start, end) in links:
        yield LinkedWords(
            (first + by_source, last + by_source), (start + by_target, end + by_target)
        )
