"""Beam search: each step keeps the best hypotheses of each sentence, open and finished; the scores of the next token, and the hooks that change them."""

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.acceleration.native_kernels import native_top_k
from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import Request, SpecialIds, length_penalty
from transformer_cli.model.layers import at_least_float32
from transformer_cli.text.tokenizer_file import BETWEEN_CHARACTERS, BytePieces

# Rows of finished sentences are dropped only when they are at least this share of all rows, because each drop
# copies the keys and values of all rows that stay.
DROPPED_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """N token sequences of each sentence of a batch: the best ones, best first and all different; or samples."""

    ids: Tensor
    """(B, N, T) int64: the tokens, with [EOS] if the hypothesis reached it, then padding."""
    lengths: Tensor
    """(B, N) int64: the number of tokens, [EOS] included; 0 if the sentence has fewer hypotheses."""
    scores: Tensor
    """(B, N): log-probability / length penalty; -inf if the sentence has fewer hypotheses."""


def rows_to_keep(is_open: Tensor, num_open: int) -> Tensor | None:
    """The indices of the open rows in `is_open` (b,) bool; None if too few have finished, so that all rows stay: never if all have."""
    if num_open > (1.0 - DROPPED_SHARE) * len(is_open):
        return None
    return (~is_open).int().argsort(stable=True)[:num_open]


class Step(NamedTuple):
    """The tokens that one step appended to the b sentences that were still searched."""

    sentences: Tensor  # (b,) int64
    parents: Tensor  # (b, W) int64: the slot of the previous step to which the token is appended
    tokens: Tensor  # (b, W) int64


class Candidates(NamedTuple):
    """The best W continuations of one step, best first, and what became of each; all (b, W).

    A continuation that does not exist has the total -inf.
    """

    parents: Tensor  # int64: the slot of the previous step to which the token is appended
    tokens: Tensor  # int64
    totals: Tensor  # log-probabilities of the hypotheses with these tokens
    scores: Tensor  # log-probability / length penalty
    is_kept: Tensor  # bool: whether they are in the beam, open or finished
    is_end: Tensor  # bool: whether they end here, by [EOS] or at the maximal length


