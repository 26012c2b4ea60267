"""Sentences in parts: divided between clauses where they are long or their translations lose text, or left as they were given (`decoding.keep_text`); and how the translations of the parts are joined."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import Hypothesis, Request, TokenIds, search_confidence
from transformer_cli.decoding.glossary import with_terms
from transformer_cli.decoding.translation import (
    Alternative,
    Chunk,
    TextPart,
    without_line_breaks,
)
from transformer_cli.text.languages import has_spaces, primary_language
from transformer_cli.text.sentences import (
    FEWEST_TOKENS,
    INNER_END,
    LABEL,
    Cut,
    Sentence,
    as_inner_part,
    begins_clause,
    closing_mark,
    cut_after_sentence,
    cut_in_two,
    ends_sentence,
    num_inner_ellipses,
    split_sentences,
    split_sentences_around,
    with_commas,
    without_closing_mark,
)
from transformer_cli.text.spans import find_spans

if TYPE_CHECKING:
    from transformer_cli.decoding.text_pipeline import TextPipeline


_WIDE_MARKS = str.maketrans({",": "\uff0c", ";": "\uff1b", ":": "\uff1a"})
# Languages of the Arabic script, and their comma and semicolon.
_WITH_ARABIC_MARKS = frozenset(["ar", "fa", "ur", "ps", "ug", "ckb", "sd", "dv"])
_ARABIC_MARKS = str.maketrans({",": "\u060c", ";": "\u061b"})
_PLAIN_MARKS = str.maketrans(
    dict.fromkeys("\u060c\u1363\u1802\u07f8\u104a\u055d", ",") | {"\u061b": ";"}
)
_NARROW_MARKS = {"\uff0c": ", ", "\u3001": ", ", "\uff1b": "; ", "\uff1a": ": "}
# A sentence that is longer than those of the training is divided into parts of an ordinary length, if it can be.
_ORDINARY_SHARE = 0.5
# A translation loses text if it is shorter than this share of nearly all translations of the training.
_FAR_TOO_SHORT = 0.7
FEWEST_WORD_TOKENS = 4
# So is one with fewer than this share of the words of its source, if the model is not sure of it. Of a sure one nothing is said: the
# seven words "I'd like to help her prove it." are two in Italian.
_FEW_WORDS = 0.4
_FAIRLY_SURE = 0.6
# A pause with no words behind it: what stood there is lost, as in "The dog,, sees the cat." An ellipsis may follow a comma.
_EMPTY_CLAUSE = re.compile(
    r"\A\s*[,;\u060c\u061b\uff0c\u3001\uff1b]"
    r"|[,;\u060c\u061b\uff0c\u3001\uff1b]\s*(?!\.\.)(?=[,;:.!?\u060c\u061b\u061f\uff0c\u3001\uff1b\u3002\uff01\uff1f]|\Z)"
)
# What may stand between two clauses of a sentence; the last one between two sentences, before a label: "It is late.x:We go."
CLAUSE_MARK = re.compile(
    rf"[,;:\u060c\u061b\u1363\u3001\uff0c\uff1a\uff1b\u2013\u2014]|\s-\s|[.!?]{LABEL}"
)
FEWEST_WORDS_OF_CLAUSE = 3
_RATHER_SHORT = 1.4
# Where the second part begins as a clause does. With this for every sentence with a comma, most of them would be translated twice.
_RATHER_SHORT_FOR_CLAUSES = 2.2
_CLEARLY_MORE = 1.1
_SURE = 0.8


def in_clauses(pipeline: TextPipeline, chunk: Chunk) -> Chunk:
    """The chunk with each sentence divided at its clauses that is longer than those of the training.

    A sentence inside brackets, or before an ellipsis, is divided from the one behind it, too. A sentence without a
    place for a division stays whole. Where it is not known how long the sentences of the training were, none is too long.
    """
    for number in reversed(range(len(chunk.parts))):
        place = number
        while INNER_END.search(given := chunk.parts[place].given) and (
            cut := cut_after_sentence(given)
        ):
            chunk = _divided(pipeline, chunk, place, cut)
            place += 1
    longest = pipeline.seen.longest
    if longest is None:
        return chunk
    long = [number for number, ids in enumerate(chunk.parts) if len(ids.request.ids) > longest]
    for number in reversed(long):
        most = max(1, math.ceil(longest * _ORDINARY_SHARE))
        chunk = _with_clauses(pipeline, chunk, number, most)
    return chunk


def _with_clauses(pipeline: TextPipeline, chunk: Chunk, number: int, most: int) -> Chunk:
    """The chunk in which a part, and each clause of it that has more tokens, is divided."""
    end = number + 1
    while number < end:
        part = chunk.parts[number]
        num_tokens = len(part.request.ids)
        cut = None
        if num_tokens > most:
            share = 1 / math.ceil(num_tokens / most)
            cut = cut_in_two(part.given, share, pipeline.languages.source)
        if cut is None:
            number += 1
        else:
            chunk = _divided(pipeline, chunk, number, cut)
            end += 1
    return chunk


def with_commas_for_ellipses(
    pipeline: TextPipeline, chunk: Chunk, hypotheses: Mapping[Request, Sequence[Hypothesis]]
) -> Chunk:
    """The chunk in which the model reads a comma for each ellipsis inside a sentence whose translation lacks it.

    A model that has seen an ellipsis only at the end of a text takes it for the end, and loses the words behind it. The
    sentence is not divided there, because its parts, such as "is big", are translated worse by themselves.
    """
    for number, part in enumerate(chunk.parts):
        num_ellipses = num_inner_ellipses(part.given)
        found = hypotheses[part.request][:1]
        if not num_ellipses or not found or part.is_kept:
            continue
        if num_inner_ellipses(pipeline.target_tokenizer.decode(found[0].ids)) == num_ellipses:
            continue
        _, ellipses = with_commas(part.given, _comma_of(pipeline))
        request = part.request
        read = _encoded(
            pipeline,
            part._replace(ellipses=ellipses),
            prefix=request.prefix,
            seed=request.seed,
        )
        if len(read.request.ids) < pipeline.max_length:
            chunk = replace(chunk, parts=(*chunk.parts[:number], read, *chunk.parts[number + 1 :]))
    return chunk


def _comma_of(pipeline: TextPipeline) -> str:
    """A comma as the source language writes it, with the white space behind it."""
    language = primary_language(pipeline.languages.source)
    if language in _WITH_ARABIC_MARKS:
        return ", ".translate(_ARABIC_MARKS)
    return {"ja": "\u3001", "zh": "\uff0c", "yue": "\uff0c"}.get(language, ", ")


def lost_parts(
    pipeline: TextPipeline,
    chunk: Chunk,
    hypotheses: Mapping[Request, Sequence[Hypothesis]],
    options: DecodingConfig,
) -> list[int]:
    """The numbers of the parts whose best hypotheses, found with some options, lose text, without those that are kept as they are."""
    return [
        number
        for number, part in enumerate(chunk.parts)
        if not part.is_kept and _loses_text(pipeline, part, hypotheses[part.request][:1], options)
    ]


def without_short_rivals(
    pipeline: TextPipeline,
    chunk: Chunk,
    hypotheses: Sequence[Sequence[Hypothesis]],
    options: DecodingConfig,
) -> list[list[Hypothesis]]:
    """The best hypothesis of each part, and those others that lose no text."""
    return [
        [
            *of_part[:1],
            *(each for each in of_part[1:] if not _loses_text(pipeline, part, [each], options)),
        ]
        for part, of_part in zip(chunk.parts, hypotheses, strict=True)
    ]


def _loses_text(
    pipeline: TextPipeline, part: TextPart, best: Sequence[Hypothesis], options: DecodingConfig
) -> bool:
    """Whether a translation is surely no translation of the whole text.

    That is a translation without a word of a text with words; one that is far shorter than those that the model was
    trained to write, or that has far fewer words while the model is not sure; one with a pause before no words; or one of fewer
    sentences than its text, which was not divided into them. A translation whose beginning is forced is what the caller wants.

    Args:
        pipeline: of the model.
        part: what was translated.
        best: its best hypothesis; nothing if the search found none.
        options: of the search.
    """
    if part.request.prefix:
        return False
    if not pipeline.splits_sentences and _lacks_a_sentence(pipeline, part, best):
        return True
    ids = best[0].ids if best else ()
    num_target_words = pipeline.target_tokenizer.count_written(ids)
    if num_target_words == 0:
        return any(map(str.isalnum, part.text))
    if _has_few_words(pipeline, part, best[0], options) or _empties_a_clause(
        pipeline, part, best[0]
    ):
        return True
    ratio, num_tokens = pipeline.seen.smallest_ratio, len(part.request.ids)
    if ratio is None or num_tokens < FEWEST_TOKENS:
        return False
    ratio *= _FAR_TOO_SHORT
    if len(ids) >= ratio * num_tokens:
        return False
    # Rows of marks, such as !!!!!!, may become one mark.
    num_source_words = pipeline.source_tokenizer.count_written(part.request.ids)
    return num_source_words >= max(FEWEST_WORD_TOKENS, num_target_words / ratio)


def _has_few_words(
    pipeline: TextPipeline, part: TextPart, best: Hypothesis, options: DecodingConfig
) -> bool:
    """Whether a translation of which the model is not sure has far fewer words than its source.

    Tokens alone do not show it: the first word may have as many of them as the others together. Of terms of a glossary, and of
    languages without spaces, nothing is said.
    """
    confidence = search_confidence(best, options)
    if confidence is None or confidence >= _FAIRLY_SURE:
        return False
    if part.terms or not all(map(has_spaces, pipeline.languages)):
        return False
    written = pipeline.target_tokenizer.decode(best.ids)
    num_read, num_written = (
        sum(any(map(str.isalnum, word)) for word in text.split()) for text in (part.given, written)
    )
    return num_read >= FEWEST_WORD_TOKENS and num_written < _FEW_WORDS * num_read


def _empties_a_clause(pipeline: TextPipeline, part: TextPart, best: Hypothesis) -> bool:
    """Whether a translation has more pauses before no words than its source."""
    if not CLAUSE_MARK.search(part.given):
        return False
    written = pipeline.target_tokenizer.decode(best.ids)
    found = _EMPTY_CLAUSE.findall(written)
    return bool(found) and len(found) > len(_EMPTY_CLAUSE.findall(part.given))


def _lacks_a_sentence(pipeline: TextPipeline, part: TextPart, best: Sequence[Hypothesis]) -> bool:
    """Whether a text of several sentences, read at once (`decoding.split_sentences: false`), has a translation of fewer."""
    num_sentences = len(_sentences_read_at_once(pipeline, part.given))
    if num_sentences == 1:
        return False
    written = pipeline.target_tokenizer.decode(best[0].ids) if best else ""
    return len(split_sentences(written, pipeline.languages.target)) < num_sentences


def _sentences_read_at_once(pipeline: TextPipeline, text: str) -> list[Sentence]:
    """The sentences of a part; one, if the texts of the pipeline are divided into sentences already."""
    if pipeline.splits_sentences:
        return [Sentence(text, "")]
    return split_sentences_around(find_spans(text), text, pipeline.languages.source)


def _cut_between_sentences(pipeline: TextPipeline, text: str) -> Cut | None:
    """The text in two parts of about as many sentences; None for a single sentence."""
    sentences = _sentences_read_at_once(pipeline, text)
    middle = len(sentences) // 2
    if middle == 0:
        return None
    left, right = (
        "".join(one.gap + one.text for one in half)
        for half in (sentences[:middle], sentences[middle:])
    )
    gap = sentences[middle].gap
    return Cut(left, gap, right.removeprefix(gap))


def divided(
    pipeline: TextPipeline, chunk: Chunk, numbers: Collection[int], *, anywhere: bool = True
) -> Chunk:
    """The chunk in which each of these parts is divided in two; one that cannot be divided is kept as it is.

    Args:
        pipeline: of the model.
        chunk: the text.
        numbers: of the parts.
        anywhere: whether a part is divided inside a clause if it has only one.
    """
    for number in sorted(numbers, reverse=True):
        given = chunk.parts[number].given
        cut = _cut_between_sentences(pipeline, given) or cut_in_two(
            given, 0.5, pipeline.languages.source, anywhere=anywhere
        )
        chunk = _divided(pipeline, chunk, number, cut) if cut else keeping(chunk, {number})
    return chunk


def divided_if_doubtful(
    pipeline: TextPipeline,
    chunk: Chunk,
    hypotheses: Mapping[Request, Sequence[Hypothesis]],
    options: DecodingConfig,
) -> Chunk:
    """The chunk in which those parts are divided at a comma or another mark whose translations may lack a clause.

    That is a translation with fewer such marks than its source, or a short one, though not too short for a translation of the
    training. `longer_of` tells whether a clause was missing.

    Args:
        pipeline: of the model.
        chunk: the text.
        hypotheses: of its parts.
        options: of the search that found them.
    """
    for number in reversed(range(len(chunk.parts))):
        part = chunk.parts[number]
        if CLAUSE_MARK.search(part.given) is None:
            continue
        best = hypotheses[part.request][:1]
        is_free = not (part.is_kept or part.terms or part.request.prefix)
        if is_free and best and _may_lack_a_clause(pipeline, part, best[0], options):
            chunk = divided(pipeline, chunk, [number], anywhere=False)
    return chunk


def _may_lack_a_clause(
    pipeline: TextPipeline, part: TextPart, best: Hypothesis, options: DecodingConfig
) -> bool:
    text = pipeline.target_tokenizer.decode(best.ids)
    marks = [*CLAUSE_MARK.finditer(text)]
    lacks_marks = len(marks) < len(CLAUSE_MARK.findall(part.given))
    ratio, num_tokens = pipeline.seen.smallest_ratio or 0.0, len(part.request.ids)
    if not lacks_marks and len(best.ids) >= ratio * _RATHER_SHORT_FOR_CLAUSES * num_tokens:
        return False  # long enough, whatever follows the mark
    cut = cut_in_two(part.given, 0.5, pipeline.languages.source)
    if cut is None or cut.marks.isspace():
        return False
    if min(len(cut.left.split()), len(cut.right.split())) < FEWEST_WORDS_OF_CLAUSE:
        return False
    if lacks_marks:
        return True
    is_clause = begins_clause(cut.right, pipeline.languages.source)
    ratio *= _RATHER_SHORT_FOR_CLAUSES if is_clause else _RATHER_SHORT
    if len(best.ids) >= ratio * num_tokens:
        return False
    confidence = search_confidence(best, options)
    place = len(CLAUSE_MARK.findall(cut.left))
    if confidence is None or confidence < _SURE or place == len(marks):
        return True
    # A model that is sure, and writes each clause, may need few words: "they used to go back" is one in Italian.
    mark = marks[place]
    clauses = (cut.left, text[: mark.start()]), (cut.right, text[mark.end() :])
    return any(len(there.split()) < len(here.split()) / 2 for here, there in clauses)


def longer_of(
    pipeline: TextPipeline,
    whole: Chunk,
    halves: Chunk,
    hypotheses: Mapping[Request, Sequence[Hypothesis]],
) -> Chunk:
    """The halves if their translations have clearly more words than that of the whole, which lacks a clause then."""
    num_whole, num_halves = (
        sum(
            pipeline.target_tokenizer.count_written(each.ids)
            for part in chunk.parts
            for each in hypotheses[part.request][:1]
        )
        for chunk in (whole, halves)
    )
    return replace(halves, is_repaired=True) if num_halves >= _CLEARLY_MORE * num_whole else whole


def keeping(chunk: Chunk, numbers: Collection[int]) -> Chunk:
    """The chunk in which these parts stay as they were given."""
    parts = enumerate(chunk.parts)
    kept = tuple(part._replace(is_kept=part.is_kept or n in numbers) for n, part in parts)
    return replace(chunk, parts=kept)


def _divided(pipeline: TextPipeline, chunk: Chunk, number: int, cut: Cut) -> Chunk:
    """The chunk in which a part is divided in two."""
    whole = chunk.parts[number]
    first = whole._replace(given=cut.left, ends_inside=False, closing="")
    gap = _gap_with_marks(pipeline, cut.marks)
    second = whole._replace(given=cut.right, starts_inside=False, gap=gap)
    if cut.marks.strip() or not ends_sentence(cut.left):  # else they are sentences of their own
        closing = whole.closing or closing_mark(whole.given)
        first = first._replace(ends_inside=True, closing=closing)
        second = second._replace(starts_inside=True)
    request = whole.request
    # Without sampling all seeds are 0.
    next_seed = request.seed and (request.seed + 1) % 2**63
    first = _encoded(pipeline, first, prefix=request.prefix, seed=request.seed)
    second = _encoded(pipeline, second, prefix=(), seed=next_seed)
    return replace(chunk, parts=(*chunk.parts[:number], first, second, *chunk.parts[number + 1 :]))


def _encoded(pipeline: TextPipeline, part: TextPart, *, prefix: TokenIds, seed: int) -> TextPart:
    """The part with the request for its text as it was given."""
    text, ellipses = part.given, part.ellipses
    if ellipses:
        text, ellipses = with_commas(text, _comma_of(pipeline))
    text = text if pipeline.spellings is None else pipeline.spellings.respelled(text)
    ids = pipeline.source_ids(text + part.closing)[: pipeline.max_length]
    terms = pipeline.required_terms(part.given)
    request = with_terms(Request(ids, prefix, seed=seed), terms)
    return part._replace(request=request, text=text, terms=terms, ellipses=ellipses)


def _gap_with_marks(pipeline: TextPipeline, marks: str) -> str:
    """What stands between the translations of two clauses: the same marks, as the target language writes them."""
    mark, target_language = marks.strip(), pipeline.languages.target
    if not mark:
        return pipeline.gap(marks)
    language = primary_language(target_language)
    if mark in _NARROW_MARKS:
        if not has_spaces(target_language):
            return mark
        marks = _NARROW_MARKS[mark]
    marks = marks.translate(_PLAIN_MARKS)
    if language in _WITH_ARABIC_MARKS:
        return without_line_breaks(marks.translate(_ARABIC_MARKS))
    is_pause = marks.strip() in (",", ";", ":")
    if is_pause and language in ("zh", "ja", "yue"):
        return marks.strip().translate(_WIDE_MARKS)
    return without_line_breaks(marks)


def in_form_of_clauses(
    pipeline: TextPipeline, chunk: Chunk, texts: Sequence[list[Alternative]]
) -> list[list[Alternative]]:
    """The texts of the parts: those of clauses in the form of clauses, and those that are kept as they were given."""
    if all(part.is_kept for part in chunk.parts):
        whole = without_line_breaks(chunk.text.rstrip("\r\n"))
        return [[Alternative(whole, 0.0)], *([Alternative("", 0.0)] for _ in texts[1:])]
    num_best = max(map(len, texts))
    language = primary_language(pipeline.languages.target)
    finished = []
    for part, of_part in zip(chunk.parts, texts, strict=True):
        if part.is_kept:
            finished.append([Alternative(part.given, 0.0)] * num_best)
        elif part.starts_inside or part.ends_inside:
            finished.append([_in_form_of(part, each, language) for each in of_part])
        else:
            finished.append(of_part)
    return finished


def _in_form_of(clause: TextPart, translated: Alternative, target_language: str) -> Alternative:
    """The translation of a clause with no capital letter and no full stop but those of its sentence."""
    text = translated.text
    if clause.ends_inside:
        text = without_closing_mark(text)
    if clause.starts_inside:
        text = as_inner_part(text, clause.given, target_language=target_language)
    elif clause.given[:1].isupper():
        text = text[:1].upper() + text[1:]
    return translated._replace(text=text)
