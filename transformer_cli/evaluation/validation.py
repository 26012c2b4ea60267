"""Validation: the loss of a model on held-out text, and the scores of its translations."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding import TextPipeline, TokenIds, Translator, UnknownWords
from transformer_cli.errors import DataError
from transformer_cli.evaluation.metrics import Score, score_corpus

logger = logging.getLogger(__name__)

# The exponential of a larger number is larger than every float.
MAX_EXPONENT = 709.0


class Sample(NamedTuple):
    """A source sentence, its reference, and the model's translation."""

    source: str
    target: str
    predicted: str


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The results of a validation."""

    loss: float
    """Negative log-likelihood per target token, [EOS] included, in nats, without label smoothing."""
    perplexity: float
    """exp(loss); infinity if that is too large for a float."""
    scores: list[Score]
    num_sentences: int
    num_target_tokens: int
    samples: list[Sample]
    unknown_words: UnknownWords = field(default_factory=UnknownWords)
    """Of the sources that were translated."""

    def metric(self, name: str) -> float:
        """A number by its name: loss, perplexity, or the name of a score; upper or lower case."""
        values = {"loss": self.loss, "perplexity": self.perplexity}
        values |= {score.name.lower(): score.value for score in self.scores}
        return values[name.lower()]

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`; None for infinity and NaN, which JSON does not have."""
        return {
            "num_sentences": self.num_sentences,
            "num_target_tokens": self.num_target_tokens,
            "loss": self.loss if math.isfinite(self.loss) else None,
            "perplexity": self.perplexity if math.isfinite(self.perplexity) else None,
            "scores": [score._asdict() for score in self.scores],
        }


def validate(
    translator: Translator,
    pairs: Sequence[SentencePair],
    *,
    scores: Sequence[str] = ("bleu", "chrf", "ter", "cer", "wer"),
    num_samples: int = 4,
) -> ValidationReport:
    """Measure the loss of a model on pairs, translate the sources, and score the translations.

    It changes neither the weights nor the state of the random number generators.

    Args:
        translator: its engine gives the loss and the translations; a PyTorch model must be in eval mode.
        pairs: held-out text; the targets, unchanged, are the references.
        scores: names out of bleu, chrf, ter, cer, wer; if empty, only the samples are translated.
        num_samples: how many pairs, evenly spread, the report shows with their translations.

    Raises:
        DataError: `pairs` is empty.
    """
    if not pairs:
        raise DataError("there are no pairs to validate on", hint="check the split and its corpora")
    loss, num_target_tokens = _loss(translator, pairs)
    num_samples = min(num_samples, len(pairs))
    shown = [i * len(pairs) // num_samples for i in range(num_samples)]
    translated = range(len(pairs)) if scores else shown
    texts, unknown_words = [], UnknownWords()
    for translation in translator.translate(pairs[i].source for i in translated):
        texts.append(translation.text)
        unknown_words.add(translation)
    references = [pairs[i].target for i in translated]
    language = translator.pipeline.data.target_language
    predicted = dict(zip(translated, texts, strict=True))
    return ValidationReport(
        loss=loss,
        perplexity=math.inf if loss > MAX_EXPONENT else math.exp(loss),
        scores=score_corpus(texts, references, scores, target_language=language) if scores else [],
        num_sentences=len(pairs),
        num_target_tokens=num_target_tokens,
        samples=[Sample(pairs[i].source, pairs[i].target, predicted[i]) for i in shown],
        unknown_words=unknown_words,
    )


def _loss(translator: Translator, pairs: Sequence[SentencePair]) -> tuple[float, int]:
    """Nats per target token (NaN if there is no token), and the number of target tokens."""
    encoded = _encode(translator.pipeline, pairs)
    total = translator.engine.negative_log_likelihood(
        [source_ids for source_ids, _ in encoded],
        [target_ids for _, target_ids in encoded],
        batch_tokens=translator.decoding.batch_tokens,
    )
    num_tokens = sum(len(target_ids) for _, target_ids in encoded)
    return (total / num_tokens if num_tokens else math.nan), num_tokens


def _encode(
    pipeline: TextPipeline, pairs: Sequence[SentencePair]
) -> list[tuple[TokenIds, TokenIds]]:
    """The token ids of each pair, cut to the number that the model can read; without empty sides."""
    limit = pipeline.max_length
    sources = (pipeline.source_ids(pipeline.normalize(pair.source)) for pair in pairs)
    targets = (pipeline.target_ids(pipeline.normalize(pair.target)) for pair in pairs)
    encoded = list(zip(sources, targets, strict=True))
    if num_cut := sum(max(map(len, sides)) > limit for sides in encoded):
        logger.warning(
            "pairs of more than %d tokens, shortened to measure the loss: %d", limit, num_cut
        )
    cut = [(source_ids[:limit], target_ids[:limit]) for source_ids, target_ids in encoded]
    return [sides for sides in cut if all(sides)]
