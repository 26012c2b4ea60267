"""From explained hypotheses to the details of a line: which token belongs to which word, and which words are linked."""

from collections.abc import Mapping, Sequence

from transformer_cli.decoding.engine import ExplainingEngine, Hypothesis, Request, TokenIds
from transformer_cli.decoding.line_details import LineDetails, PartDetails
from transformer_cli.decoding.text_pipeline import PreparedLine, TextPipeline
from transformer_cli.decoding.word_links import Link, Span, linked_words, word_spans, words_at
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
    """The details of a line; without parts if one of its parts has no translation, or if the line is blank.

    Args:
        pipeline: the one that prepared the line.
        prepared: the line.
        explained: the best hypothesis of each request, with its explanation.
    """
    if not all(request in explained for request in prepared.parts):
        return LineDetails((), ())
    best = [explained[request] for request in prepared.parts]
    parts = tuple(
        PartDetails(request.ids, hypothesis.ids, hypothesis.explanation)
        for request, hypothesis in zip(prepared.parts, best, strict=True)
        if hypothesis.explanation is not None
    )
    line = pipeline.normalize(prepared.line.rstrip("\r\n"))
    of_source = _words_of_source(pipeline, prepared, line)
    of_target = _words_of_target([hypothesis.ids for hypothesis in best], prepared.gaps, pipeline)
    of_line = _kept_words(pipeline, prepared.line)
    links = [
        Link(of_line[link.source], link.target)
        for part, source_words, target_words in zip(parts, of_source, of_target, strict=True)
        for link in linked_words(part.explanation.attention, source_words, target_words)
    ]
    return LineDetails(parts, tuple(dict.fromkeys(links)))


def _kept_words(pipeline: TextPipeline, line: str) -> list[int]:
    """The indices of the words of a line that are still there after normalisation: not those of control characters."""
    return [number for number, word in enumerate(line.split()) if pipeline.normalize(word)]


def _words_of_source(
    pipeline: TextPipeline, prepared: PreparedLine, line: str
) -> list[list[range]]:
    """For each part and each of its tokens, the indices of its words in the normalised line."""
    words = word_spans(line)
    spans: list[list[Span]] = []
    end = 0
    for request, text in zip(prepared.parts, prepared.texts, strict=True):
        place = line.index(text, end)
        end = place + len(text)
        spans.append(_source_spans(request.ids, text, place, pipeline.source_tokenizer))
    return [words_at(of_part, words) for of_part in spans]


def _source_spans(ids: TokenIds, text: str, place: int, tokenizer: Tokenizer) -> list[Span]:
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
    ids: Sequence[TokenIds], gaps: Sequence[str], pipeline: TextPipeline
) -> list[list[range]]:
    """For each part and each of its tokens, the indices of its words in the translation."""
    translation = ""
    spans: list[list[Span]] = []
    for of_part, gap in zip(ids, gaps, strict=True):
        text = pipeline.target_tokenizer.decode(of_part)
        translation += gap if text and translation else ""
        spans.append(_target_spans(of_part, text, len(translation), pipeline.target_tokenizer))
        translation += text
    words = word_spans(translation)
    return [words_at(of_part, words) for of_part in spans]


def _target_spans(ids: TokenIds, text: str, place: int, tokenizer: Tokenizer) -> list[Span]:
    """For each token of a part, its place in the translation of the line; [EOS] has none.

    Args:
        place: where the translation of the part begins in that of the line.
    """
    return [
        (place + start, place + end) if start < len(text) else _NOWHERE
        for start, end in tokenizer.decoded_spans(ids)
    ]
