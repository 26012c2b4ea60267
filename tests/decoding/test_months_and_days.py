"""Months and days of the week that a translation lacks are named, and come back where the model knows another one."""

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from transformer_cli.config import DecodingConfig, Direction, TokenizerConfig
from transformer_cli.decoding import Hypothesis, Request, Translator
from transformer_cli.decoding.checks.doubts import DATES, doubts_about
from transformer_cli.decoding.checks.months_and_days import has_other_months_or_days, stand_ins
from transformer_cli.text.tokenizer import train_tokenizer

from .stub_translators import StubEngine, stub_translator

WRONG = [
    ("en fr", "She was born on 14 May 1962.", "Elle est née le 14 en 1962."),
    ("en fr", "The meeting is on Wednesday.", "La réunion est vendredi."),
    ("en fr", "I don't work on Mondays.", "Je ne travaille pas."),
    ("en fr", "He left in November.", "Il est parti."),
    ("en fr", "It rains in March.", "Il pleut à March."),
    ("en fr", "It was the 2nd of March.", "C'était le 2."),
    ("en fr", "We met on Tuesday, 5 August 2019.", "Nous nous sommes rencontrés mardi 5 2019."),
    ("en fr", "I will come.", "Je viendrai lundi."),
    ("en fr", "I haven't seen him since July.", "Je ne l'ai pas vu depuis Jui."),
    ("en it", "I will be there in june.", "Ci sarò a luglio."),
    ("en de", "He came on Saturday.", "Er kam am Sonntag."),
    ("en es", "The party is on Thursday.", "La fiesta es el martes."),
    ("en pt", "The party is on Friday.", "A festa é na quinta-feira."),
    ("nl de", "Zij komt in maart.", "Sie kommt im Mai."),
    ("fr en", "Il arrive en mars.", "He arrives."),
    ("it en", "Arriva domenica sera, e la domenica dopo.", "He arrives tonight and later."),
    ("en-GB pt_BR", "He was born in January.", "Ele nasceu."),
]

RIGHT = [
    ("en fr", "She was born on 14 May 1962.", "Elle est née le 14 mai 1962."),
    ("en fr", "She was born on 14 May 1962.", "Elle est née le 14/05/1962."),
    ("en fr", "We met in September 2019.", "On s'est vus en sept. 2019."),
    ("en fr", "May I march on?", "Puis-je avancer ?"),
    ("en fr", "The March of the women was long.", "La marche des femmes était longue."),
    ("en fr", "Theresa May came.", "Theresa May est venue."),
    ("en fr", "April and June are my sisters.", "April et June sont mes sœurs."),
    ("en fr", "It was an august body.", "C'était une assemblée respectable."),
    ("en fr", "Mars is a planet.", "Mars est une planète."),
    ("en fr", "He reads the Sunday Times.", "Il lit le Sunday Times."),
    ("en fr", "The Sabbath is a day of rest.", "Le samedi est un jour de repos."),
    ("en fr", "He comes on Monday.", "Il vient demain."),
    ("en fr", "The sitting was on Thursday, 29 May.", "La séance était le 29 mai."),
    ("en fr", "But his house is here.", "Mais sa maison est ici."),
    ("en de", "The trip on Sunday was long.", "Der Sonntagsausflug war lang."),
    ("en de", "He came on Saturday in January.", "Er kam am Sonnabend im J\u00e4nner."),
    ("en it", "We close on Sundays.", "Chiudiamo tutte le domeniche."),
    ("it en", "Domenica dorme.", "Domenica sleeps."),
    ("en es", "He lives in Santo Domingo.", "Vive en Santo Domingo."),
    ("pt en", "Moro no Rio de Janeiro.", "I live in Rio de Janeiro."),
    ("en pt", "He comes on Tuesday.", "Ele vem na terça."),
    ("en pl", "He was born in January.", "Urodził się."),
    ("xx fr", "He was born in January.", "Il est né."),
    ("en fr", "A letter of APR\u0130L.", "Une lettre."),
]


@pytest.mark.parametrize(("languages", "source", "translation"), WRONG)
def test_a_month_or_day_that_is_lost_or_added_or_another_one_is_named(
    languages: str, source: str, translation: str
) -> None:
    assert DATES in doubts_about(source, translation, Direction(*languages.split()))


