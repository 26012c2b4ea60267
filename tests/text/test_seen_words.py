"""The words that training has seen: a set in a file, and the words of a text that are not in it."""

import json
import random
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.text import seen_words
from transformer_cli.text.seen_words import (
    KNOWS_POSSESSED,
    SeenWords,
    WordCounts,
    WordsOfOneToken,
    folded,
    made_up_words,
    read_seen_words,
    unseen_words,
    word_pattern,
    write_seen_words,
    written_words,
)

WORDS = ["the", "cat", "is", "on", "table", "and", "said", "that", "ein", "liegt", "auf", "dem"]
SEEN = SeenWords.of(dict.fromkeys(WORDS, 1))


@given(words=st.sets(st.text(min_size=1, max_size=8)), others=st.sets(st.text(max_size=8)))
def test_a_set_read_again_has_the_same_words(words: set[str], others: set[str]) -> None:
    folded = {word.casefold() for word in words}
    found = SeenWords.from_text(SeenWords.of(dict.fromkeys(folded, 1)).to_text())
    assert all(word in found for word in words)
    assert not any(word in found for word in others if word.casefold() not in folded)
    both = found.joined(SeenWords.of({other.casefold(): 1 for other in others}))
    assert all(word in both for word in words | others)
    assert found.common(both) == found


def test_of_too_many_words_the_most_frequent_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_words, "MOST_WORDS", 2)
    found = SeenWords.of({"a": 1, "b": 2, "c": 3, "d": 1})
    assert [word in found for word in "abcd"] == [False, True, True, False]
    same = SeenWords.of(dict.fromkeys("dbca", 200), least=2)
    assert [word in same for word in "abcd"] == [True, True, False, False]


def test_words_are_counted_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_words, "_MOST_COUNTED", 100)
    monkeypatch.setattr(seen_words, "_MOST_PIECES", 50)
    counts = WordCounts("en")
    letters = "abcdefghij"
    rare = ["".join(each) for each in product(letters, repeat=4)]
    for batch in range(0, len(rare), 20):
        counts.add([*rare[batch : batch + 20], "The,", "cat-the."], [*[1] * 20, 3, 2])
        assert len(counts._pieces) <= 50 + 22
        assert len(counts._words) <= 100 + 2 * (50 + 22)
    found = counts.word_counts()
    assert (found["the"], found["cat"]) == (5 * 500, 2 * 500)


def test_the_signs_of_a_language_without_spaces_are_counted_at_once() -> None:
    counts = WordCounts("zh")
    counts.add(["我有猫。", "我A1"], [2, 3])
    assert len(counts._pieces) <= len(set("我有猫。A1")), "no sentence is kept"
    assert counts.word_counts() == {"我": 5, "有": 2, "猫": 2, "a": 3}


def test_the_turkish_capital_with_a_dot_is_that_letter() -> None:
    seen = SeenWords.of({folded(word): 1 for word in ("iyi", "\u0131\u015f\u0131k", "\u0130zmir")})
    assert all(word in seen for word in ("\u0130yi", "\u0130Y\u0130", "\u0131\u015f\u0131k", "izmir"))
    assert unseen_words("\u0130yi \u0131\u015f\u0131k.", "", seen, "tr") == ()


