"""What was translated by itself: each translation tells its pieces, and where they stand in it."""

import re
from dataclasses import replace

import pytest

from transformer_cli.config import Direction, TokenizerConfig
from transformer_cli.decoding.translation import (
    TranslatedPiece,
    Translation,
    placed_pieces,
    through_pivot,
)
from transformer_cli.text.tokenizer import train_tokenizer

from .stub_translators import StubEngine, silent_about, stub_translator, upper


def shown(translation: Translation) -> list[tuple[str, str]]:
    return [piece.texts(translation) for piece in placed_pieces(translation)]


def test_a_sentence_that_is_translated_as_a_whole_has_no_pieces() -> None:
    [found] = stub_translator(upper).translate(["the train waits."])
    assert found.pieces == ()


def test_the_sentences_and_the_clauses_of_a_line_are_pieces() -> None:
    model = stub_translator(silent_about("mute"))
    [found] = model.translate(["  the train waits, the mute sleeps. the house burns."])
    assert shown(found) == [
        ("the train waits,", "THE TRAIN WAITS,"),
        ("the mute sleeps.", "the mute sleeps."),
        ("the house burns.", "THE HOUSE BURNS."),
    ]
    assert [piece.is_kept for piece in placed_pieces(found)] == [False, True, False]


def test_the_pieces_around_protected_spans_are_pieces_also_with_stand_ins() -> None:
    def says(text: str) -> list[str]:  # it loses a number before a word
        return [re.sub(r"\d+", "", text.upper())]

    model = replace(stub_translator(says), protects_spans=True)
    [found] = model.translate(["the train waits 8 the house burns."])
    assert found.is_in_pieces
    assert shown(found) == [
        ("the train waits", "THE TRAIN WAITS"),
        ("8", "8"),
        ("the house burns.", "THE HOUSE BURNS."),
    ]


@pytest.mark.parametrize("mark", ["<br>", "\U0001f600", "*", "**", "\u00b9", "\u00b9\u00b2"])
def test_a_sentence_before_a_tag_or_the_mark_of_a_footnote_is_read_with_its_full_stop(mark: str) -> None:
    read: list[str] = []

    def says(text: str) -> list[str]:
        read.append(text)
        return [text.upper().rstrip("?")]  # it loses the question mark

    model = replace(stub_translator(says), protects_spans=True)
    lines = [f"the train waits.{mark}", f"the train waits?{mark} the house burns.", f"the train, waits{mark} the house"]
    assert [each.text for each in model.translate(lines)] == [line.upper().replace("<BR>", "<br>") for line in lines]
    assert {"the train waits.", "the train waits?"} <= set(read)


@pytest.mark.parametrize(
    ("pieces", "source", "text", "expected"),
    [
        # Another case of the first letter, other marks, other white space.
        (
            [("we go", "Andiamo"), ("it is late", "\u00c8 tardi.")],
            "We go,  it  is late.",
            "Andiamo, \u00e8 tardi.",
            [("We go,", "Andiamo,"), ("it  is late.", "\u00e8 tardi.")],
        ),
        # A piece that vanishes, and one that cannot be found, are one with what is beside them, and nothing else is.
        ([("a b", "A"), ("c d", ""), ("e", "E")], "a b, c d, e", "A, E", [("a b,", "A,"), ("c d, ", " "), ("e", "E")]),
        ([("a", "A"), ("x", "Y"), ("e", "E")], "a b c e", "A B E", [("a", "A"), (" b c ", " B "), ("e", "E")]),
        ([("a", "A"), ("b", "B")], "q", "A B", [("q", "A B")]),
    ],
)
def test_pieces_are_found_in_the_texts(
    pieces: list[tuple[str, str]], source: str, text: str, expected: list[tuple[str, str]]
) -> None:
    found = Translation(source, text, 0.0, (), pieces=tuple(TranslatedPiece(*each) for each in pieces))
    of_source, of_text = zip(*shown(found), strict=True)
    assert [each.strip() for each in of_source] == [each.strip() for each, _ in expected]
    assert [each.strip() for each in of_text] == [each.strip() for _, each in expected]


def test_two_models_in_a_row_have_the_ends_that_both_have() -> None:
    def of(source: str, text: str, *pieces: tuple[str, str]) -> Translation:
        return Translation(source, text, 0.0, (), pieces=tuple(TranslatedPiece(*each) for each in pieces))

    first = of("a, b, c d", "x, y, z", ("a", "x"), ("b", "y"), ("c d", "z"))
    second = of("x, y, z", "u, v w", ("x", "u"), ("y, z", "v w"))
    both = through_pivot(first, second, Direction("en", "it"))
    assert shown(both) == [("a,", "u,"), ("b, c d", "v w")]
    as_a_whole = replace(second, pieces=())
    assert through_pivot(first, as_a_whole, Direction("en", "it")).pieces == ()


def test_a_line_that_stays_has_no_pieces() -> None:
    [found] = stub_translator(lambda text: [""]).translate(["the train waits, the house burns."])
    assert found.is_untranslated
    assert found.pieces == ()


@pytest.mark.parametrize("word", ["घर की", "ที่นี่", "နေကောင်းလား", "בָּרוּךְ", "ᜀᜌ᜔", "\u2820\u281e"])
def test_a_word_beside_what_must_stay_keeps_its_vowels(word: str) -> None:
    """Of Hindi, Thai, Burmese, Hebrew and Tagalog; the last one is Braille."""
    tokenizer = train_tokenizer([word], TokenizerConfig(kind="bpe"))
    engine = StubEngine(lambda text: [text], tokenizer)
    model = stub_translator(upper)
    pipeline = replace(model.pipeline, source_tokenizer=tokenizer, target_tokenizer=tokenizer)
    model = replace(model, pipeline=pipeline, engine=engine, protects_spans=True)
    [found] = model.translate([f"<br>{word}<br> {word} <br>"])
    assert found.text == f"<br>{word}<br> {word} <br>"
    assert set(engine.asked) == {word}
