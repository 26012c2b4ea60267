"""Lines are split where a sentence ends, and nowhere else."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.text import sentences
from transformer_cli.text.sentences import (
    PLAIN_END,
    Sentence,
    cut_in_two,
    ends_sentence,
    gap_between,
    split_at_missing_spaces,
    split_line,
    split_sentences,
    with_final_mark_of,
)

# Language and line -> the sentences.
SPLITS = {
    ("en", "I am hungry. I am thirsty!"): ["I am hungry.", "I am thirsty!"],
    ("en", "I like .NET. We are in the .NET station."): ["I like .NET.", "We are in the .NET station."],
    ("en", "ASP.NET and C#.NET are big. It is Node.JS."): ["ASP.NET and C#.NET are big.", "It is Node.JS."],
    ("en", "See System.Text.Json and Socket.IO (.NET)."): ["See System.Text.Json and Socket.IO (.NET)."],
    ("en", "It is big.The cat is small."): ["It is big.", "The cat is small."],
    ("en", "It is big .The cat is small."): ["It is big .", "The cat is small."],
    ("en", "IT IS BIG.CATS ARE SMALL."): ["IT IS BIG.", "CATS ARE SMALL."],
    ("en", "It is big.I like it.Cats sleep."): ["It is big.", "I like it.", "Cats sleep."],
    ("it", "È grande.Il gatto è piccolo."): ["È grande.", "Il gatto è piccolo."],
    ("en", "Dr. Smith paid 3.50 at 5 p.m. for it. Good!"): ["Dr. Smith paid 3.50 at 5 p.m. for it.", "Good!"],
    ("en", "Visit www.example.com. Bye!"): ["Visit www.example.com.", "Bye!"],
    ("it", "Ecco il sig. Rossi. Ciao!"): ["Ecco il sig. Rossi.", "Ciao!"],
    ("en", "Well... Yes? 😀 No."): ["Well...", "Yes?", "😀 No."],
    ("en", "Thanks! 😀"): ["Thanks! 😀"],
    ("en", "... Hello. ... You. ..."): ["... Hello. ...", "You. ..."],
    ("en", "1. Bread. 2. Milk."): ["1. Bread.", "2. Milk."],
    ("en-GB", "Yes. No."): ["Yes.", "No."],
    ("zh", "你好。我饿了\uff01"): ["你好。", "我饿了\uff01"],
    ("zh_Hans", "你好。我饿了\uff01"): ["你好。", "我饿了\uff01"],
    ("ja", "「行こう。」と彼は言った。雨です。"): ["「行こう。」と彼は言った。", "雨です。"],
    ("hi", "मैं भूखा हूँ। तुम कौन हो?"): ["मैं भूखा हूँ।", "तुम कौन हो?"],
    ("ar", "أنا جائع. أين أنت؟"): ["أنا جائع.", "أين أنت؟"],
    ("km", "ខ្ញុំឃ្លាន។ ផ្ទះធំ។ល។ ឆ្កែខ្មៅ៕"): ["ខ្ញុំឃ្លាន។", "ផ្ទះធំ។ល។", "ឆ្កែខ្មៅ៕"],
    ("bo", "ཁྱིམ་འདི་ཆེ། ཁྱི་ནག་པོ་འདུག ། །གཉིས་པ།"): ["ཁྱིམ་འདི་ཆེ།", "ཁྱི་ནག་པོ་འདུག ། །གཉིས་པ།"],
    ("dz", "ཁྱིམ་འདི་ཆེ། ཁྱི་ནག་པོ།"): ["ཁྱིམ་འདི་ཆེ།", "ཁྱི་ནག་པོ།"],
    ("am", "ይህ ቤት ነው። ውሻ ነው።"): ["ይህ ቤት ነው።", "ውሻ ነው።"],
    ("en", "  Good morning,  "): ["  Good morning,  "],
    ("en", "a\u00a0b"): ["a\u00a0b"],
    ("en", ""): [""],
}


@pytest.mark.parametrize(("language", "line"), SPLITS)
def test_a_line_is_split_where_a_sentence_ends(language: str, line: str) -> None:
    assert [text for text, _ in split_sentences(line, language)] == SPLITS[language, line]


@pytest.mark.parametrize(
    "mark",
    [
        *"\u201c\"\u00ab\u201e\u2018'\u2039\u201a([{\u2014\u2013-",
        "\u00ab ",
        "\u2014 ",
        "``",
        "\u201c\u2018",
        '("',
        "\u201c(",
        "\u201c\u00bf",
    ],
)
@pytest.mark.parametrize("end", [".", "?", "!", "...", ".\u201d", '."', ".)"])
def test_a_mark_that_opens_belongs_to_the_sentence_behind_it(mark: str, end: str) -> None:
    before, behind = f"He is here{end}", f"{mark}Pa had it."
    assert [text for text, _ in split_sentences(f"{before} {behind} She ran.", "en")] == [before, behind, "She ran."]


# Quotations that begin before a text or end behind it: bars stand between the sentences.
QUOTATIONS = [
    "had it.\u201d|He is here.|She ran.|\u201cNo.",
    'had it."|He is here.|She ran.|"No.',
    'had it."|He is here.|She ran.|"No. Yes."|It is.',
    "had it.\u00bb|He is here.|She ran.|\u00abNo.\u00bb|It is.",
    "had it.)|He is here.|(She ran.|No.",
    "had it.''|He is here.|``No.",
    "had it.**|He is here.",
    "\u201cPa had it.|She ran.|\u201cHe is here. Yes.\u201d|She ran.",
    "\u201cOne.|\u201cTwo.|\u201cThree.\u201d|Four.",
    '"of course," i said.|"be patient.',
    "He is here.|\u00bbPa had it.\u00ab|She ran.|\u00bbNo.",
    "He is here.|\u201dPa had it.|No.",
    "It is here.|'Tis good.|'Twas not.|No.",
    'It is 5" long.|It is 6" wide.|No.',
    # Those in pairs.
    '"Pa had it."|"She ran."|\'No.\'',
    "\u201cPa had it. She ran.\u201d|He is here.|\u2018No. Yes.\u2019|She ran.",
    'He is here.|" Pa had it. "|She ran.',
]


@pytest.mark.parametrize("line", QUOTATIONS)
def test_a_text_may_have_half_a_quotation(line: str) -> None:
    sentences = line.split("|")
    assert [text for text, _ in split_sentences(" ".join(sentences), "en")] == sentences


def test_a_space_stands_beside_french_quotation_marks() -> None:
    line = "\u00ab Il est l\u00e0. Oui \u00bb, dit-elle. \u00ab Elle court. \u00bb Bien."
    assert [text for text, _ in split_sentences(line, "fr")] == [
        "\u00ab Il est l\u00e0. Oui \u00bb, dit-elle.",
        "\u00ab Elle court. \u00bb",
        "Bien.",
    ]
    assert [text for text, _ in split_sentences("Il est l\u00e0. \u00ab Elle court. Oui.", "fr")] == [
        "Il est l\u00e0.",
        "\u00ab Elle court.",
        "Oui.",
    ]


def test_the_white_space_between_sentences_is_kept() -> None:
    assert split_sentences(" One.  Two.\u3000Three. ", "en") == [
        Sentence(" One.", ""),
        Sentence("Two.", "  "),
        Sentence("Three. ", "\u3000"),
    ]


FRAGMENTS = [
    ".",
    "!",
    "?",
    "...",
    '"',
    "'",
    "(",
    ")",
    "“",
    "”",
    "「",
    "」",
    "。",
    "\uff01",
    "a",
    "B",
    "1",
    "1.",
    "Dr.",
    "日",
    "好",
    "😀",
    "é",
    "-",
    ":",
]
SPACES = [" ", "  ", "\n", "\t", "\u00a0", "\u3000", "\u2028", "\x85", "\u200b", "\ud800"]


@given(
    st.lists(st.sampled_from([*FRAGMENTS, *SPACES]), max_size=20).map("".join) | st.text(),
    st.sampled_from(["en", "it", "de", "ja", "zh", "th", "ar", "am", "unknown"]),
)
def test_the_sentences_and_their_gaps_are_the_line_whatever_it_holds(line: str, language: str) -> None:
    sentences = split_sentences(line, language)
    assert "".join(gap + text for text, gap in sentences) == line
    assert sentences[0].gap == ""
    assert all(gap.isspace() or not gap for _, gap in sentences)
    if len(sentences) > 1:
        assert all(any(map(str.isalnum, text)) for text, _ in sentences)


@pytest.mark.long
@pytest.mark.parametrize("num_units", [1, 500, 5000])
def test_a_long_line_has_the_sentences_of_its_parts(num_units: int) -> None:
    unit = "Dr. Smith is here. 你好。I am thirsty! "
    of_unit = split_sentences(unit.rstrip(), "en")
    of_line = split_sentences(unit * num_units, "en")
    assert [text.rstrip() for text, _ in of_line] == [text for text, _ in of_unit] * num_units


@pytest.mark.long
@pytest.mark.parametrize("unit", ["Hello. ", "x", "你好。", "! ", '"', "( ", "A? ? ", "1. "])
def test_time_grows_with_the_length_of_a_line_and_no_faster(unit: str) -> None:
    started_at = time.process_time()
    split_sentences(unit * (60_000 // len(unit)), "en")
    assert time.process_time() - started_at < 1.5


@pytest.mark.parametrize(
    ("gap", "source", "target", "expected"),
    [
        ("  ", "en", "it", "  "),
        (" ", "en", "zh-CN", ""),
        (" ", "en", "ja", ""),
        (" ", "en", "th", ""),
        ("", "zh", "en", " "),
        ("", "jpn", "cmn", ""),
    ],
)
def test_translations_stand_as_far_apart_as_the_target_language_writes(
    gap: str, source: str, target: str, expected: str
) -> None:
    assert gap_between(gap, source, target) == expected


@pytest.mark.parametrize(
    ("second", "target", "expected"),
    [("The cat", "fr", " "), ("{n}", "fr", ""), ("{% endif %}", "fr", ""), ("(Tom)", "fr", ""), ("{n}", "ja", "")],
)
def test_a_missing_space_is_written_between_two_words_only(second: str, target: str, expected: str) -> None:
    assert gap_between("", "en", target, second) == expected


@pytest.mark.parametrize(
    "stop",
    [
        *"\u3002\u0964\u0965\u06d4\u1362\u17d4\u17d5\u104b\u0589\u1803\u1809\u1c7e\uabeb\ua4ff\u0f0d\u061f!\uff1f",
        # Syriac, Cree, Tagalog, Limbu, Tai Tham, Balinese, Lepcha, Vai, Bamum, Javanese, Cham, Manipuri, Chakma, Newa, Kirat Rai, Japanese
        *"\u0701\u166e\u1736\u1944\u1945\u1aa8\u1b5f\u1c3b\ua60e\ua60f\ua6f3\ua6f7\ua9c9\uaa5d\uaaf1",
        *"\U00011141\U00011143\U0001144b\U00016d6e\uff0e\uff61",
    ],
)
def test_the_full_stop_stays_if_the_source_ends_with_its_own(stop: str) -> None:
    assert ends_sentence(f"abc{stop}")
    assert with_final_mark_of("The house is big.", f"abc{stop}") == "The house is big."
    assert with_final_mark_of(f"abc{stop}", "The house is big.") == f"abc{stop}"


@pytest.mark.parametrize(
    ("translation", "source", "expected"),
    [
        ("घर।", "The house", "घर"),
        ("ቤት።", "The house", "ቤት"),
        ("ཁྱིམ།", "The house", "ཁྱིམ།"),  # a shad ends Tibetan headings, too
        ("عزيزتي آنا،", "Dear Anna,", "عزيزتي آنا،"),
        ("Attends,", "Wait...,", "Attends...,"),
        ("Attends...", "Wait...,", "Attends...,"),
        ("Attends\u2026,", "Wait\u2026,", "Attends\u2026,"),
        ("Attends...", "Wait,", "Attends..."),
    ],
)
def test_the_end_of_a_heading_is_that_of_its_language(translation: str, source: str, expected: str) -> None:
    assert with_final_mark_of(translation, source) == expected


@pytest.mark.parametrize(
    ("translation", "source", "language", "expected"),
    [
        ("Voici la liste.", "Here is the list:", "fr", "Voici la liste :"),
        ("Voici la liste :", "Here is the list:", "fr", "Voici la liste :"),
        ("Voici la liste:", "Here is the list:", "fr", "Voici la liste :"),
        ("Voici la liste\u00a0:", "Here is the list:", "fr", "Voici la liste\u00a0:"),
        ("Voici la liste\u202f!", "Here is the list:", "fr", "Voici la liste :"),
        ("Chère Anna !", "Dear Anna,", "fr", "Chère Anna,"),
        ("Ecco la lista.", "Here is the list:", "it", "Ecco la lista:"),
    ],
)
def test_a_colon_stands_as_the_target_language_writes_it(
    translation: str, source: str, language: str, expected: str
) -> None:
    assert with_final_mark_of(translation, source, target_language=language) == expected


@pytest.mark.parametrize(
    ("text", "marks"),
    [("البيت كبير، والكلب صغير", "، "), ("ቤቱ ትልቅ ነው፣ ውሻው ትንሽ ነው", "፣ "), ("البيت كبير؛ والكلب صغير", "؛ ")],
)
def test_a_sentence_is_divided_at_the_commas_of_its_script(text: str, marks: str) -> None:
    cut = cut_in_two(text, 0.5, "ar")
    assert cut is not None
    assert cut.marks == marks
    assert cut.left + cut.marks + cut.right == text


def test_a_line_that_is_too_long_is_cut_behind_the_full_stop_of_its_script() -> None:
    line = "मैं भूखा हूँ आज। तुम कौन हो अभी।"
    assert [*split_line(line, lambda part: len(part) < 20)] == [
        "मैं भूखा हूँ आज।",
        "तुम कौन हो अभी।",
    ]


@given(st.text(".?!\u2026, aB"), st.text(".?!\u2026, aB"))
def test_a_source_with_a_plain_end_changes_no_end_of_its_translation(translation: str, source: str) -> None:
    if PLAIN_END.search(source):
        assert with_final_mark_of(translation, source) == translation


@given(
    st.text("aB1 .!?;:,'\"()-\n_/", max_size=40),
    st.sampled_from(["en", "it", "de", "el", "hy", "my", "zh"]),
)
def test_a_text_without_a_mark_inside_is_one_sentence(text: str, language: str) -> None:
    found = split_sentences(text, language)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentences, "_MAY_END", re.compile(""))  # look at each text
        assert split_sentences(text, language) == found


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("The dog is big.please come", ["The dog is big.", "please come"]),
        ("Good morning!where is it?so far.so good", ["Good morning!", "where is it?", "so far.", "so good"]),
        # Words that are not known, names, addresses, abbreviations and numbers.
        ("The dog is big.plizz come", ["The dog is big.plizz come"]),
        (
            "See www.big.please, a@big.please and big.please/come",
            ["See www.big.please, a@big.please and big.please/come"],
        ),
        ("It is e.g.so, 1.please", ["It is e.g.so, 1.please"]),
        ("La Sig.ra e la dott.ssa", ["La Sig.ra e la dott.ssa"]),
    ],
)
def test_a_sentence_ends_between_two_known_words_without_a_space(text: str, parts: list[str]) -> None:
    known = {
        "the",
        "dog",
        "is",
        "big",
        "please",
        "come",
        "good",
        "morning",
        "where",
        "it",
        "so",
        "far",
        "Sig",
        "ra",
        "dott",
        "ssa",
    }
    found = split_at_missing_spaces(Sentence(text, " "), known)
    assert [each.text for each in found] == parts
    assert [each.gap for each in found] == [" ", *[""] * (len(parts) - 1)]


def test_a_sentence_goes_on_behind_the_dots_of_a_name() -> None:
    texts = [sentence.text for sentence in split_sentences("Choose Open file..., and wait. It is big.", "en")]
    assert texts == ["Choose Open file..., and wait.", "It is big."]
