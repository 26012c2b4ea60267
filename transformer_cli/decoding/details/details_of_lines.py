"""Makes the details of a line from explained hypotheses: the words of its tokens, and the links between words."""

from collections.abc import Callable, Mapping, Sequence

from transformer_cli.decoding.details.line_details import LineDetails, PartDetails
from transformer_cli.decoding.details.word_links import (
    Link,
    Span,
    linked_words,
    places_of,
    word_spans,
    words_at,
)
from transformer_cli.decoding.engine import ExplainingEngine, Hypothesis, Request, TokenIds
from transformer_cli.decoding.text_pipeline import PreparedLine, TextPipeline
from transformer_cli.text import Tokenizer

# The span of a token that stands nowhere in a text: it overlaps no word.
_NOWHERE = (-2, -1)


def explained_hypotheses(
    engine: ExplainingEngine, hypotheses: Mapping[Request, Hypothesis], batch_tokens: int
) -> dict[Request, Hypothesis]:
    """The same hypotheses with their explanations.

    Args:
        engine: the one that found them.
        hypotheses: one for each request.
        batch_tokens: the largest number of tokens in a batch, padding included.
    """
    targets = [hypothesis.ids for hypothesis in hypotheses.values()]
    explanations = engine.explain(
        list(hypotheses), targets, batch_tokens=batch_tokens, num_best=NUM_RIVALS
    )
    return {
        request: hypothesis._replace(explanation=explanation)
        for (request, hypothesis), explanation in zip(hypotheses.items(), explanations, strict=True)
    }


NUM_RIVALS = 5
"""How many of the most probable tokens are told for each place of a translation."""


def details_of(
    pipeline: TextPipeline, prepared: PreparedLine, explained: Mapping[Request, Hypothesis]
) -> LineDetails:
    """The details of a line; without parts if one of its parts has no translation or is kept, or if the line is blank.

    Args:
        pipeline: the one that prepared the line.
        prepared: the line.
        explained: the best hypothesis of each request, with its explanation.
    """
    if prepared.kept or not all(request in explained for request in prepared.parts):
        return LineDetails((), ())
    best = [explained[request] for request in prepared.parts]
    parts = tuple(
        PartDetails(request.ids, hypothesis.ids, hypothesis.explanation)
        for request, hypothesis in zip(prepared.parts, best, strict=True)
        if hypothesis.explanation is not None
    )
    # Respelling changes no white space between words, so word N of what is read is word N of the line.
    of_source = _words_of_source(pipeline, prepared, prepared.read)
    of_target = _words_of_target(pipeline, prepared, best)
    of_line = kept_words(pipeline.normalize_source, prepared.line)
    links = [
        Link(of_line[link.source], link.target)
        for part, source_words, target_words in zip(parts, of_source, of_target, strict=True)
        for link in linked_words(part.explanation.attention, source_words, target_words)
    ]
    return LineDetails(parts, tuple(dict.fromkeys(links)))


def kept_words(normalize: Callable[[str], str], line: str) -> list[int]:
    """The indices of the words of a line that are still there after normalisation: not those of control characters."""
    return [number for number, word in enumerate(line.split()) if normalize(word)]


def _words_of_source(
    pipeline: TextPipeline, prepared: PreparedLine, line: str
) -> list[list[range]]:
    """For each part and each of its tokens, the indices of its words in the normalised line."""
    words = word_spans(line)
    parts = zip(prepared.parts, prepared.texts, places_of(prepared.texts, line), strict=True)
    return [
        words_at(spans_in_line(request.ids, text, place, pipeline.source_tokenizer), words)
        for request, text, place in parts
    ]


def spans_in_line(ids: TokenIds, text: str, place: int, tokenizer: Tokenizer) -> list[Span]:
    """For each token of a part, its place in the line; the part may have tags before its text and [EOS] behind it.

    Args:
        place: where the part begins in the line.
    """
    num_tags = next(
        (number for number, index in enumerate(ids) if index not in tokenizer.tag_ids), len(ids)
    )
    spans = [(place + start, place + end) for start, end in tokenizer.spans(text)]
    return [*[_NOWHERE] * num_tags, *spans, *[_NOWHERE] * len(ids)][: len(ids)]


def _words_of_target(
    pipeline: TextPipeline, prepared: PreparedLine, best: Sequence[Hypothesis]
) -> list[list[range]]:
    """For each part and each of its tokens, the indices of its words in the translation."""
    tokenizer, translation = pipeline.target_tokenizer, ""
    spans: list[list[Span]] = []
    parts = zip(prepared.texts, prepared.parts, prepared.terms, best, prepared.gaps, strict=True)
    for source, request, terms, hypothesis, gap in parts:
        for_unknown = pipeline.words_for_unknown(source, request, terms, hypothesis)
        text = tokenizer.decode(hypothesis.ids, for_unknown)
        translation += gap if text and translation else ""
        place = len(translation)
        spans.append(
            [
                # A token behind the text, such as [EOS], stands nowhere.
                (place + start, place + end) if start < len(text) else _NOWHERE
                for start, end in tokenizer.decoded_spans(hypothesis.ids, for_unknown)
            ]
        )
        translation += text
    words = word_spans(translation)
    return [words_at(of_part, words) for of_part in spans]
