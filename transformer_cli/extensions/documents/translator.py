"""What translates the texts of documents: its interface, and the translator that a trained model gives; what a translation must keep, protected spans, brackets and quotation marks: where it loses some, it is put right or made again."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple, Protocol

from transformer_cli.config.data import Direction
from transformer_cli.decoding import ExplainingEngine, Translator
from transformer_cli.decoding.checks.brackets import TextPiece, is_in_word, lost_brackets, with_plurals
from transformer_cli.decoding.checks.quality import Drift
from transformer_cli.decoding.details import word_spans
from transformer_cli.decoding.given_pairs import TextAligner
from transformer_cli.decoding.memory import NOT_FROM_MEMORY, lost_by_memory
from transformer_cli.decoding.protected_spans import Promise
from transformer_cli.decoding.translation import (
    Estimate,
    GlossaryUse,
    PlacedPiece,
    Translation,
    placed_pieces,
)
from transformer_cli.text.languages import primary_language
from transformer_cli.text.normalization import has_letter
from transformer_cli.text.quotation_marks import QUOTE, quotes_without_partner
from transformer_cli.text.sentences import (
    BRACKETS,
    Sentence,
    as_inner_part,
    closing_mark,
    partners_of_brackets,
    split_sentences_around,
    without_closing_mark,
)
from transformer_cli.text.span_kinds import SPECIFICATION, TOUCHING_SPECIFICATION
from transformer_cli.text.spans import Span, SpanKind, find_spans, masked, span_texts

_MARKS_AROUND = re.compile(r"^\W+|\W+$")

Extent = tuple[int, int]
"""A range of a text: text[start:end]."""


class LinkedWords(NamedTuple):
    """A word of a text and a word of its translation, by their places."""

    source: Extent
    target: Extent


class AskedText(NamedTuple):
    """A text to translate."""

    text: str
    """Without line breaks."""
    needs_links: bool = False
    """Whether markup inside it is to be moved."""


class AnsweredText(NamedTuple):
    """A translation, as a `TextTranslator` gives it."""

    text: str
    links: tuple[LinkedWords, ...] = ()
    """Which words belong together, if it was asked for; nothing if the model cannot tell."""
    pieces: tuple[PlacedPiece, ...] = ()
    """What was translated by itself, in order; nothing if that is the whole text. No link reaches from one into another."""
    is_copied: bool = False
    """Whether a sentence stands here as in the source, because the model lost protected parts of it."""
    is_in_pieces: bool = False
    """Whether a sentence was translated in pieces around its protected parts."""
    is_cut: bool = False
    """Whether a sentence was too long for the model, and was translated in parts."""
    is_divided: bool = False
    """Whether a sentence was translated clause by clause, because it is long, or its translation lost text."""
    is_untranslated: bool = False
    """Whether a sentence or clause stands here as in the source, because its translation loses text."""
    doubts: tuple[str, ...] = ()
    """What the text of the translation shows to be wrong, in words; see `decoding.doubts`."""
    estimate: Estimate | None = None
    """How far it can be trusted; None if the translator does not estimate it, or no model has translated the text."""
    why_not_green: str = ""
    """What keeps a translation without doubts from being green, in words; empty if it is green."""
    spans_of_terms: frozenset[str] = frozenset()
    """Protected spans in terms of a glossary, such as A4: the terms decide how often they are in the translation."""
    is_from_memory: bool = False
    """Whether a person has made it, so that it stays as it is."""
    is_of_terms: bool = False
    """Whether the whole text is terms of a glossary, so that no model has translated it."""
    lost_by_memory: str = ""
    """The placeholder or tag that the translation of a memory lacks, so that the model has made this one in its place."""
    unsure: tuple[Extent, ...] = ()
    """The words of the text of which nobody knows with which word of a translation from a memory they belong together."""


class TextTranslator(Protocol):
    """Translates texts of one language into another; see `ModelTranslator` for that of a trained model."""

    @property
    def languages(self) -> Direction:
        """The languages of all texts and translations."""

    def sentences(self, text: str) -> list[Sentence]:
        """The sentences of a text; one, if the model reads several at once."""

    def knows(self, text: str) -> bool:
        """Whether a memory has the translation of a text, so that it is not divided."""

    def has_read(self, word: str) -> bool:
        """Whether a word is known to stand in the text of the training."""

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        """One translation per text, in order."""


def links_by_position(source: str, target: str) -> tuple[LinkedWords, ...]:
    """Links for texts of which no alignment is known: equal texts word by word, others by the share of the way."""
    sources, targets = word_spans(source), word_spans(target)
    if not sources:
        return ()
    return tuple(
        LinkedWords(sources[number * len(sources) // len(targets)], word) for number, word in enumerate(targets)
    )


@dataclass(frozen=True, slots=True)
class ModelTranslator:
    """A `TextTranslator` of a `Translator` for one direction."""

    translator: Translator
    drift: Drift | None = None
    """What looks at all texts, and compares them with those of the calibration."""
    glossary_use: GlossaryUse | None = None
    """What counts the terms of all texts."""

    @classmethod
    def of(cls, translator: Translator, *, to: str | None = None, from_: str | None = None) -> "ModelTranslator":
        """The translator of documents in one direction.

        It protects spans.

        Args:
            to: the target language, for a model that translates into several.
            from_: the source language, for a model that translates from several into `to`.
        """
        return cls(
            replace(
                translator.towards(to, from_),
                protects_spans=True,
                reports_lines=False,
                is_strict=False,
                only_green=False,
            )
        )

    @property
    def languages(self) -> Direction:
        """See `TextTranslator.languages`."""
        return self.translator.languages

    def sentences(self, text: str) -> list[Sentence]:
        """See `TextTranslator.sentences`."""
        if not (self.translator.before or self.translator).pipeline.splits_sentences:
            return [Sentence(text, "")]
        return split_sentences_around(find_spans(text), text, self.languages.source)

    def knows(self, text: str) -> bool:
        """See `TextTranslator.knows`."""
        return self.translator.memory is not None and text in self.translator.memory

    def has_read(self, word: str) -> bool:
        """See `TextTranslator.has_read`."""
        seen = (self.translator.before or self.translator).pipeline.seen_words
        return seen is not None and word in seen

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        """See `TextTranslator.translate`."""
        translations = list(self.translator.translate([asked.text for asked in texts]))
        lost = [lost_by_memory(each.source, each.text) if each.is_from_memory else "" for each in translations]
        if any(lost):
            by_model = replace(self.translator, memory=None)
            again = iter(by_model.translate([asked.text for asked, each in zip(texts, lost, strict=True) if each]))
            translations = [next(again) if each else kept for kept, each in zip(translations, lost, strict=True)]
        if self.drift is not None:
            self.drift.add(translations)
        if self.glossary_use is not None:
            for translation in translations:
                self.glossary_use.add(translation)
        linked = [translation for asked, translation in zip(texts, translations, strict=True) if asked.needs_links]
        pieces = {id(each): placed_pieces(each) for each in linked}
        found_links = self._links(linked, list(pieces.values()))
        links = dict(zip(pieces, found_links, strict=True))
        unsure: dict[int, tuple[Extent, ...]] = {}
        for each, links_and_unsure in self._links_from_memory([one for one in linked if one.is_from_memory], links):
            links[id(each)], unsure[id(each)] = links_and_unsure
        quality = self.translator.pipeline.quality
        return [
            AnsweredText(
                translation.text,
                links.get(id(translation), ()),
                tuple(pieces.get(id(translation), ())),
                is_copied=translation.is_partly_copied,
                is_in_pieces=translation.is_in_pieces,
                is_cut=translation.is_cut,
                is_divided=translation.is_divided,
                is_untranslated=translation.is_untranslated,
                doubts=translation.doubts,
                estimate=translation.estimate,
                why_not_green="" if quality is None else quality.why_not_green(translation),
                spans_of_terms=frozenset(
                    span
                    for term in translation.terms
                    for text in (term.source, term.target)
                    for span in span_texts(text, find_spans(text))
                ),
                is_from_memory=translation.is_from_memory,
                is_of_terms=translation.is_of_terms,
                lost_by_memory=lost_text,
                unsure=unsure.get(id(translation), ()),
            )
            for asked, translation, lost_text in zip(texts, translations, lost, strict=True)
        ]

    def _links_from_memory(
        self, translations: Sequence[Translation], links: Mapping[int, Sequence[LinkedWords]]
    ) -> Iterator[tuple[Translation, tuple[tuple[LinkedWords, ...], tuple[Extent, ...]]]]:
        """The links of translations from a memory, and the words of their texts that are sure of none.

        The attention of a model is a poor guide to a translation that the model would not write, so the words that stand in
        its own translation, too, have the links that they have there.

        Args:
            links: by the attention to each of them.
        """
        if not translations:
            return
        own = list(replace(self.translator, memory=None).translate([each.source for each in translations]))
        own_links = self._links(own, [placed_pieces(each) for each in own])
        for each, mine, mine_links in zip(translations, own, own_links, strict=True):
            found = links[id(each)]
            yield each, _links_by_own(found, each.text, mine.text, mine_links) if mine_links else (tuple(found), ())

    def _links(
        self, translations: Sequence[Translation], pieces: Sequence[Sequence[PlacedPiece]]
    ) -> list[tuple[LinkedWords, ...]]:
        """The links of each translation, inside of its pieces; none if the engine cannot tell its attention."""
        if self.translator.before is not None:
            whole_links = self._links_through_pivot(self.translator.before, translations)
            return [_links_in_pieces(*each) for each in zip(translations, pieces, whole_links, strict=True)]
        wholes = [
            placed or [PlacedPiece((0, len(each.source)), (0, len(each.text)), each.source == each.text)]
            for each, placed in zip(translations, pieces, strict=True)
        ]
        # The model reads a piece as for its translation, without words of others that may draw its attention.
        asked = [
            (number, piece)
            for number, placed in enumerate(wholes)
            for piece in placed
            if not piece.is_kept and all(map(str.strip, piece.texts(translations[number])))
        ]
        pairs = [piece.texts(translations[number]) for number, piece in asked]
        found: list[list[LinkedWords]] = [[] for _ in translations]
        for (number, piece), links in zip(asked, _links_of(self.translator, pairs), strict=True):
            found[number] += moved_links(links, piece.source[0], piece.target[0])
        return [_links_in_pieces(*each) for each in zip(translations, pieces, found, strict=True)]

    def _links_through_pivot(
        self, before: Translator, translations: Sequence[Translation]
    ) -> list[tuple[LinkedWords, ...]]:
        """The links of each translation by two models, as a whole."""
        pivots = ["" if each.pivot is None else each.pivot.text for each in translations]
        first = list(zip([each.source for each in translations], pivots, strict=True))
        second = list(zip(pivots, [each.text for each in translations], strict=True))
        links_of_first, links_of_second = _links_of(before, first), _links_of(self.translator, second)
        return [links_through(*links) for links in zip(links_of_first, links_of_second, strict=True)]


def _links_by_own(
    by_attention: Sequence[LinkedWords], text: str, own: str, own_links: Sequence[LinkedWords]
) -> tuple[tuple[LinkedWords, ...], tuple[Extent, ...]]:
    """The links of a translation by those of the model's own one, and the words of the source without a link.

    Args:
        by_attention: the links of the translation by the attention of the model.
        text: the translation.
        own: the translation of the same text by the model.
        own_links: its links.
    """
    places, own_places = map(_words_that_stand_once, (text, own))
    same = {own_places[word]: place for word, place in places.items() if word in own_places}
    sure = [LinkedWords(source, same[target]) for source, target in own_links if target in same]
    sources, targets = {link.source for link in sure}, {link.target for link in sure}
    others = [link for link in by_attention if link.target not in targets]
    # A word whose place is known is linked with another one only if nothing else is.
    free = {link.target for link in others if link.source not in sources}
    others = [link for link in others if link.source not in sources or link.target not in free]
    found = [*sure, *others]
    linked = {link.source for link in found}
    lost = [link for link in by_attention if link.source not in linked]
    return (*found, *lost), tuple(dict.fromkeys(link.source for link in lost))


def _words_that_stand_once(text: str) -> dict[str, Extent]:
    """The places of the words of a text that it has once; capital letters and marks do not count."""
    words = [(_MARKS_AROUND.sub("", text[slice(*span)]).casefold(), span) for span in word_spans(text)]
    numbers = Counter(word for word, _ in words)
    return {word: span for word, span in words if word and numbers[word] == 1}


def _links_in_pieces(
    translation: Translation, pieces: Sequence[PlacedPiece], links: Sequence[LinkedWords]
) -> tuple[LinkedWords, ...]:
    """The links between words of the same piece; by their positions in a piece that has none, such as one that is kept."""
    if not pieces:
        return tuple(links)
    # A long text has many of both, so only the links near a piece are compared with it.
    ordered = sorted(links)
    starts = [start for (start, _), _ in ordered]
    longest = max((end - start for (start, end), _ in ordered), default=0)
    kept: list[LinkedWords] = []
    for piece in pieces:
        first, last = piece.source
        near = slice(bisect_right(starts, first - longest), bisect_left(starts, last))
        inside = [
            link
            for link in ordered[near]
            if all(begin < end and start < stop for (start, end), (begin, stop) in zip(link, piece[:2], strict=True))
        ]
        if piece.is_kept or not inside:
            by_position = links_by_position(*piece.texts(translation))
            inside = list(moved_links(by_position, piece.source[0], piece.target[0]))
        kept += inside
    return tuple(kept)


def moved_links(links: Iterable[LinkedWords], by_source: int, by_target: int) -> Iterator[LinkedWords]:
    """Links of a part of a text, as those of the whole."""
    for (first, last), (start, end) in links:
        yield LinkedWords((first + by_source, last + by_source), (start + by_target, end + by_target))


def moved_pieces(pieces: Iterable[PlacedPiece], by_source: int, by_target: int) -> Iterator[PlacedPiece]:
    """Pieces of a part of a text, as those of the whole."""
    for piece in pieces:
        (link,) = moved_links([LinkedWords(*piece[:2])], by_source, by_target)
        yield PlacedPiece(*link, is_kept=piece.is_kept)


def _links_of(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[tuple[LinkedWords, ...]]:
    """The links of each pair of a text and its translation by one model."""
    engine = translator.engine
    if not isinstance(engine, ExplainingEngine):
        return [()] * len(pairs)
    plural = with_plurals if translator.pipeline.keeps_text else str
    read = {(text, translation): (plural(text), translation) for text, translation in pairs}
    distinct = list(dict.fromkeys(read.values()))
    aligner = TextAligner(translator.pipeline, engine, translator.decoding.batch_tokens)
    found = dict(zip(distinct, aligner.align(distinct), strict=True))
    return [_moved_to(pair[0], read[pair][0], found[read[pair]]) for pair in pairs]


def _moved_to(text: str, read: str, links: Iterable[tuple[Extent, Extent]]) -> tuple[LinkedWords, ...]:
    """The links of a text as the model has read it, with dogs for dog(s), as those of the text: it has the same words."""
    places = dict(zip(word_spans(read), word_spans(text), strict=True)) if read != text else {}
    return tuple(LinkedWords(places.get(source, source), target) for source, target in links)


def links_through(first: Sequence[LinkedWords], second: Sequence[LinkedWords]) -> tuple[LinkedWords, ...]:
    """The links of a text with its translation, from those of two steps: words of the pivot that overlap link both."""
    found = (
        LinkedWords(one.source, other.target)
        for other in second
        for one in first
        if one.target[0] < other.source[1] and other.source[0] < one.target[1]
    )
    return tuple(dict.fromkeys(found))


# What a translation must keep.


COPIED = "a sentence was left as it is, because the model loses the protected parts of it"
UNBALANCED = "a bracket or quotation mark of the translation had no partner, and was put right"
IN_PIECES = "a sentence was translated in pieces around the parts that must stay, so read it again"
CUT = "a sentence was too long for the model, and was translated in parts"
DIVIDED = "a sentence was translated clause by clause, because it is long or its translation as a whole was doubtful: look whether words are missing"
UNTRANSLATED = "a sentence or a part of it was left as it is, because the model loses text of it or cannot read it"
MAY_BE_WRONG = "a translation may be wrong: "
DOUBTFUL = f"{MAY_BE_WRONG}it "
"""Before one of `decoding.doubts`."""


class CheckedAnswer(NamedTuple):
    """A translation with all protected spans of its text, and why a person should look at it."""

    text: str
    links: tuple[LinkedWords, ...]
    doubts: tuple[str, ...]
    estimate: Estimate | None = None
    """As of `AnsweredText`."""
    why_not_green: str = ""
    """As of `AnsweredText`."""
    pieces: tuple[PlacedPiece, ...] = ()
    """As of `AnsweredText`."""
    is_from_memory: bool = False
    """As of `AnsweredText`."""
    is_of_terms: bool = False
    """As of `AnsweredText`."""
    unsure: tuple[Extent, ...] = ()
    """As of `AnsweredText`."""


def with_kept_spans(
    answers: Mapping[AskedText, AnsweredText], translator: TextTranslator
) -> dict[AskedText, CheckedAnswer]:
    """The answers, in which each protected span stands as often as in its text, and brackets around words do.

    Where an answer has lost one, the text between the spans, and that inside and outside of the brackets, is translated
    again, piece by piece. Where a piece invents a span, the text stays as it is. What a memory has is the choice of a person.
    """
    broken = {}
    for asked, answer in answers.items():
        if answer.is_from_memory:
            continue
        has_spans = _promise(asked.text, answer.spans_of_terms).is_kept_by(answer.text)
        brackets = lost_brackets(asked.text, answer.text) or _lost_without_partner(asked.text, answer.text)
        if brackets or not has_spans:
            broken[asked] = _pieces(asked.text, brackets)
    # A model that has seen whole sentences only may read part of one without a full stop as a question.
    asked_pieces = list(
        dict.fromkeys(
            AskedText(piece.text + closing_mark(asked.text), asked.needs_links)
            for asked, pieces in broken.items()
            for piece in pieces
            if piece.is_translated
        )
    )
    found = translator.translate(asked_pieces) if asked_pieces else []
    piece_answers = dict(zip(asked_pieces, found, strict=True))
    checked = {
        asked: _in_pieces(asked, broken[asked], piece_answers, primary_language(translator.languages.target))
        if asked in broken
        else _checked(asked, answer)
        for asked, answer in answers.items()
    }
    finished = {asked: _finished(asked, checked[asked], answer) for asked, answer in answers.items()}
    if not any(answer.estimate for answer in answers.values()):
        return finished
    return {
        asked: answer._replace(
            estimate=_estimate(answer, answers[asked].estimate), why_not_green=answers[asked].why_not_green
        )
        for asked, answer in finished.items()
    }


def _finished(asked: AskedText, checked: CheckedAnswer, answer: AnsweredText) -> CheckedAnswer:
    """What was checked, with its brackets and quotation marks put right, unless a person has made it; or the text as it is."""
    if answer.is_from_memory:
        return checked._replace(is_from_memory=True, unsure=answer.unsure)
    keeps_all = _keeps_specifications(asked.text, checked.text)
    finished = _with_pairs(asked, checked) if keeps_all else _copied(asked)
    if answer.lost_by_memory:
        return finished._replace(doubts=(f"{NOT_FROM_MEMORY} {answer.lost_by_memory}", *finished.doubts))
    return finished


def _estimate(checked: CheckedAnswer, model_estimate: Estimate | None) -> Estimate | None:
    """The estimate of what the model has answered; an answer with doubts is not green, and one without tokens is not good."""
    if not checked.doubts:
        return model_estimate
    return Estimate(0.0 if model_estimate is None else model_estimate.probability, is_green=False)


def _keeps_specifications(text: str, translation: str) -> bool:
    """Whether what may be specifications of printf that touch words, as in %sdog, stands in a translation as often."""
    source = Counter(SPECIFICATION.findall(text))
    if not any(SPECIFICATION.match(text, each.start()) for each in TOUCHING_SPECIFICATION.finditer(text)):
        return True
    return source == Counter(SPECIFICATION.findall(translation))


def _with_pairs(asked: AskedText, answer: CheckedAnswer) -> CheckedAnswer:
    """The answer with those brackets and quotation marks around protected spans that the text has, and without others that have no partner."""
    if answer.text == asked.text or not (
        any(map(asked.text.__contains__, "()[]")) or QUOTE.search(answer.text + asked.text)
    ):
        return answer
    edited = _edited(answer, _lost_around_spans(asked.text, answer.text))
    mended = [] if _unbalanced(asked.text) else _balancing(edited.text, asked.text)
    for place in quotes_without_partner(asked.text, edited.text):
        mended += _taken_away(edited.text, place)
    edited = _edited(edited, mended)
    return edited._replace(doubts=(*answer.doubts, UNBALANCED)) if mended else edited


_PAIRS_AROUND_SPANS = {
    **BRACKETS,
    '"': '"',
    "\u201c": "\u201d",
    "\u201e": "\u201c",
    "\u00ab": "\u00bb",
}


class _Insertion(NamedTuple):
    """What is put before text[place]; or, if it is empty, the sign that is taken away there."""

    place: int
    sign: str


def _lost_around_spans(text: str, translation: str) -> list[_Insertion]:
    """The brackets and quotation marks around spans, such as those of (%s) and "%s", that a translation lacks.

    A translation may have other quotation marks there, as in «%s».
    """
    # By the text of the span: how many of its pairs are missing.
    enclosed: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for span in find_spans(text):
        around = text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1]
        if _PAIRS_AROUND_SPANS.get(around[0]) == around[1]:
            enclosed[text[span.start : span.end]][around] += 1
    for span_text, pairs in enclosed.items():
        for opening, closing in pairs:
            pairs[opening, closing] -= translation.count(f"{opening}{span_text}{closing}")
    found = []
    for span in find_spans(translation):
        before, behind = translation[max(0, span.start - 1) : span.start], translation[span.end : span.end + 1]
        pairs = enclosed.get(translation[span.start : span.end], Counter())
        for (opening, closing), number in pairs.items():
            is_quoted = opening not in BRACKETS and QUOTE.fullmatch(before) and QUOTE.fullmatch(behind)
            if number > 0 and not is_quoted and (before, behind) != (opening, closing):
                pairs[opening, closing] -= 1
                found += [_Insertion(span.start, opening)] if before != opening else []
                found += [_Insertion(span.end, closing)] if behind != closing else []
                break
    return found


def _unbalanced(text: str) -> list[int]:
    """The places of the brackets of a text without a partner; those inside protected spans do not count."""
    visible = masked(text, find_spans(text), "x")
    partners = partners_of_brackets(visible, 0, len(visible))
    signs = (*BRACKETS, *BRACKETS.values())
    return [at for at, sign in enumerate(visible) if sign in signs and at not in partners]


def _lost_without_partner(text: str, translation: str) -> list[int]:
    """The places of the brackets of a text without a partner, if its translation has fewer of one of them."""
    alone = [] if translation == text else _unbalanced(text)
    return alone if any(translation.count(text[at]) < text.count(text[at]) for at in alone) else []


def _taken_away(text: str, place: int) -> list[_Insertion]:
    """The change that takes away a sign, with the space beside it that would be left over."""
    before, behind = text[max(0, place - 1) : place], text[place + 1 : place + 2]
    found = [_Insertion(place, "")]
    if behind.isspace() and (not before or before.isspace()):
        found.append(_Insertion(place + 1, ""))
    elif before.isspace() and (not behind or behind in ".,;:!?\u2026"):
        found.append(_Insertion(place - 1, ""))
    return found


def _balancing(text: str, source: str) -> list[_Insertion]:
    """What gives each bracket without a partner one around the protected span beside it; any other is taken away.

    A space stands there between two words, unless they may be one, because the source has brackets inside a word, as in dog(s).
    """
    starts = {span.start: span.end for span in find_spans(text)}
    ends = {end: start for start, end in starts.items()}
    opening_of = {closing: opening for opening, closing in BRACKETS.items()}
    found = []
    taken = dict.fromkeys(_unbalanced(text))
    visible = masked(source, find_spans(source), "x")
    partners = partners_of_brackets(visible, 0, len(visible)) if taken else {}
    # string[] has nothing inside.
    has_parts_of_words = any(start + 1 < end and is_in_word(visible, start, end) for start, end in partners.items())
    for place in taken:
        sign = text[place]
        if sign in BRACKETS and place + 1 in starts:
            found.append(_Insertion(_edge_of_word(text, starts[place + 1], 1), BRACKETS[sign]))
        elif sign in opening_of and place in ends:
            found.append(_Insertion(_edge_of_word(text, ends[place], -1), opening_of[sign]))
        else:
            found.append(_Insertion(place, ""))
            is_between = text[place - 1 : place].isalnum() and text[place + 1 : place + 2].isalnum()
            is_sure = sign == "[" or not has_parts_of_words
            # rule][Section, based)can't
            if (place - 1 in taken and sign in BRACKETS) or (is_between and is_sure):
                found += [_Insertion(place + 1, " ")] if place + 1 not in taken else []
    return found


def _edge_of_word(text: str, place: int, step: int) -> int:
    """The place itself, or, in the middle of a word such as 256x256, the nearest one in a direction at its edge."""
    while 0 < place < len(text) and text[place - 1 : place + 1].isalnum():
        place += step
    return place


def _edited(answer: CheckedAnswer, changes: Sequence[_Insertion]) -> CheckedAnswer:
    """A translation with some changes, and its links and pieces at the places after them."""
    changes = sorted(changes)
    result, place = [], 0
    for change in changes:
        result += [answer.text[place : change.place], change.sign]
        place = change.place + (not change.sign)
    result.append(answer.text[place:])
    places = [change.place for change in changes]
    sums = [0, *accumulate(1 if change.sign else -1 for change in changes)]
    signs_at = Counter(change.place for change in changes if change.sign)

    def moved(extent: Extent) -> Extent:
        start, end = (at + sums[bisect_left(places, at)] for at in extent)
        # A bracket directly at an end of a word is no part of it.
        start += signs_at[extent[0]]
        return start, max(start, end)

    return answer._replace(
        text="".join(result),
        links=tuple(link._replace(target=moved(link.target)) for link in answer.links),
        pieces=tuple(piece._replace(target=moved(piece.target)) for piece in answer.pieces),
    )


def _copied(asked: AskedText) -> CheckedAnswer:
    """The text as it is, for a person."""
    return CheckedAnswer(asked.text, links_by_position(asked.text, asked.text), (COPIED,))


def _promise(text: str, terms: frozenset[str] = frozenset()) -> Promise:
    spans = [span for span in find_spans(text) if text[span.start : span.end] not in terms]
    return Promise.of(text, spans, may_repeat_numbers=True, allowed=terms)


def _checked(asked: AskedText, answer: AnsweredText) -> CheckedAnswer:
    doubts = _doubts(answer)
    is_same = answer.text == asked.text
    links = () if is_same or not asked.needs_links else answer.links
    links = links or links_by_position(asked.text, answer.text)
    return CheckedAnswer(answer.text, links, doubts, pieces=answer.pieces, is_of_terms=answer.is_of_terms)


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


def _in_pieces(
    asked: AskedText,
    pieces: Sequence[TextPiece],
    piece_answers: Mapping[AskedText, AnsweredText],
    language: str,
) -> CheckedAnswer:
    """The translation that the pieces give together, with links for the words of each piece.

    Args:
        asked: the text.
        pieces: of it.
        piece_answers: the translation of each piece that is translated, with the mark that ends the text behind it.
        language: of the translation.
    """
    closing = closing_mark(asked.text)
    text, place = "", 0
    links: list[LinkedWords] = []
    placed: list[PlacedPiece] = []
    doubts = [IN_PIECES]
    for piece in pieces:
        translated = piece.text
        model_links: Sequence[LinkedWords] = ()
        if piece.is_translated:
            answer = piece_answers[AskedText(piece.text + closing, asked.needs_links)]
            translated = without_closing_mark(answer.text) if closing else answer.text
            if place:
                translated = as_inner_part(translated, piece.text, target_language=language)
            doubts += _doubts(answer)
            if answer.text.casefold().startswith(translated.casefold()):
                model_links = _links_up_to(answer.links, len(piece.text), len(translated))
        piece_links = model_links or links_by_position(piece.text, translated)
        links += moved_links(piece_links, place, len(text))
        placed.append(
            PlacedPiece(
                source=(place, place + len(piece.text)),
                target=(len(text), len(text) + len(translated)),
                is_kept=not piece.is_translated,
            )
        )
        text += translated
        place += len(piece.text)
    if _promise(asked.text).is_kept_by(text):
        doubts_once = tuple(dict.fromkeys(doubts))
        return CheckedAnswer(text, tuple(links), doubts_once, pieces=tuple(placed))
    return _copied(asked)


def _links_up_to(links: Sequence[LinkedWords], end_of_source: int, end_of_target: int) -> list[LinkedWords]:
    """The links of a text and its translation, both of which end earlier."""
    return [
        LinkedWords((first, min(last, end_of_source)), (start, min(end, end_of_target)))
        for (first, last), (start, end) in links
        if first < end_of_source and start < end_of_target
    ]


def _pieces(text: str, brackets: Sequence[int] = ()) -> list[TextPiece]:
    """A text, cut before and after each protected span and the marks beside it, and at these brackets."""
    cuts = [(place, place + 1) for place in brackets]
    cuts += [(span.start, _end_of_unit(text, span)) for span in find_spans(text)]
    pieces, place = [], 0
    for start, end in sorted(cuts):
        pieces += _with_edges(text[place:start])
        pieces.append(TextPiece(text[start:end], is_translated=False))
        place = end
    return [piece for piece in [*pieces, *_with_edges(text[place:])] if piece.text]


_UNIT = re.compile(r"[A-Za-z]{1,2}(?!\w)")


def _end_of_unit(text: str, span: Span) -> int:
    """Where a span ends, with the letters that touch a number, as in 3D, 5V and 2nd: by themselves they are no text."""
    unit = _UNIT.match(text, span.end) if span.kind is SpanKind.NUMBER else None
    return unit.end() if unit else span.end


def _with_edges(text: str) -> list[TextPiece]:
    """A text, and the white space and marks at its ends by themselves."""
    start, end = 0, len(text)
    while start < end and not text[start].isalnum():
        start += 1
    while start < end and not text[end - 1].isalnum():
        end -= 1
    core = text[start:end]
    return [
        TextPiece(text[:start], is_translated=False),
        TextPiece(core, is_translated=has_letter(core)),
        TextPiece(text[end:], is_translated=False),
    ]
