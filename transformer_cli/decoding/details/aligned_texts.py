"""Alignment of texts by the places of their words: which part of a translation translates which part of its source.

The links go in both directions: each word of the target is linked, and each word of the source that would have no
link is linked to the target word that attends to it most. In a language without spaces, tokens take the place of words.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from transformer_cli.decoding.details.details_of_lines import kept_words, spans_in_line
from transformer_cli.decoding.details.word_links import (
    Span,
    linked_words,
    places_as_given,
    word_spans,
    words_at,
)
from transformer_cli.decoding.engine import ExplainingEngine, Request, TokenIds
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.text import Tokenizer
from transformer_cli.text.languages import has_spaces
from transformer_cli.text.protected.spans import SpanKind, find_spans

if TYPE_CHECKING:  # numpy is imported where it computes: a translation by CTranslate2 does without
    import numpy as np
    from numpy.typing import NDArray


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
            for pair, source, target, explanation in zip(
                pairs, sources, targets, explanations, strict=True
            )
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


def _links(
    texts: tuple[str, str], source: _Side, target: _Side, weights: "NDArray[np.float32]"
) -> list[PlacedLink]:
    of_targets = linked_words(weights, source.words_of_tokens, target.words_of_tokens)
    # A word that came back unchanged translates nothing else.
    unchanged = dict(_words_of_spans(texts, source.words, target.words))
    from_targets = {link.target: link.source for link in of_targets if link.source not in unchanged}
    from_targets |= {target_word: source_word for source_word, target_word in unchanged.items()}
    linked = set(from_targets.values())
    of_sources = linked_words(weights.T, target.words_of_tokens, source.words_of_tokens)
    pairs = [(number, target_number) for target_number, number in from_targets.items()]
    pairs += [(link.target, link.source) for link in of_sources if link.target not in linked]
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
