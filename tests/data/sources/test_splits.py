from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.sources.corpus import draw_split

PAIRS = [SentencePair(f"sentence {number}", f"frase {number}") for number in range(5000)]


def _splits(validation_share: float, test_share: float) -> list[str]:
    return [draw_split(pair, validation_share=validation_share, test_share=test_share) for pair in PAIRS]


def test_splits_have_about_the_shares_asked_for() -> None:
    counts = Counter(_splits(0.1, 0.05))
    # Four standard deviations of a binomial count.
    assert abs(counts["validation"] - 500) < 85
    assert abs(counts["test"] - 250) < 62


def test_without_shares_all_is_train() -> None:
    assert set(_splits(0.0, 0.0)) == {"train"}


def test_halves_leave_nothing_to_train() -> None:
    assert set(_splits(0.5, 0.5)) == {"validation", "test"}


@pytest.mark.long
@given(st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 0.5))
def test_another_validation_share_moves_no_pair_into_or_out_of_test(
    share: float, other: float, test_share: float
) -> None:
    for pair in PAIRS[:20]:
        splits = [draw_split(pair, validation_share=each, test_share=test_share) for each in (share, other)]
        assert (splits[0] == "test") == (splits[1] == "test")


def test_equal_text_in_other_unicode_forms_falls_into_the_same_split() -> None:
    for number in range(200):
        composed = SentencePair(f"café {number}", f"caffè {number}", 0)
        decomposed = SentencePair(f"cafe\u0301 {number}", f"caffe\u0300 {number}", 3)
        splits = [draw_split(pair, validation_share=0.3, test_share=0.3) for pair in (composed, decomposed)]
        assert splits[0] == splits[1]
