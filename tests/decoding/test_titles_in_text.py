"""Titles of persons that a translation lacks or changes; and those that it says otherwise, which are no fault."""

import pytest

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.doubts import LACKS_TITLE, doubts_about, doubts_of_small_letters


@pytest.mark.parametrize(
    ("source", "translation", "languages"),
    [
        ("Good morning, Mrs. Smith.", "Bonjour, Monsieur Smith.", "en fr"),
        ("Call Dr. Martin before Friday.", "Appelle-Martin avant vendredi.", "en fr"),
        ("Miss Brown is here.", "M. Brown est ici.", "en fr"),
        ("Mr Brown and Mrs Smith are here.", "Le signore Brown e Smith sono qui.", "en it"),
        ("Mr. Brown is here.", "Frau Brown ist hier.", "en de"),
        ("Guten Morgen, Frau Keller.", "Good morning, Mr Keller.", "de en"),
        ("Ich kenne Herrn Keller.", "I know Mrs Keller.", "de en"),
        ("La sig.ra Rossi è qui.", "Mr Rossi is here.", "it en"),
        ("Il dottor Rossi è qui.", "Mr Rossi is here.", "it en"),
        ("Conozco a la señora García.", "I know Mr García.", "es en"),
        ("J'ai vu Mme Dupont.", "Ich habe Herrn Dupont gesehen.", "fr de"),
        ("M. Dupont est ici.", "La signora Dupont è qui.", "fr it"),
        ("Ik ken mevrouw Jansen.", "I know Mr Jansen.", "nl en"),
        ("Conheço a Sra. Silva.", "Conozco al señor Silva.", "pt es"),
    ],
)
def test_a_lost_or_changed_title_is_told(source: str, translation: str, languages: str) -> None:
    assert LACKS_TITLE in doubts_about(source, translation, Direction(*languages.split()))


@pytest.mark.parametrize(
    ("source", "translation", "languages"),
    [
        ("Good morning, Ms. Smith.", "Bonjour, Madame Smith.", "en fr"),
        ("Mr. and Mrs. Smith are here.", "Les Smith sont ici.", "en fr"),
        ("Mr Brown and Mrs Smith are here.", "I signori Brown e Smith sono qui.", "en it"),
        ("Mr President, I agree.", "Herr Präsident, ich stimme zu.", "en de"),
        ("Mr President, I agree.", "Presidente, sono d'accordo.", "en it"),
        ("Dr. Smith is here.", "Le professeur Smith est ici.", "en fr"),
        ("Dr. Smith is here.", "Frau Dr. Smith ist hier.", "en de"),
        ("Frau Dr. Keller ist hier.", "Dr Keller is here.", "de en"),
        ("Mr Barroso is here.", "Il presidente Barroso è qui.", "en it"),
        ("Mr Bean is a film.", "Mr Bean est un film.", "en fr"),
        ("I miss Tom.", "Tom me manque.", "en fr"),
        ("Meine Frau Anna ist hier.", "My wife Anna is here.", "de en"),
        ("Er verkauft einer älteren Frau Brot.", "He sells bread to an old woman.", "de en"),
        ("Anna est ici.", "Mrs Anna is here.", "fr en"),
        ("Il m'a vu.", "He saw me.", "fr en"),
        ("Mr. Smith is here.", "スミスさんがいます。", "en ja"),
    ],
)
def test_a_title_that_is_said_otherwise_is_not_told(source: str, translation: str, languages: str) -> None:
    assert LACKS_TITLE not in doubts_about(source, translation, Direction(*languages.split()))


def test_small_letters_do_not_hide_a_changed_title() -> None:
    line, to_french = "Good morning, Mrs. Smith.", Direction("en", "fr")
    assert doubts_about(line.lower(), "Bonjour, Monsieur Smith.", to_french) == ()
    assert doubts_of_small_letters((), line, "Bonjour, Monsieur Smith.", to_french) == (LACKS_TITLE,)
    assert doubts_of_small_letters((), line, "Bonjour, Madame Smith.", to_french) == ()
