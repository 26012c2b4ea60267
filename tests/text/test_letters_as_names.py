"""Which capital letters by themselves name something, and which are words."""

import pytest

from transformer_cli.decoding.protected_spans import Promise
from transformer_cli.text.languages import is_plain
from transformer_cli.text.spans import SpanKind, find_spans, span_texts


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("Press P to play with the dogs.", "P"),
        ("Press I or A to play.", "IA"),
        ("Press the S key.", "S"),
        ("Hold the A key and the I key.", "AI"),
        ("Press W to open the house and S to sleep.", "WS"),
        ("Vitamin C is good", "C"),
        ("Carrots have vitamin A and vitamin E.", "AE"),
        ("Option B", "B"),
        ("Options A, B and C are red.", "ABC"),
        ("List item A", "A"),
        ("He has plan B. The dog sleeps.", "B"),
        ("The answer is A.", "A"),
        ("Draw a line from A to B.", "AB"),
        ("A", "A"),
        ('"B"', "B"),
        ("Z.", "Z"),
        ('He wrote "I" and \u00abA\u00bb on it (B).', "IAB"),
        ("Premi E per aprire la casa.", "E"),
        ("La vitamina A fa bene.", "A"),
        ("Appuyez sur la touche Y.", "Y"),
        ("Die Taste W ist rot.", "W"),
        ("OPTION B", "B"),
        ("Use X rays, rayons X", "X"),
        ("See the V of that house", "V"),
    ],
)
def test_a_letter_that_names_something_is_a_span(text: str, letters: str) -> None:
    spans = find_spans(text)
    assert span_texts(text, spans) == [*letters]
    assert {span.kind for span in spans} == {SpanKind.LETTER}
    assert not is_plain(text)


@pytest.mark.parametrize(
    "text",
    [
        "I see a dog and I sleep.",
        "I",
        "A dog sleeps. A cat, too.",
        "The story of A dog",
        "O Lord, hear me O Lord!",
        "E la casa? \u00c8 rossa. A Roma. O vai?",
        "Roma E Milano",
        "Y la casa. Y a-t-il un chien ? \u00c0 Paris.",
        "W domu. Z domu. O tobie. U nas. I ty. V lese. K domu. S tebou.",
        "\u0418 \u043e\u043d \u0412 \u0434\u043e\u043c\u0435. \u042f \u0421 \u043d\u0438\u043c.",
        "It is by J. Smith and John F. Kennedy.",
        "Michael J Fox and Elizabeth I, Henry V",
        "an X ray, a T shirt, a U turn",
        "In 400 avant J.-C., la posizione N. 1, il V secolo",
        "PRESS A BUTTON AND MAKE A PLAN",
        "Press A Button",
        "the key I have, the plan I made",
        "T-shirt, x-ray, U.S. and D.C.",
        "I'm here, J'ai, D'accord, l'A",
        "see p. 7 of it, c est l ou d, v lese, s nim, z domu, k domu, u nas, w domu",
        "R&D, r&d, b-day, the b's",
        "TWO CAR(S)",
    ],
)
def test_a_letter_that_is_a_word_or_a_part_of_a_name_is_none(text: str) -> None:
    assert SpanKind.LETTER not in {span.kind for span in find_spans(text)}


@pytest.mark.parametrize(
    ("text", "numerals"),
    [
        ("Chapter V", ["V"]),
        ("CHAPTER I.", ["I"]),
        ("Chapter I. The Dog", ["I"]),
        ("CHAPTER II: The Red House", ["II"]),
        ("Part I of the book", ["I"]),
        ("Act IV, Scene ii", ["IV", "ii"]),
        ("See chapter XL and Vol. XC.", ["XL", "XC"]),
        ("Chapters I-III", ["I-III"]),
        ("Elizabeth II was a queen, and so is Henry VIII's daughter.", ["II", "VIII"]),
        ("Kapitel IX, Chapitre XI, Cap\u00edtulo IV, Capitolo XX", ["IX", "XI", "IV", "XX"]),
        ("the phase III", ["III"]),
        ("VII", ["VII"]),
    ],
)
def test_a_roman_numeral_is_a_span(text: str, numerals: list[str]) -> None:
    spans = find_spans(text)
    assert span_texts(text, spans) == numerals
    assert {span.kind for span in spans} == {SpanKind.LETTER}
    assert not is_plain(text)


@pytest.mark.parametrize(
    "text",
    [
        "I am here, and the part I like is red.",
        "In this book I read it. Tom and I. The book I and Tom read.",
        "World War II was a war.",
        "II est ici.",
        "The MIX and the CD are DIM.",
        "Chapter VX, Chapter IIX",
        "ii. the dog, xi, vi",
        "Part-II, II.x, /II/",
    ],
)
def test_letters_that_are_no_roman_numeral_are_none(text: str) -> None:
    assert SpanKind.LETTER not in {span.kind for span in find_spans(text)}


def test_a_promise_holds_a_roman_numeral() -> None:
    text = "Chapter II of Louis XIV"
    promise = Promise.of(text, find_spans(text))
    assert promise.is_kept_by("Chapitre II de Louis XIV")
    assert promise.is_kept_by("Chapitre II, XIVe si\u00e8cle")
    assert not promise.is_kept_by("Chapitre I de Louis XIV")
    assert not promise.is_kept_by("Chapitre III de Louis XIV")


@pytest.mark.parametrize(
    ("text", "letter"),
    [("Seat 12 A is red.", "A"), ("Open seat 34 B now.", "B"), ("Set it to 5 V.", "V"), ("Go to 7 Y", "Y")],
)
def test_a_letter_behind_a_number_and_a_space_is_a_span(text: str, letter: str) -> None:
    assert span_texts(text, find_spans(text))[1:] == [letter]


@pytest.mark.parametrize("text", ["In 1914 I went", "By 2010 A new dog is here", "30 B.C. and 5 P.M.", "10 J. Smith"])
def test_other_letters_behind_a_number_are_none(text: str) -> None:
    assert SpanKind.LETTER not in {span.kind for span in find_spans(text)}


@pytest.mark.parametrize(
    "text",
    ["https://example.org/a b", "See {name} b now", "x /usr/bin", "%s b.", "Welcome to v", "It is in t)", "at x"],
)
def test_a_small_letter_beside_an_address_or_at_the_end_is_a_span(text: str) -> None:
    assert [span.kind for span in find_spans(text)].count(SpanKind.LETTER) == 1


@pytest.mark.parametrize(
    "text",
    [
        "see x and (b) now",
        "{n} d, %s p. 7",
        "5 x /a",
        "it is a / b",
        "<b>a</b> b",
        "p {color: red}",
        r"\*star\* b",
        "b",
        "%s y {n} a",
        "the 5 m",
        "it is v of",
        "l'emendamento n.",
        "thank u",
    ],
)
def test_other_small_letters_are_none(text: str) -> None:
    assert SpanKind.LETTER not in {span.kind for span in find_spans(text)}


def test_a_promise_holds_a_letter_at_least_as_often_as_its_source() -> None:
    text = "Press A to play with A."
    promise = Promise.of(text, find_spans(text))
    assert promise.is_kept_by("Appuie sur A pour jouer avec A.")
    assert promise.is_kept_by("A : appuie sur la touche A, pour jouer avec la touche-A.")
    assert not promise.is_kept_by("Appuie sur A pour jouer.")
    assert not promise.is_kept_by("Appuie sur a pour jouer avec Anna.")
    assert Promise.of("The dogs sleep.", []).is_kept_by("Les chiens dorment avec B.")
