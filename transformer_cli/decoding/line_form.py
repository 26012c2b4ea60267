"""The form of a line: which texts of it are translated, and how their translations are put back in their places.

`LineForm.split` finds the texts in a line, and `LineForm.join` makes the translation of the line from those of its texts.
Everything around the texts stays in its place.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING
from unicodedata import category

from transformer_cli.decoding.checks.brackets import TextPiece, lost_brackets, pieces_around_brackets, with_plurals
from transformer_cli.decoding.checks.names_in_text import is_full_name
from transformer_cli.decoding.end_marks import translated_as_sentences
from transformer_cli.decoding.glossary import RequiredTerm, applied_terms
from transformer_cli.decoding.protected_spans import (
    HIDDEN,
    Promise,
    ProtectedSentence,
    SpanKeeper,
    StandIns,
    spans_of_terms,
    spans_outside_terms,
)
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translation import (
    SourceText,
    SplitLine,
    Translation,
    copied,
    joined_translation,
    with_alternatives,
)
from transformer_cli.text.columns import with_texts
from transformer_cli.text.languages import primary_language, small_words
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.normalization import (
    has_letter,
    may_be_invisible,
    remove_control_characters,
    with_plain_spaces,
    without_invisible,
    without_line_breaks,
    word_spans,
)
from transformer_cli.text.quotation_marks import (
    plain_quotes,
    starts_with_lone_quote,
    with_pairs_of_quotes,
    with_written_quotes,
)
from transformer_cli.text.roman_numerals import roman_numerals
from transformer_cli.text.sentences import (
    DASH,
    Sentence,
    TextRange,
    as_inner_part,
    end_of_label,
    gap_between,
    in_sentence_case,
    is_in_capitals,
    partners_of_brackets,
    split_sentences_around,
    text_ranges,
    titles,
    with_final_mark_of,
    without_closing_mark,
)
from transformer_cli.text.spans import Span, find_spans, has_span_sign, masked, touches, with_code, written_breaks

if TYPE_CHECKING:  # it calls this module
    from transformer_cli.decoding.translator import Translator

_SENTENCE_ENDS = ".!?\u2026"
_NO_MARK_AT_EDGES = lazy_pattern(r"[^\W_](?:.*(?:[^\W_]|[.!?](?<!\s\.\.\.)))?\Z", re.DOTALL)
_FINAL_ELLIPSIS = lazy_pattern(r"\s*\u2026\Z|\s+\.\.\.\Z")
_OPENING_BRACKETS, _CLOSING_BRACKETS = "([", ")]"
_EYES = ":;=8-"
_WRAPPERS = {"{": "}", "<": ">"}
_SINGLE_QUOTES = (("'", "'"), ("\u2018", "\u2019"))
# An apostrophe that stands between two letters is no quote.
_QUOTE_AT_WORD = lazy_pattern(r"(?<!\w)['\u2018\u2019]|['\u2018\u2019](?!\w)")
# Shorter ones are abbreviations, as in "Q:" and "EU:".
_FEWEST_LETTERS_OF_LABEL = 3
_FEWEST_LETTERS_OF_WORD = 4  # of one in capitals that is no abbreviation
_PAIRS = ("()", "[]", "{}", "\u201c\u201d", "\u201e\u201c", "\u2018\u2019", "\u00ab\u00bb", '""')
# A sentence has fewer parts and pieces than this, nearly always; else two texts of a line may get equal samples.
_PARTS_OF_A_SENTENCE = 1000


@dataclass(frozen=True, slots=True)
class LineForm:
    """Splits lines and joins their translations, so that they keep their form and, if wanted, their protected spans."""

    pipeline: TextPipeline
    """Of one direction."""
    keeps_layout: bool
    """Whether indentation, list marks and columns are kept; else the whole line is one text."""
    protects: bool
    """Whether protected spans inside a text are kept, too."""

    def split(self, line: SourceText) -> SplitLine:
        """The line with the texts in it that are translated; the prefix of the line is that of its first text."""
        text = without_line_breaks(line.text.rstrip("\r\n"))
        if self.pipeline.data.cleaning.remove_control_characters and not text.isprintable():
            text = remove_control_characters(text)
        if not text.isascii() and may_be_invisible(text) and self.pipeline.removes_invisible:
            text = self._visible(text)
        written_quotes: Mapping[str, str] = {}
        if "\\" in text or "&" in text:
            text, written_quotes = plain_quotes(text)
        if self.pipeline.keeps_text and with_plurals(text) != text:
            text = self._changed_outside_spans(text, with_plurals)
        spans = self._spans(text) if has_span_sign(text) else []
        ranges = self._ranges(text, spans)
        texts: list[SourceText] = []
        for range_index, (start, end) in enumerate(ranges):
            sentences = [Sentence(text[start:end], "")]
            # Else the pipeline splits the text.
            if self.protects and (protected := self._spans(text[start:end])):
                sentences = self.sentences(text[start:end], protected)
            is_label = text.startswith(":", end)
            for sentence in sentences:
                number = len(texts)
                source_text = SourceText(
                    sentence.text,
                    "" if number else line.prefix,
                    line.line_number,
                    first_part=number * _PARTS_OF_A_SENTENCE,
                    gap=sentence.gap,
                    spans=tuple(self._spans(sentence.text)) if self.protects else (),
                    range_index=range_index,
                )
                if self.keeps_layout:
                    source_text = self._as_read(source_text, is_label=is_label and not source_text.spans)
                texts.append(source_text)
        return SplitLine(line.text, text, written_quotes, spans, ranges, texts)

    def finished(self, source_text: SourceText, translation: Translation) -> Translation:
        """The translation of a text without protected spans, with the letters and the end of its source."""
        source = source_text.written or source_text.text
        if not self.keeps_layout or (translation.is_untranslated and translation.text == source):
            return translation
        required = () if self.pipeline.glossary is None else self._required_terms(source)
        language = primary_language(self.pipeline.languages.target)
        is_label = source_text.text.casefold() == f"{source_text.written.casefold()}."
        finished = []
        for text, score in translation.alternatives:
            marked = with_final_mark_of(text, source, target_language=language)
            if is_label:  # models call names: "Anna !"
                marked = marked.rstrip("! \u00a0\u202f") or marked
            if required and applied_terms(marked, required) != applied_terms(text, required):
                marked = text  # the full stop belongs to a term
            finished.append((marked.upper() if source_text.written.isupper() else marked, score))
        return with_alternatives(translation, finished)

    def finished_around_spans(self, source_text: SourceText, translation: Translation) -> Translation:
        """The translation of a text with protected spans, in capital letters if its source was read in small ones."""
        if not source_text.written:
            return translation
        texts = [(self._changed_outside_spans(text, str.upper), score) for text, score in translation.alternatives]
        return with_alternatives(translation, texts)

    def join(self, line: SplitLine, translations: Sequence[Translation]) -> Translation:
        """The translation of a line from those of its texts, with everything around them."""
        if not translations:
            whole = copied(line.given, line.text)
        elif line.ranges == [TextRange(0, len(line.text))] and len(translations) == 1:
            [whole] = translations
            if whole.source != line.given:
                whole = replace(whole, source=line.given)
        else:
            whole = joined_translation(line.given, translations, lambda texts: self._line_of(line, texts))
        if self.protects and line.spans and translations:
            whole = self._with_spans_of(line, whole)
        if not line.written_quotes:
            return whole
        written = [(with_written_quotes(text, line.written_quotes), score) for text, score in whole.alternatives]
        return with_alternatives(whole, written)

    def _with_spans_of(self, line: SplitLine, whole: Translation) -> Translation:
        """The translation of a line with all its protected spans; else the line as it is."""
        allowed = spans_of_terms(self._required_terms(line.text))
        promise = Promise.of(line.text, line.spans, may_repeat_numbers=True, allowed=allowed)
        terms = tuple(term._replace(is_applied=False) for term in whole.terms)
        untranslated = replace(copied(line.given, line.text), is_partly_copied=True, terms=terms)
        return promise.kept_part(whole) or untranslated

    def sentences(self, text: str, spans: Sequence[Span]) -> list[Sentence]:
        """The sentences of a text with protected spans; one, if the model reads several at once."""
        if not self.pipeline.splits_sentences:
            return [Sentence(text, "")]
        return split_sentences_around(spans, text, self.pipeline.languages.source)

    def piece(self, text: str, whole: SourceText, number: int) -> SourceText:
        """A piece of a text that is translated by itself."""
        spans = tuple(self._spans(text)) if self.protects else ()
        return SourceText(text, "", whole.line_number, first_part=whole.first_part + number, spans=spans)

    def in_sentence(self, piece: TextPiece, translation: Translation) -> Translation:
        """The translation of a piece of a sentence, as words within it."""
        language = primary_language(self.pipeline.languages.target)
        in_sentence = []
        for text, score in translation.alternatives:
            inner = without_closing_mark(text) if piece.closing else text
            if piece.is_inside:
                inner = as_inner_part(inner, piece.text, target_language=language)
            in_sentence.append((inner, score))
        return with_alternatives(translation, in_sentence)

    def span_keeper(self) -> SpanKeeper:
        """How the protected spans of the lines get through the model."""
        source, target = self.pipeline.source_tokenizer, self.pipeline.target_tokenizer
        stand_ins = StandIns.of(source, target, lambda word: not self._required_terms(word))
        return SpanKeeper(source, target, stand_ins, self.pipeline.languages, self._required_terms)

    def _as_read(self, source_text: SourceText, *, is_label: bool) -> SourceText:
        """The text as the model reads it best: one in capitals in small letters, a label with a full stop."""
        written = as_read = source_text.text
        words = masked(written, source_text.spans, " ") if source_text.spans else written
        if words.isupper() and (is_label or self._is_read_in_small_letters(words)):
            as_read = self.pipeline.in_small_letters(written)
            if len(as_read) != len(written) and source_text.spans:
                return source_text
            for span in source_text.spans:
                as_read = as_read[: span.start] + written[span.start : span.end] + as_read[span.end :]
        if is_label:
            as_read += "."  # many models have seen a word by itself only so
        if as_read == written:
            return source_text
        return source_text._replace(text=as_read, written=written)

    def _is_read_in_small_letters(self, text: str) -> bool:
        """Whether a text in capital letters is a sentence or heading, or has a term of the glossary, and no term whose capital letters count."""
        terms = [term.target for term in self._required_terms(text)]
        if not terms:
            return is_in_capitals(text) or self._has_long_known_words(text)
        return terms == [term.target for term in self._required_terms(in_sentence_case(text))]

    def _has_long_known_words(self, text: str) -> bool:
        """Whether training has seen all words of a text, but its numbers, and none is as short as most abbreviations."""
        seen, rest = self.pipeline.seen_words, text
        for start, end in roman_numerals(text):
            rest = rest[:start] + " " * (end - start) + rest[end:]
        words = [word.rstrip(_SENTENCE_ENDS) for word in rest.split() if has_letter(word)]
        return seen is not None and all(len(word) >= _FEWEST_LETTERS_OF_WORD and word in seen for word in words)

    def _visible(self, text: str) -> str:
        """The text of a line without invisible characters, and with plain spaces in its ranges."""
        visible = self._changed_outside_spans(text, without_invisible)
        ranges = self._ranges(visible, self._spans(visible))
        if not ranges:
            return text
        pieces, position = [], 0
        for each in ranges:
            inside = self._changed_outside_spans(visible[slice(*each)], with_plain_spaces)
            pieces += [visible[position : each.start], inside]
            position = each.end
        return "".join([*pieces, visible[position:]])

    def _ranges(self, text: str, spans: Sequence[Span]) -> list[TextRange]:
        if not self.keeps_layout:
            return [TextRange(0, len(text))]
        as_letters = hidden = text
        if spans:
            as_letters, hidden = masked(text, spans, "x"), masked(text, spans, HIDDEN)
        ranges, position = [], 0
        for each in [*(written_breaks(text, spans) if spans else ()), None]:
            end = len(text) if each is None else each.start
            for start, stop in text_ranges(text[position:end], hidden[position:end]):
                start, stop = position + start, position + stop
                parts = [TextRange(start, stop)]
                if self.pipeline.keeps_text and DASH.search(hidden, *parts[0]):
                    parts = titles(hidden, parts[0])
                if self.pipeline.keeps_text and ":" in hidden[start:stop]:
                    parts = [each for part in parts for each in self._label_and_rest(text, hidden, part)]
                ranges += [
                    part
                    if _NO_MARK_AT_EDGES.match(as_letters[slice(*part)])
                    else self._without_unknown_marks(as_letters, *part)
                    for part in parts
                ]
            position = end if each is None else each.end
        return ranges

    def _label_and_rest(self, text: str, hidden: str, part: TextRange) -> list[TextRange]:
        """The label and the text behind it, as in "Note: The dog is big."; the label is left out if it stays as it is.

        A label with a word that the training has not seen is the name of a speaker, or hardly anything that the model
        could translate.

        Args:
            text: the line.
            hidden: the same, with all letters of protected spans hidden.
            part: a range of the line.
        """
        end = end_of_label(hidden, part)
        if end is None:
            return [part]
        label = TextRange(part.start, end)
        rest = TextRange(part.end - len(text[end + 1 : part.end].lstrip()), part.end)
        written, seen = text[slice(*label)], self.pipeline.seen_words
        words = written.split()
        is_translated = bool(self._required_terms(written)) or (
            not is_full_name(written)
            and all(
                word.isdigit() or (_is_word_of_label(word, len(words)) and (seen is None or word in seen))
                for word in words
            )
        )
        return [label, rest] if is_translated else [rest]

    def _changed_outside_spans(self, text: str, change: Callable[[str], str]) -> str:
        """The text with everything changed that belongs to no protected span."""
        if not self.protects:
            return change(text)
        pieces, position = [], 0
        for span in [*self._spans(text), None]:
            end = len(text) if span is None else span.start
            # A joiner behind a digit stays or goes by this digit, so the characters beside the span are read too.
            before, after = text[position - 1 : position] if position else "", text[end : end + 1]
            changed = change(before + text[position:end] + after)
            has_both = changed.startswith(before) and changed.endswith(after)
            if has_both and len(changed) >= len(before + after):
                changed = changed[len(before) : len(changed) - len(after)]
            else:
                changed = change(text[position:end])
            pieces += [changed, "" if span is None else text[span.start : span.end]]
            position = end if span is None else span.end
        return "".join(pieces)

    def _without_unknown_marks(self, text: str, start: int, end: int) -> TextRange:
        """The range without the marks and white space at its edges that the model does not know.

        These marks stay as they are, instead of becoming [UNK]. A mark stays inside if it belongs to one inside: the
        closing bracket of "we go (perhaps)" does. The mark that ends a sentence stays inside, too; but with `keep_text` it
        is left out at the beginning, as in "...and we go": a model takes it for the end of the sentence, and loses what
        follows.

        Args:
            text: the line, with letters in place of protected spans.
            start, end: a range with at least one letter.
        """
        start += self.pipeline.keeps_text and starts_with_lone_quote(text[start:end])
        whole = TextRange(start, end)
        if self.pipeline.keeps_text:
            start, end = without_single_marks(text, start, end)
        if final := _FINAL_ELLIPSIS.search(text[start:end]):  # models write a word for it, or lose its space
            end = start + final.start()
        left_out = _SENTENCE_ENDS if self.pipeline.keeps_text else ""
        while self._is_outside(text[start]) or text[start] in left_out:
            start += 1
        while self._is_outside(text[end - 1]):
            end -= 1
        is_whole = all(_is_balanced(text[start:end], *pair) for pair in _PAIRS)
        return TextRange(start, end) if is_whole else whole

    def _is_outside(self, mark: str) -> bool:
        if category(mark)[0] in "LMN" or mark in _SENTENCE_ENDS:
            return False
        return mark.isspace() or not self._knows_mark(mark)

    def _knows_mark(self, mark: str) -> bool:
        spellings = self.pipeline.spellings
        known = spellings.respelled(mark) if spellings else mark
        return self.pipeline.source_tokenizer.knows(known)

    def _required_terms(self, text: str) -> tuple[RequiredTerm, ...]:
        if self.pipeline.glossary is None:
            return ()
        return self.pipeline.required_terms(self.pipeline.normalize_source(text))

    def _spans(self, text: str) -> list[Span]:
        """The protected spans of a text; those inside a term of a glossary are not protected."""
        if not self.protects:
            return find_spans(text)
        if self.pipeline.glossary is not None:
            return spans_outside_terms(text, self._required_terms(text))
        return with_code(text, self._with_unseen_names(text, find_spans(text)))

    def _with_unseen_names(self, text: str, spans: list[Span]) -> list[Span]:
        """The spans of a text, and the words in quotation marks that training has not seen: a model makes up others for them."""
        names = self.pipeline.unseen_names(text)
        free = [name for name in names if not any(touches(name, span) for span in spans)]
        return sorted([*spans, *free], key=lambda span: span.start) if free else spans

    def _line_of(self, line: SplitLine, texts: Sequence[str]) -> str:
        range_texts = [""] * len(line.ranges)
        for source_text, text in zip(line.texts, texts, strict=True):
            before = range_texts[source_text.range_index]
            gap = self._gap(source_text.gap, before, text)
            range_texts[source_text.range_index] = before + gap + text
        target = primary_language(self.pipeline.languages.target)
        for index, (start, end) in enumerate(line.ranges):
            # In "Note: the dog is big", the label stands before a small letter.
            if line.text[:start].rstrip().endswith(":"):
                source = line.text[start:end]
                range_texts[index] = as_inner_part(range_texts[index], source, target_language=target)
        return with_texts(line.text, line.ranges, range_texts)

    def _gap(self, source_gap: str, left: str, right: str) -> str:
        """The white space between two translated sentences; between two ASCII characters there is always some."""
        if not source_gap or not left or not right:
            return ""
        gap = gap_between(source_gap, *self.pipeline.languages)
        return gap or (" " if left[-1].isascii() and right[0].isascii() else "")


def _is_word_of_label(word: str, num_words: int) -> bool:
    """Whether a word of a label is no abbreviation; a short one in small letters but the first, as in "Go Home", is none."""
    return len(word) >= _FEWEST_LETTERS_OF_LABEL or (num_words > 1 and word[1:].islower())


# Texts that are translated in pieces, so that they keep their brackets and their protected spans.


def with_lost_brackets(
    translator: "Translator", texts: Sequence[SourceText], translations: list[Translation], form: LineForm
) -> list[Translation]:
    """The translations; a text that loses the brackets around words is translated again, inside and outside of them."""
    pieces_of_texts = {
        index: pieces_around_brackets(form.sentences(text.text, find_spans(text.text)))
        for index, (text, translation) in enumerate(zip(texts, translations, strict=True))
        if not text.prefix and lost_brackets(text.text, translation.text)
    }
    if not pieces_of_texts:
        return translations
    asked = [
        form.piece(piece.text + piece.closing, texts[index], number)
        for index, pieces in pieces_of_texts.items()
        for number, piece in enumerate(pieces)
        if piece.is_translated
    ]
    answers = iter(translator.translate_in_form(asked, form))
    mended = list(translations)
    for index, pieces in pieces_of_texts.items():
        parts = [
            form.in_sentence(piece, next(answers)) if piece.is_translated else copied(piece.text) for piece in pieces
        ]
        whole = form.finished(texts[index], joined_translation(texts[index].text, parts, "".join))
        num_terms, num_before = (sum(term.is_applied for term in each.terms) for each in (whole, translations[index]))
        if num_terms >= num_before:
            mended[index] = replace(whole, is_in_pieces=True, is_repaired=True)
    return mended


def translated_with_spans(translator: "Translator", texts: Sequence[SourceText], form: LineForm) -> list[Translation]:
    """The translations of texts, some of which have protected spans: further rounds follow until every span has come back.

    In each round, what all sentences ask for is translated in one call, so that batches are full.
    """
    keeper = form.span_keeper()
    sentences = [ProtectedSentence(text, keeper) if text.spans else None for text in texts]
    results = [None if sentence is None else sentence.result for sentence in sentences]
    while waiting := [index for index, result in enumerate(results) if result is None]:
        asked = [[texts[index]] if (sentence := sentences[index]) is None else sentence.asked() for index in waiting]
        answers = iter(translated_as_sentences(translator, list(chain(*asked)), form))
        for index, sentence_texts in zip(waiting, asked, strict=True):
            translations = list(islice(answers, len(sentence_texts)))
            sentence = sentences[index]
            if sentence is None:
                results[index] = form.finished(texts[index], translations[0])
            else:
                sentence.answer(translations)
                results[index] = sentence.result and form.finished_around_spans(texts[index], sentence.result)
    return [result for result in results if result is not None]


def without_single_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """The range without apostrophes, braces and angle brackets around it, and without a bracket at an edge that has no partner.

    A model knows an apostrophe from other places, and a bracket from pairs, and loses them here; braces it hardly knows.
    """
    partners = partners_of_brackets(text, start, end)
    while end - 1 > start and text[end - 1] in _CLOSING_BRACKETS and end - 1 not in partners:
        if text[end - 2] in _EYES:
            break  # :)
        end -= 1
    while start < end - 1 and text[start] in _OPENING_BRACKETS and start not in partners:
        start += 1
    while end - start > 2 and _WRAPPERS.get(text[start]) == text[end - 1]:
        start, end = start + 1, end - 1
    if text.startswith("[[", start) and partners.get(start) == end - 1 and partners.get(start + 1) == end - 2:
        start, end = start + 2, end - 2
    first, last = text[start], text[end - 1]
    if last in "'\u2019" and text[end - 2] in _SENTENCE_ENDS and _QUOTE_AT_WORD.search(text, start, end - 1) is None:
        return start, end - 1
    is_quoted = (first, last) in _SINGLE_QUOTES and end - start > 2
    if is_quoted and _QUOTE_AT_WORD.search(text, start + 1, end - 1) is None:
        return start + 1, end - 1
    return start, end


def _is_balanced(text: str, opening: str, closing: str) -> bool:
    if opening == closing:
        return text.count(opening) % 2 == 0
    return text.count(opening) == text.count(closing)


def with_blank_lines(
    pipeline: TextPipeline, lines: Sequence[SourceText], translations: Sequence[Translation]
) -> list[Translation]:
    """The translations, and each line without a text as it stands, although the layout of the others is not kept."""
    form = LineForm(pipeline, keeps_layout=True, protects=False)
    return [
        replace(each, text=form.join(split, ()).text)
        if not each.text and not (split := form.split(line)).texts
        else each
        for line, each in zip(lines, translations, strict=True)
    ]


_FIXED_SPACES = frozenset("\u00a0\u2007\u2009\u202f")


def with_fixed_spaces(line: SourceText, translation: Translation) -> Translation:
    """The translation of a line with its no-break and thin spaces where their neighbours stand in the translation, too.

    The neighbours are the words on both sides of the space; or a protected span, a number or a mark on one side, as in "%d MB".
    A line with terms of a glossary, which may have plain spaces, stays as it is.
    """
    if translation.terms or _FIXED_SPACES.isdisjoint(line.text):
        return translation
    source_spaces: dict[_Neighbours, list[str]] = {}
    for place, neighbours in _single_spaces(line.text):
        for each in neighbours:
            source_spaces.setdefault(each, []).append(line.text[place])
    fixed = [(_with_spaces_of(source_spaces, text), score) for text, score in translation.alternatives]
    return with_alternatives(translation, fixed)


def with_quotes_of_one_kind(line: SourceText, translation: Translation) -> Translation:
    """The translation of a line, in which no pair of quotation marks has two kinds: pieces of a line may get other marks than what stays."""
    texts = [(with_pairs_of_quotes(line.text, text) or text, score) for text, score in translation.alternatives]
    return translation if texts == [*translation.alternatives] else with_alternatives(translation, texts)


SMALL_LETTER = re.compile(r"(?<![\w.;'\u2019@/&-])[b-df-hj-np-tv-xz](?![\w'\u2019@/&-]|\.\w)")
"""A single small letter that is a word of hardly any language, such as a variable."""
_CAPITAL_WORD = lazy_pattern(r"(?<![\w.@/-])[A-Z]{2,6}(?![\w@/-]|\.\w)")


def with_case_of(line: SourceText, translation: Translation, target: str) -> Translation:
    """The translation of a line, in which abbreviations such as PDF, and letters by themselves such as x, have the case of the line.

    Not in a line without small letters, and not for a word that the target language often has.
    """
    if line.text.upper() == line.text:
        return translation
    words = [
        word
        for word in dict.fromkeys(_CAPITAL_WORD.findall(line.text))
        if word not in translation.text and word.lower() not in small_words(primary_language(target))
    ]
    letters = [
        letter
        for letter in dict.fromkeys(SMALL_LETTER.findall(line.text))
        if re.search(rf"(?<!\w){letter.upper()}(?!\w)", line.text) is None
    ]
    forms = {word.lower(): word for word in words} | {letter: letter for letter in letters}
    if not forms:
        return translation
    pattern = re.compile(rf"(?<![\w.@/-])(?:{'|'.join(forms)})(?![\w@/-]|\.\w|(?<=\b\w)['\u2019])", re.IGNORECASE)
    changed = [
        (pattern.sub(lambda match: forms[match[0].lower()], text), score) for text, score in translation.alternatives
    ]
    return translation if changed == [*translation.alternatives] else with_alternatives(translation, changed)


_Neighbours = tuple[str, str]
"""What stands before and behind a space; one of them may be empty: then it does not matter."""


def _with_spaces_of(source_spaces: Mapping[_Neighbours, Sequence[str]], text: str) -> str:
    """A translation with the spaces of a source beside the same neighbours."""
    spaces = [(place, neighbours) for place, neighbours in _single_spaces(text) if text[place] == " "]
    counts = Counter(each for _, neighbours in spaces for each in neighbours)
    num_seen: Counter[_Neighbours] = Counter()
    signs = list(text)
    for place, neighbours in spaces:
        for each in neighbours:
            known = source_spaces.get(each, ())
            is_clear = len(set(known)) == 1 or len(known) == counts[each]
            if known and is_clear:
                space = known[min(num_seen[each], len(known) - 1)]
                signs[place] = space if space in _FIXED_SPACES else " "
                break
        num_seen.update(neighbours)
    return "".join(signs)


def _single_spaces(text: str) -> Iterator[tuple[int, list[_Neighbours]]]:
    """The place of each space between two words, and its neighbours, the pair of both words first."""
    spans = find_spans(text)
    starting = {span.start: text[span.start : span.end] for span in spans}
    ending = {span.end: text[span.start : span.end] for span in spans}
    for (first, end), (start, last) in pairwise(word_spans(text)):
        if start == end + 1:
            before, behind = text[first:end], text[start:last]
            alone = (
                (ending.get(end, "" if has_letter(before) else before), ""),
                ("", starting.get(start, "" if has_letter(behind) else behind)),
            )
            yield end, [(before, behind), *filter(any, alone)]
