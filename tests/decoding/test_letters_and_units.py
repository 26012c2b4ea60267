"""Letters that name something and units behind placeholders come through a translation."""

from dataclasses import replace

import pytest

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.doubts import lacks_words_at_placeholders
from transformer_cli.decoding.checks.line_repairs import loses_spans
from transformer_cli.decoding.translation import copied

from .stub_translators import stub_translator, upper


def protected(line: str) -> str:
    [found] = replace(stub_translator(upper), protects_spans=True).translate([line])
    return found.text


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("The hotel P sleeps.", "THE HOTEL P SLEEPS."),
        ("The letter S and the train waits.", "THE LETTER S AND THE TRAIN WAITS."),
        ("Ctrl Q the train waits.", "Ctrl Q THE TRAIN WAITS."),
        ("The train C:/the/house waits.", "THE TRAIN C:/the/house WAITS."),
        ("{n} km", "{n} km"),
        ("{n}\u00a0km", "{n}\u00a0km"),
        ("https://x.org b", "https://x.org b"),
    ],
)
def test_what_a_model_cannot_read_stays_beside_its_words(line: str, written: str) -> None:
    assert protected(line) == written


def test_a_line_whose_letter_is_lost_is_translated_again() -> None:
    line = "Press P to see the house."
    assert loses_spans(line, copied("Vois la maison."))
    assert not loses_spans(line, copied("Presse P."))


@pytest.mark.parametrize(
    ("source", "translation", "lacks"),
    [
        ("The house is {n} km from here.", "La maison est à {n} de l'ici.", True),
        ("The house is {n} km from here.", "La maison est à {n}.", True),
        ("The house is {n} km from here.", "La maison est à {n} km d'ici.", False),
        ("The house is {n} km from here.", "La maison est à {n} kilomètres d'ici.", False),
        ("The house is {n} kms", "La maison {n} de", False),
    ],
)
def test_a_unit_behind_a_placeholder_is_missed(source: str, translation: str, *, lacks: bool) -> None:
    assert lacks_words_at_placeholders(source, translation, Direction("en", "fr")) == lacks
