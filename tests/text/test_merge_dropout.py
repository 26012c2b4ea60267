import json
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models

from transformer_cli.config import TokenizerConfig
from transformer_cli.text.sampling import MergeDropout
from transformer_cli.text.tokenizer import train_tokenizer
from transformer_cli.text.tokenizer_file import Layout, TokenizerParts

CORPUS = ["low lower lowest", "new newer newest", "wide wider widest", "lowlands newly widely"] * 3
LEARNED = train_tokenizer(CORPUS, TokenizerConfig(kind="bpe", vocab_size=320)).parts
NUM_DRAWS = 20_000


def parts_of(merges: list[tuple[str, str]]) -> TokenizerParts:
    """A BPE tokenizer with these merges, the best first."""
    pieces = sorted({character for merge in merges for character in "".join(merge)})
    pieces += [left + right for left, right in merges]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    layout = Layout("BPE")
    merge_lists = [list(merge) for merge in merges]
    return TokenizerParts(layout, layout.empty_model() | {"vocab": vocabulary, "merges": merge_lists})


def exact_distribution(parts: TokenizerParts, symbols: tuple[str, ...], dropout: float) -> Counter[tuple[str, ...]]:
    """Algorithm 1 of Provilkov et al. 2020, with the probability of each of its random choices."""
    ranks = {tuple(merge): rank for rank, merge in enumerate(parts.model["merges"])}
    places = [n for n in range(len(symbols) - 1) if symbols[n : n + 2] in ranks]
    places.sort(key=lambda n: ranks[symbols[n : n + 2]])  # equal merges from left to right
    found: Counter[tuple[str, ...]] = Counter()
    for number, n in enumerate(places):
        probability = dropout**number * (1 - dropout)
        merged = (*symbols[:n], symbols[n] + symbols[n + 1], *symbols[n + 2 :])
        for result, share in exact_distribution(parts, merged, dropout).items():
            found[result] += probability * share  # type: ignore[assignment]
    found[symbols] += dropout ** len(places)  # type: ignore[assignment]
    return found


def drawn(parts: TokenizerParts, word: str, dropout: float) -> Counter[tuple[str, ...]]:
    sampler, numbers = MergeDropout(parts, dropout), Random(1)
    names = {index: piece for piece, index in parts.model["vocab"].items()}
    piece = sampler.prepare(word)
    samples = (sampler.sample(piece, numbers) for _ in range(NUM_DRAWS))
    return Counter(tuple(names[index] for index in ids) for ids in samples)


def largest_difference(found: Counter[tuple[str, ...]], expected: Counter[tuple[str, ...]]) -> float:
    """Between two distributions over ways to cut a word; each is divided by its total."""
    totals = sum(found.values()), sum(expected.values())
    ways = {*found, *expected}
    return max(abs(found[way] / totals[0] - expected[way] / totals[1]) for way in ways)


@pytest.mark.long
@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("word", ["lowest", "newer", "widest", "xlow", "lowlow", "e"])
def test_each_way_to_cut_a_word_has_the_probability_of_the_algorithm(word: str, dropout: float) -> None:
    expected = exact_distribution(LEARNED, tuple(word), dropout)
    assert sum(expected.values()) == pytest.approx(1.0)
    # Five standard deviations of a share of one half.
    assert largest_difference(drawn(LEARNED, word, dropout), expected) < 2.5 / NUM_DRAWS**0.5


def test_another_dropout_is_noticed() -> None:
    expected = exact_distribution(LEARNED, tuple("lowest"), 0.15)
    assert largest_difference(drawn(LEARNED, "lowest", 0.1), expected) > 2.5 / NUM_DRAWS**0.5


def test_the_library_draws_alike_where_no_two_merges_share_a_symbol() -> None:
    """Elsewhere it forgets what it left out when it meets a merge that an earlier one made impossible."""
    parts = parts_of([("a", "b"), ("c", "d"), ("ab", "cd")])
    model = models.BPE(
        vocab=parts.model["vocab"],
        merges=[tuple(merge) for merge in parts.model["merges"]],
        dropout=0.4,
    )
    draws = (model.tokenize("abcd") for _ in range(NUM_DRAWS))
    of_library = Counter(tuple(token.value for token in tokens) for tokens in draws)
    assert len(of_library) == 5
    assert largest_difference(drawn(parts, "abcd", 0.4), of_library) < 3.5 / NUM_DRAWS**0.5


@pytest.mark.long
@settings(max_examples=200)
@given(st.text("lowernstid", min_size=1, max_size=12), st.integers(0, 2**32))
def test_without_dropout_the_ids_are_those_of_the_library(word: str, seed: int) -> None:
    model = models.BPE(vocab=LEARNED.model["vocab"], merges=[tuple(merge) for merge in LEARNED.model["merges"]])
    expected = [token.id for token in model.tokenize(word)]
    sampler = MergeDropout(LEARNED, 0.0)
    piece = sampler.prepare(word)
    assert sampler.ordinary(piece) == sampler.sample(piece, Random(seed)) == expected


@settings(max_examples=100)
@given(st.text("lowernstid", min_size=1, max_size=12), st.integers(0, 2**32))
def test_the_subwords_are_the_word(word: str, seed: int) -> None:
    sampler = MergeDropout(LEARNED, 0.5)
    names = {index: piece for piece, index in LEARNED.model["vocab"].items()}
    ids = sampler.sample(sampler.prepare(word), Random(seed))
    assert "".join(names[index] for index in ids) == word
    assert json.dumps(LEARNED.model), "the tokenizer stays as it is"
