"""Sentences whose translations would lose text: divided into clauses, before the search or after it, or left as they were given (`decoding.keep_text`)."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from transformer_cli.decoding.engine import Hypothesis, Request, TokenIds
from transformer_cli.decoding.glossary import with_terms
from transformer_cli.decoding.translation import LINE_BREAKS, Alternative, Clause, PreparedLine
from transformer_cli.text import Tokenizer
from transformer_cli.text.languages import has_spaces, primary_language
from transformer_cli.text.sentences import (
    FEWEST_TOKENS,
    Cut,
    as_inner_part,
    closing_mark,
    cut_after_sentence,
    cut_in_two,
    ends_sentence,
    without_closing_mark,
)

if TYPE_CHECKING:
    from transformer_cli.decoding.text_pipeline import TextPipeline

Item = TypeVar("Item")

_WIDE_MARKS = str.maketrans({",": "\uff0c", ";": "\uff1b", ":": "\uff1a"})
_NARROW_MARKS = {"\uff0c": ", ", "\u3001": ", ", "\uff1b": "; ", "\uff1a": ": "}
# A sentence that is longer than those of the training is divided into parts of an ordinary length, if it can be.
_ORDINARY_SHARE = 0.5
# A translation loses text if it is shorter than this share of nearly all translations of the training.
_FAR_TOO_SHORT = 0.7
_FEWEST_WORD_TOKENS = 4


def in_clauses(pipeline: "TextPipeline", prepared: PreparedLine) -> PreparedLine:
    """The line with each sentence divided at its clauses that is longer than those of the training.

    A sentence inside brackets, or before an ellipsis, is divided from the one behind it, too. A sentence without a
    place for a division stays whole. Where it is not known how long the sentences of the training were, none is too long.
    """
    for number in reversed(range(len(prepared.parts))):
        place = number
        while (cut := cut_after_sentence(prepared.clauses[place].text)) is not None:
            prepared = _divided(pipeline, prepared, place, cut)
            place += 1
    longest = pipeline.seen.longest
    if longest is None:
        return prepared
    long = [number for number, part in enumerate(prepared.parts) if len(part.ids) > longest]
    for number in reversed(long):
        most = max(1, math.ceil(longest * _ORDINARY_SHARE))
        prepared = _with_clauses(pipeline, prepared, number, most)
    return prepared


def _with_clauses(
    pipeline: "TextPipeline", prepared: PreparedLine, number: int, most: int
) -> PreparedLine:
    """The line in which a part, and each clause of it that has more tokens, is divided."""
    end = number + 1
    while number < end:
        num_tokens = len(prepared.parts[number].ids)
        cut = None
        if num_tokens > most:
            share = 1 / math.ceil(num_tokens / most)
            cut = cut_in_two(prepared.clauses[number].text, share, pipeline.languages.source)
        if cut is None:
            number += 1
        else:
            prepared = _divided(pipeline, prepared, number, cut)
            end += 1
    return prepared


def lost_parts(
    pipeline: "TextPipeline",
    prepared: PreparedLine,
    hypotheses: Mapping[Request, Sequence[Hypothesis]],
) -> list[int]:
    """The numbers of the parts whose best hypotheses lose text, without those that are kept as they are."""
    return [
        number
        for number, part in enumerate(prepared.parts)
        if number not in prepared.kept
        and _loses_text(pipeline, prepared.texts[number], part, hypotheses[part][:1])
    ]


def without_short_rivals(
    pipeline: "TextPipeline", prepared: PreparedLine, hypotheses: Sequence[Sequence[Hypothesis]]
) -> list[list[Hypothesis]]:
    """The best hypothesis of each part, and those others that lose no text."""
    of_parts = zip(prepared.texts, prepared.parts, hypotheses, strict=True)
    return [
        [
            *of_part[:1],
            *(each for each in of_part[1:] if not _loses_text(pipeline, text, request, [each])),
        ]
        for text, request, of_part in of_parts
    ]


def _loses_text(
    pipeline: "TextPipeline", text: str, request: Request, best: Sequence[Hypothesis]
) -> bool:
    """Whether a translation is surely no translation of the whole text.

    That is a translation without a word of a text with words; or one that is far shorter than those that the model was
    trained to write. A translation whose beginning is forced is what the caller wants.

    Args:
        pipeline: of the model.
        text: of the part.
        request: of the part.
        best: its best hypothesis; nothing if the search found none.
    """
    if request.prefix:
        return False
    ids = best[0].ids if best else ()
    num_target_words = _num_words(ids, pipeline.target_tokenizer)
    if num_target_words == 0:
        return any(map(str.isalnum, text))
    ratio, num_tokens = pipeline.seen.smallest_ratio, len(request.ids)
    if ratio is None or num_tokens < FEWEST_TOKENS:
        return False
    ratio *= _FAR_TOO_SHORT
    if len(ids) >= ratio * num_tokens:
        return False
    # Rows of marks, such as !!!!!!, may become one mark.
    num_source_words = _num_words(request.ids, pipeline.source_tokenizer)
    return num_source_words >= max(_FEWEST_WORD_TOKENS, num_target_words / ratio)


def _num_words(ids: TokenIds, tokenizer: Tokenizer) -> int:
    """How many tokens have a letter or digit; [UNK] stands for a word."""
    special = tokenizer.eos_id, tokenizer.pad_id, tokenizer.sos_id
    entries = tokenizer.entries
    return sum(index not in special and any(map(str.isalnum, entries[index])) for index in ids)


def divided(
    pipeline: "TextPipeline",
    prepared: PreparedLine,
    numbers: Collection[int],
    *,
    anywhere: bool = True,
) -> PreparedLine:
    """The line in which each of these parts is divided in two; one that cannot be divided is kept as it is.

    Args:
        pipeline: of the model.
        prepared: the line.
        numbers: of the parts.
        anywhere: whether a part is divided inside a clause if it has only one.
    """
    for number in sorted(numbers, reverse=True):
        text, language = prepared.clauses[number].text, pipeline.languages.source
        cut = cut_in_two(text, 0.5, language, anywhere=anywhere)
        if cut is None:
            prepared = replace(prepared, kept=prepared.kept | {number})
        else:
            prepared = _divided(pipeline, prepared, number, cut)
    return prepared


def _divided(
    pipeline: "TextPipeline", prepared: PreparedLine, number: int, cut: Cut
) -> PreparedLine:
    """The line in which a part is divided in two."""
    clause, request = prepared.clauses[number], prepared.parts[number]
    clauses = _clauses(clause, cut)
    texts = [each.text for each in clauses]
    if pipeline.spellings is not None:
        texts = list(map(pipeline.spellings.respelled, texts))
    terms = [pipeline.required_terms(each.text) for each in clauses]
    ids = [
        pipeline.source_ids(text + each.closing)[: pipeline.max_length]
        for text, each in zip(texts, clauses, strict=True)
    ]
    # Without sampling all seeds are 0.
    seeds = [request.seed and (request.seed + place) % 2**63 for place in (0, 1)]
    requests = [
        Request(ids[0], request.prefix, seed=seeds[0]),
        Request(ids[1], seed=seeds[1]),
    ]
    if pipeline.glossary is not None:
        requests = list(map(with_terms, requests, terms))
    gaps = prepared.gaps[number], _gap_with_marks(pipeline, cut.marks)
    return replace(
        prepared,
        parts=_with_two(prepared.parts, number, requests),
        gaps=_with_two(prepared.gaps, number, gaps),
        texts=_with_two(prepared.texts, number, texts),
        terms=_with_two(prepared.terms, number, terms),
        clauses=_with_two(prepared.clauses, number, clauses),
        kept=frozenset(each + (each > number) for each in prepared.kept),
    )


def _gap_with_marks(pipeline: "TextPipeline", marks: str) -> str:
    """What stands between the translations of two clauses: the same marks, as the target language writes them."""
    mark, target_language = marks.strip(), pipeline.languages.target
    if not mark:
        return pipeline.gap(marks)
    if mark in _NARROW_MARKS:
        return _NARROW_MARKS[mark] if has_spaces(target_language) else mark
    is_pause = mark in (",", ";", ":")
    if is_pause and primary_language(target_language) in ("zh", "ja", "yue"):
        return mark.translate(_WIDE_MARKS)
    return marks.translate(LINE_BREAKS)


def _with_two(items: tuple[Item, ...], place: int, two: Sequence[Item]) -> tuple[Item, ...]:
    """The items, with two in the place of one."""
    return (*items[:place], *two, *items[place + 1 :])


def _clauses(whole: Clause, cut: Cut) -> tuple[Clause, Clause]:
    """The two parts of a clause; those of a cut at the end of a sentence are sentences of their own."""
    if not cut.marks.strip() and ends_sentence(cut.left):
        return Clause(cut.left, whole.starts_inside), whole._replace(
            text=cut.right, starts_inside=False
        )
    closing = whole.closing or closing_mark(whole.text)
    return (
        Clause(cut.left, whole.starts_inside, ends_inside=True, closing=closing),
        whole._replace(text=cut.right, starts_inside=True),
    )


def in_form_of_clauses(
    pipeline: "TextPipeline", prepared: PreparedLine, texts: Sequence[list[Alternative]]
) -> list[list[Alternative]]:
    """The texts of the parts: those of clauses in the form of clauses, and those that are kept as they were given."""
    if len(prepared.kept) == len(prepared.parts):
        line = prepared.line.rstrip("\r\n").translate(LINE_BREAKS)
        return [[Alternative(line, 0.0)], *([Alternative("", 0.0)] for _ in texts[1:])]
    num_best = max(map(len, texts))
    language = primary_language(pipeline.languages.target)
    finished = []
    for number, (clause, of_part) in enumerate(zip(prepared.clauses, texts, strict=True)):
        if number in prepared.kept:
            finished.append([Alternative(clause.text, 0.0)] * num_best)
        elif clause.starts_inside or clause.ends_inside:
            finished.append([_in_form_of(clause, each, language) for each in of_part])
        else:
            finished.append(of_part)
    return finished


def _in_form_of(clause: Clause, translated: Alternative, target_language: str) -> Alternative:
    """The translation of a clause with no capital letter and no full stop but those of its sentence."""
    text = translated.text
    if clause.ends_inside:
        text = without_closing_mark(text)
    if clause.starts_inside:
        text = as_inner_part(text, clause.text, target_language=target_language)
    elif clause.text[:1].isupper():
        text = text[:1].upper() + text[1:]
    return translated._replace(text=text)
