"""The coverage penalty: the score of equation 14 of Wu et al., found by a wide beam, and a bound that stays exact."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.search import beam_search, greedy_search
from transformer_cli.decoding.search.beam import CoveragePenalty, Hypotheses

from ..chains import (
    EOS,
    NO_END,
    NO_START,
    SOS,
    SPECIAL_IDS,
    MarkovChain,
    every_sequence,
    found,
    log_probability,
    random_chain,
    scores_of,
    seeds,
)

LENGTHS = [1, 4, 2, 3, 1, 4]
SOURCE_LENGTHS = [3, 1, 2, 5, 4, 3]


class AttentiveChain(MarkovChain):
    """A chain whose last token also decides the attention to the source."""

    def __init__(self, tables: Tensor, weights: Tensor) -> None:
        super().__init__(tables)
        self.weights = weights  # (B, V, S)

    def advance(self, last_ids: Tensor) -> Tensor:
        self.newest = self.weights[self.sentences, last_ids]
        return super().advance(last_ids)

    def attention(self) -> Tensor:
        return self.newest


def attention_of(seed: int, vocabulary: int) -> tuple[Tensor, Tensor]:
    """(B, V, S) weights, 0 for padding, and the mask of the source, (B, S)."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(LENGTHS), vocabulary, max(SOURCE_LENGTHS))
    mask = torch.arange(max(SOURCE_LENGTHS)) < torch.tensor(SOURCE_LENGTHS).unsqueeze(1)
    logits = 3.0 * torch.randn(shape, generator=generator, dtype=torch.float64)
    return logits.where(mask.unsqueeze(1), -torch.inf).softmax(-1), mask


def run(seed: int, options: DecodingConfig, *, vocabulary: int = 5, hooks: object = NO_START) -> Hypotheses:
    weights, mask = attention_of(seed, vocabulary)
    scorer = AttentiveChain(random_chain(seed, num_sentences=6, vocabulary=vocabulary), weights)
    max_lengths = torch.tensor(LENGTHS)
    hook = CoveragePenalty(scorer.attention, mask, max_lengths, EOS, options)
    search = greedy_search if options.beam_size == 1 else beam_search
    return search(scorer, special_ids=SPECIAL_IDS, max_lengths=max_lengths, options=options, hooks=[*hooks, hook])  # type: ignore[misc]


def options_of(beam_size: int, alpha: float, beta: float, kind: str, num_best: int) -> DecodingConfig:
    return DecodingConfig.model_construct(
        beam_size=beam_size,
        length_penalty=alpha,
        coverage_penalty=beta,
        length_normalization=kind,
        num_best=num_best,
    )


def score(table: Tensor, weights: Tensor, tokens: tuple[int, ...], options: DecodingConfig) -> float:
    """s(Y, X) of equation 14, one number after the other."""
    length, alpha = len(tokens), options.length_penalty
    divisor = ((5 + length) / 6) ** alpha if options.length_normalization == "gnmt" else length**alpha
    coverage = sum(weights[last] for last in (SOS, *tokens[:-1]))
    assert isinstance(coverage, Tensor)
    penalty = sum(math.log(min(covered, 1.0)) for covered in coverage.tolist() if covered > 0.0)
    return log_probability(table, tokens) / divisor + options.coverage_penalty * penalty


kinds = st.sampled_from(["gnmt", "average"])
alphas = st.sampled_from([0.0, 0.6, 1.0])
betas = st.sampled_from([0.0, 0.2, 1.0, 5.0])


@pytest.mark.long
@settings(max_examples=40)
@given(seed=seeds, alpha=alphas, beta=betas, kind=kinds, num_best=st.integers(1, 4))
@pytest.mark.parametrize("has_end", [True, False])
def test_a_wide_beam_finds_the_best_scores_of_the_formula(
    has_end: bool, seed: int, alpha: float, beta: float, kind: str, num_best: int
) -> None:
    options = options_of(200, alpha, beta, kind, num_best)
    hypotheses = run(seed, options, hooks=NO_START if has_end else NO_END)
    tables, (weights, _) = random_chain(seed, num_sentences=6, vocabulary=5), attention_of(seed, 5)
    for sentence, max_length in enumerate(LENGTHS):
        of_sentence = tables[sentence], weights[sentence]
        sequences = every_sequence(5, max_length, has_end=has_end)
        expected = sorted((score(*of_sentence, tokens, options) for tokens in sequences), reverse=True)
        actual = found(hypotheses, sentence)
        assert scores_of(actual) == pytest.approx(expected[:num_best], abs=1e-9)
        for found_score, tokens in actual:
            assert found_score == pytest.approx(score(*of_sentence, tokens, options), abs=1e-9)


@pytest.mark.long
@settings(max_examples=40)
@given(seed=seeds, alpha=alphas, beta=betas, kind=kinds, beam_size=st.integers(2, 5))
def test_the_early_stop_loses_nothing(seed: int, alpha: float, beta: float, kind: str, beam_size: int) -> None:
    # For all hypotheses of the beam, the search goes on much longer than for the best one.
    first, all_best = (run(seed, options_of(beam_size, alpha, beta, kind, num_best)) for num_best in (1, beam_size))
    for sentence in range(len(LENGTHS)):
        assert found(first, sentence) == found(all_best, sentence)[:1]


@pytest.mark.long
@given(seed=seeds, alpha=alphas, beta=betas, kind=kinds)
def test_greedy_search_has_the_score_of_the_formula(seed: int, alpha: float, beta: float, kind: str) -> None:
    options = options_of(1, alpha, beta, kind, 1)
    hypotheses = run(seed, options, vocabulary=7)
    tables, (weights, _) = random_chain(seed, num_sentences=6, vocabulary=7), attention_of(seed, 7)
    for sentence in range(len(LENGTHS)):
        [(found_score, tokens)] = found(hypotheses, sentence)
        expected = score(tables[sentence], weights[sentence], tokens, options)
        assert found_score == pytest.approx(expected, abs=1e-9)


def test_without_attention_to_a_token_there_is_still_a_translation() -> None:
    weights = torch.zeros(1, 6, 3, dtype=torch.float32)
    weights[:, :, 0] = 1.0
    scorer = AttentiveChain(random_chain(0, num_sentences=1, vocabulary=6).float(), weights)
    options = options_of(3, 0.6, 1.0, "gnmt", 1)
    hook = CoveragePenalty(scorer.attention, None, torch.tensor([4]), EOS, options)
    hypotheses = beam_search(
        scorer, special_ids=SPECIAL_IDS, max_lengths=torch.tensor([4]), options=options, hooks=[*NO_START, hook]
    )
    assert found(hypotheses, 0)
    assert hypotheses.scores.isfinite().all()