class Beams:
    """The beam of each sentence, and its W best finished hypotheses.

    The beam of a step holds the W best hypotheses by score, open and finished ones together; only the open ones
    in it are continued. The W best finished ones are remembered even outside the beam. So a beam of one
    is greedy search.
    """

    def __init__(self, max_lengths: Tensor, penalties: Tensor, beam_size: int) -> None:
        self._penalties = penalties
        self._beam_size = beam_size
        self._steps: list[Step] = []
        self.newest_candidates: Candidates
        """What the last call of `extend` chose among, and what it decided."""
        # From here to `_origins`: for the b sentences still searched.
        self.sentences = torch.arange(len(max_lengths), device=max_lengths.device)
        """(b,) int64: the sentences that are still searched."""
        self._max_lengths = max_lengths
        # (b, W), at first (b, 1): log-probabilities, -inf for a slot without an open hypothesis.
        self._totals = torch.zeros_like(max_lengths, dtype=penalties.dtype).unsqueeze(1)
        self._totals[max_lengths < 1] = -torch.inf
        # (b, W), best first: scores, -inf if there are fewer, and the step and slot of the last token,
        # as step * W + slot.
        self._finished = self._totals.new_full((len(max_lengths), beam_size), -torch.inf)
        self._origins = max_lengths.new_zeros((len(max_lengths), beam_size))
        # (B, W): these two for all B sentences; a row is set when its search has ended.
        self._all_finished = self._finished.clone()
        self._all_origins = self._origins.clone()

    def extend(self, log_probs: Tensor, eos_id: int) -> None:
        """Replace each open hypothesis by its continuations, and keep the best W.

        Args:
            log_probs: (b * slots, V), of the next token.
            eos_id: the token that finishes a hypothesis.
        """
        candidates = log_probs.unflatten(0, self._totals.shape)
        _, num_slots, vocabulary = candidates.shape
        num_candidates = min(self._beam_size, num_slots * vocabulary)
        totals, places = top_k(candidates, self._totals, num_candidates)
        if num_candidates < self._beam_size:
            num_missing = self._beam_size - num_candidates
            totals = F.pad(totals, (0, num_missing), value=-torch.inf)  # (b, W)
            places = F.pad(places, (0, num_missing))
        parents = places // vocabulary
        tokens = places - parents * vocabulary
        scores = totals / self._penalties[len(self._steps) + 1]
        # A candidate is in the beam if fewer than W are before it: better candidates, and finished hypotheses that are as good.
        num_finished = (self._finished.unsqueeze(1) >= scores.unsqueeze(2)).sum(2)
        num_before = torch.arange(self._beam_size, device=scores.device) + num_finished
        self._append(parents, tokens, totals, num_before < self._beam_size, eos_id)

    def _append(self, parents: Tensor, tokens: Tensor, totals: Tensor, is_kept: Tensor, eos_id: int) -> None:
        """Append the chosen tokens to their parents; all tensors (b, W).

        Args:
            totals: the log-probabilities of the hypotheses with these tokens.
            is_kept: whether these hypotheses are in the beam.
        """
        self._steps.append(Step(self.sentences, parents, tokens))
        length = len(self._steps)
        is_end = (self._max_lengths <= length).unsqueeze(1) | (tokens == eos_id)
        scores = totals / self._penalties[length]
        self.newest_candidates = Candidates(parents, tokens, totals, scores, is_kept, is_end)
        # The W best finished hypotheses, those of this step among them; -inf means: not finished.
        slots = torch.arange(self._beam_size, device=scores.device)
        origins = ((length - 1) * self._beam_size + slots).expand_as(scores)
        rivals = torch.cat([self._finished, scores.where(is_kept & is_end, -torch.inf)], dim=1)
        best = rivals.argsort(dim=1, descending=True, stable=True)[:, : self._beam_size]
        self._finished = rivals.gather(1, best)
        self._origins = torch.cat([self._origins, origins], dim=1).gather(1, best)
        self._totals = totals.where(is_kept & ~is_end, -torch.inf)

    def length_penalty(self, length: int) -> float:
        """The divisor of the log-probability of a hypothesis with this number of tokens."""
        return float(self._penalties[length])

    def __len__(self) -> int:
        """B, the number of all sentences."""
        return len(self._all_origins)

    @property
    def newest(self) -> Step:
        """The tokens that the last call of `extend` appended."""
        return self._steps[-1]

    def is_newest_in_beam(self) -> Tensor:
        """(b, W) bool: whether the hypothesis that got each of the newest tokens is in the beam, open or finished."""
        return self.newest_candidates.is_kept & (self.newest_candidates.scores > -torch.inf)

    def continue_with(self, num_best: int) -> tuple[Tensor, Tensor, bool] | None:
        """End the search of a sentence when no open hypothesis can beat its `num_best` best.

        Returns:
            Two (b * W,) int64 tensors, for the slots of sentences still searched: the row of the previous
            step to continue, and the last token. Then a bool: True if each row keeps its sentence, so rows moved only
            within their sentence. None if every sentence has ended.
        """
        _, parents, tokens = self._steps[-1]
        num_slots = 1 if len(self._steps) == 1 else self._beam_size  # of the step before
        first_rows = torch.arange(0, len(parents) * num_slots, num_slots, device=parents.device)
        rows = first_rows.unsqueeze(1) + parents
        # The best score that an open hypothesis can still get: more tokens never raise its log-probability, and
        # the penalty is largest at the maximal length (alpha is never negative).
        best_possible = self._totals.amax(dim=1) / self._penalties[self._max_lengths]
        is_open = best_possible > self._finished[:, num_best - 1]
        self._totals = self._totals.where(is_open.unsqueeze(1), -torch.inf)
        num_open = int(is_open.sum())  # the CPU waits here for the device
        kept = rows_to_keep(is_open, num_open)
        if kept is not None:
            self._all_finished[self.sentences] = self._finished
            self._all_origins[self.sentences] = self._origins
            if num_open == 0:
                return None
            self.sentences, self._max_lengths = self.sentences[kept], self._max_lengths[kept]
            self._totals = self._totals[kept]
            self._finished, self._origins = self._finished[kept], self._origins[kept]
            rows, tokens = rows[kept], tokens[kept]
        keeps_sources = kept is None and num_slots == self._beam_size
        return rows.flatten(), tokens.flatten(), keeps_sources

    def origins(self, num_best: int) -> Tensor:
        """(B, num_best) int64: step * W + slot of the last token of each hypothesis of `best`."""
        return self._all_origins[:, :num_best]

    def best(self, num_best: int, pad_id: int) -> Hypotheses:
        """The `num_best` best of each sentence, whose searches have ended; follows each from its last token back to its first."""
        scores = self._all_finished[:, :num_best]
        origins = self._all_origins[:, :num_best]
        lengths = (origins // self._beam_size + 1).where(scores > -torch.inf, 0)
        slots = origins % self._beam_size
        ids = lengths.new_full((int(lengths.max()), *lengths.shape), pad_id)  # (T, B, N)
        for step in reversed(range(len(ids))):
            sentences, parents, tokens = self._steps[step]
            here = slots[sentences]
            is_within = lengths[sentences] > step
            ids[step, sentences] = tokens.gather(1, here).where(is_within, pad_id)
            slots[sentences] = parents.gather(1, here).where(is_within, here)
        return Hypotheses(ids.movedim(0, -1), lengths, scores)


class BeamObserver(Protocol):
    """Is told about each step of a beam search, and changes nothing."""

    def saw(self, scores: Tensor, beams: Beams) -> None:
        """Called after each step.

        Args:
            scores: (b * slots, V), among which the step chose: the row of sentence i and slot j of the previous step
                is row i * slots + j. At the first step there is one slot.
            beams: their `newest_candidates` are what the step chose.
        """


def beam_search(
    scorer: "Scorer",
    *,
    special_ids: SpecialIds,
    max_lengths: Tensor,
    options: DecodingConfig,
    hooks: "Sequence[SearchHook]" = (),
    observer: BeamObserver | None = None,
) -> Hypotheses:
    """Follow the `beam_size` best hypotheses of each sentence, open and finished ones together.

    A hypothesis that reaches the maximal length counts as finished, without [EOS]. The search of a sentence
    ends when no open hypothesis can become one of its `num_best` best.

    Args:
        scorer: one row per sentence; after the first step, `beam_size` rows per sentence.
        options: beam size (which may be larger than the vocabulary), length penalty, `num_best`.
        special_ids, max_lengths, hooks: as in `greedy_search`.
        observer: is told about each step; None: nobody is.
    """
    first_ids = torch.full_like(max_lengths, special_ids.sos_id)
    scores = next_scores(scorer, hooks, first_ids)  # (B, V)
    longest = max(1, int(max_lengths.max()))
    penalties = length_penalties(longest, options, scores)
    beams = Beams(max_lengths, penalties, options.beam_size)
    beams.extend(scores, special_ids.eos_id)
    if observer is not None:
        observer.saw(scores, beams)
    # Not endless: at maximal length each hypothesis is finished.
    while (continued := beams.continue_with(options.num_best)) is not None:
        rows, last_ids, keeps_sources = continued
        select(scorer, hooks, rows, keeps_sources=keeps_sources)
        scores = next_scores(scorer, hooks, last_ids)  # (b * W, V)
        beams.extend(scores, special_ids.eos_id)
        if observer is not None:
            observer.saw(scores, beams)
    return beams.best(options.num_best, special_ids.pad_id)


# The largest of many scores.


BLOCK_WIDTH = 64


def top_k(scores: Tensor, offsets: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest numbers of `scores + offsets`, over all W rows of a sentence.

    Of equal numbers, the first one comes first. The row is cut into blocks. The maximum of each block is fast to compute, and the
    k blocks with the largest maxima contain the k largest numbers; only these blocks are searched. On a CPU, `torch.topk` over a
    whole vocabulary takes three to six times as long, and it does not define which of several equal numbers it returns. A
    compiled kernel finds the same in one pass over float32 scores on a CPU, if there is one (kernels/top_k.c).

    Args:
        scores: (B, W, V).
        offsets: (B, W), added to each number of a row.
        k: at most W * V.

    Returns:
        Values (B, k), largest first, and their positions among the W * V numbers, (B, k) int64.
    """
    if (found := native_top_k(scores, offsets, k)) is not None:
        return found
    num_rows, width = scores.shape[1:]
    num_blocks = width // BLOCK_WIDTH
    if num_rows * num_blocks <= 2 * k:
        return _stable_top_k((scores + offsets.unsqueeze(-1)).flatten(1), k)
    positions = _positions_of_best_blocks(scores, offsets, k)  # (B, P)
    values = scores.flatten(1).gather(1, positions) + offsets.gather(1, positions // width)
    best, chosen = _stable_top_k(values, k)
    return best, positions.gather(1, chosen)


def largest(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The largest number of each row of (R, V) and its position: (R,), and (R,) int64."""
    if (found := native_top_k(scores.unsqueeze(1), None, 1)) is not None:
        values, positions = found
        return values.squeeze(1), positions.squeeze(1)
    # Of equal numbers, `max` returns the first.
    width = scores.shape[1]
    num_blocks = width // BLOCK_WIDTH
    if num_blocks < 2:
        return scores.max(1)
    blocks = scores[:, : num_blocks * BLOCK_WIDTH].unflatten(1, (num_blocks, BLOCK_WIDTH))
    best_block = blocks.amax(-1).argmax(1, keepdim=True)  # (R, 1)
    block = blocks.gather(1, best_block.unsqueeze(-1).expand(-1, 1, BLOCK_WIDTH)).squeeze(1)
    values, within = block.max(1)
    positions = best_block.squeeze(1) * BLOCK_WIDTH + within
    if num_blocks * BLOCK_WIDTH < width:
        rest, within = scores[:, num_blocks * BLOCK_WIDTH :].max(1)
        is_larger = rest > values
        values = rest.where(is_larger, values)
        positions = (num_blocks * BLOCK_WIDTH + within).where(is_larger, positions)
    return values, positions


def _positions_of_best_blocks(scores: Tensor, offsets: Tensor, k: int) -> Tensor:
    """(B, P) ascending positions; the k largest numbers are among them."""
    num_rows, width = scores.shape[1:]
    num_blocks = width // BLOCK_WIDTH
    blocks = scores[..., : num_blocks * BLOCK_WIDTH].unflatten(-1, (num_blocks, BLOCK_WIDTH))
    block_maxima = blocks.amax(-1) + offsets.unsqueeze(-1)  # (B, W, number of blocks)
    best_blocks = _stable_top_k(block_maxima.flatten(1), k)[1]
    starts = best_blocks // num_blocks * width + best_blocks % num_blocks * BLOCK_WIDTH
    within = torch.arange(BLOCK_WIDTH, device=scores.device)
    positions = (starts.unsqueeze(-1) + within).flatten(1)
    if num_blocks * BLOCK_WIDTH < width:
        rest = torch.arange(num_blocks * BLOCK_WIDTH, width, device=scores.device)
        rows = torch.arange(num_rows, device=scores.device).unsqueeze(-1)
        rest_of_rows = (rows * width + rest).flatten().expand(len(scores), -1)
        positions = torch.cat([positions, rest_of_rows], dim=1)
    return positions.sort(dim=1).values


MOST_SORTED = 4096
"""A GPU sorts rows up to this size in one kernel, which starts sooner than the eleven that avoid it."""


def _are_sorted_at_once(numbers: Tensor) -> bool:
    return numbers.device.type not in ("cpu", "mps") and numbers.shape[1] <= MOST_SORTED


def _stable_top_k(numbers: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The first k numbers of a stable descending sort, and their positions; long rows, and all rows on a CPU, are not sorted."""
    if _are_sorted_at_once(numbers):
        values, order = numbers.sort(dim=1, descending=True, stable=True)
        return values[:, :k], order[:, :k]
    size = numbers.shape[1]
    smallest_in = numbers.topk(k).values[:, -1:]
    earliness = torch.arange(size, 0, -1, device=numbers.device, dtype=torch.int32)
    priority = (numbers >= smallest_in) * earliness + (numbers > smallest_in) * size
    chosen = priority.topk(k).indices  # all above the k-th number, then the first of its equals
    values, order = numbers.gather(1, chosen).sort(dim=1, descending=True, stable=True)
    return values, chosen.gather(1, order)


# The scores of the next token, as a search sees them: a scorer gives them, and hooks change them before the search chooses.


class Scorer(Protocol):
    """Gives the scores of the next token for R rows; each row is the beginning of one hypothesis."""

    def advance(self, last_ids: Tensor) -> Tensor:
        """Append one token to each row and score the next one.

        Args:
            last_ids: (R,) int64; [SOS] for all rows at the first step.

        Returns:
            (R, V) log-probabilities of the next token. The caller may write into the tensor.
        """

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """New row i is old row `rows[i]`: this keeps, reorders, repeats and drops rows.

        Args:
            rows: (R2,) int64, for any number of rows.
            keeps_sources: True: each new row has the same source sentence as the old row at its index.
        """


class AttendingScorer(Scorer, Protocol):
    """A scorer that can also tell what each row attends to."""

    def attention(self) -> Tensor:
        """(R, S): the weights with which each row read the source when its newest token was scored; a row sums to 1."""


class SearchHook(Protocol):
    """Changes the scores of the next token at every step of a search.

    A hook with state serves one search: build a new one for each. It may keep anything per row (R rows, one
    for each hypothesis). At the first step there is one row for each sentence, in the order of the batch.
    Later the search moves, repeats and drops rows, and then calls `select`. At each step:

    1. `select(rows)`, once or several times, if rows have moved since the step before;
    2. `adjust(scores, last_ids)`, once.

    Some rows belong to no open hypothesis, for example those of a finished sentence that is not dropped yet.
    The search ignores what a hook returns for them. If several hooks are given, each receives the scores
    that the hook before it returned.
    """

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """Return the scores among which the search chooses.

        Args:
            scores: (R, V) log-probabilities of the next token, float32 at least. The hook may write into it.
            last_ids: (R,) int64, the last token of each row; [SOS] at the first step.

        Returns:
            (R, V), the same tensor or another of its dtype. -inf bans a token; a row of -inf alone ends its
            hypothesis without a translation. No score may be NaN or greater than 0: the beam search ends a sentence
            as soon as no open hypothesis can win, and it assumes that scores only fall.
        """

    def select(self, rows: Tensor) -> None:
        """New row i is old row `rows[i]`: the same as `Scorer.select`."""


def next_scores(scorer: Scorer, hooks: Sequence[SearchHook], last_ids: Tensor) -> Tensor:
    """(R,) int64 to (R, V) in float32 at least, changed by the hooks."""
    scores = scorer.advance(last_ids)
    if scores.dtype != torch.float32:
        scores = at_least_float32(scores)
    for hook in hooks:
        scores = hook.adjust(scores, last_ids)
    return scores


def select(scorer: Scorer, hooks: Sequence[SearchHook], rows: Tensor, *, keeps_sources: bool = False) -> None:
    scorer.select(rows, keeps_sources=keeps_sources)
    for hook in hooks:
        hook.select(rows)


def length_penalties(max_length: int, options: DecodingConfig, like: Tensor) -> Tensor:
    """(max_length + 1,): `length_penalty` for every length from 0, in the dtype and on the device of `like`."""
    normalization, alpha = options.length_normalization, options.length_penalty
    divisors = [length_penalty(length, normalization, alpha) for length in range(max_length + 1)]
    return torch.tensor(divisors, device=like.device, dtype=like.dtype)


@functools.lru_cache(maxsize=256)
def penalties_up_to(max_length: int, normalization: str, alpha: float) -> NDArray[np.float32]:
    """`length_penalties` for a search outside of PyTorch; not to be written into."""
    lengths = range(max_length + 1)
    return np.array([length_penalty(one, normalization, alpha) for one in lengths], np.float32)


# Search hooks.


@dataclass(frozen=True, slots=True)
class BannedTokens:
    """A hook without state: the search never chooses these tokens."""

    banned_ids: Sequence[int]

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with -inf for the banned tokens."""
        for banned_id in self.banned_ids:
            scores[:, banned_id] = -torch.inf
        return scores

    def select(self, rows: Tensor) -> None:
        """Nothing to do: all rows have the same bans."""


class MinimalLengths:
    """A hook that bans [EOS] until a hypothesis has the smallest number of tokens of its sentence."""

    def __init__(self, min_lengths: Tensor, eos_id: int) -> None:
        """
        Args:
            min_lengths: (B,) int64, on the device of the search: the smallest number of tokens, [EOS] included.
            eos_id: the token that ends a hypothesis.
        """
        self._num_missing = min_lengths  # (R,): number of tokens that each row must still get
        self._eos_id = eos_id

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with -inf for [EOS] in hypotheses that it would make too short."""
        is_too_early = self._num_missing > 1
        scores[:, self._eos_id] = scores[:, self._eos_id].where(~is_too_early, -torch.inf)
        self._num_missing = self._num_missing - 1
        return scores

    def select(self, rows: Tensor) -> None:
        """The numbers move with their rows."""
        self._num_missing = self._num_missing[rows]


class WholeCharacters:
    """A hook for tokens that are bytes: each hypothesis of the search is UTF-8, without a broken character.

    Such a token is banned if the bytes so far do not allow it, or if the tokens that are left cannot end its
    character.
    """

    def __init__(self, pieces: BytePieces, max_lengths: Tensor, *, looks_at_rows: bool = True) -> None:
        """
        Args:
            pieces: the bytes of the vocabulary.
            max_lengths: (B,) int64, on the device of the search: the largest number of tokens.
            looks_at_rows: whether only the rows inside a character are looked up, which is faster on a CPU; on a GPU, the CPU
                would wait for the list of them in each step.
        """
        self._looks_at_rows = looks_at_rows
        self._next_states = torch.from_numpy(pieces.next_states).to(max_lengths.device)
        self._is_banned = torch.from_numpy(~pieces.is_allowed).to(max_lengths.device)
        self._last_limit = self._is_banned.shape[1] - 1
        [self._never_first] = self._is_banned[BETWEEN_CHARACTERS, -1].nonzero(as_tuple=True)
        self._states = torch.zeros_like(max_lengths)  # (R,)
        self._num_left = max_lengths  # (R,): number of tokens that each row may still get

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with -inf for tokens that break a character."""
        self._states = self._next_states[self._states, last_ids].clamp(min=0)
        self._num_left = (self._num_left - 1).clamp(min=0)
        limits = self._num_left.clamp(max=self._last_limit)
        if not self._looks_at_rows:
            return scores.masked_fill_(self._is_banned[self._states, limits], -torch.inf)
        # Nearly all rows are between characters, where only few tokens are banned.
        [others] = torch.nonzero((self._states != BETWEEN_CHARACTERS) | (limits < self._last_limit), as_tuple=True)
        scores_of_others = scores[others]
        scores.index_fill_(1, self._never_first, -torch.inf)
        if len(others):
            is_banned = self._is_banned[self._states[others], limits[others]]
            scores[others] = scores_of_others.masked_fill(is_banned, -torch.inf)
        return scores

    def select(self, rows: Tensor) -> None:
        """The states of the hypotheses move with their rows."""
        self._states, self._num_left = self._states[rows], self._num_left[rows]


class NoRepeatedNgrams:
    """Bans each token that would complete an n-gram which the hypothesis already has. A forced prefix may repeat itself.

    Source: Paulus, Xiong and Socher 2018, section 2.5.
    """

    def __init__(self, size: int, prefix_lengths: Tensor) -> None:
        """
        Args:
            size: n, at least 1.
            prefix_lengths: (B,) int64, on the device of the search: the number of forced tokens of each sentence.
        """
        self._size = size
        self._prefix_lengths = prefix_lengths  # (R,)
        self._ids: Tensor | None = None  # (R, T): the tokens of each row, after [SOS]

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with -inf for tokens that repeat an n-gram."""
        if self._ids is None:  # before the first token; [SOS] is in no n-gram
            self._ids = last_ids.new_empty(len(last_ids), 0)
            return scores
        self._ids = torch.cat([self._ids, last_ids.unsqueeze(1)], dim=1)
        num_starts = self._ids.shape[1] - self._size + 1
        if num_starts < 1:
            return scores
        # Each n-gram so far is n - 1 tokens and a last one; that one is banned where the n - 1 tokens are the newest.
        newest = self._ids[:, num_starts:].unsqueeze(1)  # (R, 1, n - 1)
        beginnings = self._ids.unfold(1, self._size, 1)[..., :-1]  # (R, number of n-grams, n - 1)
        is_free = (self._prefix_lengths <= self._ids.shape[1]).unsqueeze(1)
        is_banned = (beginnings == newest).all(-1) & is_free
        endings = self._ids[:, self._size - 1 :]
        limits = scores.new_full((), torch.inf).where(~is_banned, -torch.inf)
        return scores.scatter_reduce(1, endings, limits, "amin")

    def select(self, rows: Tensor) -> None:
        """The tokens of the hypotheses move with their rows."""
        self._prefix_lengths = self._prefix_lengths[rows]
        if self._ids is not None:
            self._ids = self._ids[rows]


class CoveragePenalty:
    """Adds cp = beta * sum over source tokens i of log(min(coverage of i, 1)) to the score of a finished hypothesis.

    The coverage of a source token is the sum of the attention that it got at all steps. cp is never above 0.

    The search divides a sum of log-probabilities by a length penalty d(T). So the hook adds cp * d(T) to the
    log-probability of the token that ends a hypothesis of T tokens: [EOS], and at the maximal length every token. Open
    hypotheses have no penalty. Scores only fall by it, so the bound with which a beam search ends stays valid.

    Source: Wu et al. 2016, equation 14.
    """

    def __init__(
        self,
        attention: Callable[[], Tensor],
        source_mask: Tensor | None,
        max_lengths: Tensor,
        eos_id: int,
        options: DecodingConfig,
    ) -> None:
        """
        Args:
            attention: (R, S) floats, the attention of the step whose scores are adjusted; a row sums to 1.
            source_mask: (B, S) bool, True for a token of the source; None: there is no padding.
            max_lengths: (B,) int64, on the device of the search: the largest number of tokens.
            eos_id: the token that ends a hypothesis.
            options: beta is the coverage penalty; the length penalty is that of the search.
        """
        self._attention = attention
        self._source_mask = source_mask  # (R, S)
        self._max_lengths = max_lengths  # (R,)
        self._eos_id = eos_id
        self._options = options
        self._coverage: Tensor | None = None  # (R, S)
        self._length_penalties: Tensor | None = None
        self._step = 0

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with the penalty for tokens that end a hypothesis."""
        attention = self._attention().to(scores.dtype)
        if self._coverage is None or self._length_penalties is None:
            longest = max(1, int(self._max_lengths.max()))
            self._length_penalties = length_penalties(longest, self._options, scores)
            self._coverage = torch.zeros_like(attention)
        self._coverage = self._coverage + attention
        self._step += 1
        penalty = self._penalty(self._coverage) * self._length_penalties[self._step]  # (R,)
        all_tokens_penalty = penalty.where(self._max_lengths <= self._step, 0.0)
        scores = scores + all_tokens_penalty.unsqueeze(1)
        scores[:, self._eos_id] += penalty - all_tokens_penalty
        return scores

    def _penalty(self, coverage: Tensor) -> Tensor:
        # The attention of a token can underflow to 0, whose logarithm would forbid every translation.
        logs = coverage.clamp(min=torch.finfo(coverage.dtype).tiny, max=1.0).log()
        if self._source_mask is not None:
            logs = logs.where(self._source_mask, 0.0)
        return self._options.coverage_penalty * logs.sum(-1)

    def select(self, rows: Tensor) -> None:
        """The coverage moves with the rows."""
        self._max_lengths = self._max_lengths[rows]
        if self._source_mask is not None:
            self._source_mask = self._source_mask[rows]
        if self._coverage is not None:
            self._coverage = self._coverage[rows]


_OVER = -1


class ForcedPrefix:
    """A hook: each hypothesis begins with the prefix of its sentence, and a new word or a mark follows it.

    The score of a hypothesis contains the log-probabilities of the forced tokens, so that the hypotheses of a
    sentence are those that a search without a hook would find among all that begin like this.
    """

    def __init__(
        self,
        prefixes: Sequence[Sequence[int]],
        *,
        continuing_ids: Sequence[int],
        device: torch.device,
    ) -> None:
        """
        Args:
            prefixes: the token ids for each sentence of the batch; empty for a sentence that may begin as it likes.
            continuing_ids: the tokens that continue a word. They never follow a prefix, which ends with a whole word.
            device: the device of the search.
        """
        lengths = torch.tensor([len(prefix) for prefix in prefixes])
        self._longest = int(lengths.max())
        forced = torch.full((len(prefixes), self._longest + 1), _OVER)
        for row, prefix in enumerate(prefixes):
            forced[row, : len(prefix)] = torch.tensor(prefix, dtype=torch.int64)
        self._forced = forced.to(device)  # (R, P + 1): the token of each step, or _OVER
        # A sentence without a prefix has no step after its prefix.
        self._step_after = lengths.where(lengths > 0, _OVER).to(device)  # (R,)
        self._continuing_ids = torch.tensor(continuing_ids, dtype=torch.int64, device=device)
        self._step = 0

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with -inf for all tokens but the forced one, and behind the prefix for tokens that continue a word."""
        step = self._step
        self._step += 1
        if step > self._longest:
            return scores
        forced = self._forced[:, step].unsqueeze(1)  # (R, 1)
        place = forced.clamp(min=0)
        forced_scores = scores.gather(1, place)
        only_forced = torch.full_like(scores, -torch.inf).scatter(1, place, forced_scores)
        scores = scores.where(forced == _OVER, only_forced)
        is_after = (self._step_after == step).unsqueeze(1)
        kept = scores[:, self._continuing_ids]
        scores[:, self._continuing_ids] = kept.masked_fill(is_after, -torch.inf)
        return scores

    def select(self, rows: Tensor) -> None:
        """The prefixes move with their rows; the step is the same for all rows."""
        if self._step <= self._longest:
            self._forced, self._step_after = self._forced[rows], self._step_after[rows]


class UnwantedSentences:
    """A hook that bans all tokens of unwanted sentences, so that the search drops their rows."""

    def __init__(
        self,
        requests: Sequence[Request],
        unwanted: Callable[[], Collection[Request]],
        device: torch.device,
    ) -> None:
        """
        Args:
            requests: B of them, those of the search.
            unwanted: see `InterruptibleEngine.interruptible`; it is called once at each step.
            device: of the search.
        """
        self._requests = requests
        self._unwanted = unwanted
        self._num_seen = 0
        self._sentences = torch.arange(len(requests), device=device)  # (R,): the sentence of each row
        self._is_unwanted: Tensor | None = None  # (B,) bool

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with rows of -inf for unwanted sentences."""
        unwanted = self._unwanted()
        if len(unwanted) > self._num_seen:
            self._num_seen, unwanted = len(unwanted), frozenset(unwanted)
            is_unwanted = [request in unwanted for request in self._requests]
            self._is_unwanted = torch.tensor(is_unwanted, device=self._sentences.device)
        if self._is_unwanted is None:
            return scores
        ends = self._is_unwanted[self._sentences]
        return scores.masked_fill_(ends.unsqueeze(1), -torch.inf)

    def select(self, rows: Tensor) -> None:
        """Each row keeps its sentence."""
        self._sentences = self._sentences[rows]
