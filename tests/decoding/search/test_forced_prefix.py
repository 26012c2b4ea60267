"""Forced prefixes: the search finds the best of all hypotheses that begin with the prefix."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.decoding.search.beam import ForcedPrefix

from ..chains import (
    NO_START,
    SOS,
    MarkovChain,
    alphas,
    assert_scores_are_of_the_tokens,
    best_by_brute_force,
    found,
    random_chain,
    run_beam,
    run_greedy,
    scores_of,
    seeds,
)

VOCABULARY, MAX_LENGTH = 7, 5
CONTINUING = (5, 6)
prefixes = st.lists(st.lists(st.integers(3, VOCABULARY - 1), max_size=3).map(tuple), min_size=3, max_size=3)


def hooks(of_sentences: list[tuple[int, ...]]) -> list[object]:
    device = torch.device("cpu")
    return [*NO_START, ForcedPrefix(of_sentences, continuing_ids=CONTINUING, device=device)]


def begins(tokens: tuple[int, ...], prefix: tuple[int, ...]) -> bool:
    """Whether the tokens begin with the prefix, and go on with a new word."""
    following = tokens[len(prefix) : len(prefix) + 1]
    return tokens[: len(prefix)] == prefix and not (prefix and {*following} & {*CONTINUING})


@pytest.mark.heavy
@given(seed=seeds, of_sentences=prefixes, alpha=alphas, num_best=st.integers(1, 4))
def test_a_wide_beam_finds_the_best_of_all_hypotheses_that_begin_with_the_prefix(
    seed: int, of_sentences: list[tuple[int, ...]], alpha: float, num_best: int
) -> None:
    tables = random_chain(seed, num_sentences=3, vocabulary=VOCABULARY)
    hypotheses = run_beam(
        MarkovChain(tables),
        [MAX_LENGTH] * 3,
        hooks(of_sentences),  # type: ignore[arg-type]
        beam_size=3000,
        length_penalty=alpha,
        num_best=num_best,
    )
    for sentence, prefix in enumerate(of_sentences):
        everything = best_by_brute_force(tables[sentence], MAX_LENGTH, alpha)
        expected = [pair for pair in everything if begins(pair[1], prefix)][:num_best]
        actual = found(hypotheses, sentence)
        assert scores_of(actual) == pytest.approx(scores_of(expected))
        # Hypotheses with the same pairs of tokens in another order have equal scores, and either may come first.
        assert len({tokens for _, tokens in actual}) == len(actual)
        assert all(begins(tokens, prefix) for _, tokens in actual)
        assert_scores_are_of_the_tokens(actual, tables[sentence], alpha)


@pytest.mark.long
@given(seed=seeds, of_sentences=prefixes)
def test_greedy_search_goes_on_from_the_prefix(seed: int, of_sentences: list[tuple[int, ...]]) -> None:
    tables = random_chain(seed, num_sentences=3, vocabulary=VOCABULARY)
    hypotheses = run_greedy(MarkovChain(tables), [MAX_LENGTH] * 3, hooks(of_sentences))  # type: ignore[arg-type]
    for sentence, prefix in enumerate(of_sentences):
        tokens: tuple[int, ...] = prefix
        while len(tokens) < MAX_LENGTH and tokens[-1:] != (2,):
            following = _following(tables[sentence], tokens or (SOS,))
            if prefix and len(tokens) == len(prefix):
                following[list(CONTINUING)] = -torch.inf
            tokens += (int(following.argmax()),)
        assert found(hypotheses, sentence)[0][1] == tokens


def _following(table: Tensor, tokens: tuple[int, ...]) -> Tensor:
    scores = table[tokens[-1]].clone()
    scores[:2] = -torch.inf
    return scores
