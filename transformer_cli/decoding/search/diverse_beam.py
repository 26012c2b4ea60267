"""Diverse beam search: groups of beams, each of which avoids the tokens of the groups before it."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import SpecialIds
from transformer_cli.decoding.search.beam import (
    Beams,
    Hypotheses,
    Scorer,
    SearchHook,
    length_penalties,
    next_scores,
    select,
)


def diverse_beam_search(
    scorer: Scorer,
    *,
    special_ids: SpecialIds,
    max_lengths: Tensor,
    options: DecodingConfig,
    hooks: Sequence[SearchHook] = (),
) -> Hypotheses:
    """The `num_best` best of the hypotheses that all groups find, without copies; scores are without the penalty.

    A group is a beam search for its beam_size / groups best hypotheses. At each step the groups take turns. For a
    group, each token costs `strength` times the number of hypotheses in the beams of earlier groups that took
    the token at this step. A group whose search of a sentence has ended is not counted any more.

    Args:
        scorer: one row per sentence; after the first step, at most `beam_size` rows per sentence.
        options: with `diversity`.
        special_ids, max_lengths, hooks: as in `greedy_search`.

    Source: Vijayakumar et al. 2016, "Diverse Beam Search", algorithm 1, with its Hamming diversity.
    """
    assert options.diversity is not None
    first_ids = torch.full_like(max_lengths, special_ids.sos_id)
    scores = next_scores(scorer, hooks, first_ids)  # (B, V)
    longest = max(1, int(max_lengths.max()))
    penalties = length_penalties(longest, options, scores)
    size = options.beam_size // options.diversity.groups
    strength, eos_id = options.diversity.strength, special_ids.eos_id
    groups = [_Group(max_lengths, penalties, size) for _ in range(options.diversity.groups)]
    _extend(groups, [scores] * len(groups), strength, eos_id)
    while (moved := _continued(groups, len(scores))) is not None:
        select(scorer, hooks, moved.rows, keeps_sources=moved.keeps_sources)
        scores = next_scores(scorer, hooks, moved.last_ids)  # (R, V)
        _extend(groups, scores.split([group.num_rows for group in groups]), strength, eos_id)
    group_hypotheses = [group.best(special_ids.pad_id) for group in groups]
    return _merged(group_hypotheses, options.num_best, special_ids.pad_id)


class _Group:
    """The beams of one group, and what their hypotheses have paid."""

    def __init__(self, max_lengths: Tensor, penalties: Tensor, size: int) -> None:
        self.beams = Beams(max_lengths, penalties, size)
        self.size = size
        self.first_row = 0  # its rows in the scorer are side by side
        self.num_rows = len(max_lengths)
        self._penalties = penalties
        self._paid = penalties.new_zeros(len(max_lengths), size)  # (B, W): the sum of costs of each slot
        self._paid_by_step: list[Tensor] = []

    def extend(self, log_probs: Tensor, costs: Tensor, eos_id: int) -> None:
        """Extend the beams; a token costs what `costs` (B, V) says."""
        newest_costs = costs[self.beams.sentences]  # (b, V)
        rows_per_sentence = len(log_probs) // len(newest_costs)
        log_probs = log_probs - newest_costs.repeat_interleave(rows_per_sentence, dim=0)
        self.beams.extend(log_probs, eos_id)
        sentences, parents, tokens = self.beams.newest
        paid = self._paid[sentences].gather(1, parents) + newest_costs.gather(1, tokens)
        self._paid = self._paid.index_copy(0, sentences, paid)
        self._paid_by_step.append(self._paid)

    def add_counts(self, counts: Tensor) -> None:
        """Add the newest tokens of the hypotheses in the beam to `counts`, (B, V)."""
        sentences, _, tokens = self.beams.newest
        is_counted = self.beams.is_newest_in_beam().to(counts.dtype)
        counts.index_put_((sentences.unsqueeze(1), tokens), is_counted, accumulate=True)

    def best(self, pad_id: int) -> Hypotheses:
        """Its hypotheses, with the scores that they have without costs."""
        found = self.beams.best(self.size, pad_id)
        paid = torch.stack(self._paid_by_step, dim=1).flatten(1)  # (B, steps * W)
        paid = paid.gather(1, self.beams.origins(self.size))
        scores = found.scores + paid / self._penalties[found.lengths]
        return Hypotheses(found.ids, found.lengths, scores)


def _extend(groups: Sequence[_Group], scores: Sequence[Tensor], strength: float, eos_id: int) -> None:
    """One step of all groups in turn; a group without rows has ended."""
    counts = scores[0].new_zeros(len(groups[0].beams), scores[0].shape[1])  # (B, V)
    for group, group_scores in zip(groups, scores, strict=True):
        if group.num_rows:
            group.extend(group_scores, strength * counts, eos_id)
            group.add_counts(counts)


class _Moved(NamedTuple):
    """The rows of the next step, all groups side by side; as `Beams.continue_with` returns them."""

    rows: Tensor
    last_ids: Tensor
    keeps_sources: bool


def _continued(groups: Sequence[_Group], num_rows: int) -> _Moved | None:
    """Let each group end the searches that it can end; None if all have ended. `num_rows`: of the last step."""
    rows, last_ids, keeps_sources = [], [], True
    first_row = 0
    for group in groups:
        continued = group.beams.continue_with(group.size) if group.num_rows else None
        keeps_sources = keeps_sources and continued is not None and continued[2]
        if continued is None:
            group.num_rows = 0
            continue
        rows.append(continued[0] + group.first_row)
        last_ids.append(continued[1])
        group.first_row, group.num_rows = first_row, len(continued[0])
        first_row += group.num_rows
    if not rows:
        return None
    # At the first step, all groups continue the same rows.
    keeps_sources = keeps_sources and first_row == num_rows
    return _Moved(torch.cat(rows), torch.cat(last_ids), keeps_sources)


def _merged(group_hypotheses: Sequence[Hypotheses], num_best: int, pad_id: int) -> Hypotheses:
    """The best of all groups; of equal hypotheses, only that of the first group."""
    longest = max(found.ids.shape[-1] for found in group_hypotheses)
    padded = [F.pad(found.ids, (0, longest - found.ids.shape[-1]), value=pad_id) for found in group_hypotheses]
    ids = torch.cat(padded, dim=1)  # (B, N, T)
    lengths = torch.cat([found.lengths for found in group_hypotheses], dim=1)
    scores = torch.cat([found.scores for found in group_hypotheses], dim=1)
    is_equal = (ids.unsqueeze(2) == ids.unsqueeze(1)).all(-1)  # (B, N, N)
    is_copy = is_equal.tril(-1).any(-1)
    scores = scores.where(~is_copy, -torch.inf)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    scores, order = scores[:, :num_best], order[:, :num_best]
    lengths = lengths.gather(1, order).where(scores > -torch.inf, 0)
    ids = ids.gather(1, order.unsqueeze(-1).expand(-1, -1, longest))
    ids = ids.where((scores > -torch.inf).unsqueeze(-1), pad_id)
    return Hypotheses(ids[..., : int(lengths.max())], lengths, scores)
