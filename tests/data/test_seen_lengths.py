"""The lengths of training pairs, against a count in plain Python."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.data.encoded import (
    EncodedCorpus,
    TokenPair,
    write_encoded,
)
from transformer_cli.data.preparation import lengths_seen_in
from transformer_cli.text.sentences import FEWEST_TOKENS, SeenLengths

from .encoded_pairs import encoded_pairs

lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=300)


def corpus(folder: Path, pairs: list[tuple[int, int]]) -> EncodedCorpus:
    token_pairs = [TokenPair([1] * source, [1] * target) for source, target in pairs]
    write_encoded(folder / "train.arrow", [encoded_pairs(token_pairs, [0] * len(pairs))], vocab_size=9)
    return EncodedCorpus.open(folder / "train.arrow")


@settings(max_examples=30, deadline=None)
@given(pairs=lengths)
def test_99_percent_of_the_pairs_lie_within(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int]]
) -> None:
    found = lengths_seen_in(corpus(tmp_path_factory.mktemp("ids"), pairs))
    sources = sorted(source for source, _ in pairs)
    assert found.longest == sources[math.ceil(0.99 * (len(sources) - 1))]
    ratios = sorted(target / source for source, target in pairs if source >= FEWEST_TOKENS)
    expected = ratios[math.floor(0.01 * (len(ratios) - 1))] if ratios else None
    assert found.smallest_ratio == (None if expected is None else pytest.approx(expected, abs=1e-4))


def test_of_a_large_corpus_evenly_spread_pairs_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(6, 6), (30, 3)] * 50
    monkeypatch.setattr("transformer_cli.data.preparation.MOST_PAIRS", 50)
    assert lengths_seen_in(corpus(tmp_path, pairs)) == SeenLengths(6, 1.0)
