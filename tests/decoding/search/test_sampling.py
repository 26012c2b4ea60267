"""Sampling: the distribution of the samples, the filters, and what a sample depends on."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.config import DecodingConfig, SamplingConfig
from transformer_cli.decoding.search import sample_search
from transformer_cli.decoding.search.beam import BannedTokens, Hypotheses, SearchHook
from transformer_cli.decoding.search.single_path import drawn, filtered, substream, uniform_numbers

from ..chains import (
    EOS,
    NO_END,
    NO_START,
    PAD,
    SOS,
    SPECIAL_IDS,
    MarkovChain,
    alphas,
    assert_scores_are_of_the_tokens,
    chain,
    every_sequence,
    found,
    log_probability,
    random_chain,
    run_greedy,
    seeds,
)


def run_sampling(
    tables: Tensor,
    max_lengths: list[int],
    seeds: list[int],
    hooks: list[SearchHook] | None = None,
    *,
    num_best: int = 1,
    length_penalty: float = 0.0,
    **sampling: Any,
) -> Hypotheses:
    options = DecodingConfig.model_construct(
        num_best=num_best, length_penalty=length_penalty, sampling=SamplingConfig(**sampling)
    )
    return sample_search(
        MarkovChain(tables),
        special_ids=SPECIAL_IDS,
        max_lengths=torch.tensor(max_lengths),
        options=options,
        hooks=NO_START if hooks is None else hooks,
        seeds=torch.tensor(seeds),
    )


def chi_square(counts: list[int], probabilities: list[float]) -> float:
    expected = [sum(counts) * probability for probability in probabilities]
    return sum((n - e) ** 2 / e for n, e in zip(counts, expected, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_sequences_are_as_frequent_as_the_softmax_says(temperature: float) -> None:
    tables = random_chain(5, num_sentences=1, vocabulary=5)
    tables[:, :, [PAD, SOS]] = -math.inf
    tempered = (tables[0] / temperature).log_softmax(-1)
    sequences = every_sequence(5, 2)
    probabilities = [math.exp(log_probability(tempered, tokens)) for tokens in sequences]
    assert sum(probabilities) == pytest.approx(1.0)
    hypotheses = run_sampling(tables, [2], [7], [], num_best=20_000, temperature=temperature)
    drawn = [tokens for _, tokens in found(hypotheses, 0)]
    counts = [drawn.count(tokens) for tokens in sequences]
    assert sum(counts) == 20_000
    # 99.9 % of the chi-square distribution with 6 degrees of freedom.
    assert len(sequences) == 7
    assert chi_square(counts, probabilities) < 22.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_numbers_of_seeds_are_uniform_and_independent(dtype: torch.dtype) -> None:
    below = substream(torch.arange(200).unsqueeze(1), torch.arange(500))
    numbers = uniform_numbers(below.flatten(), dtype).reshape(200, 500)
    assert numbers.dtype == dtype
    assert 0.0 < numbers.min() < 1e-4
    assert 1.0 - 1e-4 < numbers.max() <= 1.0
    counts = torch.histc(numbers.float(), 20, 0.0, 1.0)
    assert chi_square([int(n) for n in counts], [0.05] * 20) < 43.8  # 99.9 %, 19 degrees
    for pairs in ((numbers[:-1], numbers[1:]), (numbers[:, :-1], numbers[:, 1:])):
        both = torch.stack([of_pair.flatten() for of_pair in pairs])
        assert abs(both.corrcoef()[0, 1].item()) < 0.02


@pytest.mark.long
def test_rare_tokens_behind_probable_ones_are_drawn_as_often_as_they_should() -> None:
    # In float32, none of the 60,000 rare probabilities would change a sum of about 1.
    logits = torch.cat([torch.zeros(1), torch.full((60_000,), math.log(5e-8))])
    logits[30_000:40_000] = -math.inf
    share = 50_000 * 5e-8 / (1.0 + 50_000 * 5e-8)
    seeds = substream(torch.tensor(1), torch.arange(200))
    many = torch.cat([drawn(logits.expand(200, -1), substream(seeds, torch.tensor(n))) for n in range(20)])
    num_rare = int((many > 0).sum())
    assert num_rare == pytest.approx(4000 * share, abs=4.0 * math.sqrt(4000 * share))
    assert num_rare > 0
    assert not ((many >= 30_000) & (many < 40_000)).any()


def test_seeds_below_a_seed_are_all_different() -> None:
    below = substream(torch.arange(1000).unsqueeze(1), torch.arange(100))
    assert len(below.unique()) == 100_000


# The first outputs of SplitMix64 for the seed 1234567, as published on Rosetta Code.
@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, 6457827717110365317), (1, 3203168211198807973), (2, 9817491932198370423)],
)
def test_substreams_are_the_numbers_of_splitmix64(number: int, expected: int) -> None:
    assert int(substream(torch.tensor(1234567), torch.tensor(number))) % 2**64 == expected


@pytest.mark.heavy
@given(seed=seeds, alpha=alphas)
@pytest.mark.parametrize("limit", [{"temperature": 1e-9}, {"top_k": 1}, {"min_p": 1.0}, {"top_p": 1e-9}])
def test_the_limits_of_sampling_are_greedy_search(limit: dict[str, Any], seed: int, alpha: float) -> None:
    tables = random_chain(seed, num_sentences=4, vocabulary=70)
    lengths = [5, 0, 9, 1]
    greedy = run_greedy(MarkovChain(tables), lengths, length_penalty=alpha)
    sampled = run_sampling(tables, lengths, [seed] * 4, length_penalty=alpha, **limit)
    for sentence in range(4):
        assert found(sampled, sentence) == found(greedy, sentence)


def test_of_equal_scores_top_k_keeps_the_first_as_greedy_search_does() -> None:
    tables = torch.zeros(1, 200, 200, dtype=torch.float64).log_softmax(-1)
    greedy = run_greedy(MarkovChain(tables), [4], [BannedTokens([PAD, SOS, EOS])])
    sampled = run_sampling(tables, [4], [3], [BannedTokens([PAD, SOS, EOS])], top_k=1)
    assert found(sampled, 0) == found(greedy, 0)


@pytest.mark.long
@given(seed=seeds, num_best=st.integers(1, 4), data=st.data())
def test_a_sample_depends_neither_on_its_batch_nor_on_the_number_of_samples(
    seed: int, num_best: int, data: st.DataObject
) -> None:
    lengths = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=8))
    tables = random_chain(seed, num_sentences=len(lengths), vocabulary=6)
    numbers = [seed + sentence for sentence in range(len(lengths))]
    together = run_sampling(tables, lengths, numbers, num_best=num_best)
    for sentence, length in enumerate(lengths):
        alone = run_sampling(tables[sentence : sentence + 1], [length], [numbers[sentence]], num_best=9)
        assert found(together, sentence) == found(alone, 0)[:num_best]


def test_other_seeds_draw_other_samples_and_equal_seeds_the_same() -> None:
    tables = random_chain(1, num_sentences=1, vocabulary=40).expand(50, -1, -1)
    seeds = [*range(25), *range(25)]
    samples = run_sampling(tables, [8] * 50, seeds, [*NO_END])
    drawn = [tuple(tokens) for tokens in samples.ids[:, 0].tolist()]
    assert drawn[:25] == drawn[25:]
    assert len(set(drawn)) > 20


def test_samples_of_a_sentence_are_different_draws() -> None:
    tables = random_chain(1, num_sentences=2, vocabulary=40)
    samples = run_sampling(tables, [8, 8], [1, 1], [*NO_END], num_best=30)
    assert samples.ids.shape[:2] == (2, 30)
    assert len({tuple(tokens) for tokens in samples.ids[0].tolist()}) > 20


@pytest.mark.long
@given(seed=seeds, alpha=alphas)
def test_the_score_of_a_sample_is_its_log_probability_at_temperature_one(seed: int, alpha: float) -> None:
    tables = random_chain(seed, num_sentences=2, vocabulary=6)
    samples = run_sampling(tables, [5, 3], [1, 2], num_best=5, length_penalty=alpha, temperature=3.0, top_k=4)
    for sentence in range(2):
        assert_scores_are_of_the_tokens(found(samples, sentence), tables[sentence], alpha)


def kept_by_plain_rules(
    scores: list[float], temperature: float, top_k: int | None, top_p: float, min_p: float
) -> set[int]:
    weights = [math.exp(score / temperature) for score in scores]
    order = sorted(range(len(scores)), key=lambda token: -weights[token])[:top_k]
    total = sum(weights[token] for token in order)
    kept: list[int] = []
    for token in order:
        if sum(weights[other] for other in kept) / total < top_p:
            kept.append(token)
    return {token for token in kept if weights[token] >= min_p * weights[order[0]]}


@pytest.mark.long
@given(
    seed=seeds,
    temperature=st.sampled_from([0.3, 1.0, 2.5]),
    top_k=st.sampled_from([None, 1, 3, 100, 1000]),
    top_p=st.sampled_from([None, 0.1, 0.6, 0.95]),
    min_p=st.sampled_from([None, 0.02, 0.3, 1.0]),
)
@settings(max_examples=200)
def test_the_filters_keep_what_their_formulas_say(
    seed: int, temperature: float, top_k: int | None, top_p: float | None, min_p: float | None
) -> None:
    scores = random_chain(seed, num_sentences=1, vocabulary=200)[0, :5]
    scores[:, 7] = -math.inf
    chosen = SamplingConfig(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    logits, ids = filtered(scores.clone(), chosen)
    ids = ids.expand(5, -1)
    for row in range(5):
        is_kept = logits[row] > -math.inf
        expected = kept_by_plain_rules(scores[row].tolist(), temperature, top_k, top_p or 2.0, min_p or 0.0)
        assert {*ids[row, is_kept].tolist()} == expected - {7}
        expected_logits = scores[row, ids[row, is_kept]] / temperature
        assert torch.equal(logits[row, is_kept], expected_logits)


@pytest.mark.parametrize("filters", [{}, {"top_k": 3}, {"top_p": 0.9}, {"min_p": 0.1}])
def test_banned_tokens_are_never_drawn_and_a_dead_end_is_no_sample(
    filters: dict[str, Any],
) -> None:
    tables = torch.cat([chain({SOS: {3: 1.0}}), random_chain(0, num_sentences=1, vocabulary=6)])
    samples = run_sampling(tables, [9, 9], [1, 1], [BannedTokens([PAD, SOS, 4])], num_best=50, **filters)
    assert found(samples, 0) == []
    drawn = [tokens for _, tokens in found(samples, 1)]
    assert len(drawn) == 50
    assert not {PAD, SOS, 4} & {token for tokens in drawn for token in tokens}
