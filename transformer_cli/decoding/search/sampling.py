"""Sampling: tokens are drawn at random from the model's distribution, or from its most probable part."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_cli.config import DecodingConfig, SamplingConfig
from transformer_cli.decoding.engine import SpecialIds
from transformer_cli.decoding.search.hooks import SearchHook
from transformer_cli.decoding.search.hypotheses import Hypotheses
from transformer_cli.decoding.search.noise import gumbel_noise, substream
from transformer_cli.decoding.search.scorer import Scorer
from transformer_cli.decoding.search.single_path import follow_paths
from transformer_cli.decoding.search.top_k import largest, top_k


class DrawnToken:
    """A token drawn from softmax(scores / temperature), after the filters top_k, top_p and min_p, in this order.

    The token with the largest (score / temperature + Gumbel noise) has exactly this distribution.

    Source: the Gumbel-max trick is in Gumbel 1954 and Maddison, Tarlow and Minka 2014, section 2.
    """

    def __init__(self, settings: SamplingConfig, seeds: Tensor, num_paths: int) -> None:
        """
        Args:
            settings: temperature and filters.
            seeds: (B,) int64, one for each sentence; equal seeds draw equal random numbers.
            num_paths: number of samples of each sentence.
        """
        self.num_paths = num_paths
        self._settings = settings
        paths = torch.arange(num_paths, device=seeds.device)
        self._seeds = substream(seeds.unsqueeze(1), paths).flatten()  # (B * num_paths,), then (R,)
        self._step = torch.zeros_like(seeds[:1])  # (1,)

    def choose(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """See `Choice`."""
        seeds = substream(self._seeds, self._step)
        self._step = self._step + 1
        logits, ids = filtered(scores, self._settings)  # (R, C); (R, C) or (1, C)
        _, places = largest(logits + gumbel_noise(seeds, ids, scores.dtype))
        chosen = ids.expand(len(scores), -1).gather(1, places.unsqueeze(1))
        return scores.gather(1, chosen).squeeze(1), chosen.squeeze(1)

    def select(self, rows: Tensor) -> None:
        """The seeds move with their rows."""
        self._seeds = self._seeds[rows]


def filtered(scores: Tensor, settings: SamplingConfig) -> tuple[Tensor, Tensor]:
    """The candidates of a draw.

    Args:
        scores: (R, V) log-probabilities.
        settings: temperature and filters.

    Returns:
        (R, C) scores / temperature, -inf for what the filters leave out; and the token ids, (R, C) or (1, C) int64.
    """
    vocabulary = scores.shape[1]
    if settings.top_k is not None:
        no_offsets = scores.new_zeros(len(scores), 1)
        scores, ids = top_k(scores.unsqueeze(1), no_offsets, min(settings.top_k, vocabulary))
    elif settings.top_p is not None:
        scores, ids = scores.sort(dim=1, descending=True, stable=True)
    else:
        ids = torch.arange(vocabulary, device=scores.device).unsqueeze(0)
    logits = scores / settings.temperature
    if settings.top_p is not None:
        probabilities = logits.softmax(-1)
        probability_before = probabilities.cumsum(-1) - probabilities
        logits = logits.where(probability_before < settings.top_p, -torch.inf)
    if settings.min_p is not None:
        smallest = logits.amax(-1, keepdim=True) + math.log(settings.min_p)
        logits = logits.where(logits >= smallest, -torch.inf)
    return logits, ids


def sample_search(
    scorer: Scorer,
    special_ids: SpecialIds,
    max_lengths: Tensor,
    options: DecodingConfig,
    hooks: Sequence[SearchHook],
    seeds: Tensor,
) -> Hypotheses:
    """Draw `num_best` translations of each sentence, independently, up to [EOS] or the maximal length.

    The score of a sample is that of the other searches: its log-probability at temperature 1, divided by the
    length penalty. The samples are in the order in which they were drawn, and may be equal.

    Args:
        scorer: one row per sentence; after the first step, `num_best` rows per sentence.
        options: with `sampling`.
        seeds: (B,) int64, on the scorer's device, one for each sentence.
        special_ids, max_lengths, hooks: as in `follow_paths`.
    """
    assert options.sampling is not None
    choice = DrawnToken(options.sampling, seeds, options.num_best)
    return follow_paths(scorer, special_ids, max_lengths, options, hooks, choice)
