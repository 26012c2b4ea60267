"""Loss and scores of a model on held-out text."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from transformer_cli.data.batches.batch import collate
from transformer_cli.data.batches.encoded import TokenPair, encode_pairs
from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding.length_batches import MAX_LOGITS, length_batches
from transformer_cli.decoding.translator import Translator, inference
from transformer_cli.errors import DataError
from transformer_cli.evaluation.metrics import Score, score_corpus
from transformer_cli.model.loss import sum_loss
from transformer_cli.text.normalization import normalize
from transformer_cli.text.sequence_format import SequenceFormat

logger = logging.getLogger(__name__)

MAX_EXPONENT = 709.0


class Sample(NamedTuple):
    """A sentence, its reference, and what the model made of it."""

    source: str
    target: str
    predicted: str


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """How good a model is on some held-out pairs."""

    loss: float
    """Negative log-likelihood per target token, end symbols included, in nats; labels not smoothed."""
    perplexity: float
    """exp(loss); infinite where that is more than a float can hold."""
    scores: list[Score]
    num_sentences: int
    num_target_tokens: int
    samples: list[Sample]

    def metric(self, name: str) -> float:
        """Loss, perplexity, or a score by its name, in any case."""
        values = {"loss": self.loss, "perplexity": self.perplexity}
        values |= {score.name.lower(): score.value for score in self.scores}
        return values[name.lower()]

    def as_json(self) -> dict[str, Any]:
        """Plain values; null for a number that JSON cannot hold."""
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
    """Measure a model on pairs; the model's training mode, weights and random numbers stay.

    Args:
        translator: the model, as it is to translate; its batches have `decoding.batch_tokens`.
        pairs: held-out text; the target as it is the reference.
        scores: of bleu, chrf, ter, cer, wer; none: nothing is decoded but the samples.
        num_samples: pairs, evenly spread, that are shown with their translations.

    Raises:
        DataError: there is no pair.
    """
    if not pairs:
        raise DataError("there is no pair to validate on", hint="check the split and its corpora")
    loss, num_target_tokens = _loss(translator, pairs)
    num_samples = min(num_samples, len(pairs))
    shown = [i * len(pairs) // num_samples for i in range(num_samples)]
    translated = range(len(pairs)) if scores else shown
    sources = [pairs[i].source for i in translated]
    texts = [translation.text for translation in translator.translate(sources)]
    predicted = dict(zip(translated, texts, strict=True))
    return ValidationReport(
        loss=loss,
        perplexity=_exp(loss),
        scores=score_corpus(
            texts,
            [pairs[i].target for i in translated],
            scores,
            target_language=translator.data.target_language,
        )
        if scores
        else [],
        num_sentences=len(pairs),
        num_target_tokens=num_target_tokens,
        samples=[Sample(pairs[i].source, pairs[i].target, predicted[i]) for i in shown],
    )


def _loss(translator: Translator, pairs: Sequence[SentencePair]) -> tuple[float, int]:
    """Nats per target token, and how many tokens there are; NaN where there is none."""
    sos_id, pad_id = translator.target_tokenizer.sos_id, translator.target_tokenizer.pad_id
    max_tokens = min(
        translator.decoding.batch_tokens, MAX_LOGITS // translator.target_tokenizer.vocab_size
    )
    negative_log_likelihood, num_tokens = 0.0, 0
    with inference(translator.model, translator.machine):
        for batch_pairs in length_batches(
            _encode(translator, pairs), _length, max_tokens=max_tokens
        ):
            batch = collate(
                batch_pairs,
                sos_id=sos_id,
                pad_id=pad_id,
                sequence_format=SequenceFormat.of(translator.data),
            ).to(translator.machine.device)
            logits = translator.model(batch.source_ids, batch.source_mask, batch.decoder_input_ids)
            sums = sum_loss(logits, batch.target_ids, pad_id=pad_id, label_smoothing=0.0)
            negative_log_likelihood += sums.negative_log_likelihood.item()
            num_tokens += batch.num_target_tokens
    return (negative_log_likelihood / num_tokens if num_tokens else math.nan), num_tokens


def _encode(translator: Translator, pairs: Sequence[SentencePair]) -> list[TokenPair]:
    """The ids of each pair, cut to what the model has learned to read."""
    rules, limit = translator.data.cleaning, translator.model.config.max_length
    encoded = encode_pairs(
        [
            SentencePair(normalize(pair.source, rules), normalize(pair.target, rules))
            for pair in pairs
        ],
        translator.source_tokenizer,
        translator.target_tokenizer,
        SequenceFormat.of(translator.data),
    )
    num_cut = sum(_length(pair) > limit for pair in encoded)
    if num_cut:
        logger.warning(
            "pairs of more than %d tokens, whose loss is that of their beginning: %d",
            limit,
            num_cut,
        )
    cut = [TokenPair(pair.source_ids[:limit], pair.target_ids[:limit]) for pair in encoded]
    return [pair for pair in cut if len(pair.source_ids) and len(pair.target_ids)]


def _length(pair: TokenPair) -> int:
    return max(len(pair.source_ids), len(pair.target_ids))


def _exp(loss: float) -> float:
    return math.inf if loss > MAX_EXPONENT else math.exp(loss)
