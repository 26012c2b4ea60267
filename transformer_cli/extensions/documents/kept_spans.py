"""Checks that translations keep the protected spans of their texts, and translates around those that are lost."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from transformer_cli.decoding.protected_spans import Promise
from transformer_cli.extensions.documents.segments import has_letter
from transformer_cli.extensions.documents.text_translator import (
    AnsweredText,
    AskedText,
    Extent,
    LinkedWords,
    TextTranslator,
    links_by_position,
)
from transformer_cli.text.spans import find_spans

COPIED = "a sentence was left as it is, because the model loses the protected parts of it"
IN_PIECES = "a sentence was translated in pieces around the parts that must stay, so read it again"
CUT = "a sentence was too long for the model, and was translated in parts"
DIVIDED = "a sentence was translated clause by clause, so that no text of it is lost"
UNTRANSLATED = "a sentence was left as it is, because the model loses text of it"


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
    return {
        asked: _in_pieces(asked, broken[asked], of_pieces)
        if asked in broken
        else _checked(asked, answer)
        for asked, answer in answers.items()
    }


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
    return tuple(reason for reason, is_given in reasons.items() if is_given)


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
    return CheckedAnswer(asked.text, links_by_position(asked.text, asked.text), (COPIED,))


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