@pytest.mark.parametrize(("languages", "source", "translation"), RIGHT)
def test_nothing_is_said_where_it_may_be_said_otherwise_or_is_another_word(
    languages: str, source: str, translation: str
) -> None:
    assert DATES not in doubts_about(source, translation, Direction(*languages.split()))


@pytest.mark.parametrize(
    ("languages", "source", "translation", "read"),
    [
        ("en fr", "He left on 14 May.", "Il est parti le 14.", "He left on 14 January."),
        ("en fr", "He left in August.", "Il est parti.", "He left in April."),  # d'août, d'avril
        ("en it", "He left on Sunday.", "È partito.", None),  # no other day is feminine
        ("en it", "He left on Saturday.", "È partito.", None),
        ("en pt", "He left on Sunday.", "Ele partiu.", "He left on Saturday."),
        ("en fr", "May is in May, and he left in May.", "Il est parti.", None),  # which of them?
        ("en fr", "He left.", "Il est parti lundi.", None),
        ("en de", "In May and in July, on Monday.", "Und.", "In January and in February, on Thursday."),
    ],
)
def test_a_stand_in_has_the_same_words_beside_it(
    languages: str, source: str, translation: str, read: str | None
) -> None:
    found = stand_ins(source, translation, Direction(*languages.split()))
    assert next((each.text for each in found), None) == read


def test_the_right_name_is_put_in_the_place_of_its_stand_in() -> None:
    [first, *_] = stand_ins("He left in May.", "Il est parti.", Direction("en", "fr"))
    assert first.restored("Il est parti en janvier.") == "Il est parti en mai."
    assert first.restored("Janvier le voit partir.") == "Mai le voit partir."
    assert first.restored("Il est parti.") is None
    assert first.restored("Il est parti en janvier, en janvier.") is None
    [first, *_] = stand_ins("He left on Monday.", "Er ging.", Direction("en", "de"))
    assert first.restored("Er ging am Dienstag.") == "Er ging am Montag."
    assert first.restored("Er ging dienstags.") is None


WORDS = "He left in January February August October November , . Il est parti en février sembre"
TOKENIZER = train_tokenizer([WORDS] * 2, TokenizerConfig())


class KnowsFebruary(StubEngine):
    """Of another month it makes a word that is none."""

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        return [[self._found(self.tokenizer.decode(request.ids))] for request in requests]

    def _found(self, text: str) -> Hypothesis:
        self.asked.append(text)
        said = "Il est parti en février ." if "February" in text else "Il est parti en sembre ."
        return Hypothesis((*self.tokenizer.encode(said), self.tokenizer.eos_id), -1.0)


def translator_of(engine: KnowsFebruary, **decoding: object) -> Translator:
    of = stub_translator(lambda text: [], languages=("en", "fr"), **{"repair": True, **decoding})
    pipeline = replace(of.pipeline, source_tokenizer=TOKENIZER, target_tokenizer=TOKENIZER, spellings=None)
    return replace(of, engine=engine, pipeline=pipeline)


def test_a_month_that_the_model_does_not_know_comes_back() -> None:
    engine = KnowsFebruary(lambda text: [], TOKENIZER)
    [found] = translator_of(engine, num_best=2).translate(["He left in November ."])
    assert (found.text, found.source) == ("Il est parti en novembre .", "He left in November .")
    assert (found.doubts, found.is_repaired) == ((), True)
    assert [each.text for each in found.alternatives] == [found.text]


def test_a_month_for_which_nothing_can_stand_is_named() -> None:
    engine = KnowsFebruary(lambda text: [], TOKENIZER)
    lines = ["He left in August .", "He left in January , in January ."]  # in French, février has no vowel as août has
    for found in translator_of(engine).translate(lines):
        assert found.doubts == (DATES,)


def test_without_the_setting_a_lost_month_stays_lost() -> None:
    engine = KnowsFebruary(lambda text: [], TOKENIZER)
    [found] = translator_of(engine, repair=False).translate(["He left in November ."])
    assert (found.text, found.doubts) == ("Il est parti en sembre .", ())


def test_a_word_that_stands_there_very_often_is_asked_for_once() -> None:
    def seconds(times: int) -> float:
        start = time.process_time()
        has_other_months_or_days("may " * times, "oui " * times, Direction("en", "fr"))
        return time.process_time() - start

    seconds(10)
    assert seconds(8000) < 20 * max(seconds(2000), 0.01)
