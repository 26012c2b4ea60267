"""Source terms in sentences: the longest first, from left to right, as whole words."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.decoding.glossary import GlossaryEntry, TermFinder, word_sequence
from transformer_cli.process.errors import DataError


def finder(*terms: str, exact: tuple[str, ...] = ()) -> TermFinder:
    plain = [GlossaryEntry(term, f"<{term}>") for term in terms]
    return TermFinder([*plain, *(GlossaryEntry(term, f"={term}", (), True) for term in exact)])


def found(of: TermFinder, text: str) -> list[tuple[str, str]]:
    return [(term.text, term.entry.target) for term in of.find(text)]


def test_the_longest_term_is_found_first_and_words_belong_to_one_term() -> None:
    cities = finder("New York", "York", "New York City", "City Hall")
    assert found(cities, "New York City Hall, York, new  york") == [
        ("New York City", "<New York City>"),
        ("York", "<York>"),
        ("new  york", "<New York>"),
    ]


def test_a_term_is_never_a_part_of_a_word() -> None:
    cat = finder("cat", "5", "ह")
    assert found(cat, "category concat Cat's cat-like 15 हिन्दी (cat) 5.") == [
        ("Cat", "<cat>"),
        ("cat", "<cat>"),
        ("cat", "<cat>"),
        ("5", "<5>"),
    ]


def test_a_sign_of_a_script_without_spaces_is_a_word() -> None:
    assert found(finder("猫"), "黒猫は猫だ") == [("猫", "<猫>")] * 2


def test_a_term_that_keeps_its_case_comes_before_one_that_does_not() -> None:
    birds = finder("turkey", exact=("Turkey",))
    assert [target for _, target in found(birds, "Turkey turkey TURKEY")] == [
        "=Turkey",
        "<turkey>",
        "<turkey>",
    ]
    assert found(finder(exact=("US",)), "us US Us") == [("US", "=US")]


def test_marks_are_words_of_a_term() -> None:
    assert found(finder("C++", "e.g."), "in C++, e.g. C+ +") == [
        ("C++", "<C++>"),
        ("e.g.", "<e.g.>"),
    ]


def test_two_target_terms_for_one_source_term_are_refused() -> None:
    one, other = (GlossaryEntry("A b", form, place=f"t.tsv:{form}") for form in "xy")
    with pytest.raises(DataError, match=r"t\.tsv:y: A b stands for y, but at t\.tsv:x for x"):
        TermFinder([one, other])
    TermFinder([one, one])


@pytest.mark.long
@given(st.text(max_size=30))
def test_the_words_of_a_text_are_the_text(text: str) -> None:
    assert "".join(word_sequence(text)) == text


@given(st.text(st.characters(codec="ascii"), max_size=30))
def test_ascii_is_split_like_any_text(text: str) -> None:
    # U+00E9 at the end takes the other way through the function.
    assert word_sequence(text) == word_sequence(f"{text} é")[:-2] or re.search(r"\s$", text)


letters = st.text("ab ", min_size=1, max_size=5).map(str.strip).filter(bool)


@given(st.lists(letters, max_size=5), st.text("ab ", max_size=12))
def test_the_terms_are_those_that_a_regular_expression_finds(terms: list[str], text: str) -> None:
    terms = [" ".join(term.split()) for term in terms]
    text = " ".join(text.split())
    longest_first = sorted(set(terms), key=len, reverse=True)
    pattern = "|".join(rf"\b{term}\b" for term in longest_first)
    expected = re.findall(pattern, text) if terms else []
    assert [term for term, _ in found(finder(*terms), text)] == expected


@pytest.mark.long
def test_the_time_does_not_depend_on_the_number_of_terms() -> None:
    many = finder(*(f"word{number} of a term" for number in range(20_000)), "dog")
    sentence = "A dog and word19999 of a term."
    started_at = time.process_time()
    for _ in range(100):
        assert len(found(many, sentence)) == 2
    # A loop over all entries would take minutes.
    assert time.process_time() - started_at < 5.0


def test_half_of_a_surrogate_pair_is_a_mark_of_its_own() -> None:
    """JSON can hold such a half; what a person wrote around it is still cut into words."""
    text = "\ud83d caff\u00e8 \udc00!"
    assert word_sequence(text) == ["\ud83d", " ", "caff\u00e8", " ", "\udc00", "!"]
