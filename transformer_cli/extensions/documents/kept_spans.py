"""What a translation of a text of a document must keep: its protected spans, brackets and quotation marks; where it loses some, it is put right or made again."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from transformer_cli.decoding.brackets import TextPiece, lost_brackets
from transformer_cli.decoding.protected_spans import Promise
from transformer_cli.decoding.translation import Estimate, PlacedPiece
from transformer_cli.extensions.documents.segments import has_letter
from transformer_cli.extensions.documents.translator import (
    AnsweredText,
    AskedText,
    Extent,
    LinkedWords,
    TextTranslator,
    links_by_position,
    moved_links,
)
from transformer_cli.text.languages import primary_language
from transformer_cli.text.quotation_marks import QUOTE, quotes_without_partner
from transformer_cli.text.sentences import (
    BRACKETS,
    as_inner_part,
    closing_mark,
    partners_of_brackets,
    without_closing_mark,
)
from transformer_cli.text.spans import (
    SPECIFICATION,
    TOUCHING_SPECIFICATION,
    find_spans,
    masked,
)

COPIED = "a sentence was left as it is, because the model loses the protected parts of it"
UNBALANCED = "a bracket or quotation mark of the translation had no partner, and was put right"
IN_PIECES = "a sentence was translated in pieces around the parts that must stay, so read it again"
CUT = "a sentence was too long for the model, and was translated in parts"
DIVIDED = "a sentence was translated clause by clause, because it is long or its translation as a whole was doubtful: look whether words are missing"
UNTRANSLATED = "a sentence or a part of it was left as it is, because the model loses text of it or cannot read it"
DOUBTFUL = "a translation may be wrong: it "
"""Before one of `decoding.doubts`."""


class CheckedAnswer(NamedTuple):
    """A translation with all protected spans of its text, and why a person should look at it."""

    text: str
    links: tuple[LinkedWords, ...]
    doubts: tuple[str, ...]
    estimate: Estimate | None = None
    """As of `AnsweredText`."""
    pieces: tuple[PlacedPiece, ...] = ()
    """As of `AnsweredText`."""


def with_kept_spans(
    answers: Mapping[AskedText, AnsweredText], translator: TextTranslator
) -> dict[AskedText, CheckedAnswer]:
    """The answers, in which each protected span stands as often as in its text, and brackets around words do.

    Where an answer has lost one, the text between the spans, and that inside and outside of the brackets, is translated
    again, piece by piece. Where a piece invents a span, the text stays as it is.
    """
    broken = {}
    for asked, answer in answers.items():
        has_spans = _promise(asked.text, answer.spans_of_terms).is_kept_by(answer.text)
        brackets = lost_brackets(asked.text, answer.text)
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
    of_pieces = dict(zip(asked_pieces, found, strict=True))
    checked = {
        asked: _in_pieces(
            asked, broken[asked], of_pieces, primary_language(translator.languages.target)
        )
        if asked in broken
        else _checked(asked, answer)
        for asked, answer in answers.items()
    }
    finished = {
        asked: _with_pairs(asked, answer)
        if _keeps_specifications(asked.text, answer.text)
        else _copied(asked)
        for asked, answer in checked.items()
    }
    if not any(answer.estimate for answer in answers.values()):
        return finished
    return {
        asked: answer._replace(estimate=_estimate(answer, answers[asked].estimate))
        for asked, answer in finished.items()
    }


def _estimate(checked: CheckedAnswer, of_model: Estimate | None) -> Estimate | None:
    """The estimate of what the model has answered; an answer with doubts is not green, and one without tokens is not good."""
    if not checked.doubts:
        return of_model
    return Estimate(0.0 if of_model is None else of_model.probability, is_green=False)


def _keeps_specifications(text: str, translation: str) -> bool:
    """Whether what may be specifications of printf that touch words, as in %sdog, stands in a translation as often."""
    source = Counter(SPECIFICATION.findall(text))
    if not any(
        SPECIFICATION.match(text, each.start()) for each in TOUCHING_SPECIFICATION.finditer(text)
    ):
        return True
    return source == Counter(SPECIFICATION.findall(translation))


def _with_pairs(asked: AskedText, answer: CheckedAnswer) -> CheckedAnswer:
    """The answer with those brackets and quotation marks around protected spans that the text has, and without others that have no partner."""
    if answer.text == asked.text or not (
        any(map(asked.text.__contains__, "()[]")) or QUOTE.search(answer.text + asked.text)
    ):
        return answer
    edited = _edited(answer, _lost_around_spans(asked.text, answer.text))
    mended = [] if _unbalanced(asked.text) else _balancing(edited.text)
    mended += [_Insertion(place, "") for place in quotes_without_partner(asked.text, edited.text)]
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
        before, behind = translation[max(0, span.start - 1) : span.start], translation[span.end : span.end + 1]  # fmt: skip
        pairs = enclosed.get(translation[span.start : span.end], Counter())
        for (opening, closing), number in pairs.items():
            is_quoted = opening not in BRACKETS and QUOTE.fullmatch(before) and QUOTE.fullmatch(behind)  # fmt: skip
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


def _balancing(text: str) -> list[_Insertion]:
    """What gives each bracket without a partner one around the protected span beside it; any other is taken away."""
    starts = {span.start: span.end for span in find_spans(text)}
    ends = {end: start for start, end in starts.items()}
    opening_of = {closing: opening for opening, closing in BRACKETS.items()}
    found = []
    for place in _unbalanced(text):
        sign = text[place]
        if sign in BRACKETS and place + 1 in starts:
            found.append(_Insertion(starts[place + 1], BRACKETS[sign]))
        elif sign in opening_of and place in ends:
            found.append(_Insertion(ends[place], opening_of[sign]))
        else:
            found.append(_Insertion(place, ""))
    return found


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


def _promise(text: str, of_terms: frozenset[str] = frozenset()) -> Promise:
    spans = [span for span in find_spans(text) if text[span.start : span.end] not in of_terms]
    return Promise.of(text, spans, may_repeat_numbers=True, allowed=of_terms)


def _checked(asked: AskedText, answer: AnsweredText) -> CheckedAnswer:
    doubts = _doubts(answer)
    is_same = answer.text == asked.text
    links = () if is_same or not asked.needs_links else answer.links
    links = links or links_by_position(asked.text, answer.text)
    return CheckedAnswer(answer.text, links, doubts, pieces=answer.pieces)


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
    of_pieces: Mapping[AskedText, AnsweredText],
    language: str,
) -> CheckedAnswer:
    """The translation that the pieces give together, with links for the words of each piece.

    Args:
        asked: the text.
        pieces: of it.
        of_pieces: the translation of each piece that is translated, with the mark that ends the text behind it.
        language: of the translation.
    """
    closing = closing_mark(asked.text)
    text, place = "", 0
    links: list[LinkedWords] = []
    placed: list[PlacedPiece] = []
    doubts = [IN_PIECES]
    for piece in pieces:
        translated = piece.text
        of_model: Sequence[LinkedWords] = ()
        if piece.is_translated:
            answer = of_pieces[AskedText(piece.text + closing, asked.needs_links)]
            translated = without_closing_mark(answer.text) if closing else answer.text
            if place:
                translated = as_inner_part(translated, piece.text, target_language=language)
            doubts += _doubts(answer)
            if answer.text.casefold().startswith(translated.casefold()):
                of_model = _links_up_to(answer.links, len(piece.text), len(translated))
        of_piece = of_model or links_by_position(piece.text, translated)
        links += moved_links(of_piece, place, len(text))
        extents = (place, place + len(piece.text)), (len(text), len(text) + len(translated))
        placed.append(PlacedPiece(*extents, is_kept=not piece.is_translated))
        text += translated
        place += len(piece.text)
    if _promise(asked.text).is_kept_by(text):
        doubts_once = tuple(dict.fromkeys(doubts))
        return CheckedAnswer(text, tuple(links), doubts_once, pieces=tuple(placed))
    return _copied(asked)


def _links_up_to(
    links: Sequence[LinkedWords], end_of_source: int, end_of_target: int
) -> list[LinkedWords]:
    """The links of a text and its translation, both of which end earlier."""
    return [
        LinkedWords((first, min(last, end_of_source)), (start, min(end, end_of_target)))
        for (first, last), (start, end) in links
        if first < end_of_source and start < end_of_target
    ]


def _pieces(text: str, brackets: Sequence[int] = ()) -> list[TextPiece]:
    """A text, cut before and after each protected span and the marks beside it, and at these brackets."""
    cuts = [(place, place + 1) for place in brackets]
    cuts += [(span.start, span.end) for span in find_spans(text)]
    pieces, place = [], 0
    for start, end in sorted(cuts):
        pieces += _with_edges(text[place:start])
        pieces.append(TextPiece(text[start:end], is_translated=False))
        place = end
    return [piece for piece in [*pieces, *_with_edges(text[place:])] if piece.text]


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
