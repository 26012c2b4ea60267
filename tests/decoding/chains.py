"""Scorers that are tables of numbers, and oracles for what a search must find in them."""

import math
from collections.abc import Sequence
from itertools import pairwise, product

import pytest
import torch
from hypothesis import assume
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import SpecialIds
from transformer_cli.decoding.search import Scorer, beam_search, greedy_search
from transformer_cli.decoding.search.beam import BannedTokens, Hypotheses, SearchHook

PAD, SOS, EOS = 0, 1, 2
SPECIAL_IDS = SpecialIds(unk_id=5, pad_id=PAD, sos_id=SOS, eos_id=EOS)
NO_START = (BannedTokens([PAD, SOS]),)
NO_END = (BannedTokens([PAD, SOS, EOS]),)


def run_greedy(
    scorer: Scorer,
    max_lengths: list[int],
    hooks: Sequence[SearchHook] = NO_START,
    *,
    length_penalty: float = 0.0,
) -> Hypotheses:
    options = DecodingConfig(beam_size=1, length_penalty=length_penalty)
    return greedy_search(
        scorer, special_ids=SPECIAL_IDS, max_lengths=torch.tensor(max_lengths), options=options, hooks=hooks
    )


def run_beam(
    scorer: Scorer,
    max_lengths: list[int],
    hooks: Sequence[SearchHook] = NO_START,
    *,
    beam_size: int,
    length_penalty: float = 0.0,
    num_best: int = 1,
) -> Hypotheses:
    # Not validated: some beams of these tests are wider than the config allows.
    options = DecodingConfig.model_construct(beam_size=beam_size, length_penalty=length_penalty, num_best=num_best)
    return beam_search(
        scorer, special_ids=SPECIAL_IDS, max_lengths=torch.tensor(max_lengths), options=options, hooks=hooks
    )


class MarkovChain:
    """A scorer for which the last token alone decides the scores of the next."""

    def __init__(self, tables: Tensor) -> None:
        self.tables = tables  # (B, V, V): log-probability of each next token after each last one
        self.sentences = torch.arange(len(tables))  # of each row
        self.num_rows: list[int] = []  # at each step

    def advance(self, last_ids: Tensor) -> Tensor:
        self.num_rows.append(len(last_ids))
        return self.tables[self.sentences, last_ids].clone()

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        assert not keeps_sources or torch.equal(self.sentences, self.sentences[rows])
        self.sentences = self.sentences[rows]


def random_chain(seed: int, *, num_sentences: int, vocabulary: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (num_sentences, vocabulary, vocabulary)
    return (2.0 * torch.randn(shape, generator=generator, dtype=torch.float64)).log_softmax(-1)


def chain(rows: dict[int, dict[int, float]], *, vocabulary: int = 6) -> Tensor:
    """One sentence's table from probabilities; whatever is not named is impossible."""
    table = torch.zeros(1, vocabulary, vocabulary, dtype=torch.float64)
    for last_id, following in rows.items():
        for token, probability in following.items():
            table[0, last_id, token] = probability
    return table.log()


def penalty(length: int, alpha: float) -> float:
    return float(((5.0 + length) / 6.0) ** alpha)


def log_probability(table: Tensor, tokens: tuple[int, ...]) -> float:
    return sum(table[last, token].item() for last, token in zip((SOS, *tokens), tokens, strict=False))


def every_sequence(vocabulary: int, max_length: int, *, has_end: bool = True) -> list[tuple[int, ...]]:
    """All that end with the end symbol, or are as long as they may be; without PAD and SOS."""
    words = [token for token in range(vocabulary) if token not in (PAD, SOS, EOS)]
    complete = [*product(words, repeat=max_length)]
    if has_end:
        for length in range(max_length):
            complete += [(*words_before, EOS) for words_before in product(words, repeat=length)]
    return complete


def best_by_brute_force(
    table: Tensor, max_length: int, alpha: float, *, has_end: bool = True, repeats: bool = True
) -> list[tuple[float, tuple[int, ...]]]:
    """`repeats` says whether a token may stand twice in a sequence."""
    scored = [
        (log_probability(table, tokens) / penalty(len(tokens), alpha), tokens)
        for tokens in every_sequence(len(table), max_length, has_end=has_end)
        if repeats or len(set(tokens)) == len(tokens)
    ]
    return sorted((pair for pair in scored if pair[0] > -math.inf), reverse=True)


def best_by_plain_beam(
    table: Tensor, max_length: int, alpha: float, beam_size: int, *, repeats: bool = True
) -> list[tuple[float, tuple[int, ...]]]:
    """The same rules, one sentence and one hypothesis at a time, and never stopping early."""
    still_open: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for length in range(1, max_length + 1):
        candidates = [
            (total + table[(SOS, *tokens)[-1], token].item(), (*tokens, token))
            for total, tokens in still_open
            for token in range(len(table))
            if token not in (PAD, SOS) and (repeats or token not in tokens)
        ]
        candidates.sort(key=lambda pair: -pair[0])
        candidates = candidates[:beam_size]
        rivals = [(score, None) for score, _ in finished]
        rivals += [(total / penalty(length, alpha), tokens) for total, tokens in candidates]
        rivals.sort(key=lambda pair: -pair[0])
        in_beam = {tokens for score, tokens in rivals[:beam_size] if score > -math.inf}
        kept = [pair for pair in candidates if pair[1] in in_beam]
        ended = [pair for pair in kept if pair[1][-1] == EOS or length == max_length]
        still_open = [pair for pair in kept if pair not in ended]
        finished += [(total / penalty(length, alpha), tokens) for total, tokens in ended]
        finished.sort(key=lambda pair: -pair[0])
    return finished


def assume_different(scores: Sequence[float]) -> None:
    """Leave out an example with equal scores, which are usual where the same pairs of tokens follow in another order.

    A search may take either hypothesis, because sums of the same numbers in another order differ in their last digits.
    """
    ordered = sorted(score for score in scores if score > -math.inf)
    assume(all(high - low > 1e-9 for low, high in pairwise(ordered)))


def found(hypotheses: Hypotheses, sentence: int) -> list[tuple[float, tuple[int, ...]]]:
    """Scores and tokens of a sentence's hypotheses, as the oracles give them."""
    return [
        (score, tuple(ids[:length]))
        for score, ids, length in zip(
            hypotheses.scores[sentence].tolist(),
            hypotheses.ids[sentence].tolist(),
            hypotheses.lengths[sentence].tolist(),
            strict=True,
        )
        if score > -math.inf
    ]


def scores_of(hypotheses: list[tuple[float, tuple[int, ...]]]) -> list[float]:
    return [score for score, _ in hypotheses]


def assert_scores_are_of_the_tokens(
    hypotheses: list[tuple[float, tuple[int, ...]]], table: Tensor, alpha: float
) -> None:
    for score, tokens in hypotheses:
        expected = log_probability(table, tokens) / penalty(len(tokens), alpha)
        assert score == pytest.approx(expected, abs=1e-12)


alphas = st.sampled_from([0.0, 0.6, 1.0, 2.5])
seeds = st.integers(0, 2**30)
max_lengths_of_three = st.lists(st.integers(1, 4), min_size=3, max_size=3)
