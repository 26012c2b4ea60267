"""Names that a translation lacks; and those that it says otherwise, which are no fault."""

import itertools
import time

import pytest

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.doubts import LACKS_NAME, doubts_about
from transformer_cli.decoding.checks.names_in_text import lost_names


@pytest.mark.parametrize(
    ("source", "translation", "languages", "names"),
    [
        ("I study physics in Rome.", "J'étudie la physique.", "en fr", ["Rome"]),
        ("My name is Anna and I study in Rome.", "Mon nom est Anna et j'étudie.", "en fr", ["Rome"]),
        ("The train to Paris leaves now.", "Le train pour partir part maintenant.", "en fr", ["Paris"]),
        ("Dopo la guerra viveva con Giulia.", "He lived alone after the war.", "it en", ["Giulia"]),
        ("I saw Tom with Mary.", "Ho visto Tom.", "en it", ["Mary"]),
        ("Maria Keller is a doctor.", "Maria est médecin.", "en fr", ["Keller"]),
        ("I met Anna Maria Keller there.", "J'ai rencontré Anna là-bas.", "en fr", ["Keller"]),
        ("Hi Maria Keller, how are you?", "Salut Maria, comment vas-tu ?", "en fr", ["Keller"]),
        ("Dear Maria Keller,", "Chère Maria,", "en fr", ["Keller"]),
        ("Maria Keller", "Maria", "en fr", ["Keller"]),
        ("Maria Keller's house is big.", "La casa di Maria è grande.", "en it", ["Keller"]),
        ("Paolo Bianchi abita qui.", "Paolo lives here.", "it en", ["Bianchi"]),
    ],
)
def test_a_lost_name_is_told(source: str, translation: str, languages: str, names: list[str]) -> None:
    assert lost_names(source, translation, Direction(*languages.split())) == names
    assert LACKS_NAME in doubts_about(source, translation, Direction(*languages.split()))


@pytest.mark.parametrize(
    ("source", "translation", "languages"),
    [
        ("London is the capital of England.", "Londres est la capitale de l'Angleterre.", "en fr"),
        ("We associate Egypt with the Nile.", "Nous associons l'Égypte au Nil.", "en fr"),
        ("Le mari de Marie est ici.", "Mary's husband is here.", "fr en"),
        ("On dit que la Suède est grande.", "Sweden is said to be large.", "fr en"),
        ("I work on Mondays.", "Je travaille le lundi.", "en fr"),
        ("Are they Canadians?", "Sono canadesi?", "en it"),
        ("Do you speak Esperanto?", "Parlez-vous espéranto ?", "en fr"),
        ("Jupiter is in the Solar System.", "Jupiter est dans le système solaire.", "en fr"),
        ("He is old. Now I know.", "Il est vieux. Maintenant, je sais.", "en fr"),
        ("I THINK SO.", "JE LE PENSE.", "en fr"),
        ("The dog has Anna cats.", "Il cane ha gatti.", "en it"),  # where {n} stood
        ("My brother likes TV.", "Mon frère aime la télé.", "en fr"),
        ("Maria Keller is a doctor.", "Maria Keller est médecin.", "en fr"),
        ("I saw the Eiffel Tower.", "J'ai vu la tour Eiffel.", "en fr"),
        ("We met at Tokyo Station.", "Nous nous sommes rencontrés à la gare de Tokyo.", "en fr"),
        ("The Marshall Islands are far away.", "Les îles Marshall sont loin.", "en fr"),
        ("Server Settings", "Instellingen van de Server", "en nl"),
        ("They like Exxon Mobil.", "Ils aiment ExxonMobil.", "en fr"),
        ("I live in Rome.", "我住在那里。", "en zh"),
        ("Ich mag den Hund.", "I like the dog.", "de en"),
    ],
)
def test_what_is_said_otherwise_is_not_told(source: str, translation: str, languages: str) -> None:
    assert lost_names(source, translation, Direction(*languages.split())) == []


def test_the_time_grows_with_the_length_of_a_text_alone() -> None:
    def seconds(num_names: int) -> float:
        names = itertools.islice(map("".join, itertools.product("bdfgklmn", repeat=6)), num_names)
        source = "we " + " ".join(f"in {name.capitalize()}" for name in names)
        start = time.process_time()
        assert len(lost_names(source, "nous dans lui", Direction("en", "fr"))) == num_names
        return time.process_time() - start

    seconds(100)
    assert seconds(4000) < 20 * max(seconds(1000), 0.01)