@pytest.mark.long
def test_three_letters_of_the_file_are_enough_for_a_word() -> None:
    dice = random.Random(1)
    found = SeenWords.of({str(dice.random()): 1 for _ in range(100_000)})
    assert len(found.to_text()) < 3 * len(found)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"format": 9, "hashes": ""}',
        '{"format": 1, "hashes": "?"}',
        f'{{"format": 1, "hashes": "{SEEN.to_text()}", "written": {{"hashes": "{SEEN.to_text()}", "endings": []}}}}',
        f'{{"format": 1, "hashes": "{SEEN.to_text()}", "written": "a"}}',
    ],
)
def test_a_damaged_file_is_named_and_nothing_is_known(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "seen_words.json"
    assert read_seen_words(path) is None
    path.write_text(content)
    assert read_seen_words(path) is None
    assert f"{path}: not a list of words, or damaged" in caplog.text
    write_seen_words(path, SEEN)
    assert read_seen_words(path) == SEEN
    assert not any(word in path.read_text() for word in WORDS if len(word) > 3), "words are hashes"
    assert json.loads(path.read_text())["words"] == len(WORDS)


@pytest.mark.parametrize(
    ("source", "language", "expected"),
    [
        ("The quokka is on the table.", "en", ["quokka"]),
        ("The Cat is on THE table.", "en", []),
        ("Quokkas said that.", "en", ["Quokkas"]),
        ("The cat said that Wojtek and the IKEA table is on.", "en", []),  # names
        ("The cat is on 42 and B2B and x_y and {placeholder} and https://quokka.example", "en", []),
        ("The quokka and the quokka and a Quokka.", "en", ["quokka"]),
        ("THE QUOKKA", "en", ["QUOKKA"]),  # a heading
        ("The Quokka", "en", ["Quokka"]),
        ("Ein Quokka liegt auf dem Tisch.", "de", ["Quokka", "Tisch"]),
        ("Ein Quokka liegt auf dem Tisch.", "sv", []),  # names, but not in German
        ("He? Quokka said: wombat!", "en", ["He", "Quokka", "wombat"]),
        ("I'm on the table.", "en", []),  # single letters are no words
        ("The cat is on<b>the</b>table<br/>and said: quo<i>kka</i>", "en", ["quo", "kka"]),
        ("The <b>quokka</b> is on **wombat**", "en", ["quokka", "wombat"]),
        ("The cat{name} is on{0}the table%n and that", "en", []),
        ("Wombat{name} is on the 20th of 1990ern and of{n}th 5quokkas quokka5", "en", ["of"]),
        ("The cat is on {{ a }} kg and {n}&nbsp;km and 5 cm.", "en", []),  # units, which stay
        ("don\u2019t, don't and don\u02bct", "en", ["don"]),
        ("", "en", []),
        ("... 42 :-)", "en", []),
    ],
)
def test_words_that_training_has_not_seen_are_found(source: str, language: str, expected: list[str]) -> None:
    assert [word.casefold() for word in unseen_words(source, "", SEEN, language)] == [
        word.casefold() for word in expected
    ]


def test_a_capital_word_that_the_translation_keeps_is_a_name() -> None:
    assert unseen_words("Layla said that.", "Layla lo ha detto.", SEEN, "en") == ()
    assert unseen_words("Layla said that.", "Anna lo ha detto.", SEEN, "en") == ("Layla",)
    assert unseen_words("The quokka said that.", "Il quokka lo ha detto.", SEEN, "en") == ("quokka",), (
        "a small letter begins no name"
    )


def test_an_unseen_name_that_the_translation_lacks_was_guessed() -> None:
    source = "The cat said that Wojtek is on the table."
    assert unseen_words(source, "Il gatto ha detto che Anna è sul tavolo.", SEEN, "en") == ("Wojtek",)
    for written in ("Wojtek", "Wojteks", "WOJTEKA"):
        assert unseen_words(source, f"Il gatto ha detto che {written} è lì.", SEEN, "en") == ()
    assert unseen_words(source, "Кот сказал, что Войтек на столе.", SEEN, "en") == (), (
        "in another script nothing is known"
    )
    assert unseen_words("The IVth cat is on the table.", "Il gatto è lì.", SEEN, "en") == ("IVth",)


def test_letters_with_spaces_between_them_are_a_word_that_was_not_read() -> None:
    assert unseen_words("The c a t is on.", "Il gatto è acceso.", SEEN, "en") == ("c a t",)
    assert unseen_words("The a b is on.", "", SEEN, "en") == ()
    assert unseen_words("我 有 狗 。", "", SeenWords.of({"我": 1, "有": 1, "狗": 1}), "zh") == ()


def test_a_sign_of_chinese_is_a_word_and_a_word_of_hindi_keeps_its_vowel_signs() -> None:
    seen = SeenWords.of(dict.fromkeys("我有一只猫", 1))
    assert unseen_words("我有一只狗。", "", seen, "zh") == ("狗",)
    assert word_pattern("hi").findall("बिल्ली मेज पर है।") == ["बिल्ली", "मेज", "पर", "है"]


def test_a_word_that_the_tokenizer_does_not_divide_counts_as_seen() -> None:
    class Tokenizer:
        unk_id = 0

        def encode(self, text: str) -> list[int]:
            return {"whole": [7], "unknown": [0]}.get(text, [3, 4])

    known = WordsOfOneToken(SEEN, Tokenizer())  # type: ignore[arg-type]
    found = [word in known for word in ("cat", "whole", "unknown", "quokka")]
    assert found == [True, True, False, False]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("The dog's house is big.", ("dog's house",)),
        ("The dogs\u2019 house is big.", ("dogs\u2019 house",)),
        ("My dog\u02bcs house is big.", ("dog\u02bcs house",)),
        ("The dog's name is big.", ()),
        ("Anna's house is big.", ()),
        ("It's big, and that's the house.", ()),
        ("He said 'the dogs' house'.", ()),
        ("The dog's big dogs' big house.", ("dog's big", "dogs' big")),
    ],
)
def test_what_never_belonged_to_a_common_noun_in_training_is_named(source: str, expected: tuple[str, ...]) -> None:
    counts = WordCounts("en")
    words = re.findall(r"\w+", "the dogs house is big my s name anna it and that he said")
    counts.add(words, [1] * len(words))
    counts.add_possessed(["What's your boss's name?", "It's big.", "Anna's house."])
    known = {**counts.word_counts(), "dog": 1, KNOWS_POSSESSED: 1}
    assert unseen_words(source, "", SeenWords.of(known), "en-GB") == expected
    assert unseen_words(source, "", SeenWords.of(known), "nl") == ()
    del known[KNOWS_POSSESSED]  # a list of an earlier version
    earlier = SeenWords.of(known)
    assert unseen_words(source, "", earlier, "en") == ()
    both = earlier.joined(SeenWords.of({KNOWS_POSSESSED: 1}))
    assert unseen_words(source, "", both, "en") == ()


