"""Which ranges of a line are text, and how the columns of a table stay aligned."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.text.columns import display_width, with_texts
from transformer_cli.text.normalization import has_letter
from transformer_cli.text.sentences import (
    TextRange,
    end_of_label,
    text_ranges,
    titles,
)

PIECES = [*" \t|.-*>#…_1a.)(", "   ", "Two words.", "• ", "1. ", "a) ", "> ", "好", "\u3000"]
lines = st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.text(max_size=30)


def texts_of(line: str) -> list[str]:
    return [line[start:end] for start, end in text_ranges(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("   ", []),
        ("-", []),
        ("12:30 - 1.20", []),
        ("|---|--:|", []),
        ("  Hello there.  ", ["Hello there."]),
        ("\t- Hello.", ["Hello."]),
        ("* Hello.", ["Hello."]),
        ("• Hello.", ["Hello."]),
        ("1. Hello.", ["Hello."]),
        ("(iv) Hello.", ["Hello."]),
        *[
            (f"{mark}. The dogs are here.", ["The dogs are here."])
            for mark in (
                *"ivxIX",
                "ii",
                "iii",
                "iv",
                "vi",
                "vii",
                "viii",
                "ix",
                "II",
                "III",
                "IV",
                "VI",
                "VIII",
                "IX",
                "XIV",
                "XV",
                "XX",
            )
        ],
        ("i. the dog", ["the dog"]),
        ("- IV. The dog", ["The dog"]),
        ("I. e. the dog", ["I. e. the dog"]),
        ("i. e. the dog", ["i. e. the dog"]),
        ("v. Chr. was here", ["v. Chr. was here"]),
        ("I.the dog. It is I. The dog", ["I.the dog. It is I. The dog"]),
        ("MIX. The dog", ["MIX. The dog"]),
        ("Iv. The dog", ["Iv. The dog"]),
        ("- [ ] Hello.", ["Hello."]),
        ("> > a) Hello.", ["Hello."]),
        ("[00:12.50][01:20.00] Hello.", ["Hello."]),
        ("[12:30:05] > Hello.", ["Hello."]),
        ("00:12 Hello.", ["Hello."]),
        ("00:12 - 00:15: Hello.", ["Hello."]),
        ("1:02:03.500 Éva is here.", ["Éva is here."]),
        ("10:30 is late.", ["10:30 is late."]),
        ("10:30 Uhr ist spät.", ["10:30 Uhr ist spät."]),
        ("8:15 PM is late.", ["8:15 PM is late."]),
        ("[1:2] Hello.", ["[1:2] Hello."]),
        (">> Hello.", ["Hello."]),
        ("## Hello", ["Hello"]),
        ("A. Smith is here.", ["A. Smith is here."]),
        ("-5 degrees", ["-5 degrees"]),
        ("“Hello.”", ["“Hello.”"]),
        ("Coffee      1.20", ["Coffee"]),
        ("Coffee  1.20", ["Coffee"]),
        ("Coffee ........ 1.20", ["Coffee"]),
        ("| Coffee | 1.20 | hot |", ["Coffee", "hot"]),
        ("Coffee\thot\t1.20", ["Coffee", "hot"]),
        ("Monday    Tuesday", ["Monday", "Tuesday"]),
        ("Hello.  How are you?", ["Hello.  How are you?"]),
        ("The house is    big.", ["The house is    big."]),
        ("I  would   like    a     coffee.   ", ["I  would   like    a     coffee."]),
        ("coffee    with milk    hot", ["coffee", "with milk", "hot"]),
        ("Anna    Rome    late.", ["Anna", "Rome    late."]),
        ("coffee    1.20    very good.", ["coffee", "very good."]),
        ("Well.... I think so", ["Well.... I think so"]),
        ("*** Old *** We have a house.", ["Old", "We have a house."]),
        ("=== The house ===", ["The house"]),
        (">>> ~~~ The house --- ###", ["The house"]),
        ("***big*** a*** -> == **", ["***big*** a*** -> == **"]),
        ("-Hello. -Tom", ["Hello. -Tom"]),
        ("  \u2013I'm here.", ["I'm here."]),
        ("-I am here.", ["I am here."]),
        ("-ing is an ending.", ["-ing is an ending."]),
        ("-V, --version", ["-V, --version"]),
        ("--Anna", ["--Anna"]),
        # Marks of Toolbox, USFM and LaTeX.
        (r"\lx hello", ["hello"]),
        (r"\ge A word that means hi.", ["A word that means hi."]),
        (r"  \v 1 The dogs are here.", ["The dogs are here."]),
        (r"\v 2-3a The dogs", ["The dogs"]),
        (r"\c 3", []),
        (r"\s1 The red house", ["The red house"]),
        (r"\p", []),
        (r"\item 1. Hello.", ["Hello."]),
        (r"\dir\name is here.", [r"\dir\name is here."]),
        (r"\dir is here.", [r"\dir is here."]),
    ],
)
def test_text_is_found_between_the_rest(line: str, expected: list[str]) -> None:
    assert texts_of(line) == expected


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("TOM: I am here.", "TOM"),
        ("Note: the dog is big.", "Note"),
        ("SECOND MAN 2: \u201cYes.\u201d", "SECOND MAN 2"),
        ("Dr. Anna O\u2019Neil: Yes.", "Dr. Anna O\u2019Neil"),
        ("He said: I am here.", None),
        ("note: the dog", None),
        ("Note:", None),
        ("Note: 12", None),
        ("At 10:30 we go.", None),
        ("Http://a.b", None),
        ("One Two Three Four Five: six", None),
    ],
)
def test_a_label_has_capital_letters_and_a_text_behind_its_colon(line: str, label: str | None) -> None:
    end = end_of_label(f"- {line}", TextRange(2, len(line) + 2))
    assert (None if end is None else f"- {line}"[2:end]) == label


def test_letters_of_hidden_spans_are_no_text() -> None:
    line, visible = "Site  www.x.it", "Site  ________"
    assert [line[start:end] for start, end in text_ranges(line, visible)] == ["Site"]


@given(lines)
def test_a_range_begins_and_ends_without_white_space_and_has_a_letter(line: str) -> None:
    place = 0
    for start, end in text_ranges(line):
        assert place <= start < end <= len(line)
        text = line[start:end]
        assert text == text.strip()
        assert has_letter(text)
        place = end


@given(lines)
def test_every_letter_is_in_a_range_or_in_a_mark(line: str) -> None:
    ranges = text_ranges(line)
    first = ranges[0].start if ranges else len(line)
    outside = set(range(first, len(line))) - {place for each in ranges for place in range(*each)}
    assert not any(line[place].isalpha() for place in outside)


@given(lines)
def test_a_line_with_its_own_texts_is_the_line(line: str) -> None:
    assert with_texts(line, text_ranges(line), texts_of(line)) == line


@pytest.mark.parametrize(
    ("line", "texts", "expected"),
    [
        ("Coffee    1.20", ["Caffè"], "Caffè     1.20"),
        ("Tea       1.20", ["Infuso"], "Infuso    1.20"),
        ("Tea  1.20", ["Un infuso"], "Un infuso  1.20"),
        ("Tea   hot    1.20", ["Infuso", "caldo"], "Infuso  caldo  1.20"),
        ("| Coffee | 1.20 |", ["Tè"], "| Tè     | 1.20 |"),
        ("| Tea | 1.20 |", ["Infuso"], "| Infuso | 1.20 |"),
        ("Coffee    1.20", ["咖啡"], "咖啡      1.20"),
        ("Coffee\t1.20", ["Tè"], "Tè\t1.20"),
        ("Coffee.", ["Tè"], "Tè"),
    ],
)
def test_what_follows_a_text_keeps_its_column(line: str, texts: list[str], expected: str) -> None:
    assert with_texts(line, text_ranges(line), texts) == expected


def test_a_wide_character_takes_two_columns_and_a_combining_mark_none() -> None:
    assert list(map(display_width, ["abc", "咖啡", "e\u0301", "é"])) == [3, 4, 1, 1]


@pytest.mark.long
@pytest.mark.parametrize("piece", [" ", ">", "> ", "\u2003", ".", ". ", "|", "- ", "1", "a  ", "a   .  "])
def test_the_time_does_not_grow_with_the_square_of_the_length(piece: str) -> None:
    line = piece * 20_000 + "a"
    started_at = time.process_time()
    ranges = text_ranges(line)
    with_texts(line, ranges, ["b"] * len(ranges))
    assert time.process_time() - started_at < 4.0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The house - A big garden", ["The house", "A big garden"]),
        ("Part 2 \u2013 The house \u2014 A garden", ["Part 2", "The house", "A garden"]),
        ("The house - A big garden.", ["The house - A big garden."]),  # a sentence
        ("The house - a big garden", ["The house - a big garden"]),
        ("Anna - Maria", ["Anna - Maria"]),  # one word may be a part of a name
        ("10 - The house", ["10 - The house"]),
        ("A well-known House", ["A well-known House"]),
    ],
)
def test_the_parts_of_a_heading_stand_beside_a_dash(line: str, expected: list[str]) -> None:
    found = titles(line, TextRange(0, len(line)))
    assert [line[start:end] for start, end in found] == expected


@pytest.mark.long
def test_the_time_for_headings_does_not_grow_with_the_square_of_their_length() -> None:
    line = "A b - " * 50_000 + "A b"
    started_at = time.process_time()
    assert len(titles(line, TextRange(0, len(line)))) == 50_001
    assert time.process_time() - started_at < 10.0
