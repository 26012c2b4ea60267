"""Protected spans: URLs, numbers, placeholders and tags that a translation must contain as often as its source."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat, takewhile

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.doubts import NUMBERS, doubts_about, lacks_words_at_placeholders
from transformer_cli.decoding.checks.invented_units import has_invented_unit
from transformer_cli.decoding.checks.names_in_text import STAND_INS
from transformer_cli.decoding.checks.numbers_in_text import has_number_in_word
from transformer_cli.decoding.glossary import RequiredTerm, applied_terms
from transformer_cli.decoding.translation import (
    SourceText,
    TranslatedPiece,
    Translation,
    copied,
    joined_translation,
    with_alternatives,
)
from transformer_cli.text import Tokenizer
from transformer_cli.text.languages import num_content_words, primary_language
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.normalization import has_letter, has_word, is_letter, is_part_of_word, normalize_invisible
from transformer_cli.text.quotation_marks import quotation_marks
from transformer_cli.text.sentences import as_inner_part, ends_sentence, with_final_mark_of
from transformer_cli.text.spans import (
    Span,
    SpanKind,
    find_spans,
    masked,
    span_texts,
    spans_at_words,
    with_code,
    without_breaks_of,
)
from transformer_cli.text.units import has_other_units, with_units

# In place of the characters of a protected span: it is neither a letter nor white space nor a mark of a layout.
HIDDEN = "\ue000"


@dataclass(frozen=True, slots=True)
class Promise:
    """The spans of a source, and how often its translation must hold each.

    A translation may have numbers that its source does not have ("two cats" may become "2 gatti"), but no other spans:
    a URL or a tag that the source does not have is invented. A letter may be a word of its language, too, so it may stand there
    more often ("Option A" may become "A: opzione A").
    """

    counts: Mapping[str, int]
    may_repeat_numbers: bool = False
    """For a line of several sentences: the translation of one may write a number that the span of another has."""

    allowed: frozenset[str] = frozenset()
    """Spans of terms of a glossary, which a translation may have more often."""
    letters: Mapping[str, int] = field(default_factory=dict)
    """Single letters, each of which a translation must hold at least so often."""

    @classmethod
    def of(
        cls,
        text: str,
        spans: Sequence[Span],
        *,
        may_repeat_numbers: bool = False,
        allowed: frozenset[str] = frozenset(),
    ) -> "Promise":
        """The promise for a source and its spans."""
        letters = [span for span in spans if span.kind is SpanKind.LETTER]
        others = [span for span in spans if span.kind is not SpanKind.LETTER]
        counts, letter_counts = (Counter(span_texts(text, each)) for each in (others, letters))
        return cls(counts, may_repeat_numbers, allowed, letter_counts)

    def is_kept_by(self, text: str) -> bool:
        """Whether a translation holds each span exactly as often as the source, and no invented one."""
        text, found = without_breaks_of(text, self.counts)
        is_number = dict.fromkeys(found, False)
        spans = find_spans(text)
        # A command or smiley counts where the source has it; a translation invents none of them.
        whole = with_code(text, spans)
        if any(span not in spans and text[span.start : span.end] in self.counts for span in whole):
            spans = whole
        for span in spans:
            if span.kind is SpanKind.LETTER:
                continue
            span_text = text[span.start : span.end]
            found[span_text] += 1
            is_number[span_text] = span.kind is SpanKind.NUMBER
        for name in self.counts:  # a word in quotation marks, or an option, may be a span in its source alone
            if name not in found:
                found[name] = len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text)) if has_letter(name) else 0
                is_number[name] = False
        if any(span not in self.counts and span not in self.allowed and not is_number[span] for span in found):
            return False
        # At the beginning of a sentence, a small letter is a capital one.
        if any(
            len(re.findall(rf"(?<![^\W_])(?:{letter}|{letter.upper()})(?!(?!e(?![^\W_]))[^\W_])", text)) < count
            for letter, count in self.letters.items()
        ):
            return False
        return all(
            found[span] == count
            or (self.may_repeat_numbers and found[span] > count and is_number[span])
            or (span in self.allowed and found[span] > count)
            for span, count in self.counts.items()
        )

    def kept_part(self, translation: Translation) -> Translation | None:
        """The translation with only the alternatives that keep the promise; None if none of them does."""
        kept = with_alternatives(translation, [each for each in translation.alternatives if self.is_kept_by(each.text)])
        return kept if kept.alternatives else None


def spans_of_terms(required: Sequence[RequiredTerm]) -> frozenset[str]:
    """The protected spans that stand in target terms, such as A4 in "foglio A4"."""
    forms = [form for each in required for form in (*each.forms, *each.first_forms)]
    return frozenset(span for form in forms for span in span_texts(form, find_spans(form)))


def spans_outside_terms(text: str, required: Sequence[RequiredTerm]) -> list[Span]:
    """The protected spans of a text, but not those that stand in a source term: the target term takes their place."""
    taken, place = [], 0
    for each in required:
        start = text.find(each.source, place)
        if start >= 0:
            place = start + len(each.source)
            taken.append((start, place))
    spans = with_code(text, find_spans(text))
    return [span for span in spans if not any(start <= span.start and span.end <= end for start, end in taken)]


# Names, and round numbers. A model may still change one of them. So each translation
# is checked, and a sentence whose stand-ins did not come back is translated in pieces.
_CANDIDATES: Mapping[SpanKind, tuple[str, ...]] = {
    SpanKind.WORD: STAND_INS,
    SpanKind.NUMBER: ("25", "15", "80", "12", "50", "20", "30", "40"),
}
_ONE = lazy_pattern(r"0*1(?:[.,]0+)?")  # the words beside it have other forms than beside a stand-in
_CLOCK = lazy_pattern(r"\d{1,2}[:.]\d{2}")
_HALF_OF_DAY = lazy_pattern(r"\s?[ap](?:m\b|\.\s?m(?:\.(?=\s*\S)|\b))", re.IGNORECASE)
# Behind the stand-in of a clock time, in place of its minutes: "at 25" is "à 25 heures", but 10:45 needs no word.
_WORDS_FOR_HOURS = {"fr": r"\s?(?:heures?|h)\b"}
# A clock time, date, share, amount or length has its unit, but its stand-in has none: "at 25" may become "à 25 ans", as if it were an age.
_WITH_UNIT = lazy_pattern(
    r"\d{1,2}:\d{2}|\d{1,4}([./-])\d{1,2}\1\d{1,4}|.*[%‰$£¥°\u20a0-\u20cf]|[$£¥\u20a0-\u20cf].*|\d[\d.,]*\+?\s?[^\W\d_]+"
)
_OTHER_UNITS = {"fr": r"\s(?:ans?|années?|personnes?|euros?|minutes?|jours?|heures?|h)\b"}
# Of de, en, es, it, nl and pt: a song of 3:45 minutes keeps its word.
_UNIT_IN_SOURCE = lazy_pattern(
    r"\s?-?(?:years?|old|jahren?|jaar|a[n\u00f1]os?|ann[oi]|people|persons?|personen|leuten?|mensen|personas?|person[ae]|pessoas?"
    r"|euros?|minut(?:es?|en?|os?|i)|days?|tagen?|dag(?:en)?|d[i\u00ed]as?|giorn[oi])\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StandIns:
    """The stand-ins that both vocabularies of a model know."""

    words_by_kind: Mapping[SpanKind, tuple[str, ...]]

    @classmethod
    def of(
        cls,
        source: Tokenizer,
        target: Tokenizer,
        is_usable: Callable[[str], bool] = lambda word: True,
    ) -> "StandIns":
        """The stand-ins for a model with these tokenizers, from those that it has read most often: they have the fewest tokens.

        Args:
            is_usable: false for a word that stands for something else, such as a term of a glossary.
        """

        def is_stand_in(word: str) -> bool:
            return source.knows(word) and target.knows(word) and is_usable(word)

        def num_tokens(word: str) -> int:
            return len(source.encode(word)) + len(target.encode(word))

        return cls(
            {kind: tuple(sorted(filter(is_stand_in, words), key=num_tokens)) for kind, words in _CANDIDATES.items()}
        )

    def choose(self, kinds: Iterable[SpanKind], text: str, num_tried: int = 0) -> list[str | None]:
        """A different stand-in for each span, none of which the text has; None for a span if there are too few.

        Args:
            kinds: of each span.
            text: the sentence around the spans.
            num_tried: how many times stand-ins were chosen for them before: others are tried then.
        """
        folded, kinds = text.casefold(), list(kinds)
        free = {
            kind: iter([word for word in words if word.casefold() not in folded][num_tried * kinds.count(kind) :])
            for kind, words in self.words_by_kind.items()
        }
        return [next(free[kind], None) for kind in kinds]


def put_back(text: str, spans: Mapping[str, str]) -> str | None:
    """A translation with each stand-in replaced by its span; None if one does not stand there exactly once.

    Args:
        text: the translation.
        spans: the span of each stand-in.
    """
    if spans and sorted(_stand_ins_in(spans).findall(text)) != sorted(spans):
        return None
    return _with_spans(text, spans)


def _with_spans(text: str, spans: Mapping[str, str]) -> str:
    """A text with each stand-in replaced by its span, however often it stands there."""
    if not spans:
        return text
    return _stand_ins_in(spans).sub(lambda match: spans[match[0]], text)


def _stand_ins_in(spans: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, spans))})(?![^\W_])")


# A span beside a colon or a dash is no part of the sentence: "Our address: https://..."
_ADDRESS = lazy_pattern(r"[^{}%$<>`\[\]]*[@./][^{}%$<>`\[\]]*")
_LABEL_MARKS = frozenset(":;|-\u2013\u2014")
_SENTENCE_ENDS = ".!?\u2026"
_BETWEEN_WORDS = (SpanKind.TAG, SpanKind.MARK)
_MOST_SPACES = 20
# As in {name}'s; the letter alone would be read as a word of its own.
_POSSESSIVE = lazy_pattern(r"['\u2019]s(?![^\W_])")
# As in {n}th and v{n}; more letters are a word.
_MOST_LETTERS_OF_AFFIX = 2


class ProtectedSentence:
    """A sentence with protected spans, and how far the attempts to translate it have come.

    1. Numbers and marks that the model knows stay in the sentence, URLs and placeholders are replaced by stand-ins, and the
       sentence is cut at tags.
    2. Numbers are replaced by stand-ins, too, and 3. all by other stand-ins: a model may copy 25, but not 1,250.
    4. The sentence is also cut at numbers, and 5. at all spans: only the text between the spans is translated.
    6. The sentence stays as it is in the source. No text of the model is in it, so no span can be lost.

    With a glossary, the first attempt that has all terms and all spans counts, else the first that has all spans: a
    term whose words stand on both sides of a cut cannot be kept. An attempt that leaves text in the source language, or
    that loses the words beside a placeholder or makes one word of a number and another word, counts only if all do.
    """

    def __init__(self, given: SourceText, keeper: "SpanKeeper") -> None:
        """
        Args:
            given: one sentence with its spans. Its prefix is that of the translation of its first piece.
            keeper: of the model.
        """
        text, spans = given.text, given.spans
        self.result: Translation | None = None
        """The translation, in which each span stands as often as in the sentence; None while attempts are left."""
        if not has_letter(masked(text, with_units(text, spans, SpanKind.WORD, SpanKind.NUMBER), " ")):
            self.result = copied(text)
            return
        self._given, self._keeper = given, keeper
        # A tag ends a word. A number may be a part of one, as in 5kg.
        tags = [span for span in spans if span.kind is SpanKind.TAG]
        without_tags = masked(text, tags, HIDDEN)
        self._required = keeper.required_terms(masked(without_tags, [span for span in spans if span not in tags], "x"))
        self._promise = Promise.of(text, spans, allowed=spans_of_terms(self._required))
        self._best: Translation | None = None
        self._attempts = keeper.attempts(text, spans)
        self._pieces: list[_Piece] = []
        self._begin_next_attempt()

    def asked(self) -> list[SourceText]:
        """The texts whose translations this attempt needs; at least one while there is no result."""
        texts = [piece.text for piece in self._pieces if piece.is_translated]
        prefixes = chain([self._given.prefix], repeat(""))
        return [
            SourceText(text, prefix, self._given.line_number, first_part=self._given.first_part + number)
            for number, (text, prefix) in enumerate(zip(texts, prefixes, strict=False))
        ]

    def answer(self, translations: Sequence[Translation]) -> None:
        """Judge the attempt by the translations of what it asked for; sets `result`, or begins the next attempt."""
        found = self._kept(translations)
        if found is not None:
            with_terms = _with_all_terms(found, self._required)
            languages = self._keeper.languages
            has_quotes = self._has_quotes_in_place(found)
            is_complete = has_quotes and not (
                _invents_quotes(masked(self._given.text, self._given.spans, HIDDEN), found.text)
                or lacks_words_at_placeholders(self._given.text, found.text, languages)
                or has_number_in_word(self._given.text, found.text, languages.target)
                or has_other_units(self._given.text, found.text, languages.target, SpanKind.NUMBER)
                or has_invented_unit(self._given.text, found.text, languages)
            )
            if with_terms is not None and not found.is_untranslated and is_complete:
                self.result = with_terms
                return
            is_better = self._best is not None and has_quotes and not self._has_quotes_in_place(self._best)
            if self._best is None or is_better or (self._best.is_untranslated and not found.is_untranslated):
                self._best = with_terms or found
        self._begin_next_attempt()

    def _kept(self, translations: Sequence[Translation]) -> Translation | None:
        """The translation of the sentence, if it has all spans."""
        answers = iter(translations)
        parts = [
            self._keeper.finished(piece, next(answers)) if piece.is_translated else copied(piece.text)
            for piece in self._pieces
        ]
        complete = [part for part in parts if part is not None]
        if len(complete) < len(parts):
            return None
        kept = self._promise.kept_part(joined_translation(self._given.text, complete, "".join))
        return None if kept is None else replace(kept, is_in_pieces=self._is_in_pieces())

    def _has_quotes_in_place(self, found: Translation) -> bool:
        """Whether each placeholder in quotation marks stands in one pair of them, there are no other marks, and no word is lost beside it."""
        text, spans = self._given.text, self._given.spans
        quoted = {*_with_quotes(text, spans)} - {*spans}
        if not quoted:
            return True
        inner = {text[each.start : each.end].strip(_QUOTATION_MARKS) for each in quoted}
        joined = found.text
        for each in inner:
            joined = joined.replace(each, each.replace(" ", HIDDEN))
        written = {match[0].strip(_QUOTATION_MARKS).replace(HIDDEN, " ") for match in _QUOTED.finditer(joined)}
        if not inner <= written:
            return False
        if len(_DOUBLE_MARK.findall(text)) != len(_DOUBLE_MARK.findall(found.text)):
            return False
        if found.is_in_pieces:  # each word was read by itself
            return True
        num_read, num_written = map(num_content_words, (text, found.text), self._keeper.languages)
        return num_read <= num_written

    def _is_in_pieces(self) -> bool:
        """Whether a person should read the translation because its parts were translated by themselves, or one was not."""
        num_translated = sum(piece.is_translated for piece in self._pieces)
        return num_translated > 1 or any(
            _POSSESSIVE.search(piece.text) for piece in self._pieces if not piece.is_translated
        )

    def _begin_next_attempt(self) -> None:
        pieces = next(self._attempts, None)
        if pieces is not None:
            self._pieces = pieces
            return
        found = self._best or replace(copied(self._given.text), is_partly_copied=True)
        self.result = replace(found, terms=applied_terms(found.text, self._required))


@dataclass(frozen=True, slots=True)
class SpanKeeper:
    """How protected spans get through one model, in one direction."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    stand_ins: StandIns
    languages: Direction
    required_terms: Callable[[str], tuple[RequiredTerm, ...]]
    """What the glossary requires of the translation of a text; nothing without a glossary."""

    def attempts(self, text: str, spans: Sequence[Span]) -> Iterator[list["_Piece"]]:
        """Ways to divide the sentence, best first, each different from those before it."""
        seen: list[list[_Piece]] = []
        for cut_kinds, num_tried, takes_quotes in (
            ({SpanKind.TAG}, None, False),
            ({SpanKind.TAG}, None, True),
            ({SpanKind.TAG}, 0, True),
            ({SpanKind.TAG}, 1, True),
            ({SpanKind.TAG, SpanKind.NUMBER, SpanKind.MARK}, None, True),
            (set(SpanKind), None, True),
        ):
            pieces = self._pieces(text, spans, cut_kinds, num_tried, takes_quotes=takes_quotes)
            if pieces not in seen and any(piece.is_translated for piece in pieces):
                seen.append(pieces)
                yield pieces

    def _pieces(
        self, text: str, spans: Sequence[Span], cut_kinds: set[SpanKind], num_tried: int | None, *, takes_quotes: bool
    ) -> list["_Piece"]:
        """The pieces of a sentence that is cut at some kinds of spans.

        Args:
            num_tried: how many times stand-ins for all numbers were tried before; None: numbers that the model knows stay.
            takes_quotes: whether the quotation marks around a placeholder go with it.
        """
        spans = _joined(text, spans)
        if takes_quotes:
            spans = _with_quotes(text, spans)
        spans = with_units(text, spans, SpanKind.WORD)
        if num_tried is not None or SpanKind.NUMBER in cut_kinds:  # at first, the model may know the units of numbers
            spans = with_units(text, spans, SpanKind.NUMBER)
            spans = [_with_half_of_day(text, span) for span in spans]
        inside = [span for span in spans if span.kind not in cut_kinds and not _is_apart(text, span)]
        known = {
            span
            for span in inside
            if span.kind is not SpanKind.WORD
            and (num_tried is None or span.kind is SpanKind.MARK or _ONE.fullmatch(text, span.start, span.end))
            and self._knows(text, span)
        }
        at_words = spans_at_words(text, inside)
        others = [
            span for span in inside if span not in known and span.kind is not SpanKind.MARK and span not in at_words
        ]
        kinds = [kind_of_stand_in(text, span, num_tried) for span in others]
        around = masked(text, others, " ")
        chosen = self.stand_ins.choose(kinds, around, num_tried or 0)
        if None in chosen:  # too few numbers: names for the placeholders without one
            pairs = zip(others, kinds, chosen, strict=True)
            kinds = [kind if word is not None else kind_of_stand_in(text, span, 1) for span, kind, word in pairs]
            chosen = self.stand_ins.choose(kinds, around, num_tried or 0)
        replaced = {span: word for span, word in zip(others, chosen, strict=True) if word is not None}
        cuts = [span for span in spans if span not in known and span not in replaced]
        # Letters in place of the spans that stay in a piece: they count as words of it.
        visible = masked(text, [span for span in spans if span not in cuts], "x")
        pieces: list[_Piece] = []
        place = 0
        for before, cut in zip([None, *cuts], [*cuts, None], strict=True):
            end = cut.start if cut else len(text)
            start, stop = _core(visible, place, end, before, cut)
            inner = {span: word for span, word in replaced.items() if start <= span.start < stop}
            pieces += _literal(text[place:start])
            pieces.append(self._piece(text, start, stop, inner))
            pieces += _literal(text[stop : cut.end if cut else end])
            place = cut.end if cut else end
        return [piece for piece in pieces if piece.text]

    def _piece(self, text: str, start: int, stop: int, inner: dict[Span, str]) -> "_Piece":
        changed, place = "", start
        for span, word in inner.items():
            changed += text[place : span.start] + word
            place = span.end
        changed += text[place:stop]
        words = masked(text, list(inner), " ")[start:stop]
        stand_ins = {word: text[span.start : span.end] for span, word in inner.items()}
        return _Piece(
            changed if has_letter(words) else text[start:stop],
            is_translated=has_letter(words),
            is_first=not has_letter(text[:start]),
            stand_ins=tuple(stand_ins.items()),
        )

    def _knows(self, text: str, span: Span) -> bool:
        [number] = span_texts(text, [span])
        if normalize_invisible(number) != number:
            return False  # the model would read and write it with other spaces
        return self.source_tokenizer.knows(number) and self.target_tokenizer.knows(number)

    def finished(self, piece: "_Piece", translation: Translation) -> Translation | None:
        """The translation of a piece, with its spans instead of their stand-ins; None if one is lost."""
        stand_ins = dict(piece.stand_ins)
        required = self.required_terms(piece.text)

        pairs, doubts = [], translation.doubts
        for text, score in translation.alternatives:
            part = self._as_part(piece, text)
            if applied_terms(part, required) != applied_terms(text, required):
                part = text  # the first letter or the last mark belongs to a term
            bare = self._without_units(part, piece)
            if bare != part and NUMBERS not in doubts_about(piece.text, bare, self.languages):
                doubts = tuple(doubt for doubt in doubts if doubt != NUMBERS)
            if (found := put_back(bare, stand_ins)) is not None:
                pairs.append((found, score))
        finished = with_alternatives(translation, pairs)
        if not finished.alternatives:
            return None
        pieces = (
            TranslatedPiece(*(_with_spans(text, stand_ins) for text in piece_texts)) for piece_texts in finished.pieces
        )
        return replace(finished, source=_with_spans(piece.text, stand_ins), pieces=tuple(pieces), doubts=doubts)

    def _without_units(self, translation: str, piece: "_Piece") -> str:
        """A translation without the words that only the stand-ins of clock times, dates, shares and amounts needed behind them."""
        target = primary_language(self.languages.target)
        hours, others = _WORDS_FOR_HOURS.get(target), _OTHER_UNITS.get(target)
        if hours is None or others is None:
            return translation
        for word, span in piece.stand_ins:
            one = _stand_ins_in({word: span})
            if _CLOCK.match(span):
                translation = re.sub(f"({one.pattern}){hours}", r"\1", translation)
            in_source = one.search(piece.text)
            has_unit = in_source is not None and _UNIT_IN_SOURCE.match(piece.text, in_source.end()) is not None
            if _WITH_UNIT.fullmatch(span) and not has_unit:
                translation = re.sub(f"({one.pattern}){others}", r"\1", translation)
        return translation

    def _as_part(self, piece: "_Piece", text: str) -> str:
        text = with_final_mark_of(text, piece.text, target_language=primary_language(self.languages.target))
        if ends_sentence(piece.text) and not ends_sentence(text):
            text += piece.text[-1]  # else a tag would stand where a sentence ends in the source
        if piece.is_first:
            return text
        return as_inner_part(text, piece.text, target_language=primary_language(self.languages.target))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a sentence: translated alone, or left as it is."""

    text: str
    """With stand-ins."""
    is_translated: bool
    is_first: bool = False
    stand_ins: tuple[tuple[str, str], ...] = ()
    """Pairs of a stand-in and its span."""


def _with_all_terms(translation: Translation, required: Sequence[RequiredTerm]) -> Translation | None:
    """The translation with only the alternatives that have all terms; None if none of them does."""

    kept = with_alternatives(
        translation,
        [
            each
            for each in translation.alternatives
            if all(term.is_applied for term in applied_terms(each.text, required))
        ],
    )
    if not kept.alternatives:
        return None
    return replace(kept, terms=applied_terms(kept.text, required))


def _literal(text: str) -> list[_Piece]:
    return [_Piece(text, is_translated=False)] if text else []


def _with_half_of_day(text: str, span: Span) -> Span:
    """The span of a time with the a.m. or p.m. behind it, which a model would take for another word beside a stand-in."""
    found = _HALF_OF_DAY.match(text, span.end) if span.kind is SpanKind.NUMBER else None
    return span if found is None else span._replace(end=found.end())


# A placeholder for a number: %d, %1$d, %(x)d, {n}, {{ count }}, {num_dogs}. In its place a name would be read as the owner of
# what it counts: "livres de %d".
_NUMBER = (
    r"(?:%(?:\d{1,3}\$|\(\w+\))?[#0+-]*\d*(?:\.\d+)?(?:hh?|ll?|z)?[diu]"
    r"|[$#%]?\{{1,2} ?(?:n|num|number|count|total|num_\w+|\w+_?[Cc]ount) ?\}{1,2})"
)
_FOR_NUMBER = lazy_pattern(rf"{_NUMBER}(?:[/-]{_NUMBER})*")


def kind_of_stand_in(text: str, span: Span, num_tried: int | None) -> SpanKind:
    """The kind of the stand-in for a span: a number where it has a number or stands for one before a word, else a name.

    Where numbers were tried before in vain, names stand for placeholders.
    """
    is_before_word = text[span.end : span.end + 1].isspace() and text[span.end + 1 : span.end + 2].isalpha()
    if span.kind is SpanKind.NUMBER or (
        not num_tried and is_before_word and _FOR_NUMBER.fullmatch(text, span.start, span.end)
    ):
        return SpanKind.NUMBER
    return SpanKind.WORD


def stands_for_number(placeholder: str) -> bool:
    """Whether a placeholder, such as %d or {n}, stands for a number, as its name says."""
    return _FOR_NUMBER.fullmatch(placeholder) is not None


_QUOTED = lazy_pattern(
    r"(?<![\w\"])\"[^\s\"]+\"(?!\w)|\u201c[^\s\u201c\u201d]+\u201d|\u201e[^\s\u201c-\u201f]+[\u201c\u201d]"
    r"|\u00ab[ \u00a0\u202f]?[^\s\u00ab\u00bb]+[ \u00a0\u202f]?\u00bb|(?<![\w'])'[^\s']+'(?!\w)|\u2018[^\s\u2018\u2019]+\u2019(?!\w)"
)
"""A pair of quotation marks around a single word."""
_QUOTATION_MARKS = "\"'\u2018\u2019\u201c\u201d\u201e\u201f\u00ab\u00bb \u00a0\u202f"
_DOUBLE_MARK = lazy_pattern('["\u201c-\u201f\u00ab\u00bb]')


def _with_quotes(text: str, spans: Sequence[Span]) -> list[Span]:
    """The spans, in which a placeholder or the like takes its quotation marks with it: beside a stand-in, models change one of them."""
    found = list(spans)
    for quoted in _QUOTED.finditer(masked(text, spans, "x")) if spans else ():
        inner = [span for span in found if quoted.start() <= span.start and span.end <= quoted.end()]
        if inner and all(span.kind is SpanKind.WORD for span in inner):
            place = found.index(inner[0])
            found[place : place + len(inner)] = [Span(*quoted.span(), SpanKind.WORD)]
    return found


_SIGNS_BETWEEN = lazy_pattern(r"[/|\\:+*=~_.,-]{1,3}")


def _joined(text: str, spans: Sequence[Span]) -> list[Span]:
    """The spans, in which placeholders with nothing but signs between them, as in {done}/{total}, are one: a model reads a word in such a sign."""
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.kind is span.kind is SpanKind.WORD
            and _SIGNS_BETWEEN.fullmatch(text, last.end, span.start)
        ):
            joined[-1] = last._replace(end=span.end)
        else:
            joined.append(span)
    return joined


def _invents_quotes(text: str, translation: str) -> bool:
    """Whether a translation has quotation marks and its source none: an apostrophe behind a placeholder, as in {name}' dogs, is read as one."""
    return _DOUBLE_MARK.search(translation) is not None and not any(quotation_marks(text))


