"""Italian nouns, adjectives, articles and prepositions."""

import pytest

from transformer_cli.phrasebook.words import italian


@pytest.mark.parametrize(
    ("word", "form", "phrase"),
    [
        ("libro", "ms", "il libro"),
        ("zaino", "ms", "lo zaino"),
        ("studente", "ms", "lo studente"),
        ("psicologo", "ms", "lo psicologo"),
        ("gnocco", "ms", "lo gnocco"),
        ("yogurt", "ms", "lo yogurt"),
        ("sale", "ms", "il sale"),
        ("amico", "ms", "l'amico"),
        ("ospedale", "ms", "l'ospedale"),
        ("casa", "fs", "la casa"),
        ("scuola", "fs", "la scuola"),
        ("isola", "fs", "l'isola"),
        ("libri", "mp", "i libri"),
        ("amici", "mp", "gli amici"),
        ("zaini", "mp", "gli zaini"),
        ("spaghetti", "mp", "gli spaghetti"),
        ("case", "fp", "le case"),
        ("isole", "fp", "le isole"),
    ],
)
def test_the_definite_article_follows_sound_and_gender(word: str, form: str, phrase: str) -> None:
    assert italian.definite_article(word, form) + word == phrase


@pytest.mark.parametrize(
    ("word", "form", "phrase"),
    [
        ("libro", "ms", "un libro"),
        ("amico", "ms", "un amico"),
        ("specchio", "ms", "uno specchio"),
        ("zio", "ms", "uno zio"),
        ("casa", "fs", "una casa"),
        ("scatola", "fs", "una scatola"),
        ("arancia", "fs", "un'arancia"),
    ],
)
def test_the_indefinite_article_follows_sound_and_gender(word: str, form: str, phrase: str) -> None:
    assert italian.indefinite_article(word, form) + word == phrase


@pytest.mark.parametrize(
    ("preposition", "word", "form", "phrase"),
    [
        ("di", "libro", "ms", "del libro"),
        ("di", "zaino", "ms", "dello zaino"),
        ("a", "amico", "ms", "all'amico"),
        ("a", "stazione", "fs", "alla stazione"),
        ("da", "medici", "mp", "dai medici"),
        ("in", "armadi", "mp", "negli armadi"),
        ("in", "acqua", "fs", "nell'acqua"),
        ("su", "sedie", "fp", "sulle sedie"),
        ("su", "albero", "ms", "sull'albero"),
        ("con", "amici", "mp", "con gli amici"),
        ("sotto", "tavolo", "ms", "sotto il tavolo"),
    ],
)
def test_prepositions_join_with_the_article(
    preposition: str, word: str, form: str, phrase: str
) -> None:
    assert italian.joined(preposition, word, form) + word == phrase


@pytest.mark.parametrize(
    ("singular", "gender", "plural"),
    [
        ("libro", "m", "libri"),
        ("amico", "m", "amici"),
        ("medico", "m", "medici"),
        ("banco", "m", "banchi"),
        ("cuoco", "m", "cuochi"),
        ("lago", "m", "laghi"),
        ("orologio", "m", "orologi"),
        ("cane", "m", "cani"),
        ("problema", "m", "problemi"),
        ("turista", "m", "turisti"),
        ("collega", "m", "colleghi"),
        ("città", "f", "città"),
        ("caffè", "m", "caffè"),
        ("bar", "m", "bar"),
        ("foto", "f", "foto"),
        ("serie", "f", "serie"),
        ("casa", "f", "case"),
        ("chiave", "f", "chiavi"),
        ("amica", "f", "amiche"),
        ("bottega", "f", "botteghe"),
        ("arancia", "f", "arance"),
        ("spiaggia", "f", "spiagge"),
        ("ciliegia", "f", "ciliegie"),
        ("farmacia", "f", "farmacie"),
        ("artista", "f", "artiste"),
    ],
)
def test_plurals_follow_the_rules(singular: str, gender: str, plural: str) -> None:
    assert italian.plural_of(singular, gender) == plural


@pytest.mark.parametrize(
    ("adjective", "forms"),
    [
        ("rosso", "rosso rossa rossi rosse"),
        ("verde", "verde verde verdi verdi"),
        ("bianco", "bianco bianca bianchi bianche"),
        ("simpatico", "simpatico simpatica simpatici simpatiche"),
        ("antico", "antico antica antichi antiche"),
        ("lungo", "lungo lunga lunghi lunghe"),
        ("grigio", "grigio grigia grigi grigie"),
        ("vecchio", "vecchio vecchia vecchi vecchie"),
        ("blu=", "blu blu blu blu"),
        ("rosa=", "rosa rosa rosa rosa"),
    ],
)
def test_adjectives_have_four_forms(adjective: str, forms: str) -> None:
    assert " ".join(italian.adjective_forms(adjective).values()) == forms


@pytest.mark.parametrize(
    ("adjective", "noun", "form", "phrase"),
    [
        ("bello", "vestito", "ms", "bel vestito"),
        ("bello", "specchio", "ms", "bello specchio"),
        ("bello", "albero", "ms", "bell'albero"),
        ("bello", "città", "fs", "bella città"),
        ("bello", "fiori", "mp", "bei fiori"),
        ("bello", "alberi", "mp", "begli alberi"),
        ("bello", "case", "fp", "belle case"),
        ("buono", "vino", "ms", "buon vino"),
        ("buono", "zucchero", "ms", "buono zucchero"),
        ("buono", "pizza", "fs", "buona pizza"),
        ("grande", "casa", "fs", "grande casa"),
    ],
)
def test_bello_and_buono_change_before_a_noun(
    adjective: str, noun: str, form: str, phrase: str
) -> None:
    assert italian.adjective_before(adjective, noun, form) + noun == phrase


@pytest.mark.parametrize(
    ("noun", "form", "phrase"),
    [
        ("libro", "ms", "quel libro"),
        ("zaino", "ms", "quello zaino"),
        ("albergo", "ms", "quell'albergo"),
        ("isola", "fs", "quell'isola"),
        ("casa", "fs", "quella casa"),
        ("libri", "mp", "quei libri"),
        ("studenti", "mp", "quegli studenti"),
        ("case", "fp", "quelle case"),
    ],
)
def test_quello_changes_like_the_article(noun: str, form: str, phrase: str) -> None:
    assert italian.like_the_article("que", noun, form) + noun == phrase


def test_a_becomes_ad_only_before_another_a() -> None:
    assert italian.preposition_before("a", "Anna") == "ad "
    assert italian.preposition_before("a", "Elena") == "a "
    assert italian.preposition_before("di", "Anna") == "di "
