"""Translations that lose text or are doubtful: their sentences are divided into clauses, before the search or after it, searched again in other ways, or left as they were given (`decoding.keep_text`, `decoding.repair`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from transformer_cli.config import DecodingConfig, SamplingConfig
from transformer_cli.decoding.doubts import (
    COPIES,
    NEGATION,
    NUMBERS,
    OTHER_LANGUAGE,
    OTHER_SCRIPT,
    REPEATS,
    TOO_LONG,
    UNFINISHED,
    UNREADABLE,
    UNSURE,
    doubts_about,
    is_unreadable,
)
from transformer_cli.decoding.engine import Hypothesis, Request, TokenIds, search_confidence
from transformer_cli.decoding.glossary import with_terms
from transformer_cli.decoding.protected_spans import Promise
from transformer_cli.decoding.quality import pieces_per_word
from transformer_cli.decoding.translation import (
    LINE_BREAKS,
    Alternative,
    Clause,
    PreparedLine,
    Translation,
)
from transformer_cli.text import Tokenizer
from transformer_cli.text.languages import has_spaces, primary_language
from transformer_cli.text.sentences import (
    FEWEST_TOKENS,
    Cut,
    SpanKind,
    as_inner_part,
    closing_mark,
    cut_after_sentence,
    cut_in_two,
    ends_sentence,
    find_spans,
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


def in_clauses(pipeline: TextPipeline, prepared: PreparedLine) -> PreparedLine:
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
    pipeline: TextPipeline, prepared: PreparedLine, number: int, most: int
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
    pipeline: TextPipeline,
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
    pipeline: TextPipeline, prepared: PreparedLine, hypotheses: Sequence[Sequence[Hypothesis]]
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
    pipeline: TextPipeline, text: str, request: Request, best: Sequence[Hypothesis]
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
    pipeline: TextPipeline,
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


def _divided(pipeline: TextPipeline, prepared: PreparedLine, number: int, cut: Cut) -> PreparedLine:
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


def _gap_with_marks(pipeline: TextPipeline, marks: str) -> str:
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
    pipeline: TextPipeline, prepared: PreparedLine, texts: Sequence[list[Alternative]]
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


# Repairs of doubtful translations (`decoding.repair`): a text whose translation repeats itself, copies the source or has other numbers is searched again in other ways.


Search = Callable[[Sequence[Request], DecodingConfig], list[list[Hypothesis]]]
Found = Mapping[Request, Sequence[Hypothesis]]

COSTS = {
    UNFINISHED: 6.0,
    REPEATS: 6.0,
    TOO_LONG: 6.0,
    COPIES: 3.0,
    OTHER_LANGUAGE: 3.0,
    OTHER_SCRIPT: 3.0,
    UNREADABLE: 3.0,
    UNSURE: 1.0,
    NUMBERS: 2.0,
    NEGATION: 0.7,
}
"""What each doubt takes from the score of a hypothesis: its log-probability over its length penalty, in nats.