STEMS = ["".join(each) for each in product("bcdf", "aeiou", "lmn")]  # 60
FRENCH = {stem + ending: 2 for stem in STEMS for ending in ("er", "ons")}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> SeenWords:
    """The words of translations, of which some words have two endings."""
    monkeypatch.setattr(seen_words, "_FEWEST_WORDS", 100)
    counts = WordCounts("fr", knows_numbers=True)
    counts.add([*FRENCH, "chanter,", "halle", "20kilos", "\u00e9l\u00e8ve"], [1] * (len(FRENCH) + 4))
    found = written_words(counts.word_counts())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("source", "translation", "made_up"),
    [
        ("He sings.", "Baler \u00e9l\u00e8ve.", ()),
        ("He sings.", "Hallations \u00e9l\u00e8ve.", ("Hallations",)),
        ("He sings.", "Chantons.", ()),  # chanter, as baler and balons
        ("He sings.", "Chantition.", ("Chantition",)),
        ("Hallations.", "hallations", ()),  # a copy
        ("The Smiths sing.", "Smith chantons.", ()),
        ("He sings.", "B c d.", ()),
        ("Three cats.", "Baler 3issent.", ("3issent",)),
        ("The 2nd cat.", "Baler 2neu, 2i\u00e8me et 2nd.", ("2neu",)),
        ("20 cats.", "Baler 5kilos, 3x et 14h30.", ()),
        ("See https://hallations.org and {hallations}.", "Baler https://hallations.org et {hallations}.", ()),
        ("He sings.", '<a href="house">Baler</a> et <zzzz=5>\u00e9l\u00e8ve</zzzz>.', ()),
        ("He sings.", "Hallations, hallations et zzz.", ("hallations", "zzz")),
    ],
)
def test_words_that_are_made_up_are_found(
    written: SeenWords, source: str, translation: str, made_up: tuple[str, ...]
) -> None:
    counts = WordCounts("fr")
    counts.add(["et"], [1])
    known = replace(written.joined(SeenWords.of(counts.word_counts())), endings=written.endings)
    assert made_up_words(source, translation, known) == made_up


def test_the_words_of_translations_are_in_the_file(tmp_path: Path, written: SeenWords) -> None:
    path = tmp_path / "seen_words.json"
    both = replace(SEEN, written=written)
    write_seen_words(path, both)
    assert read_seen_words(path) == both
    assert ("er", "ons") in written.endings
    assert "chanter" not in path.read_text(), "words are hashes"


def test_either_of_two_models_may_write_what_it_has_read(written: SeenWords) -> None:
    other = replace(SEEN, written=SeenWords.of({"hallations": 1}))
    both = replace(SEEN, written=written)
    for found in (both.common(other), both.joined(other)):
        assert found.written is not None
        assert "hallations" in found.written
        assert "chanter" in found.written
        assert found.written.endings == written.endings
    assert both.joined(SEEN).written is None, "what one of them has read is not known"


@pytest.mark.parametrize("most", [seen_words.MOST_WORDS, 10])
def test_too_few_or_too_many_words_do_not_tell_what_is_made_up(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_words, "MOST_WORDS", most)
    monkeypatch.setattr(seen_words, "_FEWEST_WORDS", 100 if most == 10 else 1000)
    assert written_words(FRENCH) is None
