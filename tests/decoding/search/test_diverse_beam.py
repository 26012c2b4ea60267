"""Diverse beam search: the same as one sentence, one group and one hypothesis at a time; and its limits."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.config import DecodingConfig, DiversityConfig
from transformer_cli.decoding.search import diverse_beam_search
from transformer_cli.decoding.search.beam import Hypotheses, NoRepeatedNgrams, SearchHook

from ..chains import (
    EOS,
    NO_START,
    PAD,
    SOS,
    SPECIAL_IDS,
    MarkovChain,
    alphas,
    assert_scores_are_of_the_tokens,
    assume_different,
    found,
    log_probability,
    penalty,
    random_chain,
    run_beam,
    scores_of,
    seeds,
)

Scored = tuple[float, tuple[int, ...]]


def run_diverse(
    scorer: MarkovChain,
    max_lengths: list[int],
    hooks: Sequence[SearchHook] = NO_START,
    **chosen: Any,
) -> Hypotheses:
    # Not validated: some tests need a single group, or groups that do not avoid each other.
    groups, size = chosen.pop("groups"), chosen.pop("size")
    strength = chosen.pop("strength")
    plain = {"beam_size": groups * size, "num_best": groups * size, "length_penalty": 0.0}
    options = DecodingConfig.model_construct(
        diversity=DiversityConfig.model_construct(groups=groups, strength=strength),
        **(plain | chosen),
    )
    return diverse_beam_search(
        scorer, special_ids=SPECIAL_IDS, max_lengths=torch.tensor(max_lengths), options=options, hooks=hooks
    )


class PlainGroup:
    """One group, one hypothesis at a time."""

    def __init__(self, size: int, max_length: int, alpha: float) -> None:
        self.size, self.max_length, self.alpha = size, max_length, alpha
        self.still_open: list[Scored] = [(0.0, ())]  # totals with the costs, and tokens
        self.finished: list[Scored] = []  # scores with the costs, and tokens

    def step(self, table: Tensor, costs: Counter[int], strength: float) -> list[int]:
        """Extends the hypotheses; returns the newest tokens of those in the beam."""
        length = len(self.still_open[0][1]) + 1 if self.still_open else 0
        candidates = [
            (
                total + table[(SOS, *tokens)[-1], token].item() - strength * costs[token],
                (*tokens, token),
            )
            for total, tokens in self.still_open
            for token in range(len(table))
            if token not in (PAD, SOS)
        ]
        assume_different([score for score, _ in candidates])
        candidates = sorted(candidates, key=lambda pair: -pair[0])[: self.size]
        rivals: list[tuple[float, tuple[int, ...] | None]] = [(s, None) for s, _ in self.finished]
        rivals += [(total / penalty(length, self.alpha), tokens) for total, tokens in candidates]
        assume_different([score for score, _ in rivals])
        rivals.sort(key=lambda pair: -pair[0])
        in_beam = {tokens for score, tokens in rivals[: self.size] if score > -math.inf}
        kept = [pair for pair in candidates if pair[1] in in_beam]
        ended = [pair for pair in kept if pair[1][-1] == EOS or length == self.max_length]
        self.still_open = [pair for pair in kept if pair not in ended]
        self.finished += [(total / penalty(length, self.alpha), tokens) for total, tokens in ended]
        self.finished = sorted(self.finished, key=lambda pair: -pair[0])[: self.size]
        if self.still_open and len(self.finished) == self.size:
            bound = max(total for total, _ in self.still_open)
            if bound / penalty(self.max_length, self.alpha) <= self.finished[-1][0]:
                self.still_open = []
        return [tokens[-1] for _, tokens in kept]


def best_by_plain_groups(
    table: Tensor, max_length: int, alpha: float, groups: int, size: int, strength: float
) -> list[Scored]:
    all_groups = [PlainGroup(size, max_length, alpha) for _ in range(groups)]
    while any(group.still_open for group in all_groups):
        counts: Counter[int] = Counter()
        for group in all_groups:
            counts += Counter(group.step(table, counts, strength))
    different = {tokens for group in all_groups for _, tokens in group.finished}
    return sorted(
        ((log_probability(table, tokens) / penalty(len(tokens), alpha), tokens) for tokens in different),
        reverse=True,
    )


@pytest.mark.long
@given(
    seed=seeds,
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=9),
    alpha=alphas,
    groups=st.integers(1, 4),
    size=st.integers(1, 3),
    strength=st.sampled_from([0.0, 0.3, 1.0, 7.0]),
)
def test_it_finds_what_plain_groups_find(
    seed: int, lengths: list[int], alpha: float, groups: int, size: int, strength: float
) -> None:
    tables = random_chain(seed, num_sentences=len(lengths), vocabulary=7)
    hypotheses = run_diverse(
        MarkovChain(tables),
        lengths,
        groups=groups,
        size=size,
        strength=strength,
        length_penalty=alpha,
    )
    for sentence, max_length in enumerate(lengths):
        table = tables[sentence]
        expected = best_by_plain_groups(table, max_length, alpha, groups, size, strength)
        actual = found(hypotheses, sentence)
        assert scores_of(actual) == pytest.approx(scores_of(expected), abs=1e-9)
        assert {tokens for _, tokens in actual} == {tokens for _, tokens in expected}
        assert_scores_are_of_the_tokens(actual, table, alpha)


@pytest.mark.long
@settings(max_examples=30)
@given(seed=seeds, alpha=alphas, size=st.integers(1, 5), strength=st.sampled_from([0.0, 2.0]))
def test_one_group_is_beam_search_exactly(seed: int, alpha: float, size: int, strength: float) -> None:
    lengths = [5, 1, 0, 9, 3]
    tables = random_chain(seed, num_sentences=5, vocabulary=70)
    diverse, beam = MarkovChain(tables), MarkovChain(tables)
    of_group = run_diverse(diverse, lengths, groups=1, size=size, strength=strength, length_penalty=alpha)
    of_beam = run_beam(beam, lengths, beam_size=size, num_best=size, length_penalty=alpha)
    assert torch.equal(of_group.ids, of_beam.ids)
    assert torch.equal(of_group.lengths, of_beam.lengths)
    assert torch.equal(of_group.scores, of_beam.scores)
    assert diverse.num_rows == beam.num_rows


@pytest.mark.long
@settings(max_examples=30)
@given(seed=seeds, alpha=alphas, groups=st.integers(2, 4), size=st.integers(1, 4))
def test_groups_of_strength_zero_all_find_what_one_small_beam_finds(
    seed: int, alpha: float, groups: int, size: int
) -> None:
    lengths = [5, 1, 0, 9, 3]
    tables = random_chain(seed, num_sentences=5, vocabulary=9)
    of_groups = run_diverse(MarkovChain(tables), lengths, groups=groups, size=size, strength=0.0, length_penalty=alpha)
    of_beam = run_beam(MarkovChain(tables), lengths, beam_size=size, num_best=size, length_penalty=alpha)
    for sentence in range(5):
        assert found(of_groups, sentence) == found(of_beam, sentence)


def test_great_strength_makes_the_first_tokens_of_groups_differ() -> None:
    tables = random_chain(1, num_sentences=4, vocabulary=30)
    for groups in (2, 5):
        hypotheses = run_diverse(MarkovChain(tables), [6] * 4, groups=groups, size=1, strength=99.0)
        for sentence in range(4):
            firsts = [tokens[0] for _, tokens in found(hypotheses, sentence)]
            assert len(set(firsts)) == len(firsts) == groups


@pytest.mark.long
@settings(max_examples=30)
@given(seed=seeds, lengths=st.lists(st.integers(0, 6), min_size=1, max_size=9), data=st.data())
def test_a_sentence_does_not_depend_on_its_batch_and_hooks_follow_their_rows(
    seed: int, lengths: list[int], data: st.DataObject
) -> None:
    groups, size = data.draw(st.sampled_from([(2, 1), (2, 3), (3, 2)]))
    chosen = {"groups": groups, "size": size, "strength": 0.5, "length_penalty": 0.6}
    tables = random_chain(seed, num_sentences=len(lengths), vocabulary=7)

    def run(chains: Tensor, of_chains: list[int]) -> Hypotheses:
        hook = NoRepeatedNgrams(1, torch.zeros(len(chains), dtype=torch.int64))
        return run_diverse(MarkovChain(chains), of_chains, [*NO_START, hook], **chosen)

    together = run(tables, lengths)
    for sentence, length in enumerate(lengths):
        of_sentence = found(together, sentence)
        assert of_sentence == found(run(tables[sentence : sentence + 1], [length]), 0)
        assert all(len(set(tokens)) == len(tokens) for _, tokens in of_sentence)


@pytest.mark.long
@settings(max_examples=30)
@given(seed=seeds, num_best=st.integers(1, 6))
def test_fewer_hypotheses_are_the_first_of_more(seed: int, num_best: int) -> None:
    tables = random_chain(seed, num_sentences=3, vocabulary=7)
    chosen = {"groups": 2, "size": 3, "strength": 0.5}
    few = run_diverse(MarkovChain(tables), [5, 2, 4], **chosen, num_best=num_best)
    more = run_diverse(MarkovChain(tables), [5, 2, 4], **chosen)
    for sentence in range(3):
        assert found(few, sentence) == found(more, sentence)[:num_best]


def test_where_nothing_is_possible_there_is_no_hypothesis() -> None:
    tables = random_chain(0, num_sentences=2, vocabulary=6)
    tables[0] = -math.inf
    hypotheses = run_diverse(MarkovChain(tables), [4, 4], groups=2, size=2, strength=0.5)
    assert found(hypotheses, 0) == []
    assert not hypotheses.ids[0].any()
    assert found(hypotheses, 1)


@pytest.mark.parametrize(
    ("given_settings", "problem"),
    [
        ({"beam_size": 4, "diversity": {"groups": 3}}, "not a multiple of diversity.groups"),
        ({"beam_size": 1, "diversity": {}}, "not a multiple of diversity.groups"),
        ({"sampling": {}, "diversity": {}}, "are two searches"),
        ({"sampling": {}, "coverage_penalty": 0.2}, "sampling draws any"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(given_settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        DecodingConfig.model_validate(given_settings)


def test_the_settings_of_one_translation_per_sentence_hold_no_other_search() -> None:
    options = DecodingConfig(beam_size=6, num_best=3, diversity=DiversityConfig(groups=3))
    assert options.best_of_beam(1) == DecodingConfig(beam_size=1)
    assert options.num_hypotheses == 6
    sampled = DecodingConfig.model_validate({"num_best": 9, "sampling": {}})
    assert sampled.best_of_beam(4) == DecodingConfig()
    assert sampled.num_hypotheses == 9
