"""Repairs of sentences: doubtful translations are searched again in other ways (`decoding.repair`)."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformer_cli.config import DecodingConfig, Direction, SamplingConfig
from transformer_cli.decoding.checks.doubts import (
    COPIES,
    DATES,
    LACKS_JOINED,
    LACKS_LIMIT,
    LACKS_NAME,
    LACKS_TITLE,
    NEGATION,
    NUMBERS,
    OPPOSITE,
    OTHER_LANGUAGE,
    OTHER_SCRIPT,
    REPEATS,
    TOO_LONG,
    TWICE,
    UNFINISHED,
    UNREADABLE,
    UNSURE,
    VERBLESS,
    WORDLESS,
    doubts_about,
    is_unreadable,
    without_loops,
)
from transformer_cli.decoding.checks.lost_text import (
    FEWEST_WORDS,
    FEWEST_WORDS_OF_CLAUSE,
    Found,
    adds_a_clause,
    keeping,
    loses_text,
    new_parts,
    with_divided_parts,
)
from transformer_cli.decoding.checks.quality import Quality, pieces_per_word
from transformer_cli.decoding.engine import (
    ExplainingEngine,
    Hypothesis,
    Request,
    TokenIds,
    score_of_given,
    search_confidence,
)
from transformer_cli.decoding.translation import (
    SourceText,
    TextPart,
)
from transformer_cli.text.languages import has_spaces

if TYPE_CHECKING:
    from transformer_cli.decoding.text_pipeline import TextPipeline


Search = Callable[[Sequence[Request], DecodingConfig], list[list[Hypothesis]]]
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
    DATES: 2.0,
    LACKS_NAME: 1.0,
    LACKS_TITLE: 2.0,
    TWICE: 0.5,
    NEGATION: 0.7,
    OPPOSITE: 1.5,
    LACKS_LIMIT: 1.5,
    LACKS_JOINED: 1.0,
    VERBLESS: 0.15,  # else another wrong verb hides the fault
}
"""What each doubt about a hypothesis takes from its score, which is its log-probability over its length penalty, in nats.

