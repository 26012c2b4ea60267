"""The hooks for the smallest length and against repetitions: what they allow is found, and nothing else."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.decoding.search.beam import ForcedPrefix, MinimalLengths, NoRepeatedNgrams

from ..chains import (
    EOS,
    NO_START,
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

LENGTHS = [1, 4, 2, 3, 1, 4, 4, 1, 2, 3, 4, 4]


def has_repetition(tokens: tuple[int, ...], size: int) -> bool:
    ngrams = [tokens[start : start + size] for start in range(len(tokens) - size + 1)]
    return len(set(ngrams)) < len(ngrams)


def no_repeated_ngrams(size: int, num_sentences: int) -> NoRepeatedNgrams:
    return NoRepeatedNgrams(size, torch.zeros(num_sentences, dtype=torch.int64))


@pytest.mark.long
@given(seed=seeds, alpha=alphas, size=st.integers(1, 4), num_best=st.integers(1, 4))
def test_a_wide_beam_without_repeated_ngrams_finds_what_brute_force_finds(
    seed: int, alpha: float, size: int, num_best: int
) -> None:
    tables = random_chain(seed, num_sentences=len(LENGTHS), vocabulary=5)
    hypotheses = run_beam(
        MarkovChain(tables),
        LENGTHS,
        [*NO_START, no_repeated_ngrams(size, len(LENGTHS))],
        beam_size=100,
        length_penalty=alpha,
        num_best=num_best,
    )
    for sentence, max_length in enumerate(LENGTHS):
        table = tables[sentence]
        expected = [
            score for score, tokens in best_by_brute_force(table, max_length, alpha) if not has_repetition(tokens, size)
        ]
        actual = found(hypotheses, sentence)
        assert scores_of(actual) == pytest.approx(expected[:num_best], abs=1e-12)
        assert not any(has_repetition(tokens, size) for _, tokens in actual)
        assert_scores_are_of_the_tokens(actual, table, alpha)


@pytest.mark.long
@given(seed=seeds, size=st.integers(1, 4), beam_size=st.integers(1, 4))
def test_the_ngrams_follow_the_rows_of_any_search(seed: int, size: int, beam_size: int) -> None:
    lengths = [2, 15, 7, 15, 1]
    tables = random_chain(seed, num_sentences=5, vocabulary=7)
    tables[:, :, EOS] -= 3.0
    of_beam = run_beam(
        MarkovChain(tables), lengths, [*NO_START, no_repeated_ngrams(size, 5)], beam_size=beam_size, num_best=beam_size
    )
    greedy = run_greedy(MarkovChain(tables), lengths, [*NO_START, no_repeated_ngrams(size, 5)])
    for hypotheses in (of_beam, greedy):
        for sentence in range(5):
            assert found(hypotheses, sentence)
            for _, tokens in found(hypotheses, sentence):
                assert not has_repetition(tokens, size)


@pytest.mark.long
@given(seed=seeds, size=st.integers(1, 3))
def test_greedy_search_takes_the_best_token_that_repeats_no_ngram(seed: int, size: int) -> None:
    [table] = tables = random_chain(seed, num_sentences=1, vocabulary=6)
    tokens: tuple[int, ...] = ()
    while len(tokens) < 12 and EOS not in tokens:
        allowed = [token for token in range(2, 6) if not has_repetition((*tokens, token), size)]
        tokens += (max(allowed, key=table[(1, *tokens)[-1]].__getitem__),)
    [(_, greedy)] = found(run_greedy(MarkovChain(tables), [12], [*NO_START, no_repeated_ngrams(size, 1)]), 0)
    assert greedy == tokens


@pytest.mark.long
@given(seed=seeds, beam_size=st.integers(1, 3))
def test_a_forced_prefix_may_repeat_itself_but_what_follows_may_not(seed: int, beam_size: int) -> None:
    prefixes: list[list[int]] = [[3, 4, 3, 4], [], [3, 3, 3]]
    tables = random_chain(seed, num_sentences=3, vocabulary=8)
    tables[:, :, EOS] = -math.inf
    forced = ForcedPrefix(prefixes, continuing_ids=[], device=torch.device("cpu"))
    free = NoRepeatedNgrams(2, torch.tensor([4, 0, 3]))
    hypotheses = run_beam(MarkovChain(tables), [8] * 3, [*NO_START, free, forced], beam_size=beam_size)
    for sentence, prefix in enumerate(prefixes):
        tokens = found(hypotheses, sentence)[0][1]
        assert tokens[: len(prefix)] == tuple(prefix)
        pairs = [*pairwise(tokens)]
        for place in range(max(0, len(prefix) - 1), len(pairs)):
            assert pairs[place] not in pairs[:place]


@pytest.mark.long
@given(seed=seeds, alpha=alphas, data=st.data())
def test_a_wide_beam_with_smallest_lengths_finds_what_brute_force_finds(
    seed: int, alpha: float, data: st.DataObject
) -> None:
    smallest = [data.draw(st.integers(1, length)) for length in LENGTHS]
    tables = random_chain(seed, num_sentences=len(LENGTHS), vocabulary=5)
    hook = MinimalLengths(torch.tensor(smallest), EOS)
    hypotheses = run_beam(
        MarkovChain(tables), LENGTHS, [*NO_START, hook], beam_size=100, length_penalty=alpha, num_best=3
    )
    for sentence, max_length in enumerate(LENGTHS):
        expected = [
            score
            for score, tokens in best_by_brute_force(tables[sentence], max_length, alpha)
            if len(tokens) >= smallest[sentence]
        ]
        actual = found(hypotheses, sentence)
        assert scores_of(actual) == pytest.approx(expected[:3], abs=1e-12)


@pytest.mark.parametrize("search", [run_greedy, lambda *args: run_beam(*args, beam_size=3)])
def test_a_model_that_ends_at_once_gets_exactly_the_smallest_length(
    search: Callable[..., object],
) -> None:
    tables = random_chain(0, num_sentences=5, vocabulary=6)
    tables[:, :, EOS] = math.log(0.999)
    smallest = [1, 3, 5, 2, 7]
    hook = MinimalLengths(torch.tensor(smallest), EOS)
    hypotheses = search(MarkovChain(tables), [7] * 5, [*NO_START, hook])
    for sentence, length in enumerate(smallest):
        tokens = found(hypotheses, sentence)[0][1]  # type: ignore[arg-type]
        assert len(tokens) == length
        assert EOS not in tokens[:-1]
