import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.text.sentences import split_line


def split(text: str, max_length: int) -> list[str]:
    return list(split_line(text, lambda part: len(part) <= max_length))


def without_white_space(text: str) -> str:
    return "".join(text.split())


@given(text=st.text(alphabet="ab .,\n\u3002\uff0c\u00a0'\")1", max_size=200), limit=st.integers(1, 40))
def test_parts_are_short_and_lose_nothing_but_white_space(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert all(len(part) <= limit for part in parts)
    assert without_white_space("".join(parts)) == without_white_space(text)


def test_a_short_line_is_one_part() -> None:
    assert split(" a b ", 5) == [" a b "]


def test_a_cut_is_made_between_sentences_if_possible() -> None:
    text = 'He said: "It is late, too late." She left. We stayed.'
    assert split(text, 40) == ['He said: "It is late, too late."', "She left. We stayed."]


def test_without_sentences_a_cut_is_made_at_a_pause() -> None:
    assert split("the red car, the blue car", 15) == ["the red car,", "the blue car"]


def test_without_pauses_a_cut_is_made_between_words() -> None:
    assert split("one two three four", 10) == ["one two", "three four"]


def test_a_number_is_not_cut_at_its_comma() -> None:
    assert split("it costs 1,000 euros now", 16) == ["it costs", "1,000 euros now"]


def test_a_wide_stop_needs_no_white_space() -> None:
    assert split("\u4f60\u597d\u3002\u6211\u5f88\u597d", 4) == [
        "\u4f60\u597d\u3002",
        "\u6211\u5f88\u597d",
    ]


def test_a_word_without_end_is_cut_in_halves() -> None:
    assert split("a" * 10, 3) == ["aa", "aaa", "aa", "aaa"]


@pytest.mark.long
def test_a_very_long_line_is_cut_in_little_time() -> None:
    assert len(split("ab " * 70_000, 500)) > 400


def test_a_single_character_is_never_cut() -> None:
    assert list(split_line("ab", lambda part: False)) == ["a", "b"]


@pytest.mark.parametrize(
    "sign",
    [
        "\u0e01\u0e49",  # Thai: a letter and its tone
        "x\u0301",
        "\U0001f44d\U0001f3fd",  # an emoji and its skin colour
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",  # a family
        "\U0001f1ee\U0001f1f9",  # the flag of Italy
        "\u2764\ufe0f",
    ],
)
@pytest.mark.parametrize("begin", ["", "a"])
def test_no_cut_lies_inside_a_sign_of_several_characters(sign: str, begin: str) -> None:
    line = begin + 41 * sign
    parts = split(line, 20)
    assert "".join(parts) == line
    assert len(parts) > 1
    for part in parts:
        assert part.removeprefix(begin) == sign * (len(part.removeprefix(begin)) // len(sign))
