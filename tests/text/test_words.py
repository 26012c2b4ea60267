"""Words and signs: what a text has of scripts that are written without spaces."""

import pytest

from transformer_cli.text.normalization import (
    are_spaced_words,
    count_signs_and_spaces,
)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", (0, 0)),
        ("plain words in ASCII", (0, 0)),
        ("caff\xe8 e t\xe8", (0, 0)),
        ("\u732b\u306f\u5bdd\u308b", (4, 0)),
        ("\u732b \u306f \u5bdd\u308b", (4, 2)),
        ("a \u732b b \u306f", (2, 0)),
    ],
)
def test_signs_and_the_single_spaces_between_them_are_counted(text: str, counts: tuple[int, int]) -> None:
    assert count_signs_and_spaces(text) == counts


def test_a_corpus_without_such_signs_is_not_written_with_spaces_between_them() -> None:
    counts = [count_signs_and_spaces(text) for text in ("a b c", "caff\xe8 e t\xe8")]
    assert not are_spaced_words(*map(sum, zip(*counts, strict=True)))
