"""The scores of the next token, as a search sees them: a scorer gives them, and hooks change them before the search chooses."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import Request
from transformer_cli.model.precision import at_least_float32
from transformer_cli.text.token_bytes import BETWEEN_CHARACTERS, BytePieces


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
    scores = at_least_float32(scorer.advance(last_ids))
    for hook in hooks:
        scores = hook.adjust(scores, last_ids)
    return scores


def select(
    scorer: Scorer, hooks: Sequence[SearchHook], rows: Tensor, *, keeps_sources: bool = False
) -> None:
    scorer.select(rows, keeps_sources=keeps_sources)
    for hook in hooks:
        hook.select(rows)


def length_penalties(max_length: int, options: DecodingConfig, like: Tensor) -> Tensor:
    """(max_length + 1,): the divisor of the log-probability for every length from 0; it never falls with the length.

    gnmt: ((5 + length) / 6) ^ alpha. average: length ^ alpha.

    Source: gnmt is in Wu et al. 2016, equation 14.
    """
    lengths = torch.arange(max_length + 1, dtype=torch.float64)
    if options.length_normalization == "gnmt":
        divisors = (5.0 + lengths) / 6.0
    else:
        divisors = lengths.clamp(min=1.0)  # no hypothesis is shorter than one token
    return (divisors**options.length_penalty).to(device=like.device, dtype=like.dtype)


class BannedTokens:
    """A hook without state: the search never chooses these tokens."""

    def __init__(self, banned_ids: Iterable[int]) -> None:
        self._banned_ids = sorted(set(banned_ids))

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        """(R, V) with -inf for the banned tokens."""
        for banned_id in self._banned_ids:
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

    def __init__(self, pieces: BytePieces, max_lengths: Tensor) -> None:
        """
        Args:
            pieces: the bytes of the vocabulary.
            max_lengths: (B,) int64, on the device of the search: the largest number of tokens.
        """
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
        # Nearly all rows are between characters, where only few tokens are banned. Here the CPU waits for the device.
        [others] = torch.nonzero(
            (self._states != BETWEEN_CHARACTERS) | (limits < self._last_limit), as_tuple=True
        )
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
        of_all = penalty.where(self._max_lengths <= self._step, 0.0)
        scores = scores + of_all.unsqueeze(1)
        scores[:, self._eos_id] += penalty - of_all
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
        of_forced = scores.gather(1, place)
        only_forced = torch.full_like(scores, -torch.inf).scatter(1, place, of_forced)
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
        self._sentences = torch.arange(
            len(requests), device=device
        )  # (R,): the sentence of each row
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
