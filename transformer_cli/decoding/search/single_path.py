"""Searches without a beam: each hypothesis gets one token at every step, and tokens never change later.

Greedy search takes the best token. Sampling draws one at random, from the model's distribution or from its most probable part.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_cli.config import DecodingConfig, SamplingConfig
from transformer_cli.decoding.engine import SpecialIds
from transformer_cli.decoding.search.beam import (
    Hypotheses,
    Scorer,
    SearchHook,
    largest,
    length_penalties,
    next_scores,
    rows_to_keep,
    select,
    top_k,
)


def greedy_search(
    scorer: Scorer,
    *,
    special_ids: SpecialIds,
    max_lengths: Tensor,
    options: DecodingConfig,
    hooks: Sequence[SearchHook] = (),
    draw: "DrawnToken | None" = None,
) -> Hypotheses:
    """Take the token with the largest score at every step, or a drawn one, up to [EOS] or the maximal length.

    Args:
        scorer: one row per sentence; after the first step, one row for each path: several of a sentence are drawn.
        special_ids: [SOS] begins, [EOS] ends, [PAD] fills. Hooks, not the search, ban these tokens.
        max_lengths: (B,) int64, on the scorer's device: the largest number of tokens, [EOS] included.
        options: only the length penalty is used; it changes the returned score, not the tokens.
        hooks: change the scores before each choice, in this order.
        draw: draws the tokens; None: of equal scores, the first is taken.

    Returns:
        The hypotheses of a sentence in the order of its paths, not sorted.
    """
    num_paths = 1 if draw is None else draw.num_paths
    longest = int(max_lengths.max())
    last_ids = torch.full_like(max_lengths, special_ids.sos_id)
    if num_paths > 1:
        max_lengths = max_lengths.repeat_interleave(num_paths)
    paths = torch.arange(len(max_lengths), device=max_lengths.device)  # of each row
    ids = max_lengths.new_full((len(paths), longest), special_ids.pad_id)
    lengths = torch.zeros_like(max_lengths)
    totals = torch.zeros_like(max_lengths, dtype=torch.float32)
    totals[max_lengths < 1] = -torch.inf
    is_open = max_lengths > 0
    for step in range(longest):
        scores = next_scores(scorer, hooks, last_ids)  # (R, V)
        if step == 0 and num_paths > 1:
            rows = paths // num_paths
            select(scorer, hooks, rows)
            scores = scores[rows]
        totals = totals.to(scores.dtype)
        chosen, last_ids = largest(scores) if draw is None else draw.choose(scores, paths)
        totals[paths] += chosen.where(is_open, 0.0)
        ids[paths, step] = last_ids.where(is_open, special_ids.pad_id)
        lengths[paths] += is_open
        is_open = is_open & (chosen > -torch.inf) & (max_lengths[paths] > step + 1)
        is_open = is_open & (last_ids != special_ids.eos_id)
        num_open = int(is_open.sum())  # the CPU waits here for the device
        if num_open == 0:
            break
        kept = rows_to_keep(is_open, num_open)
        if kept is not None:
            select(scorer, hooks, kept)
            paths, last_ids, is_open = paths[kept], last_ids[kept], is_open[kept]
    is_possible = totals > -torch.inf
    lengths = lengths.where(is_possible, 0)
    totals = totals / length_penalties(longest, options, totals)[lengths]
    ids = ids[:, : int(lengths.max())].where(is_possible.unsqueeze(1), special_ids.pad_id)
    sentence_tensors = (tensor.unflatten(0, (-1, num_paths)) for tensor in (ids, lengths, totals))
    return Hypotheses(*sentence_tensors)


class DrawnToken:
    """A token drawn from softmax(scores / temperature), after the filters top_k, top_p and min_p, in this order.

    A row needs one random number in each step, which is a function of the seed of its sentence, the number of the
    sample and the step.
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
        self._seeds = substream(seeds.unsqueeze(1), paths).flatten()  # (B * num_paths,)
        self._step = torch.zeros_like(seeds[:1])  # (1,)

    def choose(self, scores: Tensor, paths: Tensor) -> tuple[Tensor, Tensor]:
        """Called once at each step.

        Args:
            scores: (R, V) log-probabilities, -inf for a banned token.
            paths: (R,) int64, which of the B * `num_paths` hypotheses each row is.

        Returns:
            (R,) the log-probability of the chosen token, -inf if no token is possible; (R,) int64 its id.
        """
        seeds = substream(self._seeds[paths], self._step)
        self._step = self._step + 1
        logits, ids = filtered(scores, self._settings)  # (R, C); (R, C) or (1, C)
        chosen = ids.expand(len(scores), -1).gather(1, drawn(logits, seeds))
        return scores.gather(1, chosen).squeeze(1), chosen.squeeze(1)


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


