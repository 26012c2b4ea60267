"""Doubtful translations: their sentences are searched again in other ways, divided, or left as they were given (`decoding.repair`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from transformer_cli.config import DecodingConfig, Direction, SamplingConfig
from transformer_cli.decoding.clauses import (
    FEWEST_WORD_TOKENS,
    FEWEST_WORDS_OF_CLAUSE,
    divided,
    keeping,
    lost_parts,
)
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
    WORDLESS,
    doubts_about,
    is_unreadable,
    without_loops,
)
from transformer_cli.decoding.engine import Hypothesis, Request, per_token, search_confidence
from transformer_cli.decoding.quality import pieces_per_word
from transformer_cli.decoding.translation import (
    Chunk,
    TextPart,
)
from transformer_cli.text.languages import has_spaces

if TYPE_CHECKING:
    from transformer_cli.decoding.text_pipeline import TextPipeline


Search = Callable[[Sequence[Request], DecodingConfig], list[list[Hypothesis]]]
Found = Mapping[Request, Sequence[Hypothesis]]

COSTS = {
    WORDLESS: 100.0,
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
"""What each doubt about a hypothesis takes from its score, which is its log-probability over its length penalty, in nats.

The costs of the first eight outweigh any difference between two hypotheses of a beam. A negation may be expressed by words
that no list has, so a hypothesis with fewer doubts must be nearly as probable there.
"""
_COST_OF_CUT = 6.0  # as of a loop: such a text is no repair of one
_WIDE_BEAM = 8
_BLOCKED_NGRAM = 3
_LOOPS = frozenset((UNFINISHED, REPEATS, TOO_LONG))
_SAMPLING = SamplingConfig(temperature=0.7, top_p=0.9)
_NUM_SAMPLES = 8


@dataclass(frozen=True, slots=True)
class Repair:
    """Finds the doubtful translations of some lines, and better ones for them.

    1. A part in a script that the model cannot read stays as it is.
    2. Each other doubtful part is translated again with a wider beam. If its translation repeats itself, is too long or does not
       end, no three tokens may stand twice, and the first translation without its repeated words is a candidate, too. If strong
       doubts are left, samples follow. The hypothesis with the best score less the `COSTS` of its doubts is kept; one with less
       than half the words of its source has a cost, too.
    3. A part with strong doubts is divided in two, if its halves have fewer doubts. So is a part of which the model is unsure,
       but only between clauses.
    4. A part of unknown words whose translation is a guess stays as it is. With `decoding.keep_text` so does one without any word,
       and one that loses text is divided.
    """

    pipeline: TextPipeline
    """Gives texts for token ids, and divides parts."""
    options: DecodingConfig
    """Of the search that found the translations; it returns one hypothesis per part."""
    search: Search
    """Translates requests with other options."""

    def apply(self, chunks: list[Chunk], hypotheses: dict[Request, list[Hypothesis]]) -> None:
        """Repair what can be repaired, and note in each chunk which doubts are left.

        Args:
            chunks: the texts; those with doubts are replaced.
            hypotheses: of all their parts; better ones replace those with doubts.
        """
        doubtful = {
            place: numbers
            for place, chunk in enumerate(chunks)
            if (numbers := self._doubtful_parts(chunk, hypotheses))
        }
        if not doubtful:
            return
        language = self.pipeline.languages.source
        for place, numbers in doubtful.items():
            parts = chunks[place].parts
            unreadable = {n for n in numbers if is_unreadable(parts[n].given, language)}
            chunks[place] = keeping(chunks[place], unreadable)
        before = {place: self._total(chunks[place], hypotheses) for place in doubtful}
        sources = {
            part.request: part.text
            for place, numbers in doubtful.items()
            for part in map(chunks[place].parts.__getitem__, numbers)
            if not part.is_kept
        }
        self._search_again(sources, hypotheses)
        for place in doubtful:
            chunk = self._without_guesses(self._in_halves(chunks[place], hypotheses), hypotheses)
            if self.pipeline.keeps_text:
                chunk = self._without_losses(chunk, hypotheses)
            is_repaired = self._total(chunk, hypotheses) < before[place]
            of_parts = (self._doubts_of_part(part, hypotheses) for part in chunk.parts)
            left = tuple(dict.fromkeys(doubt for doubts in of_parts for doubt in doubts))
            chunks[place] = replace(chunk, doubts=left, is_repaired=is_repaired)

    def _search_again(
        self, sources: Mapping[Request, str], hypotheses: dict[Request, list[Hypothesis]]
    ) -> None:
        """Put the best hypothesis of each source in the place of its first one."""
        of_parts = {part: self._doubts(text, hypotheses[part]) for part, text in sources.items()}
        wide = self.options.model_copy(
            update={"beam_size": max(_WIDE_BEAM, self.options.beam_size), "num_best": _WIDE_BEAM}
        )
        without_loops = wide.model_copy(update={"no_repeat_ngram_size": _BLOCKED_NGRAM})
        loops = [part for part, doubts in of_parts.items() if not _LOOPS.isdisjoint(doubts)]
        others = [part for part, doubts in of_parts.items() if _LOOPS.isdisjoint(doubts) and set(doubts) != {UNSURE}]  # fmt: skip
        self._take_better(loops, without_loops, sources, hypotheses)
        self._take_better(others, wide, sources, hypotheses)
        samples = self.options.model_copy(
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
        unk_id = self.pipeline.target_tokenizer.unk_id
        for part, found in zip(parts, self.search(parts, options), strict=True):
            # Of equals, the first one: what the ordinary search has found.
            candidates = [*hypotheses[part][:1], *found]
            if candidates:
                if not part.terms:  # a term may have to stand twice
                    candidates[1:1] = self._cut_loops(sources[part], candidates[0])
                # A repair does not have more unknown words than what it repairs; samples may.
                most = candidates[0].ids.count(unk_id)
                candidates = [each for each in candidates if each.ids.count(unk_id) <= most]
                values = [self._value(sources[part], each) for each in candidates]
                hypotheses[part] = [candidates[values.index(max(values))]]

    def _value(self, source: str, hypothesis: Hypothesis) -> float:
        # The score says already how sure the model is.
        doubts = [each for each in self._doubts(source, [hypothesis]) if each != UNSURE]
        written = self.pipeline.target_tokenizer.decode(hypothesis.ids)
        is_cut_off = _is_cut_off(source, written, self.pipeline.languages)
        return hypothesis.score - _cost(doubts) - (_COST_OF_CUT if is_cut_off else 0.0)

    def _cut_loops(self, source: str, found: Hypothesis) -> list[Hypothesis]:
        """The hypothesis with its repeated words once, as probable for each of its tokens; nothing if it repeats no words, or has few others."""
        tokenizer = self.pipeline.target_tokenizer
        text = tokenizer.decode(found.ids)
        cut = without_loops(source, text)
        if len(cut.split()) < FEWEST_WORDS_OF_CLAUSE or cut == " ".join(text.split()):
            return []
        if REPEATS not in self._doubts(source, [found]):
            return []
        ids = (*tokenizer.encode(cut), tokenizer.eos_id)
        return [
            Hypothesis(
                ids,
                found.score * per_token(found.ids, self.options) / per_token(ids, self.options),
            )
        ]

    def _in_halves(self, chunk: Chunk, hypotheses: dict[Request, list[Hypothesis]]) -> Chunk:
        """The chunk in which each part with strong doubts, or of which the model is unsure, is divided, if its halves have fewer."""
        for number in reversed(self._doubtful_parts(chunk, hypotheses)):
            part = chunk.parts[number]
            doubts = self._doubts(part.text, hypotheses[part.request])
            is_strong = _is_strong(doubts)
            if part.terms or not (is_strong or UNSURE in doubts):
                continue
            halves = divided(self.pipeline, chunk, [number], anywhere=is_strong)
            if len(halves.parts) == len(chunk.parts):  # nothing to divide
                continue
            new = [each for each in halves.requests if each not in hypotheses]
            found = dict(zip(new, self.search(new, self.options), strict=True)) if new else {}
            if self._total(halves, hypotheses | found) < self._total(chunk, hypotheses):
                chunk = halves
                hypotheses.update(found)
        return chunk

    def _without_guesses(self, chunk: Chunk, hypotheses: Found) -> Chunk:
        """The chunk in which those parts stay as they are whose words the model does not know, and of which it is unsure."""
        quality = self.pipeline.quality
        if quality is None:
            return chunk
        guesses = {
            number
            for number in self._doubtful_parts(chunk, hypotheses)
            for part in [chunk.parts[number]]
            if not part.terms  # which would not stand in the translation
            and UNSURE in self._doubts(part.text, hypotheses[part.request])
            and pieces_per_word(part.text, part.request.ids) > quality.most_pieces
        }
        return keeping(chunk, guesses)

    def _without_losses(self, chunk: Chunk, hypotheses: dict[Request, list[Hypothesis]]) -> Chunk:
        """The chunk in which the parts that would lose text are divided until none does, or stay as they are."""
        parts = enumerate(chunk.parts)
        wordless = {
            number for number, part in parts if WORDLESS in self._doubts_of_part(part, hypotheses)
        }
        chunk = keeping(chunk, wordless)
        while lost := lost_parts(self.pipeline, chunk, hypotheses, self.options):
            chunk = divided(self.pipeline, chunk, lost)
            new = [request for request in chunk.requests if request not in hypotheses]
            if new:
                hypotheses.update(zip(new, self.search(new, self.options), strict=True))
        return chunk

    def _doubtful_parts(self, chunk: Chunk, hypotheses: Found) -> list[int]:
        parts = enumerate(chunk.parts)
        return [number for number, part in parts if self._doubts_of_part(part, hypotheses)]

    def _doubts_of_part(self, part: TextPart, hypotheses: Found) -> tuple[str, ...]:
        """Nothing for a part that stays as it is, and for one whose beginning the caller has given."""
        if part.is_kept or part.request.prefix:
            return ()
        return self._doubts(part.text, hypotheses[part.request])

    def _doubts(self, source: str, found: Sequence[Hypothesis]) -> tuple[str, ...]:
        if not found:
            return ()
        ids, pipeline = found[0].ids, self.pipeline
        is_limited = self.options.max_length or self.options.max_length_ratio
        is_finished = bool(is_limited) or ids[-1:] == (pipeline.target_tokenizer.eos_id,)
        text = pipeline.target_tokenizer.decode(ids)
        doubts = doubts_about(source, text, pipeline.languages, is_finished=is_finished)
        quality = pipeline.quality
        if quality is None or not text.strip():
            return doubts
        confidence = search_confidence(found[0], self.options)
        is_unsure = confidence is not None and confidence < quality.least_confidence
        return (*doubts, UNSURE) if is_unsure else doubts

    def _total(self, chunk: Chunk, hypotheses: Found) -> float:
        return sum(_cost(self._doubts_of_part(part, hypotheses)) for part in chunk.parts)


def _cost(doubts: Iterable[str]) -> float:
    return sum(COSTS[doubt] for doubt in doubts)


def _is_cut_off(source: str, translation: str, languages: Direction) -> bool:
    """Whether a translation has fewer than half as many words as its source: a search that may not repeat tokens ends early."""
    if not all(map(has_spaces, languages)):
        return False
    num_read, num_written = (len(text.split()) for text in (source, translation))
    return num_read >= FEWEST_WORD_TOKENS and 2 * num_written < num_read


def _is_strong(doubts: Iterable[str]) -> bool:
    return any(COSTS[doubt] >= COSTS[OTHER_SCRIPT] for doubt in doubts)