The first eight outweigh any difference between two hypotheses of a beam. No list has all words that negate, so a hypothesis with
fewer doubts must be nearly as probable there."""
_COST_OF_CUT = 6.0  # as of a loop: such a text is no repair of one
_GAIN_OF_ONE_WORD = 1.5  # of a translation without a word that stood twice
_WIDE_BEAM = 8
_BLOCKED_NGRAM = 3
_LOOPS = frozenset((UNFINISHED, REPEATS, TOO_LONG))
_SAMPLING = SamplingConfig(temperature=0.7, top_p=0.9)
_NUM_SAMPLES = 8
_MARKED_WORD = re.compile(r"[^\W\d_]{2,}[.!?]")
_TOKENS_OF_MARKED_WORD = 3  # with [EOS]


@dataclass(frozen=True, slots=True)
class Repair:
    """Finds the doubtful translations of some lines, and better ones for them.

    1. A part in a script that the model cannot read stays as it is, and so does a run of letters that is too long to be a word.
    2. Each other doubtful part is translated again with a wider beam. If its translation repeats itself, is too long or does not
       end, no three tokens may stand twice, and the first translation without its repeated words is a candidate, too. If strong
       doubts are left, samples follow. The hypothesis with the best score less the `COSTS` of its doubts is kept; one with less
       than half the words of its source has a cost, too.
    3. A part with strong doubts is divided in two, if its halves have fewer doubts. So is a part of which the model is unsure,
       but only between clauses.
    4. A part of unknown words whose translation is a guess stays as it is. With `decoding.keep_text`, one without words does, too, and
       one that loses text is divided.
    """

    pipeline: TextPipeline
    """Gives texts for token ids, and divides parts."""
    languages: Direction
    """Of the sources and the translations."""
    quality: Quality | None
    """The calibration of this direction; None if there is none."""
    options: DecodingConfig
    """Of the search that found the translations."""
    search: Search
    """Translates requests with other options."""
    explainer: ExplainingEngine | None = None
    """Scores a translation whose repeated words are cut; None: none is cut."""

    def apply(self, sources: list[SourceText], hypotheses: dict[Request, list[Hypothesis]]) -> None:
        """Repair what can be repaired, and note in each text which doubts are left.

        Args:
            sources: the texts; those with doubts are replaced.
            hypotheses: of all their parts; better ones replace those with doubts.
        """
        doubtful: dict[int, list[int]] = {}  # the place of a text -> the numbers of its parts
        for place, source in enumerate(sources):
            for number, part in enumerate(source.parts):
                if self._doubts(part, hypotheses[part.request]):
                    doubtful.setdefault(place, []).append(number)
        if not doubtful:
            return
        language = self.languages.source
        for place, numbers in doubtful.items():
            parts = sources[place].parts
            unreadable = {n for n in numbers if is_unreadable(parts[n].given, language)}
            sources[place] = keeping(sources[place], unreadable)
        before = {place: self._total(sources[place], hypotheses) for place in doubtful}
        repaired = {
            part.request: part
            for place, numbers in doubtful.items()
            for part in map(sources[place].parts.__getitem__, numbers)
            if not part.is_kept
        }
        self._search_again(repaired, hypotheses)
        divided = {place: self._divided_if_doubtful(sources[place], hypotheses) for place in doubtful}
        of_halves = self._hypotheses_of_halves(divided.values(), hypotheses)
        for place in doubtful:
            source = self._in_halves(sources[place], divided[place], hypotheses, of_halves)
            source = self._without_guesses(source, hypotheses)
            if self.pipeline.keeps_text:
                source = self._without_losses(source, hypotheses)
            is_repaired = self._total(source, hypotheses) < before[place]
            part_doubts = (self._doubts(part, hypotheses[part.request]) for part in source.parts)
            left = tuple(dict.fromkeys(doubt for doubts in part_doubts for doubt in doubts))
            sources[place] = source._replace(doubts=left, is_repaired=is_repaired)

    def _search_again(self, parts: Mapping[Request, TextPart], hypotheses: dict[Request, list[Hypothesis]]) -> None:
        """Put the best hypotheses of each part, as many as `num_best`, in the places of those of the search."""
        part_doubts = {request: self._doubts(part, hypotheses[request]) for request, part in parts.items()}
        wide = self.options.model_copy(
            update={"beam_size": max(_WIDE_BEAM, self.options.beam_size), "num_best": _WIDE_BEAM}
        )
        without_loops = wide.model_copy(update={"no_repeat_ngram_size": _BLOCKED_NGRAM})
        loops = [parts[each] for each, doubts in part_doubts.items() if not _LOOPS.isdisjoint(doubts)]
        others = [
            parts[each] for each, doubts in part_doubts.items() if _LOOPS.isdisjoint(doubts) and set(doubts) != {UNSURE}
        ]
        self._take_better(loops, without_loops, hypotheses)
        self._take_better(others, wide, hypotheses)
        samples = self.options.model_copy(
            update={"num_best": _NUM_SAMPLES, "sampling": _SAMPLING, "coverage_penalty": 0.0}
        )
        # Samples keep no terms of a glossary.
        left = [
            part
            for part in (*loops, *others)
            if not part.request.terms and _is_strong(self._doubts(part, hypotheses[part.request]))
        ]
        self._take_better(left, samples, hypotheses)

    def _take_better(
        self, parts: Sequence[TextPart], options: DecodingConfig, hypotheses: dict[Request, list[Hypothesis]]
    ) -> None:
        if not parts:
            return
        unk_id = self.pipeline.target_tokenizer.unk_id
        found = self.search([part.request for part in parts], options)
        part_candidates = [[*hypotheses[part.request][:1], *each] for part, each in zip(parts, found, strict=True)]
        cuts = self._without_loops(parts, part_candidates)
        for part, candidates, cut in zip(parts, part_candidates, cuts, strict=True):
            search_hypotheses = hypotheses[part.request]
            if candidates:
                candidates[1:1] = cut
                # A repair does not have more unknown words than what it repairs; samples may.
                most = candidates[0].ids.count(unk_id)
                candidates = [each for each in candidates if each.ids.count(unk_id) <= most]

                def value(each: Hypothesis, part: TextPart = part) -> float:
                    return self._value(part, each)

                # Without one doubled word, the translation changes least.
                write = self.pipeline.target_tokenizer.decode
                num_words = [len(write(each.ids).split()) for each in (*candidates[:1], *cut)]
                gain = _GAIN_OF_ONE_WORD if num_words[0] - num_words[-1] == 1 else 0.0
                # Of equals, the first one: what the ordinary search has found.
                best = max(candidates, key=lambda each: value(each) + (gain if each in cut else 0.0))
                if self.options.num_best > 1:
                    others = {each.ids: each for each in (*search_hypotheses, *candidates)}
                    del others[best.ids]
                    candidates = sorted(others.values(), key=value, reverse=True)
                hypotheses[part.request] = [best, *candidates][: self.options.num_best]

    def _value(self, part: TextPart, hypothesis: Hypothesis) -> float:
        # The score says already how sure the model is.
        doubts = [each for each in self._doubts(part, [hypothesis]) if each != UNSURE]
        written = self.pipeline.target_tokenizer.decode(hypothesis.ids)
        is_cut_off = _is_cut_off(part.text, written, self.languages)
        return hypothesis.score - _cost(doubts) - (_COST_OF_CUT if is_cut_off else 0.0)

    def _without_loops(
        self, parts: Sequence[TextPart], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """For each part, its best hypothesis with its repeated words once, scored anew; nothing if it repeats none, or has few others."""
        cut = {number: ids for number, part in enumerate(parts) if (ids := self._cut_ids(part, found[number][:1]))}
        if self.explainer is None or not cut:
            return [[] for _ in parts]
        requests = [Request(parts[number].request.ids) for number in cut]
        explanations = self.explainer.explain(requests, [*cut.values()], batch_tokens=self.options.batch_tokens)
        scores = dict(zip(cut, (score_of_given(each, self.options) for each in explanations), strict=True))
        return [[Hypothesis(cut[number], scores[number])] if number in cut else [] for number in range(len(parts))]

    def _cut_ids(self, part: TextPart, found: Sequence[Hypothesis]) -> TokenIds:
        """The tokens of a hypothesis with its repeated words once; none if they are not wanted."""
        if part.request.terms or not found:
            return ()  # a term may have to stand twice
        text = self.pipeline.target_tokenizer.decode(found[0].ids)
        cut = without_loops(part.text, text)
        num_cut = len(text.split()) - len(cut.split())
        if num_cut == 0 or (num_cut > 1 and len(cut.split()) < FEWEST_WORDS_OF_CLAUSE):
            return ()
        ids = self.pipeline.target_ids(cut)
        # More tokens than before are perhaps more than the model can read.
        is_wanted = REPEATS in self._doubts(part, found) and len(ids) <= max(len(found[0].ids), 1)
        return ids if is_wanted else ()

    def _divided_if_doubtful(self, source: SourceText, hypotheses: Found) -> dict[int, SourceText]:
        """The text with each part divided that has strong doubts, or of which the model is unsure, under the number of the part."""
        divided = {}
        for number, part in enumerate(source.parts):
            doubts = self._doubts(part, hypotheses[part.request])
            is_strong = _is_strong(doubts)
            if part.terms or not (is_strong or UNSURE in doubts):
                continue
            halves = with_divided_parts(self.pipeline, source, [number], anywhere=is_strong)
            if len(halves.parts) > len(source.parts):
                divided[number] = halves
        return divided

    def _hypotheses_of_halves(
        self, divided: Iterable[Mapping[int, SourceText]], hypotheses: Found
    ) -> dict[Request, list[Hypothesis]]:
        """What one search finds for all parts that were divided."""
        halves = (each for texts in divided for each in texts.values())
        requests = dict.fromkeys(request for each in halves for request in each.requests)
        new = [request for request in requests if request not in hypotheses]
        return dict(zip(new, self.search(new, self.options), strict=True)) if new else {}

    def _in_halves(
        self,
        source: SourceText,
        divided: dict[int, SourceText],
        hypotheses: dict[Request, list[Hypothesis]],
        of_halves: dict[Request, list[Hypothesis]],
    ) -> SourceText:
        """The text in which those parts are divided whose halves have fewer doubts."""
        whole, known = source, ChainMap(hypotheses, of_halves)
        for number in sorted(divided, reverse=True):
            halves = divided[number]
            if source is not whole:  # a part behind this one is divided now
                halves = self._divided_if_doubtful(source, hypotheses)[number]
            has_fewer = self._total(halves, known) < self._total(source, known)
            if has_fewer and not adds_a_clause(self.pipeline, new_parts(halves, source), known):
                source = halves
                hypotheses.update({each: known[each] for each in halves.requests})
        return source

    def _without_guesses(self, source: SourceText, hypotheses: Found) -> SourceText:
        """The text in which those parts stay as they are whose words the model does not know, and of which it is unsure.

        A word that is one token is known, although "Yes." with its mark and its end has more tokens for each word than most sentences.
        """
        quality = self.quality
        if quality is None:
            return source
        guesses = {
            number
            for number, part in enumerate(source.parts)
            if not part.terms  # which would not stand in the translation
            and not _is_one_known_word(part)
            and UNSURE in self._doubts(part, hypotheses[part.request])
            and pieces_per_word(part.text, part.request.ids) > quality.most_pieces
        }
        return keeping(source, guesses)

    def _without_losses(self, source: SourceText, hypotheses: dict[Request, list[Hypothesis]]) -> SourceText:
        """The text in which the parts that would lose text are divided until none does, or stay as they are."""
        parts = enumerate(source.parts)
        wordless = {number for number, part in parts if WORDLESS in self._doubts(part, hypotheses[part.request])}
        source = keeping(source, wordless)
        while lost := [
            number
            for number, part in enumerate(source.parts)
            if loses_text(self.pipeline, part, hypotheses[part.request], self.options)
        ]:
            source = with_divided_parts(self.pipeline, source, lost)
            new = [request for request in source.requests if request not in hypotheses]
            if new:
                hypotheses.update(zip(new, self.search(new, self.options), strict=True))
        return source

    def _doubts(self, part: TextPart, found: Sequence[Hypothesis]) -> tuple[str, ...]:
        """Nothing for a part that stays as it is, and for one whose beginning the caller has given."""
        if not found or part.is_kept or part.request.prefix:
            return ()
        ids, tokenizer = found[0].ids, self.pipeline.target_tokenizer
        is_limited = self.options.max_length or self.options.max_length_ratio
        is_finished = bool(is_limited) or ids[-1:] == (tokenizer.eos_id,)
        text = tokenizer.decode(ids)
        doubts = doubts_about(part.text, text, self.languages, is_finished=is_finished)
        quality = self.quality
        if quality is None or not text.strip():
            return doubts
        confidence = search_confidence(found[0], self.options)
        is_unsure = confidence is not None and confidence < quality.least_confidence
        return (*doubts, UNSURE) if is_unsure else doubts

    def _total(self, source: SourceText, hypotheses: Found) -> float:
        return sum(_cost(self._doubts(part, hypotheses[part.request])) for part in source.parts)


def _is_one_known_word(part: TextPart) -> bool:
    """Whether a part is a word of one token with a mark: "Yes." """
    return len(part.request.ids) == _TOKENS_OF_MARKED_WORD and _MARKED_WORD.fullmatch(part.text) is not None


def _cost(doubts: Iterable[str]) -> float:
    return sum(COSTS[doubt] for doubt in doubts)


def _is_cut_off(source: str, translation: str, languages: Direction) -> bool:
    """Whether a translation has fewer than half as many words as its source: a search that may not repeat tokens ends early."""
    if not all(map(has_spaces, languages)):
        return False
    num_read, num_written = (len(text.split()) for text in (source, translation))
    return num_read >= FEWEST_WORDS and 2 * num_written < num_read


def _is_strong(doubts: Iterable[str]) -> bool:
    return any(COSTS[doubt] >= COSTS[OTHER_SCRIPT] for doubt in doubts)
