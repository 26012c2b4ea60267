"""Units behind numbers and placeholders: they stay, or become names of the same units."""

import pytest

from transformer_cli.text.spans import SpanKind, find_spans
from transformer_cli.text.units import has_other_units, with_units


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("5 cm", ["5 cm"]),
        ("The box weighs 5 kg.", ["5 kg"]),
        ("He drives at 50 km/h now.", ["50 km/h"]),
        ("2 l of milk", ["2 l"]),
        ("We have 2 h.", ["2 h"]),
        ("{n} MB", ["{n} MB"]),
        ("{{ a }}&nbsp;kg", ["{{ a }}&nbsp;kg"]),
        ("We eat 5 apples at 7.", ["5", "7"]),
        ("Read 5 g-strings, 5 l'eau", ["5", "5"]),
        ("{n} l of milk", ["{n}"]),
        ("20 \u00b0C", ["20 \u00b0C"]),
    ],
)
def test_a_span_takes_its_unit_with_it(text: str, found: list[str]) -> None:
    spans = with_units(text, find_spans(text), SpanKind.WORD, SpanKind.NUMBER)
    assert [text[span.start : span.end] for span in spans] == found


@pytest.mark.parametrize(
    ("source", "translation", "is_other"),
    [
        ("5 cm", "5 h", True),
        ("It weighs 5 kg.", "Il p\u00e8se 5 kgra.", True),
        ("The box is 5 cm long.", "La bo\u00eete est 5 longue.", True),
        ("The box is 5 cm long.", "La bo\u00eete fait 5 cm de long.", False),
        ("The box is 5 cm long.", "C'est cinq cordes.", True),
        ("The box is 5 cm long.", "Elle a cinq cm.", False),
        ("We have 2 h.", "Nous en avons deux.", False),
        ("We have 20 min.", "Nous avons 20 minuit.", True),
        ("We have 20 min.", "Nous avons vingt minutes.", False),
        ("We ran 5 km.", "Nous avons couru 5 kilom\u00e8tres.", False),
        ("We ran 5 km.", "Nous avons couru cinq kilom\u00e8tres.", False),
        ("The file has 1.5 MB.", "Le fichier a 1,5 Mo.", False),
        ("The file has 1.5 MB.", "Le fichier a 1,5 mois.", True),
        ("We have 2 h.", "Nous avons 2 heures.", False),
        ("We have 2 h.", "Nous avons 2 aides.", True),
        ("At 10:30", "\u00c0 10:30 km", True),
        ("1.5+", "1.5+ MB", True),
        ("At 7.", "\u00c0 7 h.", False),
        ("10 or 15 kilometers", "10 km ou 15 km", False),
        ("It weighs 5 pounds.", "Il p\u00e8se 5 kg.", False),
    ],
)
def test_a_unit_behind_a_number_stays_or_is_named(source: str, translation: str, is_other: bool) -> None:
    assert has_other_units(source, translation, "fr", SpanKind.NUMBER) == is_other


@pytest.mark.parametrize(
    ("translation", "target", "is_other"),
    [("{n} chiens", "fr", True), ("{n} kilos", "fr", False), ("{n} chiens", "sv", False), ("chiens", "fr", False)],
)
def test_a_unit_behind_a_placeholder_stays_or_is_named(translation: str, target: str, is_other: bool) -> None:
    assert has_other_units("{n} kg", translation, target, SpanKind.WORD) == is_other
