"""Search hooks: their state follows the rows of the search, and they change what is chosen."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.decoding.hooks import BannedTokens
from transformer_cli.decoding.hypotheses import Hypotheses

from .chains import (
    EOS,
    NO_START,
    PAD,
    SOS,
    MarkovChain,
    alphas,
    assert_scores_are_of_the_tokens,
    best_by_brute_force,
    best_by_plain_beam,
    found,
    random_chain,
    run_beam,
    run_greedy,
    scores_of,
    seeds,
)


class NoTokenTwice:
    """Bans the tokens that a hypothesis already has."""

    def __init__(self) -> None:
        self.is_used = torch.empty(0)  # (R, V) bool
        self.num_rows: list[int] = []  # at each step

    def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
        if not self.num_rows:
            self.is_used = torch.zeros_like(scores, dtype=torch.bool)
        self.num_rows.append(len(last_ids))
        self.is_used[range(len(last_ids)), last_ids] = True
        return scores.masked_fill(self.is_used, -torch.inf)

    def select(self, rows: Tensor) -> None:
        self.is_used = self.is_used[rows]


# Twelve sentences of different lengths: some finish early, and their rows are dropped.
LENGTHS = [1, 4, 2, 3, 1, 4, 4, 1, 2, 3, 4, 4]


@given(seed=seeds, alpha=alphas)
def test_greedy_search_takes_the_best_token_that_the_hook_allows(seed: int, alpha: float) -> None:
    tables = random_chain(seed, num_sentences=len(LENGTHS), vocabulary=7)
    hook = NoTokenTwice()
    hypotheses = run_greedy(MarkovChain(tables), LENGTHS, [*NO_START, hook], length_penalty=alpha)
    assert hook.num_rows[0] > hook.num_rows[-1]
    for sentence, (table, max_length) in enumerate(zip(tables, LENGTHS, strict=True)):
        tokens: tuple[int, ...] = ()
        while len(tokens) < max_length and EOS not in tokens:
            following = table[(SOS, *tokens)[-1]].tolist()
            allowed = {*range(7)} - {PAD, SOS, *tokens}
            tokens += (max(allowed, key=following.__getitem__),)
        [(score, found_tokens)] = found(hypotheses, sentence)
        assert found_tokens == tokens
        assert_scores_are_of_the_tokens([(score, tokens)], table, alpha)


@given(seed=seeds, alpha=alphas, num_best=st.integers(1, 4))
def test_a_wide_beam_with_a_hook_finds_what_brute_force_finds(
    seed: int, alpha: float, num_best: int
) -> None:
    tables = random_chain(seed, num_sentences=len(LENGTHS), vocabulary=6)
    hypotheses = run_beam(
        MarkovChain(tables),
        LENGTHS,
        [*NO_START, NoTokenTwice()],
        beam_size=100,
        length_penalty=alpha,
        num_best=num_best,
    )
    for sentence, max_length in enumerate(LENGTHS):
        expected = best_by_brute_force(tables[sentence], max_length, alpha, repeats=False)
        actual = found(hypotheses, sentence)
        assert [tokens for _, tokens in actual] == [tokens for _, tokens in expected[:num_best]]
        assert_scores_are_of_the_tokens(actual, tables[sentence], alpha)


@given(seed=seeds, alpha=alphas, beam_size=st.integers(1, 6))
def test_the_state_of_a_hook_follows_the_rows_of_any_beam(
    seed: int, alpha: float, beam_size: int
) -> None:
    tables = random_chain(seed, num_sentences=len(LENGTHS), vocabulary=7)
    scorer, hook = MarkovChain(tables), NoTokenTwice()
    hypotheses = run_beam(
        scorer,
        LENGTHS,
        [*NO_START, hook],
        beam_size=beam_size,
        length_penalty=alpha,
        num_best=beam_size,
    )
    assert hook.num_rows == scorer.num_rows
    for sentence, max_length in enumerate(LENGTHS):
        table = tables[sentence]
        expected = best_by_plain_beam(table, max_length, alpha, beam_size, repeats=False)
        actual = found(hypotheses, sentence)
        assert scores_of(actual) == pytest.approx(scores_of(expected[:beam_size]), abs=1e-12)
        assert all(len(set(tokens)) == len(tokens) for _, tokens in actual)
        assert_scores_are_of_the_tokens(actual, table, alpha)


@pytest.mark.parametrize("search", [run_greedy, lambda *args: run_beam(*args, beam_size=3)])
def test_a_hypothesis_without_an_allowed_token_gives_no_translation(
    search: Callable[..., Hypotheses],
) -> None:
    everything = BannedTokens(range(6))
    hypotheses = search(MarkovChain(random_chain(0, num_sentences=2, vocabulary=6)), [3, 3], [everything])  # fmt: skip
    assert hypotheses.scores.isneginf().all()
    assert not hypotheses.lengths.any()


def test_hooks_act_in_order_on_what_the_one_before_returned() -> None:
    seen = []

    class Note:
        def adjust(self, scores: Tensor, last_ids: Tensor) -> Tensor:
            seen.append((last_ids.tolist(), scores.isneginf().nonzero()[:, 1].tolist()))
            return scores

        def select(self, rows: Tensor) -> None:
            seen.append(("select", rows.tolist()))

    tables = random_chain(0, num_sentences=1, vocabulary=6)
    tables[:, :, EOS] = -9.0
    run_greedy(MarkovChain(tables), [1], [Note(), BannedTokens([PAD, SOS]), Note()])
    assert seen == [([SOS], []), ([SOS], [PAD, SOS])]


def test_the_search_itself_bans_nothing() -> None:
    tables = random_chain(0, num_sentences=1, vocabulary=6)
    tables[:, :, SOS] = 0.0
    [(_, tokens)] = found(run_greedy(MarkovChain(tables), [2], []), 0)
    assert tokens == (SOS, SOS)
