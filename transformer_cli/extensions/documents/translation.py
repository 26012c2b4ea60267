"""Translates a document: all texts in one batch, with the markup moved and everything that must stay checked."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transformer_cli.config.data import Direction
from transformer_cli.decoding.protected_spans import Promise
from transformer_cli.extensions.documents.character_encoding import DecodedText
from transformer_cli.extensions.documents.segments import (
    Document,
    Piece,
    Segment,
    TranslatedSegment,
    has_letter,
    merged,
    plain_text,
)
from transformer_cli.extensions.documents.tag_placement import (
    InlineText,
    has_too_much_markup,
    place_markup,
)
from transformer_cli.extensions.documents.translator import (
    AnsweredText,
    AskedText,
    Extent,
    LinkedWords,
    TextTranslator,
    links_by_position,
)
from transformer_cli.text.layout import SPECIFICATION, TOUCHING_SPECIFICATION, find_spans, masked
from transformer_cli.text.sentences import Sentence, gap_between

COPIED = "a sentence was left as it is, because the model loses the protected parts of it"
IN_PIECES = "a sentence was translated in pieces around the parts that must stay, so read it again"
CUT = "a sentence was too long for the model, and was translated in parts"
DIVIDED = "a sentence was translated clause by clause, so that no text of it is lost"
UNTRANSLATED = "a sentence was left as it is, because the model loses text of it or cannot read it"
DOUBTFUL = "a translation may be wrong: it "
"""Before one of `decoding.doubts`."""


class CheckedAnswer(NamedTuple):
    """A translation with all protected spans of its text, and why a person should look at it."""

    text: str
    links: tuple[LinkedWords, ...]
    doubts: tuple[str, ...]


def with_kept_spans(
    answers: Mapping[AskedText, AnsweredText], translator: TextTranslator
) -> dict[AskedText, CheckedAnswer]:
    """The answers, in which each protected span stands as often as in its text.

    Where an answer has lost one, the text between the spans is translated again, piece by piece. Where a piece
    invents a span, the text stays as it is.
    """
    broken = {
        asked: _pieces(asked.text)
        for asked, answer in answers.items()
        if not _promise(asked.text, answer.spans_of_terms).is_kept_by(answer.text)
    }
    texts = [piece.text for pieces in broken.values() for piece in pieces if piece.is_translated]
    asked_pieces = [AskedText(text) for text in dict.fromkeys(texts)]
    found = translator.translate(asked_pieces) if asked_pieces else []
    of_pieces = {asked.text: answer for asked, answer in zip(asked_pieces, found, strict=True)}
    checked = {
        asked: _in_pieces(asked, broken[asked], of_pieces)
        if asked in broken
        else _checked(asked, answer)
        for asked, answer in answers.items()
    }
    return {
        asked: answer if _keeps_specifications(asked.text, answer.text) else _copied(asked)
        for asked, answer in checked.items()
    }


def _keeps_specifications(text: str, translation: str) -> bool:
    """Whether what may be specifications of printf that touch words, as in %sdog, stands in a translation as often."""
    source = Counter(SPECIFICATION.findall(text))
    if not any(
        SPECIFICATION.match(text, each.start()) for each in TOUCHING_SPECIFICATION.finditer(text)
    ):
        return True
    return source == Counter(SPECIFICATION.findall(translation))


def _copied(asked: AskedText) -> CheckedAnswer:
    """The text as it is, for a person."""
    return CheckedAnswer(asked.text, links_by_position(asked.text, asked.text), (COPIED,))


def _promise(text: str, of_terms: frozenset[str] = frozenset()) -> Promise:
    spans = [span for span in find_spans(text) if text[span.start : span.end] not in of_terms]
    return Promise.of(text, spans, may_repeat_numbers=True, allowed=of_terms)


def _checked(asked: AskedText, answer: AnsweredText) -> CheckedAnswer:
    doubts = _doubts(answer)
    is_same = answer.text == asked.text
    links = () if is_same or not asked.needs_links else answer.links
    return CheckedAnswer(answer.text, links or links_by_position(asked.text, answer.text), doubts)


def _doubts(answer: AnsweredText) -> tuple[str, ...]:
    reasons = {
        COPIED: answer.is_copied,
        UNTRANSLATED: answer.is_untranslated,
        IN_PIECES: answer.is_in_pieces,
        CUT: answer.is_cut,
        DIVIDED: answer.is_divided,
    }
    named = (reason for reason, is_given in reasons.items() if is_given)
    return (*named, *(f"{DOUBTFUL}{doubt}" for doubt in answer.doubts))


class _Piece(NamedTuple):
    """A part of a text: translated by itself, or left as it is."""

    text: str
    is_translated: bool


def _in_pieces(
    asked: AskedText, pieces: Sequence[_Piece], of_pieces: Mapping[str, AnsweredText]
) -> CheckedAnswer:
    """The translation that the pieces give together, with links for the words of each piece."""
    text, place = "", 0
    links: list[LinkedWords] = []
    doubts = [IN_PIECES]
    for piece in pieces:
        translated = piece.text
        if piece.is_translated:
            translated = of_pieces[piece.text].text
            doubts += _doubts(of_pieces[piece.text])
        for source, target in links_by_position(piece.text, translated):
            links.append(LinkedWords(_shifted(source, place), _shifted(target, len(text))))
        text += translated
        place += len(piece.text)
    if _promise(asked.text).is_kept_by(text):
        return CheckedAnswer(text, tuple(links), tuple(dict.fromkeys(doubts)))
    return _copied(asked)


def _shifted(extent: Extent, by: int) -> Extent:
    return extent[0] + by, extent[1] + by


def _pieces(text: str) -> list[_Piece]:
    """A text, cut before and after each protected span and the marks beside it."""
    pieces, place = [], 0
    for span in find_spans(text):
        pieces += _with_edges(text[place : span.start])
        pieces.append(_Piece(text[span.start : span.end], is_translated=False))
        place = span.end
    return [piece for piece in [*pieces, *_with_edges(text[place:])] if piece.text]


def _with_edges(text: str) -> list[_Piece]:
    """A text, and the white space and marks at its ends by themselves."""
    start, end = 0, len(text)
    while start < end and not text[start].isalnum():
        start += 1
    while start < end and not text[end - 1].isalnum():
        end -= 1
    core = text[start:end]
    return [
        _Piece(text[:start], is_translated=False),
        _Piece(core, is_translated=has_letter(core)),
        _Piece(text[end:], is_translated=False),
    ]


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
        num_segments=sum(each.has_words for each in segments),
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
    def has_words(self) -> bool:
        """Whether it has letters outside of protected spans, such as {name}."""
        texts = (_without_labels(part.asked.text, self.inline) for part in self.parts)
        return any(has_letter(masked(text, find_spans(text), " ")) for text in texts)

    @property
    def shown(self) -> str:
        """The text for a message, with what stands in the place of words."""
        pieces = self.inline.with_words(self.inline.text)
        return "".join(piece if isinstance(piece, str) else piece.raw for piece in pieces)

    def translation(
        self, answers: dict[AskedText, CheckedAnswer], languages: Direction
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
            gap = _gap(part.gap, text, languages)
            # A gap can hold sentences without letters, such as numbers, which have markup as others do.
            links += _moved(links_by_position(part.gap, gap), part.start - len(part.gap), len(text))
            text += gap
            links += _moved(answer.links, part.start, len(text))
            text += answer.text
        end_of_source = len(self.inline.text) - len(self.end)
        links += _moved(links_by_position(self.end, self.end), end_of_source, len(text))
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


def _gap(of_source: str, text: str, languages: Direction) -> str:
    """What stands before a translated sentence; white space as the target language has it."""
    if not of_source.isspace() or "\n" in of_source or not text:
        return of_source
    return gap_between(of_source, *languages)


def _moved(links: Sequence[LinkedWords], by_source: int, by_target: int) -> Iterator[LinkedWords]:
    for (first, last), (start, end) in links:
        yield LinkedWords(
            (first + by_source, last + by_source), (start + by_target, end + by_target)
        )
