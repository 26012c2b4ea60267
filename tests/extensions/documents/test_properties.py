"""The .properties of Java: escapes, encodings, apostrophes of MessageFormat."""

import pytest

from transformer_cli.extensions.documents.properties import read_properties

from .fake_translators import REVERSED, Identity, WordByWord, done, translated


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ("title = A red car", "title = A RED CAR"),
        ("title:A red car", "title:A RED CAR"),
        ("title A red car", "title A RED CAR"),
        ("  title\t=\tA red car  ", "  title\t=\tA RED CAR  "),
        ("title = A red \\\n    car", "title = A RED CAR"),
        ("title = \\\n    A red car", "title = \\\n    A RED CAR"),
        (r"a\ b\:c = It\nin two", r"a\ b\:c = IT\nIN TWO"),
        (r"a = caf\u00E9", r"a = CAF\u00C9"),
        (r"a = \ud83d\ude00 face", r"a = \uD83D\uDE00 FACE"),
        (r"a = C:\\dir is red", r"a = C:\\dir IS RED"),
        ("a = &File", "a = &FILE"),
        ("a=", "a="),
        ("a = main_window", "a = main_window"),
        ("app.id = Sun", "app.id = Sun"),
        ("app.vendor = Sun", "app.vendor = SUN"),
        ("quit.accelerator = ctrl pressed Q", "quit.accelerator = ctrl pressed Q"),
        ("a = {0} has {1,number} cars", "a = {0} HAS {1,number} CARS"),
        ("a = It''s {0}", "a = IT''S {0}"),
        ("a = It''s '{'x y'}' {0}", "a = IT''S '{'X Y'}' {0}"),
        ("a = {0,choice,0#no cars|1#a car|1<{0} cars} here", "a = {0,choice,0#NO CARS|1#A CAR|1<{0} CARS} HERE"),
        ("a = {0, plural, one {# car} other {# cars}}", "a = {0, plural, one {# CAR} other {# CARS}}"),
    ],
)
def test_values_are_translated(entry: str, wanted: str) -> None:
    text = "# A comment = stays\n! and this one: \\\n\n{}\n\nb = 2\n"
    assert translated(read_properties(text.format(entry).encode())) == text.format(wanted)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (("water {0}", "water"), ("l''acqua {0}", "l'acqua")),
        (("it's {0}", "water {0}"), ("it's {0}", "l'acqua {0}")),  # not for MessageFormat
        (("it''s", "water"), ("it''s", "l''acqua")),
        (("it's", "water"), ("it's", "l'acqua")),
    ],
)
def test_an_apostrophe_is_doubled_where_the_file_doubles_it(values: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    italian = WordByWord(lambda word: "l'acqua" if word == "water" else word)
    data = "".join(f"k{at} = {value}\n" for at, value in enumerate(values)).encode()
    assert translated(read_properties(data), italian) == "".join(
        f"k{at} = {value}\n" for at, value in enumerate(wanted)
    )


@pytest.mark.parametrize(
    ("text", "encoding", "written"),
    [
        ("a = red\n", "ascii", "a = \\u20AC\u00e9\n".replace("\u00e9", "\\u00E9")),
        ("a = red\n# \u00e9\n", "utf-8", "a = \u20ac\u00e9\n# \u00e9\n"),
        ("a = red\n# \u00e9\n", "iso-8859-1", "a = \\u20AC\u00e9\n# \u00e9\n"),
    ],
)
def test_letters_that_the_file_may_not_have_are_codes(text: str, encoding: str, written: str) -> None:
    euro = WordByWord(lambda word: "\u20ac\u00e9")
    assert done(read_properties(text.encode(encoding)), euro).data == written.encode(encoding)


def test_a_translator_that_changes_nothing_gives_the_same_bytes() -> None:
    text = "# c\r\na = A red \\\r\n  car\r\nb\\ c:It''s {0}\r\n\r\nd=caf\u00e9 bar"
    for encoding in ("utf-8", "iso-8859-1"):
        data = text.encode(encoding)
        assert len(read_properties(data).segments) == 3
        assert done(read_properties(data), Identity()).data == data
    assert "a = CAR RED A\r\n" in translated(read_properties(text.encode()), REVERSED)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (
            "The water {0} has {1,choice,0#no water|1#one car} here",
            "The l''acqua {0} has {1,choice,0#no l''acqua|1#one car} here",
        ),
        (
            "A car {0,choice,0#isn''t|1#'{'water} x",
            "A car {0,choice,0#isn''t|1#'{'l''''acqua} x",
        ),
        (  # MessageFormat reads a branch with a brace twice
            "{1,choice,0#isn''''t the water of {2}|1#x}",
            "{1,choice,0#isn''''t the l''''acqua of {2}|1#x}",
        ),
        (  # ICU needs one apostrophe
            "The {0} water {1,plural,one{water} other{it''s}}",
            "The {0} l'acqua {1,plural,one{l'acqua} other{it''s}}",
        ),
    ],
)
def test_an_apostrophe_beside_a_choice_of_java_is_doubled_also_in_its_branches(value: str, wanted: str) -> None:
    italian = WordByWord(lambda word: "l'acqua" if word == "water" else word)
    assert translated(read_properties(f"a={value}\n".encode()), italian) == f"a={wanted}\n"