def drawn(logits: Tensor, seeds: Tensor) -> Tensor:
    """(R, C) logits and (R,) int64 seeds to (R, 1) int64: a place drawn from softmax(logits) in each row.

    It is the first place up to which the probabilities sum up to more than a uniform random number. A place with a
    probability of 0 is never drawn.
    """
    # The sum of a large vocabulary needs float64, or rare tokens would not change it; Apple GPUs have none.
    precise = torch.float32 if logits.device.type == "mps" else torch.float64
    cumulative = logits.softmax(-1).cumsum(-1, dtype=precise)
    total = cumulative[:, -1:]
    targets = uniform_numbers(seeds, precise).unsqueeze(1) * total
    targets = targets.minimum(torch.nextafter(total, torch.zeros_like(total)))
    places = torch.searchsorted(cumulative, targets, right=True)
    return places.clamp(max=logits.shape[1] - 1)  # for a row without a possible token


def sample_search(
    scorer: Scorer,
    *,
    special_ids: SpecialIds,
    max_lengths: Tensor,
    options: DecodingConfig,
    hooks: Sequence[SearchHook] = (),
    seeds: Tensor,
) -> Hypotheses:
    """Draw `num_best` translations of each sentence, independently, up to [EOS] or the maximal length.

    The score of a sample is that of the other searches: its log-probability at temperature 1, divided by the
    length penalty. The samples are in the order in which they were drawn, and may be equal.

    Args:
        scorer: one row per sentence; after the first step, `num_best` rows per sentence.
        options: with `sampling`.
        seeds: (B,) int64, on the scorer's device, one for each sentence.
        special_ids, max_lengths, hooks: as in `greedy_search`.
    """
    assert options.sampling is not None
    draw = DrawnToken(options.sampling, seeds, options.num_best)
    return greedy_search(
        scorer, special_ids=special_ids, max_lengths=max_lengths, options=options, hooks=hooks, draw=draw
    )


# Random numbers without a generator: each number is a function of its seed. So the random numbers of a hypothesis do not depend on
# the other rows of its batch, or on their order. Source: SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom
# number generators"), with the mixing function that Stafford published as variant 13.
# As signed numbers of 64 bits: PyTorch's integers have a sign, and their products wrap around.
_GAMMA = 0x9E3779B97F4A7C15 - 2**64
_FACTORS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)


def substream(seeds: Tensor, numbers: Tensor) -> Tensor:
    """The seed of the stream with this number below each seed; all int64, of shapes that broadcast."""
    return _mixed(seeds + (numbers + 1) * _GAMMA)


def uniform_numbers(seeds: Tensor, dtype: torch.dtype) -> Tensor:
    """(R,) int64 seeds to (R,) independent numbers, uniform between 0 and 1."""
    return (_shifted(_mixed(seeds), 11).to(dtype) + 0.5) * 2.0**-53


def _mixed(numbers: Tensor) -> Tensor:
    """Numbers of 64 bits, each of whose bits depends on all bits of the old number."""
    numbers = (numbers ^ _shifted(numbers, 30)) * _FACTORS[0]
    numbers = (numbers ^ _shifted(numbers, 27)) * _FACTORS[1]
    return numbers ^ _shifted(numbers, 31)


def _shifted(numbers: Tensor, places: int) -> Tensor:
    """A shift to the right that fills with zeros, not with copies of the sign."""
    return (numbers >> places) & ((1 << (64 - places)) - 1)
