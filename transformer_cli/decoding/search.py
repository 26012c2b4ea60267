"""Greedy and beam search over next-token log-probabilities; knows no model and no text."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from transformer_cli.decoding.hypotheses import Beams, Hypotheses, length_penalties, rows_to_keep
from transformer_cli.decoding.top_k import largest

__all__ = ["DecoderState", "Hypotheses", "Symbols", "beam_search", "greedy_search"]


class DecoderState(Protocol):
    """What a search asks of a model: R rows, each the prefix of one hypothesis."""

    def advance(self, last_ids: Tensor) -> Tensor:
        """Append one token per row, (R,) int64; returns log-probabilities of the next, (R, V).

        The returned tensor is the caller's to write into.
        """

    def select(self, rows: Tensor) -> None:
        """Make row i what was row `rows[i]`, (R2,) int64: keeps, reorders, repeats and drops."""


@dataclass(frozen=True, slots=True)
class Symbols:
    """The ids that mean something to a search."""

    pad_id: int
    sos_id: int
    eos_id: int | None
    """None: there is no end symbol, and every hypothesis takes as many steps as it may."""
    forbidden_ids: tuple[int, ...] = ()
    """Never chosen; nor are `pad_id` and `sos_id`."""

    def forbid_in(self, log_probs: Tensor) -> Tensor:
        """(R, V) in at least float32, impossible where a token must not be chosen."""
        if log_probs.dtype not in (torch.float32, torch.float64):
            log_probs = log_probs.float()
        for forbidden_id in {self.pad_id, self.sos_id, *self.forbidden_ids}:
            log_probs[:, forbidden_id] = -torch.inf
        return log_probs


def greedy_search(
    state: DecoderState, symbols: Symbols, max_lengths: Tensor, *, length_penalty: float = 0.0
) -> Hypotheses:
    """Take the most probable token at every step, up to the end symbol.

    Args:
        state: one row per sentence.
        symbols: where to begin, where to end, what never to choose.
        max_lengths: (B,) int64, on the state's device: most tokens, the end symbol included.
        length_penalty: alpha of Wu et al. 2016; changes the scores alone.
    """
    longest = int(max_lengths.max())
    sentences = torch.arange(len(max_lengths), device=max_lengths.device)  # of each row
    ids = max_lengths.new_full((len(sentences), longest), symbols.pad_id)
    lengths = torch.zeros_like(max_lengths)
    totals = torch.zeros_like(max_lengths, dtype=torch.float32)
    totals[max_lengths < 1] = -torch.inf
    last_ids = torch.full_like(sentences, symbols.sos_id)
    is_open = max_lengths > 0
    for step in range(longest):
        log_probs = symbols.forbid_in(state.advance(last_ids))  # (R, V)
        totals = totals.to(log_probs.dtype)
        best, last_ids = largest(log_probs)
        totals[sentences] += best.where(is_open, 0.0)
        ids[sentences, step] = last_ids.where(is_open, symbols.pad_id)
        lengths[sentences] += is_open
        is_open = is_open & (best > -torch.inf) & (max_lengths[sentences] > step + 1)
        if symbols.eos_id is not None:
            is_open = is_open & (last_ids != symbols.eos_id)
        num_open = int(is_open.sum())  # the one synchronisation of a step
        if num_open == 0:
            break
        kept = rows_to_keep(is_open, num_open)
        if kept is not None:
            state.select(kept)
            sentences, last_ids, is_open = sentences[kept], last_ids[kept], is_open[kept]
    is_possible = totals > -torch.inf
    lengths = lengths.where(is_possible, 0)
    scores = totals / length_penalties(longest, length_penalty, totals)[lengths]
    ids = ids[:, : int(lengths.max())].where(is_possible.unsqueeze(1), symbols.pad_id)
    return Hypotheses(ids.unsqueeze(1), lengths.unsqueeze(1), scores.unsqueeze(1))


def beam_search(
    state: DecoderState,
    symbols: Symbols,
    max_lengths: Tensor,
    *,
    beam_size: int,
    length_penalty: float = 0.0,
    num_best: int = 1,
) -> Hypotheses:
    """Follow the `beam_size` best hypotheses of each sentence, open and finished ones together.

    A hypothesis that reaches the maximal length counts as finished without an end symbol. The
    search of a sentence ends when no open hypothesis could still come among its `num_best`.

    Args:
        state: one row per sentence; `beam_size` rows per sentence after the first step.
        symbols: where to begin, where to end, what never to choose.
        max_lengths: (B,) int64, on the state's device: most tokens, the end symbol included.
        beam_size: W; may be larger than the vocabulary.
        length_penalty: alpha of Wu et al. 2016; 0 compares plain log-probabilities.
        num_best: N, hypotheses returned per sentence, at most `beam_size`.
    """
    if not 1 <= num_best <= beam_size:
        raise ValueError(f"num_best ({num_best}) must be from 1 to beam_size ({beam_size})")
    log_probs = symbols.forbid_in(state.advance(torch.full_like(max_lengths, symbols.sos_id)))
    longest = max(1, int(max_lengths.max()))
    penalties = length_penalties(longest, length_penalty, log_probs)
    beams = Beams(max_lengths, penalties, beam_size)
    beams.extend(log_probs, symbols.eos_id)
    # It ends: no hypothesis stays open at its maximal length.
    while (going_on := beams.continue_with(num_best)) is not None:
        rows, last_ids = going_on
        state.select(rows)
        log_probs = symbols.forbid_in(state.advance(last_ids))  # (b * W, V)
        beams.extend(log_probs, symbols.eos_id)
    return beams.best(num_best, symbols.pad_id)
