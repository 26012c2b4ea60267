"""The likelihood of given translations: one log-probability for each pair of a source and a target."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from transformer_cli.decoding.engine import ExplainingEngine, Request
from transformer_cli.decoding.translator import Translator
from transformer_cli.process.errors import UsageError

logger = logging.getLogger(__name__)


class PairLikelihood(NamedTuple):
    """How probable one target is after its source."""

    log_probability: float
    """log P(target | source), in nats: the sum over the tokens of the target, [EOS] included."""
    num_tokens: int
    """The number of tokens of the target, [EOS] included."""


def pair_likelihoods(
    translator: Translator, pairs: Sequence[tuple[str, str]]
) -> list[PairLikelihood]:
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
    sources = [
        pipeline.source_ids(pipeline.normalize_source(source).strip()) for source, _ in pairs
    ]
    targets = [
        pipeline.target_ids(pipeline.normalize_target(target).strip()) for _, target in pairs
    ]
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
        of_tokens = explanation.token_log_probs
        found[index] = PairLikelihood(float(of_tokens.sum(dtype="float64")), len(of_tokens))
    return found
