"""Details of a translation: which words belong together, by attention, and what replaces [UNK].

White space separates words, as in `str.split`, so punctuation is part of the word beside it. In scripts without spaces, each sign
takes the place of a word (`unit_spans`). A link is written in the
Pharaoh format, which fast_align, awesome-align and Marian write, too: `0-0 1-2` links the first word of the source
with the first of the target, and the second with the third.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import (
    ExplainingEngine,
    Hypothesis,
    Request,
    TokenIds,
    search_confidence,
)
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translation import (
    LineDetails,
    Link,
    PartDetails,
    SourceText,
    Translation,
)
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import Span as Span
from transformer_cli.text.normalization import unit_spans, with_plain_spaces
from transformer_cli.text.normalization import word_spans as word_spans
from transformer_cli.text.normalization import words_at as words_at

if TYPE_CHECKING:  # a translation with another library waits neither for PyTorch nor for numpy
    import numpy as np
    from numpy.typing import NDArray

    from transformer_cli.decoding.translator import Translator


def places_of(texts: Iterable[str], line: str) -> list[int]:
    """Where each text begins in the line, which consists of them in order, with only white space between them."""
    places: list[int] = []
    end = 0
    for text in texts:
        places.append(line.index(text, end))
        end = places[-1] + len(text)
    return places


def linked_words(
    weights: "NDArray[np.float32]", source_words: Sequence[range], target_words: Sequence[range]
) -> list[Link]:
    """Link each target word with the source word that its tokens attend to most, summed over the tokens of both.

    Args:
        weights: (T, S) attention weights.
        source_words: for each of the S source tokens, the indices of its words; none for [EOS] and tags.
        target_words: for each of the T target tokens, the indices of its words.

    Returns:
        One link for each target word, in the order of the target words; none if the source has no words.
    """
    totals: dict[int, dict[int, float]] = {}
    for row, row_targets in zip(weights.tolist(), target_words, strict=True):
        for target in row_targets:
            total = totals.setdefault(target, {})
            for weight, column_sources in zip(row, source_words, strict=True):
                for source in column_sources:
                    total[source] = total.get(source, 0.0) + weight
    return [Link(max(total, key=total.__getitem__), target) for target, total in sorted(totals.items()) if total]


def pharaoh(links: Iterable[Link]) -> str:
    """Links in the Pharaoh format, sorted by the source word and then by the target word."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def places_as_given(text: str, read: str) -> Sequence[int] | None:
    """For each character of a normalised text, its place in the text as given; None if it has other characters."""
    if read == text:
        return range(len(text))
    places: list[int] = []
    place = 0
    for character in read:
        while place < len(text) and with_plain_spaces(text[place]) != character:
            place += 1
        places.append(place)
        place += 1
    return places if not places or places[-1] < len(text) else None


# The span of a token that stands nowhere in a text: it overlaps no word.
_NOWHERE = (-2, -1)


NUM_RIVALS = 5
"""How many of the most probable tokens are told for each place of a translation."""


def explained_hypotheses(
    engine: ExplainingEngine,
    hypotheses: Mapping[Request, Hypothesis],
    batch_tokens: int,
    *,
    num_best: int = NUM_RIVALS,
) -> dict[Request, Hypothesis]:
    """The same hypotheses with their explanations.

    Args:
        engine: the one that found them.
        hypotheses: one for each request.
        batch_tokens: the largest number of tokens in a batch, padding included.
        num_best: how many of the most probable tokens are told for each place.
    """
    targets = [hypothesis.ids for hypothesis in hypotheses.values()]
    explanations = engine.explain(list(hypotheses), targets, batch_tokens=batch_tokens, num_best=num_best)
    return {
        request: hypothesis._replace(explanation=explanation)
        for (request, hypothesis), explanation in zip(hypotheses.items(), explanations, strict=True)
    }


