"""Word alignment of given pairs: which word of the target translates which word of the source, by attention."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from transformer_cli.decoding.details.details_of_lines import kept_words, spans_in_line
from transformer_cli.decoding.details.word_links import (
    Link,
    linked_words,
    places_of,
    word_spans,
    words_at,
)
from transformer_cli.decoding.engine import ExplainingEngine, Explanation, Request, TokenIds
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translator import WINDOW_LINES
from transformer_cli.text.normalization import is_blank
from transformer_cli.text.sentences import split_sentences

logger = logging.getLogger(__name__)


class AlignedPair(NamedTuple):
    """A line of the source, a line of the target, and what the model says about them."""

    source: str
    target: str
    links: tuple[Link, ...]
    """The words that belong together, counted through the whole lines; none if one of them is blank."""
    log_probability: float | None
    """log P(target | source) in nats, the sum over all tokens of the target; None if one of the lines is blank."""


class _Part(NamedTuple):
    """A sentence of both lines, or both lines as a whole."""

    source: str
    source_place: int
    target: str
    target_place: int


class _Explained(NamedTuple):
    """A part with its tokens, as far as the model reads them."""

    part: _Part
    source_ids: TokenIds
    target_ids: TokenIds
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class PairAligner:
    """Aligns the words of given pairs by teacher forcing."""

    pipeline: TextPipeline
    """Of one direction, from the source to the target."""
    engine: ExplainingEngine
    batch_tokens: int
    """The largest number of tokens in a batch, padding included."""

    def align(self, pairs: Iterable[tuple[str, str]]) -> Iterator[AlignedPair]:
        """One alignment per pair, in order; reads `WINDOW_LINES` pairs ahead.

        If both lines have the same number of sentences, each sentence is aligned with the one in the same place; else
        the lines are aligned as they are. Tokens beyond the largest length of the model have no links.
        """
        remaining = iter(pairs)
        while window := list(islice(remaining, WINDOW_LINES)):
            parts = [self._parts(*self._normalized(*pair)) for pair in window]
            explained = iter(self._explained([part for of_pair in parts for part in of_pair]))
            for pair, of_pair in zip(window, parts, strict=True):
                yield self._aligned(*pair, list(islice(explained, len(of_pair))))

    def _normalized(self, source: str, target: str) -> tuple[str, str]:
        return self.pipeline.normalize_source(source), self.pipeline.normalize_target(target)

    def _parts(self, source: str, target: str) -> list[_Part]:
        """What is aligned by itself in two normalised lines."""
        if is_blank(source) or is_blank(target):
            return []
        if self.pipeline.splits_sentences:
            languages = self.pipeline.languages
            sources = [one.text for one in split_sentences(source, languages.source)]
            targets = [one.text for one in split_sentences(target, languages.target)]
            if len(sources) == len(targets):
                places = places_of(sources, source), places_of(targets, target)
                return list(map(_Part, sources, places[0], targets, places[1]))
        return [_Part(source, 0, target, 0)]

    def _explained(self, parts: Sequence[_Part]) -> list[_Explained]:
        limit = self.pipeline.max_length
        sources = [self.pipeline.source_ids(part.source) for part in parts]
        targets = [self.pipeline.target_ids(part.target) for part in parts]
        lengths = [max(map(len, ids)) for ids in zip(sources, targets, strict=True)]
        if num_long := sum(length > limit for length in lengths):
            logger.warning(
                "sentences of more than %d tokens, of which only the beginning was aligned: %d",
                limit,
                num_long,
            )
        sources, targets = [ids[:limit] for ids in sources], [ids[:limit] for ids in targets]
        explanations = self.engine.explain(
            list(map(Request, sources)), targets, batch_tokens=self.batch_tokens
        )
        return list(map(_Explained, parts, sources, targets, explanations))

    def _aligned(self, source: str, target: str, parts: Sequence[_Explained]) -> AlignedPair:
        pipeline = self.pipeline
        of_source = kept_words(pipeline.normalize_source, source)
        of_target = kept_words(pipeline.normalize_target, target)
        source_words, target_words = map(word_spans, self._normalized(source, target))
        links: dict[Link, None] = {}
        for part, source_ids, target_ids, explanation in parts:
            in_source = spans_in_line(
                source_ids, part.source, part.source_place, pipeline.source_tokenizer
            )
            in_target = spans_in_line(
                target_ids, part.target, part.target_place, pipeline.target_tokenizer
            )
            found = linked_words(
                explanation.attention,
                words_at(in_source, source_words),
                words_at(in_target, target_words),
            )
            links |= {Link(of_source[one.source], of_target[one.target]): None for one in found}
        total = sum(float(one.explanation.token_log_probs.sum()) for one in parts)
        return AlignedPair(source, target, tuple(links), total if parts else None)
