"""Dividing a sentence: nothing is lost, the best place is taken, and there is none where no clause begins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.text.sentences import (
    TextRange,
    begins_clause,
    cut_after_sentence,
    cut_in_two,
    num_inner_ellipses,
    titles,
    with_commas,
    with_ellipses,
    with_final_mark_of,
)

PIECES = [
    "hotel",
    "A",
    "and",
    "3.50",
    ",",
    ", ",
    "; ",
    ": ",
    " - ",
    "\u2014",
    "\u2026 ",
    "...",
    ".)",
    " ",
    "\u3001",
    "\u3002",
    "!",
]


@given(
    text=st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.text(max_size=30),
    share=st.floats(0.05, 0.95),
    language=st.sampled_from(["en", "it", "zh", "xx"]),
    anywhere=st.booleans(),
)
def test_the_parts_and_the_marks_between_them_are_the_text(
    text: str, share: float, language: str, anywhere: bool
) -> None:
    for cut in (cut_in_two(text, share, language, anywhere=anywhere), cut_after_sentence(text)):
        if cut is not None:
            assert "".join(cut) == text
            assert not any(map(str.isalnum, cut.marks))
            assert any(map(str.isalnum, cut.left))
            assert any(map(str.isalnum, cut.right))


@pytest.mark.parametrize(
    ("text", "left", "marks"),
    [
        ("we go home, they stay here", "we go home", ", "),
        ("we go, they stay; she sleeps, he works", "we go, they stay", "; "),
        ("No Action - The Hotel Is Small", "No Action", " - "),
        ("we go\u2014they stay", "we go", "\u2014"),
        ("we go and they stay", "we go", " "),
        ("we go, today. They stay, too", "we go, today.", " "),
        ("(we go home.) then they stay here", "(we go home.)", " "),
        ("\u6211\u4eec\u8d70\uff0c\u4ed6\u4eec\u7559\u4e0b", "\u6211\u4eec\u8d70", "\uff0c"),
    ],
)
def test_the_best_mark_is_taken(text: str, left: str, marks: str) -> None:
    cut = cut_in_two(text, 0.5, "en")
    assert cut is not None
    assert cut[:2] == (left, marks)


@pytest.mark.parametrize("text", ["a3,50 b", "10:30 pm", "well-known", "Mr. Smith sleeps", "one two three"])
def test_a_mark_inside_a_word_or_number_divides_nothing(text: str) -> None:
    assert cut_in_two(text, 0.5, "en") is None


def test_conjunctions_are_those_of_the_language() -> None:
    text = "il treno aspetta e la casa brucia"
    assert cut_in_two(text, 0.5, "en") is None
    cut = cut_in_two(text, 0.5, "it-IT")
    assert cut is not None
    assert cut.right == "e la casa brucia"


def test_the_place_nearest_to_the_share_is_taken() -> None:
    text = ", ".join(["abc"] * 8)
    lefts = [cut_in_two(text, share, "en") for share in (0.25, 0.5, 0.75)]
    assert [cut and cut.left.count("abc") for cut in lefts] == [2, 4, 6]


def test_between_two_words_only_a_text_of_several_words_is_divided() -> None:
    cut = cut_in_two("one two three four five six", 0.5, "en", anywhere=True)
    assert cut is not None
    assert cut.left == "one two three"
    assert cut_in_two("one two three four five", 0.5, "en", anywhere=True) is None


def test_a_single_word_before_an_ellipsis_is_no_sentence() -> None:
    assert cut_after_sentence("Well\u2026 We go.") is None
    assert cut_after_sentence("We go\u2026 and stay.") is None
    cut = cut_after_sentence("We go\u2026 They stay.")
    assert cut is not None
    assert cut == ("We go\u2026", " ", "They stay.")


@pytest.mark.parametrize(
    ("text", "read", "translation", "written"),
    [
        ("The dog... is big.", "The dog, is big.", "Il cane, grande.", "Il cane... grande."),
        ("Yes\u2026 a, b", "Yes, a, b", "S\u00ec, a, b", "S\u00ec\u2026 a, b"),
        ("I go ...now...", "I go, now...", "Vado, ora...", "Vado ...ora..."),
        ("So... we, too.", "So, we, too.", "Anche noi, dunque.", "Anche noi, dunque."),
        ("So... we go.", "So, we go.", "\u6211\u4eec\uff0c\u8d70\u3002", "\u6211\u4eec... \u8d70\u3002"),
        ("Pay 1,000... now.", "Pay 1,000, now.", "1,000, ora.", "1,000... ora."),
    ],
)
def test_an_inner_ellipsis_is_read_as_a_comma_and_stands_in_its_place_again(
    text: str, read: str, translation: str, written: str
) -> None:
    found, ellipses = with_commas(text, ", ")
    assert found == read
    assert with_ellipses(translation, ellipses) == written


@pytest.mark.parametrize("text", ["We go...", "...we go.", "We go\u2026", "1...5", "See ../x.", "No. Yes."])
def test_an_ellipsis_at_an_end_is_no_inner_one(text: str) -> None:
    assert num_inner_ellipses(text) == 0
    assert with_commas(text, ", ") == (text, ())


@pytest.mark.parametrize(
    ("text", "language", "is_clause"),
    [
        ("and the dog sleeps", "en", True),
        ("I don't know", "en-GB", True),
        ("the dog sleeps", "en", False),
        ("which is big", "en", True),
        ("er schläft", "de", True),
        ("der Hund schläft", "de", False),
        ("ma non dorme", "it", True),
        ("and", "xx", False),
        ("12, 13", "en", False),
    ],
)
def test_the_first_word_shows_that_a_clause_begins(text: str, language: str, is_clause: bool) -> None:
    assert begins_clause(text, language) is is_clause


@pytest.mark.parametrize("label", ["x:", "l = ", "no="])
def test_a_label_with_a_capital_letter_behind_it_begins_a_sentence(label: str) -> None:
    cut = cut_in_two(f"It is late.{label}We go home now", 0.5, "en")
    assert cut == ("It is late.", "", f"{label}We go home now")


@pytest.mark.parametrize(
    "text",
    [
        "The house is at example.com:8080 today",
        "We put config.max=10 here",
        "We set user.id = anna here",
        "This is main.py: the first file",
        "This is main.py: The first file",
    ],
)
def test_an_address_a_setting_and_a_file_begin_no_sentence(text: str) -> None:
    cut = cut_in_two(text, 0.5, "en")
    assert cut is None or cut.marks == ": "


@pytest.mark.long
@pytest.mark.parametrize("sign", [" ", "\t", "?", "!?", ". ", "- ", "\u2014", ", "])
def test_a_hundred_thousand_equal_signs_take_a_time_that_grows_with_their_number(sign: str) -> None:
    """With a pattern that reads white space from each of its characters, this takes minutes."""
    text = f"we go{sign * (100_000 // len(sign))}x they stay"
    cut = cut_in_two(text, 0.5, "en", anywhere=True)
    assert cut is None or "".join(cut) == text
    assert with_commas(text, ", ") == (text, ("",) * text.count(","))
    assert with_ellipses(text, ("",) * text.count(",")) == text
    assert "".join(text[part.start : part.end] for part in titles(text, TextRange(0, len(text)))) == text
    assert with_final_mark_of("noi andiamo", text) == "noi andiamo"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("You go?!", "Vai?!"),
        ("You go!!?", "Vai!!?"),
        ("You go!!", "Vai!!"),
        ("You ?! go!", "Vai!"),
        ("!?", "Vai!?"),
    ],
)
def test_a_row_of_marks_at_the_end_comes_back(source: str, expected: str) -> None:
    assert with_final_mark_of("Vai!", source) == expected