The costs of the first seven outweigh any difference between two hypotheses of a beam. A negation may be expressed by words
that no list has, so a hypothesis with fewer doubts must be nearly as probable there.
"""
_WIDE_BEAM = 8
_BLOCKED_NGRAM = 3
_LOOPS = frozenset((UNFINISHED, REPEATS, TOO_LONG))
_SAMPLING = SamplingConfig(temperature=0.7, top_p=0.9)
_NUM_SAMPLES = 8


class Repair:
    """Finds the doubtful translations of some lines, and better ones for them.

    1. A part in a script that the model cannot read stays as it is.
    2. Each other doubtful part is translated again with a wider beam. If its translation repeats itself, is too long or does not
       end, no three tokens may stand twice. If strong doubts are left, samples follow. The hypothesis with the best score less
       the `COSTS` of its doubts is kept.
    3. A part with strong doubts is divided in two, if its halves have fewer doubts. So is a part of which the model is unsure,
       but only between clauses.
    4. A part of unknown words whose translation is a guess stays as it is.
    """

    def __init__(self, pipeline: TextPipeline, options: DecodingConfig, search: Search) -> None:
        """Repairs with one pipeline.

        Args:
            pipeline: gives texts for token ids, and divides parts.
            options: of the search that found the translations; it returns one hypothesis per part.
            search: translates requests with other options.
        """
        self._pipeline, self._options, self._search = pipeline, options, search

    def apply(self, texts: list[PreparedLine], hypotheses: dict[Request, list[Hypothesis]]) -> None:
        """Repair what can be repaired, and note in each line which doubts are left.

        Args:
            texts: the lines; those with doubts are replaced.
            hypotheses: of all their parts; better ones replace those with doubts.
        """
        doubtful = {
            place: numbers
            for place, line in enumerate(texts)
            if (numbers := self._doubtful_parts(line, hypotheses))
        }
        if not doubtful:
            return
        for place, numbers in doubtful.items():
            texts[place] = self._with_unreadable(texts[place], numbers)
        before = {place: self._total(texts[place], hypotheses) for place in doubtful}
        sources = {
            texts[place].parts[number]: texts[place].texts[number]
            for place, numbers in doubtful.items()
            for number in numbers
            if number not in texts[place].kept
        }
        self._search_again(sources, hypotheses)
        for place in doubtful:
            line = self._without_guesses(self._in_halves(texts[place], hypotheses), hypotheses)
            is_repaired = self._total(line, hypotheses) < before[place]
            left = self._doubts_of_line(line, hypotheses)
            texts[place] = replace(line, doubts=left, is_repaired=is_repaired)

    def _with_unreadable(self, line: PreparedLine, numbers: Iterable[int]) -> PreparedLine:
        """The line in which those of its parts stay as they are that the model cannot read."""
        language = self._pipeline.languages.source
        unreadable = {n for n in numbers if is_unreadable(line.clauses[n].text, language)}
        return replace(line, kept=line.kept | unreadable) if unreadable else line

    def _search_again(
        self, sources: Mapping[Request, str], hypotheses: dict[Request, list[Hypothesis]]
    ) -> None:
        """Put the best hypothesis of each source in the place of its first one."""
        of_parts = {part: self._doubts(text, hypotheses[part]) for part, text in sources.items()}
        wide = self._options.model_copy(
            update={"beam_size": max(_WIDE_BEAM, self._options.beam_size), "num_best": _WIDE_BEAM}
        )
        without_loops = wide.model_copy(update={"no_repeat_ngram_size": _BLOCKED_NGRAM})
        loops = [part for part, doubts in of_parts.items() if not _LOOPS.isdisjoint(doubts)]
        others = [part for part, doubts in of_parts.items() if _LOOPS.isdisjoint(doubts) and set(doubts) != {UNSURE}]  # fmt: skip
        self._take_better(loops, without_loops, sources, hypotheses)
        self._take_better(others, wide, sources, hypotheses)
        samples = self._options.model_copy(
            update={"num_best": _NUM_SAMPLES, "sampling": _SAMPLING, "coverage_penalty": 0.0}
        )
        # Samples keep no terms of a glossary.
        left = [
            part
            for part in (*loops, *others)
            if not part.terms and _is_strong(self._doubts(sources[part], hypotheses[part]))
        ]
        self._take_better(left, samples, sources, hypotheses)

    def _take_better(
        self,
        parts: Sequence[Request],
        options: DecodingConfig,
        sources: Mapping[Request, str],
        hypotheses: dict[Request, list[Hypothesis]],
    ) -> None:
        if not parts:
            return
        for part, found in zip(parts, self._search(parts, options), strict=True):
            # Of equals, the first one: what the ordinary search has found.
            candidates = [*hypotheses[part][:1], *found]
            if candidates:
                values = [self._value(sources[part], each) for each in candidates]
                hypotheses[part] = [candidates[values.index(max(values))]]

    def _value(self, source: str, hypothesis: Hypothesis) -> float:
        if not self._pipeline.target_tokenizer.decode(hypothesis.ids).strip():
            return -math.inf  # nothing to doubt, but no translation either
        # The score says already how sure the model is.
        doubts = (each for each in self._doubts(source, [hypothesis]) if each != UNSURE)
        return hypothesis.score - _cost(doubts)

    def _in_halves(
        self, line: PreparedLine, hypotheses: dict[Request, list[Hypothesis]]
    ) -> PreparedLine:
        """The line in which each part with strong doubts, or of which the model is unsure, is divided, if its halves have fewer."""
        for number in reversed(self._doubtful_parts(line, hypotheses)):
            part = line.parts[number]
            doubts = self._doubts(line.texts[number], hypotheses[part])
            is_strong = _is_strong(doubts)
            if part.terms or not (is_strong or UNSURE in doubts):
                continue
            halves = divided(self._pipeline, line, [number], anywhere=is_strong)
            if len(halves.parts) == len(line.parts):  # nothing to divide
                continue
            new = [each for each in halves.parts if each not in hypotheses]
            found = dict(zip(new, self._search(new, self._options), strict=True)) if new else {}
            if self._total(halves, hypotheses | found) < self._total(line, hypotheses):
                line = halves
                hypotheses.update(found)
        return line

    def _without_guesses(self, line: PreparedLine, hypotheses: Found) -> PreparedLine:
        """The line in which those parts stay as they are whose words the model does not know, and of which it is unsure."""
        quality = self._pipeline.quality
        if quality is None:
            return line
        guesses = {
            number
            for number in self._doubtful_parts(line, hypotheses)
            if UNSURE in self._doubts(line.texts[number], hypotheses[line.parts[number]])
            and pieces_per_word(line.texts[number], line.parts[number].ids) > quality.most_pieces
        }
        return replace(line, kept=line.kept | guesses) if guesses else line

    def _doubtful_parts(self, line: PreparedLine, hypotheses: Found) -> list[int]:
        return [
            number
            for number, part in enumerate(line.parts)
            if self._doubts_of_part(line, number, hypotheses[part])
        ]

    def _doubts_of_part(
        self, line: PreparedLine, number: int, found: Sequence[Hypothesis]
    ) -> tuple[str, ...]:
        """Nothing for a part that stays as it is, and for one whose beginning the caller has given."""
        part = line.parts[number]
        if number in line.kept or part.prefix:
            return ()
        return self._doubts(line.texts[number], found)

    def _doubts(self, source: str, found: Sequence[Hypothesis]) -> tuple[str, ...]:
        if not found:
            return ()
        ids, pipeline = found[0].ids, self._pipeline
        is_limited = self._options.max_length or self._options.max_length_ratio
        is_finished = bool(is_limited) or ids[-1:] == (pipeline.target_tokenizer.eos_id,)
        text = pipeline.target_tokenizer.decode(ids)
        doubts = doubts_about(source, text, pipeline.languages, is_finished=is_finished)
        quality = pipeline.quality
        if quality is None or not text.strip():
            return doubts
        confidence = search_confidence(found[0], self._options)
        is_unsure = confidence is not None and confidence < quality.least_confidence
        return (*doubts, UNSURE) if is_unsure else doubts

    def _doubts_of_line(self, line: PreparedLine, hypotheses: Found) -> tuple[str, ...]:
        of_parts = (
            self._doubts_of_part(line, number, hypotheses[part])
            for number, part in enumerate(line.parts)
        )
        return tuple(dict.fromkeys(doubt for doubts in of_parts for doubt in doubts))

    def _total(self, line: PreparedLine, hypotheses: Found) -> float:
        return sum(
            _cost(self._doubts_of_part(line, number, hypotheses[part]))
            for number, part in enumerate(line.parts)
        )


def _cost(doubts: Iterable[str]) -> float:
    return sum(COSTS[doubt] for doubt in doubts)


def _is_strong(doubts: Iterable[str]) -> bool:
    return any(COSTS[doubt] >= COSTS[OTHER_SCRIPT] for doubt in doubts)


def loses_spans(line: str, translation: Translation) -> bool:
    """Whether a translation has other numbers than its line, or does not hold its URLs, placeholders and tags."""
    if NUMBERS in translation.doubts:
        return True
    # Numbers have a check of their own, because some of them may become words.
    spans = [span for span in find_spans(line) if span.kind is not SpanKind.NUMBER]
    return bool(spans) and not Promise.of(line, spans).is_kept_by(translation.text)


def confidences_of(
    line: PreparedLine, found: Sequence[Sequence[Hypothesis]], options: DecodingConfig
) -> tuple[float, ...]:
    """`Translation.confidences` of a line, from the hypotheses of its parts."""
    of_parts = (
        search_confidence(of_part[0], options)
        for number, of_part in enumerate(found)
        if of_part and number not in line.kept
    )
    return tuple(confidence for confidence in of_parts if confidence is not None)
