"""Letters that name something and units behind placeholders come through a translation."""

from dataclasses import replace

import pytest

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.doubts import NUMBERS, doubts_about, lacks_words_at_placeholders
from transformer_cli.decoding.checks.line_repairs import loses_spans
from transformer_cli.decoding.protected_spans import SpanKeeper, StandIns
from transformer_cli.decoding.translation import copied
from transformer_cli.text.spans import SpanKind, find_spans

from .stub_translators import TOKENIZER, stub_translator, upper


@pytest.mark.parametrize(
    ("text", "numbers", "asked"),
    [
        ("%d hotels", ("25",), "25 hotels"),
        ("the {n} hotels and %(x)d trains", ("25", "15"), "the 25 hotels and 15 trains"),
        ("the {{ dog_count }} hotels of %s", ("25",), "the 25 hotels of Anna"),
        ("%1$d hotels", (), "Anna hotels"),
        ("the {n} hotels and %d trains", ("25",), "the 25 hotels and Anna trains"),
        ("{name} hotels, %s hotels", ("25",), "Anna hotels, Tom hotels"),
        ("hotel %d.", ("25",), "hotel Anna."),
    ],
)
def test_a_number_stands_for_a_placeholder_that_counts_a_noun(text: str, numbers: tuple[str, ...], asked: str) -> None:
    stand_ins = StandIns({SpanKind.WORD: ("Anna", "Tom"), SpanKind.NUMBER: numbers})
    keeper = SpanKeeper(TOKENIZER, TOKENIZER, stand_ins, Direction("en", "it"), lambda text: ())
    [piece] = next(keeper.attempts(text, find_spans(text)))
    assert piece.text == asked


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
        ("{n} V", "{n} V"),
        ("The hotel {n} V.", "THE HOTEL {n} V."),
        ("{{ n }}&nbsp;kg", "{{ n }}&nbsp;kg"),
        ("5 kg", "5 kg"),
        ("The hotel waits 5 km.", "THE HOTEL WAITS 5 km."),
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
        ("The dog eats {n} kg of it.", "Le chien mange {n} kgra.", True),
        ("The house is {n} kms", "La maison {n} de", False),
    ],
)
def test_a_unit_behind_a_placeholder_is_missed(source: str, translation: str, *, lacks: bool) -> None:
    assert lacks_words_at_placeholders(source, translation, Direction("en", "fr")) == lacks


@pytest.mark.parametrize(
    ("source", "translation", "is_invented"),
    [
        ("The value is 30.", "La valeur a 30 ans.", True),
        ("The value is 30.", "La valeur a trente ans.", True),
        ("The value is 30.", "La valeur est 30.", False),
        ("It is set to 12.", "C'est réglé à 12 heures.", True),
        ("It is set to 0 now.", "C'est réglé à 0 ans.", True),
        ("He has a score of 20.", "Il a un score de 20 ans.", True),
        ("It went from 5 to 12.", "C'est allé de 5 h à 12.", True),
        ("The price is 30.", "Le prix est de 30 euros.", True),
        ("The result was 3.", "Le résultat était de 3 jours.", True),
        ("We come at 4 pm, room 12.", "Nous venons à 4 h, à 12 h.", True),
        ("The price is €30.", "Le prix est de 30 euros.", False),
        ("She is 40.", "Elle a 40 ans.", False),
        ("Tom is 13.", "Tom a 13 ans.", False),
        ("He died at the age of 70.", "Il est mort à 70 ans.", False),
        ("The retirement age is 60.", "La retraite est à 60 ans.", False),
        ("I usually get up at 8.", "Je me lève à 8 heures.", False),
        ("We work from 9 to 5.", "Nous travaillons de 9 h à 5 h.", False),
        ("They waited 5 or 6 years.", "Ils ont attendu 5 ans ou 6 ans.", False),
        ("There are 30 people.", "Il y a 30 ans.", False),  # another fault
    ],
)
def test_a_unit_that_a_bare_number_has_not_is_missed(source: str, translation: str, *, is_invented: bool) -> None:
    assert (NUMBERS in doubts_about(source, translation, Direction("en", "fr"))) == is_invented


@pytest.mark.parametrize(
    ("source", "translation", "is_other"),
    [
        ("The box is 20 x 30 cm.", "La bo\u00eete est 20 \u00ab 30 cm.", True),
        ("The box is 20 x 30 cm.", "La bo\u00eete fait 20\u00d730 cm.", False),
        ("The box is 20 x 30 cm.", "La bo\u00eete fait 20 sur 30 cm.", False),
        ("10-15 people came.", "10 quinze personnes sont venues.", True),
        ("10-15 people came.", "10 \u00e0 15 personnes sont venues.", False),
        ("1\u20132 hours", "1 2 heures", True),
        ("We need 3~4 days.", "Il nous faut 3-4 jours.", False),
        ("It is 3x bigger.", "C'est 3 plus grand.", True),
        ("It is 3x bigger.", "C'est 3 fois plus grand.", False),
        ("We waited 2+ hours.", "Nous avons attendu 2 heures.", True),
        ("We waited 2+ hours.", "Nous avons attendu 14 heures de plus.", True),
        ("We waited 2+ hours.", "Nous avons attendu plus de 2 heures.", False),
        ("1.5+ hours", "1,5+ heures", False),
    ],
)
def test_numbers_that_belong_together_stay_together(source: str, translation: str, *, is_other: bool) -> None:
    assert (NUMBERS in doubts_about(source, translation, Direction("en", "fr"))) == is_other


@pytest.mark.parametrize("number", ["1.5+", "20 x 30", "5\u201310", "3x"])
def test_joined_numbers_come_through_a_model(number: str) -> None:
    assert protected(f"The train waits {number} and sleeps.") == f"THE TRAIN WAITS {number} AND SLEEPS."
