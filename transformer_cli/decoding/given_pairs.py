"""What a model says about given pairs of a source and a target: how probable they are, and which words belong together.

No search takes place: the model reads the target (teacher forcing). Where the links of words are given by their places in the
texts, they go in both directions: each word of the target is linked, and each word of the source that would have no link is
linked to the target word that attends to it most. In a language without spaces, tokens take the place of words.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.config.decoding import WINDOW_LINES
from transformer_cli.decoding.details import (
    Span,
    alignment_units,
    kept_units,
    linked_words,
    places_as_given,
    places_of,
    spans_in_line,
    word_spans,
    words_at,
)
from transformer_cli.decoding.engine import ExplainingEngine, Explanation, Request, TokenIds
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translation import Link
from transformer_cli.decoding.translator import Translator
from transformer_cli.process.errors import UsageError
from transformer_cli.text import Tokenizer
from transformer_cli.text.languages import has_spaces
from transformer_cli.text.normalization import has_word, is_blank
from transformer_cli.text.sentences import split_sentences
from transformer_cli.text.spans import SpanKind, find_spans

logger = logging.getLogger(__name__)


class PairLikelihood(NamedTuple):
    """How probable one target is after its source."""

    log_probability: float
    """log P(target | source), in nats: the sum over the tokens of the target, [EOS] included."""
    num_tokens: int
    """The number of tokens of the target, [EOS] included."""


def pair_likelihoods(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[PairLikelihood]:
    """The likelihood of each pair, in their order; no search takes place.

    Each line is read as one sequence, without splitting it into sentences. A side that is too long for the model is
    shortened, with a warning. A blank side is a sequence of [EOS] alone.

    Args:
        translator: of one direction.
        pairs: lines of source and target.

    Raises:
        UsageError: the engine of the translator cannot score given targets.
    """
    engine, pipeline = translator.engine, translator.pipeline
    if not isinstance(engine, ExplainingEngine):
        raise UsageError("this engine cannot score given translations")
    limit = pipeline.max_length
    sources = [pipeline.source_ids(pipeline.normalize_source(source).strip()) for source, _ in pairs]
    targets = [pipeline.target_ids(pipeline.normalize_target(target).strip()) for _, target in pairs]
    num_cut = sum(max(map(len, sides)) > limit for sides in zip(sources, targets, strict=True))
    if num_cut:
        logger.warning(
            "pairs of more than %d tokens, of which only the beginning was scored: %d",
            limit,
            num_cut,
        )
    # Without [EOS], a blank side has no token at all.
    scored = [index for index in range(len(pairs)) if sources[index] and targets[index]]
    explanations = engine.explain(
        [Request(sources[index][:limit]) for index in scored],
        [targets[index][:limit] for index in scored],
        batch_tokens=translator.decoding.batch_tokens,
    )
    found = [PairLikelihood(0.0, 0)] * len(pairs)
    for index, explanation in zip(scored, explanations, strict=True):
        log_probs = explanation.token_log_probs
        found[index] = PairLikelihood(float(log_probs.sum(dtype="float64")), len(log_probs))
    return found


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
    counts_words: bool = False
    """Whether links count what white space separates in every script, as the alignments of a corpus do."""

    def align(self, pairs: Iterable[tuple[str, str]]) -> Iterator[AlignedPair]:
        """One alignment per pair, in order; reads `WINDOW_LINES` pairs ahead.

        If both lines have the same number of sentences, each sentence is aligned with the one in the same place; else
        the lines are aligned as they are. Tokens beyond the largest length of the model have no links.
        """
        remaining = iter(pairs)
        while window := list(islice(remaining, WINDOW_LINES)):
            parts = [self._parts(*self._normalized(*pair)) for pair in window]
            explained = iter(self._explained([part for pair_parts in parts for part in pair_parts]))
            for pair, pair_parts in zip(window, parts, strict=True):
                yield self._aligned(*pair, list(islice(explained, len(pair_parts))))

    def _normalized(self, source: str, target: str) -> tuple[str, str]:
        # The model has read no white space around a text.
        pipeline = self.pipeline
        return pipeline.normalize_source(source).strip(), pipeline.normalize_target(target).strip()

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
        explanations = self.engine.explain(list(map(Request, sources)), targets, batch_tokens=self.batch_tokens)
        return list(map(_Explained, parts, sources, targets, explanations))

    def _aligned(self, source: str, target: str, parts: Sequence[_Explained]) -> AlignedPair:
        pipeline = self.pipeline
        readers = pipeline.source_tokenizer, pipeline.target_tokenizer
        normalizers = pipeline.normalize_source, pipeline.normalize_target
        read = self._normalized(source, target)
        if self.counts_words:
            source_words, target_words = map(word_spans, read)
            source_numbers, target_numbers = map(kept_words, normalizers, (source, target))
        else:
            source_words, target_words = map(alignment_units, readers, read)
            source_numbers, target_numbers = map(kept_units, readers, normalizers, (source, target))
        links: dict[Link, None] = {}
        for part, source_ids, target_ids, explanation in parts:
            in_source = spans_in_line(source_ids, part.source, part.source_place, pipeline.source_tokenizer)
            in_target = spans_in_line(target_ids, part.target, part.target_place, pipeline.target_tokenizer)
            found = linked_words(
                explanation.attention,
                words_at(in_source, source_words),
                words_at(in_target, target_words),
            )
            links |= {Link(source_numbers[one.source], target_numbers[one.target]): None for one in found}
        total = sum(float(one.explanation.token_log_probs.sum()) for one in parts)
        return AlignedPair(source, target, tuple(links), total if parts else None)


def kept_words(normalize: Callable[[str], str], line: str) -> list[int]:
    """The indices of the words of a line that are still there after normalisation: not those of control characters."""
    return [number for number, word in enumerate(line.split()) if normalize(word)]


class PlacedLink(NamedTuple):
    """A word of a text and a word of its translation, by their places: text[start:end]."""

    source: Span
    target: Span


class _Side(NamedTuple):
    """One text of a pair."""

    ids: TokenIds
    words: list[Span]
    words_of_tokens: list[range]


@dataclass(frozen=True, slots=True)
class TextAligner:
    """Aligns the words of sentences and their translations by teacher forcing."""

    pipeline: TextPipeline
    """Of one direction, from the source to the target."""
    engine: ExplainingEngine
    batch_tokens: int
    """The largest number of tokens in a batch, padding included."""

    def align(self, pairs: Sequence[tuple[str, str]]) -> list[list[PlacedLink]]:
        """The links of each pair, in order; tokens beyond the largest length of the model have none."""
        pipeline = self.pipeline
        languages = pipeline.languages
        sources = [
            self._side(
                source,
                pipeline.normalize_source,
                pipeline.source_ids,
                pipeline.source_tokenizer,
                languages.source,
            )
            for source, _ in pairs
        ]
        targets = [
            self._side(
                target,
                pipeline.normalize_target,
                pipeline.target_ids,
                pipeline.target_tokenizer,
                languages.target,
            )
            for _, target in pairs
        ]
        explanations = self.engine.explain(
            [Request(side.ids) for side in sources],
            [side.ids for side in targets],
            batch_tokens=self.batch_tokens,
        )
        return [
            _links(pair, source, target, explanation.attention)
            for pair, source, target, explanation in zip(pairs, sources, targets, explanations, strict=True)
        ]

    def _side(
        self,
        text: str,
        normalize: Callable[[str], str],
        ids_of: Callable[[str], TokenIds],
        tokenizer: Tokenizer,
        language: str,
    ) -> _Side:
        read = normalize(text)
        ids = ids_of(read)[: self.pipeline.max_length]
        spans = spans_in_line(ids, read, 0, tokenizer)
        if has_spaces(language):
            # Normalisation changes words, but not their number, except for words of control characters.
            words, read_words = word_spans(text), word_spans(read)
            kept = [words[number] for number in kept_words(normalize, text)]
            return _Side(ids, kept, words_at(spans, read_words))
        places = places_as_given(text, read)
        if places is None:
            return _Side(ids, [], words_at(spans, []))
        tokens = sorted({span for span in spans if span[1] > span[0] >= 0})
        as_given = [(places[start], places[end - 1] + 1) for start, end in tokens]
        return _Side(ids, as_given, words_at(spans, tokens))


def _links(texts: tuple[str, str], source: _Side, target: _Side, weights: NDArray[np.float32]) -> list[PlacedLink]:
    target_links = linked_words(weights, source.words_of_tokens, target.words_of_tokens)
    # A word that came back unchanged translates nothing else.
    unchanged = dict(_words_of_spans(texts, source.words, target.words))
    from_targets = {link.target: link.source for link in target_links if link.source not in unchanged}
    from_targets |= {target_word: source_word for source_word, target_word in unchanged.items()}
    # Nothing but a mark does not translate a word: "Good morning." is "Bonjour !".
    is_word, is_written_word = (
        [has_word(text[slice(*word)]) for word in side.words]
        for text, side in zip(texts, (source, target), strict=True)
    )
    by_words = {number for target_word, number in from_targets.items() if is_written_word[target_word]}
    if any(is_written_word):
        from_targets = {
            target_word: number
            for target_word, number in from_targets.items()
            if is_written_word[target_word] or number in by_words or not is_word[number]
        }
    linked = set(from_targets.values())
    written_words = [
        word if all(is_written_word[number] for number in word) or not any(is_written_word) else range(0)
        for word in target.words_of_tokens
    ]
    source_links = linked_words(weights.T, written_words, source.words_of_tokens)
    pairs = [(number, target_number) for target_number, number in from_targets.items()]
    pairs += [(link.target, link.source) for link in source_links if link.target not in linked]
    return [
        PlacedLink(source.words[source_number], target.words[target_number])
        for source_number, target_number in sorted(pairs)
    ]


def _words_of_spans(
    texts: tuple[str, str], sources: Sequence[Span], targets: Sequence[Span]
) -> Iterator[tuple[int, int]]:
    """The words with the same placeholder, URL or code on both sides, which a model may never have seen."""
    places = [_places_of_spans(*each) for each in zip(texts, (sources, targets), strict=True)]
    for span, numbers in places[0].items():
        yield from zip(numbers, places[1].get(span, []), strict=False)


def _places_of_spans(text: str, words: Sequence[Span]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for span in find_spans(text):
        numbers = [number for number, (start, end) in enumerate(words) if start <= span.start < end]
        if span.kind is SpanKind.WORD and numbers:
            places.setdefault(text[span.start : span.end], []).append(numbers[0])
    return places