def with_details(
    translator: "Translator",
    sources: Sequence[SourceText],
    hypotheses: Mapping[Request, list[Hypothesis]],
    translations: Sequence[Translation],
    explainer: ExplainingEngine | None,
) -> list[Translation]:
    """The translations of texts with what a second pass of the model says about them.

    Args:
        translator: has translated them.
        sources, hypotheses: what the translations were made of.
        translations: of the texts.
        explainer: what gives each translation its details; None: they get only what an estimate of the quality reads.
    """
    used = {request for source in sources for request in source.requests}
    best = {
        request: request_hypotheses[0]
        for request, request_hypotheses in hypotheses.items()
        if request_hypotheses and request in used
    }
    agreements: Mapping[Request, float] = _NONE
    if translator.estimates:
        from transformer_cli.decoding.minimum_bayes_risk import agreements_of  # needs numpy

        agreements = agreements_of(translator, best)
    batch_tokens = translator.decoding.batch_tokens
    if explainer is not None:
        explained = explained_hypotheses(explainer, best, batch_tokens)
        return [
            replace(each, details=details_of(translator.pipeline, source, explained, agreements))
            for source, each in zip(sources, translations, strict=True)
        ]
    explained = explained_hypotheses(translator.explaining_engine(), best, batch_tokens, num_best=0)
    return [
        replace(
            each,
            details=LineDetails(details_of_parts(source, explained, agreements), ()),
            confidences=confidences_of(
                source, [hypotheses[request] for request in source.requests], translator.decoding
            ),
        )
        for source, each in zip(sources, translations, strict=True)
    ]


_NONE: Mapping[Request, float] = {}


def details_of_parts(
    source: SourceText,
    explained: Mapping[Request, Hypothesis],
    agreements: Mapping[Request, float] = _NONE,
) -> tuple[PartDetails, ...]:
    """The details of each part of a line; nothing if one has no translation or is kept, or if the line is blank."""
    if any(part.is_kept or part.request not in explained for part in source.parts):
        return ()
    best = [explained[request] for request in source.requests]
    return tuple(
        PartDetails(request.ids, hypothesis.ids, hypothesis.explanation, agreements.get(request))
        for request, hypothesis in zip(source.requests, best, strict=True)
        if hypothesis.explanation is not None
    )


def details_of(
    pipeline: TextPipeline,
    source: SourceText,
    explained: Mapping[Request, Hypothesis],
    agreements: Mapping[Request, float] = _NONE,
) -> LineDetails:
    """The details of a line; without parts if one of its parts has no translation or is kept, or if the line is blank.

    Args:
        pipeline: the one that prepared the line.
        source: the whole line with its parts.
        explained: the best hypothesis of each request, with its explanation.
        agreements: as in `PartDetails`, of each request that has one.
    """
    parts = details_of_parts(source, explained, agreements)
    if not parts:
        return LineDetails((), ())
    best = [explained[request] for request in source.requests]
    # Respelling changes no white space between words, so word N of what is read is word N of the line.
    source_words_of_parts = _words_of_source(pipeline, source)
    target_words_of_parts = _words_of_target(pipeline, source, best)
    line_numbers = kept_units(pipeline.source_tokenizer, pipeline.normalize_source, source.text)
    links = [
        Link(line_numbers[link.source], link.target)
        for part, source_words, target_words in zip(parts, source_words_of_parts, target_words_of_parts, strict=True)
        for link in linked_words(part.explanation.attention, source_words, target_words)
    ]
    return LineDetails(parts, tuple(dict.fromkeys(links)))


def kept_units(tokenizer: Tokenizer, normalize: Callable[[str], str], line: str) -> list[int]:
    """For each unit of a line as it is read, the number of that unit of the line: words of control characters are not read."""
    numbers: list[int] = []
    num_before = 0
    for word in line.split():
        num_given, num_read = (len(alignment_units(tokenizer, text)) for text in (word, normalize(word)))
        numbers += [num_before + min(number, num_given - 1) for number in range(num_read)]
        num_before += num_given
    return numbers


def alignment_units(tokenizer: Tokenizer, text: str) -> list[Span]:
    """The units of a text of one side, between which alignments link; see `unit_spans`."""
    return unit_spans(text, has_spaced_words=tokenizer.has_spaced_words)


def _words_of_source(pipeline: TextPipeline, source: SourceText) -> list[list[range]]:
    """For each part and each of its tokens, the indices of its words in the line as it is read."""
    tokenizer = pipeline.source_tokenizer
    words = alignment_units(tokenizer, source.read)
    return [
        words_at(spans_in_line(part.request.ids, part.text, place, tokenizer), words)
        for part, place in zip(source.parts, places_of_parts(source), strict=True)
    ]


def places_of_parts(source: SourceText) -> list[int]:
    """Where each part begins in the text as it is read."""
    return places_of([part.text for part in source.parts], source.read)


