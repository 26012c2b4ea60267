"""Languages of names and of sentences."""

import pytest

from transformer_cli.text.languages import (
    LANGUAGE_OF_NAME,
    contradicting_language,
    frequent_words,
    guess_language,
    has_spaces,
    language_in,
    primary_language,
    scripts_of_language,
)

SENTENCES = {
    "en": ["The cat is on the table.", "I do not know what they have done.", "She was in my house."],
    "it": ["Il gatto è sul tavolo.", "Non so che cosa hanno fatto.", "Lei era in casa mia con la madre."],
    "de": ["Die Katze ist auf dem Tisch.", "Ich weiß nicht, was sie getan haben.", "Sie war in meinem Haus."],
    "fr": ["Le chat est sur la table.", "Je ne sais pas ce qu'ils ont fait.", "Elle est dans la maison."],
    "es": ["El gato está en la mesa.", "No sé lo que han hecho.", "Ella está en mi casa con los niños."],
    "pt": ["O gato está em cima da mesa.", "Não sei o que eles fizeram.", "Ela não está em casa com você."],
    "nl": ["De kat is op de tafel.", "Ik weet niet wat ze gedaan hebben.", "Zij was in het huis van mijn oom."],
    "ja": ["猫は机の上にいます。", "彼らが何をしたか分かりません。"],
    "zh": ["猫在桌子上。", "我不知道他们做了什么。"],
    "ko": ["고양이가 테이블 위에 있다."],
    "ru": ["Кошка на столе.", "Я не знаю, что они сделали.", "Мы были дома."],
    "uk": ["Кішка на столі.", "Я не знаю, що вони зробили."],
    "el": ["γάτα είναι στο τραπέζι."],
    "ar": ["القطة على الطاولة."],
    "he": ["החתול על השולחן."],
    "th": ["แมวอยู่บนโต๊ะ"],
    "hi": ["बिल्ली मेज़ पर है।"],
}


@pytest.mark.parametrize("language", SENTENCES)
def test_the_language_of_plain_sentences_is_recognised(language: str) -> None:
    assert guess_language(SENTENCES[language]) == language


@pytest.mark.parametrize(
    "text",
    ["", "12 34", "zub kalo pim durru", "???", "A31-B O4 a-77 E_1", "A\nB\nO\nE", "x_1 os_2 da_3"],
)
def test_what_is_no_known_language_is_not_guessed(text: str) -> None:
    assert guess_language([text]) == "und"


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("English", "en"),
        ("text_it", "it"),
        ("Phrase (EN)", "en"),
        ("translation.de", "de"),
        ("Italienisch", "it"),
        ("日本語", "ja"),
        ("source", None),
        ("en-it", None),
        ("", None),
    ],
)
def test_a_name_tells_its_language_if_it_names_one(name: str, language: str | None) -> None:
    assert language_in(name) == language


def test_every_name_stands_for_one_language() -> None:
    assert all(name == name.casefold() for name in LANGUAGE_OF_NAME)
    assert {len(code) for code in LANGUAGE_OF_NAME.values()} == {2}


@pytest.mark.parametrize(
    ("code", "same"), [("eng", "en"), ("eng-GB", "en-GB"), ("ger", "de"), ("zho_Hans", "zh"), ("cmn", "zh")]
)
def test_a_code_of_three_letters_is_the_same_language_as_the_one_of_two(code: str, same: str) -> None:
    """A run from Tatoeba or OPUS may call its languages eng and ita: sentences, signs and doubts must not depend on it."""
    for facts in (primary_language, frequent_words, scripts_of_language, has_spaces):
        assert facts(code) == facts(same)


@pytest.mark.parametrize("code", ["xmf", "yue", "english", "und"])
def test_another_code_or_a_name_stays_as_it_is(code: str) -> None:
    assert primary_language(code) == code


def test_a_script_of_its_own_contradicts_a_name_and_a_few_latin_words_do_not() -> None:
    assert contradicting_language("en", SENTENCES["ru"] * 3) == "ru"
    assert contradicting_language("en", SENTENCES["el"] * 5) == "el"
    assert contradicting_language("ru", SENTENCES["en"] * 2) == "en"
    names = ["the is Anna Berta Carla Dora Emma Frida Gerda Hanna Ida Karla Lotta Marta Nora"]
    assert contradicting_language("en", names * 2) is None
    assert contradicting_language("ru", [*names, "the Olga Petra Rita Sara Tina Ursula Vera Wanda Zita Alma"]) is None


def test_codes_formulas_and_letters_are_no_language() -> None:
    """They have *e*, *a*, *y* and *d*, which are words of Portuguese, Spanish and French."""
    numbers = range(0, 40_000, 37)
    for texts in (
        [f"{number:x}" for number in numbers],
        [f"art. {number:x}" for number in numbers],
        [f"{number} x + {number} y" for number in numbers],
        [" ".join("abcdefghij"[int(digit)] for digit in str(number)) for number in numbers],
    ):
        assert contradicting_language("it", texts) is None


def test_twenty_words_are_enough_to_contradict_a_name_and_nineteen_are_not() -> None:
    words = " ".join(SENTENCES["it"]).split() * 2
    assert contradicting_language("en", [" ".join(words[:20])]) == "it"
    assert contradicting_language("en", [" ".join(words[:19])]) is None
    assert contradicting_language("it", [" ".join(words[:20])]) is None