def _is_apart(text: str, span: Span) -> bool:
    """Whether a colon or a dash separates a URL or placeholder from the text beside it, or a sentence ends there; or an address stands before a sentence."""
    if span.kind is not SpanKind.WORD:
        return False
    following = text[span.end :].lstrip()
    is_first = not has_word(text[: span.start])
    if _is_at_end(text, span):
        return True
    if is_first and following[:1].isupper() and _ADDRESS.fullmatch(text, span.start, span.end):
        return True
    before = text[max(0, span.start - _MOST_SPACES) : span.start].rstrip()[-1:]
    after = text[span.end : span.end + _MOST_SPACES].lstrip()[:1]
    return before in _LABEL_MARKS or after in _LABEL_MARKS


def _is_at_end(text: str, span: Span) -> bool:
    """Whether a URL or placeholder stands directly behind the end of a sentence or a comma, as in "It is late.{n}"."""
    return (
        span.kind is SpanKind.WORD
        and text[max(0, span.start - 1) : span.start] in tuple(f"{_SENTENCE_ENDS},;")
        and not text[span.end : span.end + 1].isalnum()
    )


def _core(visible: str, start: int, end: int, before: Span | None, after: Span | None) -> tuple[int, int]:
    """The range between two cuts that is translated.

    Marks and white space beside a cut stay with it, but for those that end a sentence before a tag or a placeholder: "It is late.<br>"
    and "It is late.{n}" are read with their full stop. So do letters that touch it, as in 5kg and {n}th; but not a word that touches a placeholder,
    as in letters{n}, and none beside a tag.
    """
    if before is not None:
        start += _num_touching(visible[start:end], before)
        while start < end and not (visible[start].isalnum() or is_letter(visible[start])):
            start += 1
    if after is not None:
        limit = end
        end -= _num_touching(visible[start:end][::-1], after)
        while start < end and not is_part_of_word(visible[end - 1]):
            end -= 1
        is_end = after.kind in _BETWEEN_WORDS or _is_at_end(visible, after)
        while is_end and start < end < limit and visible[end] in _SENTENCE_ENDS:
            end += 1
    return start, end


def _num_touching(visible: str, cut: Span) -> int:
    """How many letters and digits at the beginning of a text belong to the cut before it."""
    if cut.kind in _BETWEEN_WORDS:
        return 0
    if cut.kind is SpanKind.WORD and (possessive := _POSSESSIVE.match(visible)):
        return possessive.end()
    number = len(list(takewhile(is_part_of_word, visible)))
    return number if cut.kind is SpanKind.NUMBER or number <= _MOST_LETTERS_OF_AFFIX else 0
