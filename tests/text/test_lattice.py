import math
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models

from transformer_cli.text.sampling import LatticeSampling
from transformer_cli.text.tokenizer_file import BYTE_TOKENS, Layout, TokenizerParts

SCORES = {
    "a": -2.0,
    "b": -2.5,
    "c": -3.0,
    "ab": -3.5,
    "bc": -3.1,
    "abc": -6.0,
    "ca": -4.2,
    "cab": -7.0,
    "bca": -5.5,
}
VOCABULARY = [("[UNK]", 0.0), *SCORES.items()]
LAYOUT = Layout("Unigram")
PARTS = TokenizerParts(LAYOUT, LAYOUT.empty_model() | {"vocab": VOCABULARY})
NAMES = [piece for piece, _ in VOCABULARY]
NUM_DRAWS = 20_000


def all_ways(word: str) -> Iterator[tuple[str, ...]]:
    """Every way to cut a word into subwords."""
    if not word:
        yield ()
    for length in range(1, len(word) + 1):
        if word[:length] in SCORES:
            yield from ((word[:length], *rest) for rest in all_ways(word[length:]))


def shares_of(word: str, alpha: float) -> dict[tuple[str, ...], float]:
    weights = {way: math.exp(alpha * sum(SCORES[one] for one in way)) for way in all_ways(word)}
    return {way: weight / sum(weights.values()) for way, weight in weights.items()}


def drawn(word: str, alpha: float) -> Counter[tuple[str, ...]]:
    sampler, numbers = LatticeSampling(PARTS, alpha), Random(1)
    lattice = sampler.prepare(word)
    samples = (sampler.sample(lattice, numbers) for _ in range(NUM_DRAWS))
    return Counter(tuple(NAMES[index] for index in ids) for ids in samples)


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("word", ["abc", "cabcab", "a", "abcabc"])
def test_each_way_to_cut_a_word_has_the_share_that_brute_force_finds(word: str, alpha: float) -> None:
    found, expected = drawn(word, alpha), shares_of(word, alpha)
    assert set(found) <= set(expected)
    differences = [abs(found[way] / NUM_DRAWS - share) for way, share in expected.items()]
    assert max(differences) < 2.5 / NUM_DRAWS**0.5


def test_another_alpha_is_noticed() -> None:
    found, expected = drawn("cabcab", 0.2), shares_of("cabcab", 0.4)
    differences = [abs(found[way] / NUM_DRAWS - share) for way, share in expected.items()]
    assert max(differences) > 2.5 / NUM_DRAWS**0.5


@pytest.mark.long
def test_with_alpha_1_the_library_draws_alike() -> None:
    model = models.Unigram(VOCABULARY, unk_id=0)
    model.alpha = 1.0
    draws = (model.tokenize("cabcab") for _ in range(NUM_DRAWS))
    of_library = Counter(tuple(token.value for token in tokens) for tokens in draws)
    found = drawn("cabcab", 1.0)
    ways = {*found, *of_library}
    assert max(abs(found[way] - of_library[way]) for way in ways) < 3.5 * NUM_DRAWS**0.5


@pytest.mark.long
@settings(max_examples=200)
@given(st.text("abcx", min_size=1, max_size=10))
def test_the_ordinary_ids_are_those_of_the_library(word: str) -> None:
    expected = [token.id for token in models.Unigram(VOCABULARY, unk_id=0).tokenize(word)]
    sampler = LatticeSampling(PARTS, 1.0)
    found = sampler.ordinary(sampler.prepare(word))
    # The library gives several unknown characters in a row one [UNK]; vocabularies of tfm hold every byte.
    alone = [index for place, index in enumerate(found) if index or found[max(place - 1, 0)] or not place]
    assert alone == expected


def test_an_unknown_character_is_given_as_its_bytes() -> None:
    layout = Layout("Unigram", has_byte_fallback=True)
    vocabulary = [*VOCABULARY, *((token, -9.0) for token in BYTE_TOKENS)]
    parts = TokenizerParts(layout, layout.empty_model() | {"vocab": vocabulary})
    sampler = LatticeSampling(parts, 0.5)
    names = [piece for piece, _ in vocabulary]
    ids = sampler.sample(sampler.prepare("a€"), Random(1))
    assert [names[index] for index in ids] == ["a", "<0xE2>", "<0x82>", "<0xAC>"]


def test_with_a_large_alpha_the_best_way_is_drawn() -> None:
    sampler = LatticeSampling(PARTS, 100.0)
    lattice = sampler.prepare("cabcabc")
    assert all(sampler.sample(lattice, Random(seed)) == lattice.ids for seed in range(50))
