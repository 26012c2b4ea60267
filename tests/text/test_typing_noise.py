"""Training noise: each change, what stays, and how often it comes."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import NoiseConfig
from transformer_cli.text.sampling import with_noise

ALMOST_ALWAYS = 1.0 - 2**-40


def changed(source: str, target: str, **noise: float) -> tuple[str, str]:
    return with_noise(source, target, NoiseConfig(**noise), Random(1))


@pytest.mark.parametrize(
    ("kind", "pair", "expected"),
    [
        ("capitals", ("The café.", "Das Café."), ("THE CAFÉ.", "DAS CAFÉ.")),
        ("small_letters", ("The Café.", "Das Café."), ("the café.", "Das Café.")),
        ("missing_accents", ("Où est le café ?", "Wo?"), ("Ou est le cafe ?", "Wo?")),
        (
            "typographic_marks",
            ('"It\'s a \'test\'" - ("yes")...', "x"),
            (
                "\u201cIt\u2019s a \u2018test\u2019\u201d \u2013 (\u201cyes\u201d)\u2026",
                "x",
            ),
        ),
        (
            "typographic_marks",
            ("\u00abIt\u2019s\u00bb \u2014 so\u2026", "\u00abx\u00bb"),
            ('"It\'s" - so...', "\u00abx\u00bb"),
        ),
        ("missing_end", ("Yes , sir .", "Ja!"), ("Yes , sir", "Ja")),
        ("missing_end", ("Yes , sir", "Ja!"), ("Yes , sir", "Ja!")),
        ("missing_end", ("Yes.", "Ja"), ("Yes.", "Ja")),
        ("missing_end", (".", "."), (".", ".")),
    ],
)
def test_each_change_does_what_its_setting_says(kind: str, pair: tuple[str, str], expected: tuple[str, str]) -> None:
    assert changed(*pair, **{kind: ALMOST_ALWAYS}) == expected


def distance(left: str, right: str) -> int:
    """Damerau-Levenshtein distance with swaps of neighbours, by its recursive definition over prefixes."""
    table = {(i, 0): i for i in range(len(left) + 1)} | {(0, j): j for j in range(len(right) + 1)}
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            differ = left[i - 1] != right[j - 1]
            choices = [table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + differ]
            if i > 1 and j > 1 and left[i - 2 : i] == right[j - 2 : j][::-1]:
                choices.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(choices)
    return table[len(left), len(right)]


@given(st.integers(0, 10_000))
def test_a_typing_error_is_one_edit_of_a_long_word_and_keeps_its_first_letter(seed: int) -> None:
    source = "The dogs often carry 12345 umbrellas"
    noise = NoiseConfig(typos=ALMOST_ALWAYS)
    typed, target = with_noise(source, source, noise, Random(seed))
    assert target == source
    for before, after in zip(source.split(), typed.split(), strict=True):
        assert after[0] == before[0]
        assert distance(before, after) <= (len(before) >= 4 and before.isalpha())


def test_typing_errors_are_of_all_four_kinds() -> None:
    typed = {with_noise("abcd", "x", NoiseConfig(typos=ALMOST_ALWAYS), Random(seed))[0] for seed in range(400)}
    assert {"acbd", "acd", "abbcd", "aacd"} <= typed


@pytest.mark.parametrize("kind", list(NoiseConfig.model_fields))
def test_a_change_comes_as_often_as_its_probability_says(kind: str) -> None:
    source, target = 'Élan "Vital".', "Ziel."
    noise, numbers, num_changed = NoiseConfig(**{kind: 0.3}), Random(7), 0
    for _ in range(4000):
        num_changed += with_noise(source, target, noise, numbers) != (source, target)
    num_words = 2 if kind == "typos" else 1
    expected = 1 - 0.7**num_words
    # A replaced letter may be the same letter.
    assert num_changed / 4000 == pytest.approx(expected, abs=0.06 if kind == "typos" else 0.03)


def test_the_same_random_numbers_give_the_same_pair() -> None:
    noise = NoiseConfig(capitals=0.2, typos=0.5, missing_accents=0.5, small_letters=0.3)
    pairs = [with_noise("Une drôle de journée", "Ein Tag", noise, Random(n)) for n in range(50)]
    assert pairs == [with_noise("Une drôle de journée", "Ein Tag", noise, Random(n)) for n in range(50)]
    assert len(set(pairs)) > 10


def test_noise_without_any_probability_is_refused() -> None:
    with pytest.raises(ValueError, match="no probability above 0"):
        NoiseConfig()


def test_a_hundred_thousand_spaces_take_a_time_that_grows_with_their_number() -> None:
    pair = ("a" + " " * 100_000 + "b.", "c" + " " * 100_000 + "d .")
    assert changed(*pair, missing_end=ALMOST_ALWAYS) == (pair[0][:-1], pair[1][:-2])