def spans_in_line(ids: TokenIds, text: str, place: int, tokenizer: Tokenizer) -> list[Span]:
    """For each token of a part, its place in the line; the part may have tags before its text and [EOS] behind it.

    Args:
        place: where the part begins in the line.
    """
    num_tags = next((number for number, index in enumerate(ids) if index not in tokenizer.tag_ids), len(ids))
    spans = [(place + start, place + end) for start, end in tokenizer.spans(text)]
    return [*[_NOWHERE] * num_tags, *spans, *[_NOWHERE] * len(ids)][: len(ids)]


def _words_of_target(pipeline: TextPipeline, source: SourceText, best: Sequence[Hypothesis]) -> list[list[range]]:
    """For each part and each of its tokens, the indices of its words in the translation."""
    tokenizer, translation = pipeline.target_tokenizer, ""
    spans: list[list[Span]] = []
    for part, hypothesis in zip(source.parts, best, strict=True):
        for_unknown = pipeline.words_for_unknown(part, hypothesis)
        text = tokenizer.decode(hypothesis.ids, for_unknown)
        translation += part.gap if text and translation else ""
        place = len(translation)
        spans.append(
            [
                # A token behind the text, such as [EOS], stands nowhere.
                (place + start, place + end) if start < len(text) else _NOWHERE
                for start, end in tokenizer.decoded_spans(hypothesis.ids, for_unknown)
            ]
        )
        translation += text
    words = alignment_units(tokenizer, translation)
    return [words_at(part_spans, words) for part_spans in spans]


def with_explained_unknown(
    engine: ExplainingEngine,
    hypotheses: Mapping[Request, Sequence[Hypothesis]],
    *,
    unk_id: int,
    batch_tokens: int,
) -> dict[Request, list[Hypothesis]]:
    """The same hypotheses; those that contain [UNK] are explained.

    Args:
        engine: the one that found them.
        hypotheses: of each request, best first.
        unk_id: the id of [UNK].
        batch_tokens: the largest number of tokens in a batch, padding included.
    """
    pairs = [
        (request, hypothesis)
        for request, found in hypotheses.items()
        for hypothesis in found
        if unk_id in hypothesis.ids
    ]
    explanations = iter(
        engine.explain(
            [request for request, _ in pairs],
            [hypothesis.ids for _, hypothesis in pairs],
            batch_tokens=batch_tokens,
        )
    )
    return {
        request: [one._replace(explanation=next(explanations)) if unk_id in one.ids else one for one in found]
        for request, found in hypotheses.items()
    }


@dataclass(frozen=True, slots=True)
class UnknownReplacement:
    """What stands in a translation instead of [UNK].

    Source: Luong et al. 2015, "Addressing the Rare Word Problem in Neural Machine Translation".
    """

    dictionary: Mapping[str, str] = field(default_factory=dict)
    """The translation of words of the source; a word that it lacks stays as it is."""

    def words(self, text: str, source_ids: TokenIds, hypothesis: Hypothesis, source: Tokenizer) -> list[str]:
        """For each [UNK] of a hypothesis, what replaces it, with the space before it if it is a word.

        Args:
            text: the normalised source, whose words are tokens.
            source_ids: its ids, with tags before them and [EOS] behind them.
            hypothesis: explained.
            source: the tokenizer of the source.
        """
        if hypothesis.explanation is None:
            return []
        words = source.words(text)
        num_tags = sum(index in source.tag_ids for index in source_ids)
        places = [
            place - num_tags
            for index, place in zip(hypothesis.ids, hypothesis.explanation.alignment, strict=True)
            if index == source.unk_id
        ]
        unknown = source.decode([source.unk_id])
        return [self._translated(words[place]) if 0 <= place < len(words) else f" {unknown}" for place in places]

    def _translated(self, word: str) -> str:
        """The dictionary entry of a word; one with a capital letter may stand in lower case, and keeps its capital."""
        bare = word.strip()
        entry = self.dictionary.get(bare)
        if entry is None and bare[:1].isupper():
            lower = self.dictionary.get(bare[:1].lower() + bare[1:])
            entry = lower and lower[:1].upper() + lower[1:]
        return word if entry is None else f" {entry}"


def confidences_of(
    source: SourceText, found: Sequence[Sequence[Hypothesis]], options: DecodingConfig
) -> tuple[float, ...]:
    """`Translation.confidences` of a text, from the hypotheses of its parts."""
    part_confidences = (
        search_confidence(part_hypotheses[0], options)
        for part, part_hypotheses in zip(source.parts, found, strict=True)
        if part_hypotheses and not part.is_kept
    )
    return tuple(confidence for confidence in part_confidences if confidence is not None)
