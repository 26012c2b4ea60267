"""The form of a line: which texts of it are translated, and how their translations are put back in their places.

`LineForm.split` divides a line into chunks, and `LineForm.join` makes the translation of the line from those of its chunks.
Everything around the chunks stays in its place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple
from unicodedata import category

from transformer_cli.decoding.glossary import RequiredTerm, applied_terms
from transformer_cli.decoding.protected_spans import (
    HIDDEN,
    Promise,
    SpanKeeper,
    StandIns,
    spans_of_terms,
    spans_outside_terms,
)
from transformer_cli.decoding.text_pipeline import LINE_BREAKS, TextPipeline
from transformer_cli.decoding.translation import (
    Chunk,
    Translation,
    copied,
    joined,
    with_texts_of,
)
from transformer_cli.text.languages import primary_language
from transformer_cli.text.layout import TextRange, text_ranges, with_texts
from transformer_cli.text.normalization import (
    may_be_invisible,
    remove_control_characters,
    with_plain_spaces,
    without_invisible,
)
from transformer_cli.text.sentences import (
    Sentence,
    gap_between,
    in_sentence_case,
    is_in_capitals,
    split_sentences_around,
    with_final_mark_of,
)
from transformer_cli.text.spans import Span, find_spans, masked

_SENTENCE_ENDS = ".!?\u2026"
_PAIRS = ("()", "[]", "{}", "\u201c\u201d", "\u201e\u201c", "\u2018\u2019", "\u00ab\u00bb", '""')
# A sentence has fewer parts and pieces than this, nearly always; else two texts of a line may get equal samples.
_PARTS_OF_A_SENTENCE = 1000


class Line(NamedTuple):
    """A line from its reading to its writing, and what is translated of it."""

    given: str
    text: str
    """Without its line end and control characters; if the pipeline removes invisible characters, without those too, and
    with plain spaces in its ranges. Protected spans and what stands outside of the ranges keep their spaces."""
    spans: list[Span]
    ranges: list[TextRange]
    chunks: list[list[Chunk]]
    """Of each range."""

    @property
    def all_chunks(self) -> list[Chunk]:
        """The chunks of all ranges, in order."""
        return list(chain(*self.chunks))


@dataclass(frozen=True, slots=True)
class LineForm:
    """Splits lines and joins their translations, so that they keep their form and, if wanted, their protected spans."""

    pipeline: TextPipeline
    """Of one direction."""
    keeps_layout: bool
    """Whether indentation, list marks and columns are kept; else the whole line is one text."""
    protects: bool
    """Whether protected spans inside a text are kept, too."""

    def split(self, line: Chunk) -> Line:
        """A line as the chunks that are translated; the prefix of the line is that of its first chunk."""
        text = line.text.rstrip("\r\n").translate(LINE_BREAKS)
        if self.pipeline.data.cleaning.remove_control_characters:
            text = remove_control_characters(text)
        if self.pipeline.removes_invisible and may_be_invisible(text):
            text = self._visible(text)
        spans = self._spans(text)
        ranges = self._ranges(text, spans)
        chunks: list[list[Chunk]] = []
        number = 0
        for each in ranges:
            chunks.append([])
            for sentence in self._sentences(text[each.start : each.end]):
                prefix = "" if number else line.prefix
                chunks[-1].append(
                    self._chunk(sentence, prefix, line.line, number * _PARTS_OF_A_SENTENCE)
                )
                number += 1
        return Line(line.text, text, spans, ranges, chunks)

    def finished(self, chunk: Chunk, translation: Translation) -> Translation:
        """The translation of a chunk without protected spans, with the letters and the end of its source."""
        if not self.keeps_layout:
            return translation
        source = chunk.capitals or chunk.text
        required = self._required_terms(source)

        def in_form_of_source(found: str) -> str:
            marked = with_final_mark_of(found, source)
            if required and applied_terms(marked, required) != applied_terms(found, required):
                return found  # the full stop belongs to a term
            return marked.upper() if chunk.capitals else marked

        return with_texts_of(translation, in_form_of_source)

    def join(self, line: Line, translations: Sequence[Translation]) -> Translation:
        """The translation of a line from those of its chunks, with everything around them."""
        if not translations:
            return copied(line.given, line.text)
        if line.ranges == [TextRange(0, len(line.text))] and len(translations) == 1:
            whole = replace(translations[0], source=line.given)
        else:
            whole = joined(line.given, translations, lambda texts: self._line_of(line, texts))
        if not self.protects or not line.spans:
            return whole
        allowed = spans_of_terms(self._required_terms(line.text))
        promise = Promise.of(line.text, line.spans, may_repeat_numbers=True, allowed=allowed)
        terms = tuple(term._replace(is_applied=False) for term in whole.terms)
        untranslated = replace(copied(line.given, line.text), is_partly_copied=True, terms=terms)
        return promise.kept_part(whole) or untranslated

    def span_keeper(self) -> SpanKeeper:
        """How the protected spans of the lines get through the model."""
        source, target = self.pipeline.source_tokenizer, self.pipeline.target_tokenizer
        language = primary_language(self.pipeline.languages.target)
        stand_ins = StandIns.of(source, target, lambda word: not self._required_terms(word))
        return SpanKeeper(source, target, stand_ins, language, self._required_terms)

    def _chunk(self, sentence: Sentence, prefix: str, line: int, part: int) -> Chunk:
        text = sentence.text
        spans = tuple(self._spans(text)) if self.protects else ()
        # Other letters than those of the glossary would make other words of its terms.
        in_capitals = (
            self.keeps_layout
            and not spans
            and is_in_capitals(text)
            and not self._required_terms(text)
        )
        return Chunk(
            in_sentence_case(text) if in_capitals else text,
            prefix,
            line,
            part,
            gap=sentence.gap,
            capitals=text if in_capitals else "",
            spans=spans,
        )

    def _visible(self, text: str) -> str:
        """The text of a line without invisible characters, and with plain spaces in its ranges."""
        visible = self._changed_outside_spans(text, without_invisible)
        ranges = self._ranges(visible, self._spans(visible))
        if not ranges:
            return text
        pieces, place = [], 0
        for each in ranges:
            inside = self._changed_outside_spans(visible[slice(*each)], with_plain_spaces)
            pieces += [visible[place : each.start], inside]
            place = each.end
        return "".join([*pieces, visible[place:]])

    def _ranges(self, text: str, spans: Sequence[Span]) -> list[TextRange]:
        if not self.keeps_layout:
            return [TextRange(0, len(text))]
        as_letters = masked(text, spans, "x")
        return [
            self._without_unknown_marks(as_letters, each)
            for each in text_ranges(text, masked(text, spans, HIDDEN))
        ]

    def _changed_outside_spans(self, text: str, change: Callable[[str], str]) -> str:
        """The text with everything changed that belongs to no protected span."""
        if not self.protects:
            return change(text)
        pieces, place = [], 0
        for span in [*self._spans(text), None]:
            end = len(text) if span is None else span.start
            # A joiner behind a digit stays or goes by this digit, so the characters beside the span are read too.
            before, after = text[place - 1 : place] if place else "", text[end : end + 1]
            changed = change(before + text[place:end] + after)
            has_both = changed.startswith(before) and changed.endswith(after)
            if has_both and len(changed) >= len(before + after):
                changed = changed[len(before) : len(changed) - len(after)]
            else:
                changed = change(text[place:end])
            pieces += [changed, "" if span is None else text[span.start : span.end]]
            place = end if span is None else span.end
        return "".join(pieces)

    def _without_unknown_marks(self, text: str, text_range: TextRange) -> TextRange:
        start, end = range_without_unknown_marks(
            text[slice(*text_range)],
            self._knows_mark,
            begins_with_words=self.pipeline.keeps_text,
        )
        return TextRange(text_range.start + start, text_range.start + end)

    def _knows_mark(self, mark: str) -> bool:
        spellings = self.pipeline.spellings
        known = spellings.respelled(mark) if spellings else mark
        return self.pipeline.source_tokenizer.knows(known)

    def _sentences(self, text: str) -> list[Sentence]:
        """The sentences of a text; a text without protected spans stays whole, because the pipeline splits it."""
        spans = self._spans(text) if self.protects else []
        if not spans or not self.pipeline.splits_sentences:
            return [Sentence(text, "")]
        return split_sentences_around(spans, text, self.pipeline.languages.source)

    def _required_terms(self, text: str) -> tuple[RequiredTerm, ...]:
        if self.pipeline.glossary is None:
            return ()
        return self.pipeline.required_terms(self.pipeline.normalize_source(text))

    def _spans(self, text: str) -> list[Span]:
        """The protected spans of a text; those inside a term of a glossary are not protected."""
        if not self.protects or self.pipeline.glossary is None:
            return find_spans(text)
        return spans_outside_terms(text, self._required_terms(text))

    def _line_of(self, line: Line, texts: Sequence[str]) -> str:
        remaining = iter(texts)
        of_ranges = []
        for chunks in line.chunks:
            text = ""
            for chunk in chunks:
                following = next(remaining)
                text += self._gap(chunk.gap, text, following) + following
            of_ranges.append(text)
        return with_texts(line.text, line.ranges, of_ranges)

    def _gap(self, of_source: str, left: str, right: str) -> str:
        """The white space between two translated sentences; between two ASCII characters there is always some."""
        if not of_source or not left or not right:
            return ""
        gap = gap_between(of_source, *self.pipeline.languages)
        return gap or (" " if left[-1].isascii() and right[0].isascii() else "")


def range_without_unknown_marks(
    text: str, knows: Callable[[str], bool], *, begins_with_words: bool = False
) -> tuple[int, int]:
    """The start and the end of a text without the marks and white space at its edges that a model does not know.

    These marks stay as they are, instead of becoming [UNK]. A mark stays inside if it belongs to one inside: the
    closing bracket of "we go (perhaps)" does. The mark that ends a sentence stays inside, too.

    Args:
        text: a text with at least one letter.
        knows: whether the model knows a mark.
        begins_with_words: whether marks that end sentences are left out at the beginning, as in "...and we go": a model
            takes them for the end of the sentence, and loses what follows.
    """

    def is_outside(mark: str) -> bool:
        is_mark = category(mark)[0] not in "LMN" and mark not in _SENTENCE_ENDS
        return is_mark and (mark.isspace() or not knows(mark))

    start, end = 0, len(text)
    while is_outside(text[start]) or (begins_with_words and text[start] in _SENTENCE_ENDS):
        start += 1
    while is_outside(text[end - 1]):
        end -= 1
    is_whole = all(_is_balanced(text[start:end], *pair) for pair in _PAIRS)
    return (start, end) if is_whole else (0, len(text))


def _is_balanced(text: str, opening: str, closing: str) -> bool:
    if opening == closing:
        return text.count(opening) % 2 == 0
    return text.count(opening) == text.count(closing)
