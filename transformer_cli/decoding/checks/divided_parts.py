"""Sentences divided in two, between clauses or inside them, and parts that stay as they were given."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from transformer_cli.decoding.engine import Request, TokenIds
from transformer_cli.decoding.glossary import with_terms
from transformer_cli.decoding.translation import SourceText, TextPart
from transformer_cli.text.sentences import (
    Cut,
    Sentence,
    closing_mark,
    cut_in_two,
    ends_sentence,
    split_sentences_around,
    with_commas,
)
from transformer_cli.text.spans import find_spans

if TYPE_CHECKING:
    from transformer_cli.decoding.text_pipeline import TextPipeline


def with_divided_parts(
    pipeline: TextPipeline, source: SourceText, numbers: Collection[int], *, anywhere: bool = True
) -> SourceText:
    """The text in which each of these parts is divided in two; one that cannot be divided is kept as it is.

    Args:
        pipeline: of the model.
        source: the text.
        numbers: of the parts.
        anywhere: whether a part is divided inside a clause if it has only one.
    """
    for number in sorted(numbers, reverse=True):
        given = source.parts[number].given
        cut = _cut_between_sentences(pipeline, given) or cut_in_two(
            given, 0.5, pipeline.languages.source, anywhere=anywhere
        )
        source = divided_at(pipeline, source, number, cut) if cut else keeping(source, {number})
    return source


def keeping(source: SourceText, numbers: Collection[int]) -> SourceText:
    """The text in which these parts stay as they were given."""
    parts = enumerate(source.parts)
    kept = tuple(part._replace(is_kept=part.is_kept or n in numbers) for n, part in parts)
    return source._replace(parts=kept)


def with_clauses(pipeline: TextPipeline, source: SourceText, number: int, most: int) -> SourceText:
    """The text in which a part, and each clause of it that has more tokens, is divided."""
    end = number + 1
    while number < end:
        part = source.parts[number]
        num_tokens = len(part.request.ids)
        cut = None
        if num_tokens > most:
            share = 1 / math.ceil(num_tokens / most)
            cut = cut_in_two(part.given, share, pipeline.languages.source)
        if cut is None:
            number += 1
        else:
            source = divided_at(pipeline, source, number, cut)
            end += 1
    return source


def divided_at(pipeline: TextPipeline, source: SourceText, number: int, cut: Cut) -> SourceText:
    """The text in which a part is divided in two at a cut."""
    whole = source.parts[number]
    first = whole._replace(given=cut.left, ends_inside=False, closing="")
    gap = pipeline.gap(cut.marks, cut.right)
    second = whole._replace(given=cut.right, starts_inside=False, gap=gap)
    if cut.marks.strip() or not ends_sentence(cut.left):  # else they are sentences of their own
        closing = whole.closing or closing_mark(whole.given)
        first = first._replace(ends_inside=True, closing=closing)
        second = second._replace(starts_inside=True)
    request = whole.request
    # Without sampling all seeds are 0.
    next_seed = request.seed and (request.seed + 1) % 2**63
    first = encoded_part(pipeline, first, prefix=request.prefix, seed=request.seed)
    second = encoded_part(pipeline, second, prefix=(), seed=next_seed)
    return source._replace(
        parts=(*source.parts[:number], first, second, *source.parts[number + 1 :]),
        read=read_with(source, number, f"{first.text}{cut.marks}{second.text}"),
    )


def read_with(source: SourceText, number: int, text: str) -> str:
    """The text of a text as it is read, with another text in the place of a part: alone, a word may get another known spelling."""
    start = end = 0
    for part in source.parts[: number + 1]:
        start = source.read.index(part.text, end)
        end = start + len(part.text)
    return source.read[:start] + text + source.read[end:]


def encoded_part(pipeline: TextPipeline, part: TextPart, *, prefix: TokenIds, seed: int) -> TextPart:
    """The part with the request for its text as it was given."""
    text, ellipses = part.given, part.ellipses
    if ellipses:
        text, ellipses = with_commas(text, pipeline.comma)
    text = text if pipeline.spellings is None else pipeline.spellings.respelled(text)
    ids = pipeline.source_ids(text + part.closing)[: pipeline.max_length]
    terms = pipeline.required_terms(part.given)
    request = with_terms(Request(ids, prefix, seed=seed), terms)
    return part._replace(request=request, text=text, terms=terms, ellipses=ellipses)


def _cut_between_sentences(pipeline: TextPipeline, text: str) -> Cut | None:
    """The text in two parts of about as many sentences; None for a single sentence."""
    sentences = sentences_read_at_once(pipeline, text)
    middle = len(sentences) // 2
    if middle == 0:
        return None
    left, right = ("".join(one.gap + one.text for one in half) for half in (sentences[:middle], sentences[middle:]))
    gap = sentences[middle].gap
    return Cut(left, gap, right.removeprefix(gap))


def sentences_read_at_once(pipeline: TextPipeline, text: str) -> list[Sentence]:
    """The sentences of a part; one, if the texts of the pipeline are divided into sentences already."""
    if pipeline.splits_sentences:
        return [Sentence(text, "")]
    return split_sentences_around(find_spans(text), text, pipeline.languages.source)
