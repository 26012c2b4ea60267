"""Lines with a form and with protected spans, for models that translate anything into anything."""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import DecodingConfig, FilesData, TokenizerConfig
from transformer_cli.decoding import (
    Alternative,
    Engine,
    ExplainingEngine,
    TextPipeline,
    Translation,
    Translator,
)
from transformer_cli.decoding.checks.doubts import LABEL, LEAVES
from transformer_cli.decoding.line_form import SMALL_LETTER, with_case_of
from transformer_cli.decoding.loading import load_translator
from transformer_cli.decoding.translation import SourceText, TranslatedPiece, copied, with_alternatives
from transformer_cli.text.seen_words import SeenWords
from transformer_cli.text.spans import find_spans, span_texts
from transformer_cli.text.tokenizer import train_tokenizer

Model = Callable[[str], Sequence[str]]
SPANS = [
    "https://a.it/b?c=1",
    "www.x.it",
    "me@x.it",
    "{name}",
    "%s",
    "<b>",
    "</b>",
    "<0>",
    "47",
    "1.20",
    "3",
    "€5",
    "A4",
    "/a/b",
    "&amp;",
]
WORDS = ["one", "two", "The", "cat", "Anna", "20", "See", "is", "I"]
MARKS = [
    ".",
    ",",
    "?",
    "!",
    ":",
    "(",
    ")",
    "\u201c",
    "-",
    "  ",
    "   ",
    "\t",
    "|",
    "'s",
    "> ",
    "1. ",
    "è",
    "中",
]
# What a bad model says: nothing, words, marks, stand-ins, spans, and parts of spans.
SAYS = [
    *WORDS,
    *SPANS,
    *MARKS,
    "https://",
    "a.it",
    "b>",
    "Anna Anna",
    "{",
    "}",
    "4",
    "7",
    ".it/",
    "",
    "Marco",
    "[UNK]",
]
TEXT = " ".join([*WORDS, "Marco", "30", "15", "3", "4", "7", "."])
SUBWORDS = train_tokenizer([TEXT] * 3, TokenizerConfig(kind="bpe", vocab_size=400))
OF_WORDS = train_tokenizer([TEXT], TokenizerConfig())
NO_NUMBERS = train_tokenizer(["one two Anna Marco"], TokenizerConfig())

lines = st.lists(
    st.sampled_from(SPANS) | st.sampled_from(WORDS) | st.sampled_from(MARKS) | st.just(" "), max_size=14
).map(" ".join) | st.lists(st.sampled_from([*SPANS, *WORDS, *MARKS, " "]), max_size=14).map("".join)


def bad_model(seed: int) -> Model:
    """A model that says something for each text that has nothing to do with it, but is always the same."""

    def says(text: str) -> list[str]:
        number = zlib.crc32(f"{seed} {text}".encode())
        sayings = []
        for _ in range(1 + number % 2):
            words = []
            for _ in range(number % 5):
                number = (number * 1103515245 + 12345) % 2**31
                words.append(SAYS[number // 8 % len(SAYS)])
            sayings.append((" " if number % 3 else "").join(words))
        return sayings

    return says


def data_of(source: str, target: str) -> FilesData:
    corpus = {"source_path": "a", "target_path": "b"}
    languages = {"source_language": source, "target_language": target}
    return FilesData.model_validate({"source": "files", "corpora": [corpus], **languages})


@dataclass(frozen=True, slots=True)
class TranslatorOfSayings(Translator):
    """A translator without a model: a function translates the texts of its lines."""

    says: Callable[[Sequence[SourceText]], list[Translation]] = lambda texts: []

    def translate_texts(
        self, texts: Sequence[SourceText], explainer: ExplainingEngine | None = None
    ) -> list[Translation]:
        return self.says(texts)


def translator_of(
    says: Callable[[Sequence[SourceText]], list[Translation]],
    pipeline: TextPipeline,
    *,
    protects: bool,
    keeps_layout: bool = True,
) -> TranslatorOfSayings:
    return TranslatorOfSayings(
        pipeline,
        cast(Engine, None),
        DecodingConfig(keep_layout=keeps_layout),
        protects_spans=protects,
        reports_lines=False,
        says=says,
    )


def formatted(
    model: Model,
    *,
    protects: bool = True,
    keeps_layout: bool = True,
    tokenizer: object = SUBWORDS,
    languages: tuple[str, str] = ("en", "it"),
) -> TranslatorOfSayings:
    def translate(texts: Sequence[SourceText]) -> list[Translation]:
        of_texts = [list(dict.fromkeys(model(text.text))) for text in texts]
        return [
            Translation(text.text, each[0], -1.0, tuple(Alternative(one, -1.0) for one in each))
            for text, each in zip(texts, of_texts, strict=True)
        ]

    assert isinstance(tokenizer, type(SUBWORDS))
    pipeline = TextPipeline(tokenizer, tokenizer, data_of(*languages), 50, splits_sentences=True)
    return translator_of(translate, pipeline, protects=protects, keeps_layout=keeps_layout)


def translated(line: str, model: Model, **settings: object) -> str:
    [translation] = formatted(model, **settings).translate([line])  # type: ignore[arg-type]
    return translation.text


@pytest.mark.long
@pytest.mark.parametrize("languages", [("en", "it"), ("en", "ja"), ("zh", "de")])
@pytest.mark.parametrize("tokenizer", [SUBWORDS, OF_WORDS, NO_NUMBERS], ids=["bpe", "words", "few"])
@given(line=lines, seed=st.integers(0, 1000), keeps_layout=st.booleans())
def test_every_span_comes_back_whatever_the_model_says(
    tokenizer: object, languages: tuple[str, str], line: str, seed: int, keeps_layout: bool
) -> None:
    settings = {"tokenizer": tokenizer, "languages": languages, "keeps_layout": keeps_layout}
    [translation] = formatted(bad_model(seed), **settings).translate([line])  # type: ignore[arg-type]
    for text in (translation.text, *(each.text for each in translation.alternatives)):
        for span, count in Counter(span_texts(line, find_spans(line))).items():
            assert text.count(span) >= count, (span, text)


distinct = st.lists(st.sampled_from([*SPANS, "word", "The", "cat."]), max_size=12, unique=True)


@pytest.mark.long
@given(words=distinct, seed=st.integers(0, 1000))
def test_spans_that_stand_alone_come_back_exactly_once(words: list[str], seed: int) -> None:
    line = " ".join(words)
    found = translated(line, bad_model(seed))
    for span in set(SPANS) & set(words):
        # 3 may stand in another number, and another sentence of the line may write a number again.
        is_number = span.lstrip("€").replace(".", "").isdigit()
        assert found.count(span) == 1 or (is_number and span in found), found


@pytest.mark.long
@given(line=lines, seed=st.integers(0, 1000), protects=st.booleans())
def test_a_translation_is_one_line_with_the_same_beginning(line: str, seed: int, protects: bool) -> None:
    found = translated(line, bad_model(seed), protects=protects)
    assert len(f"{found}.".splitlines()) == 1
    indentation = len(line) - len(line.lstrip())
    assert found[:indentation] == line[:indentation]


def copying(text: str) -> list[str]:
    return [text]


@pytest.mark.long
@given(line=lines, protects=st.booleans())
def test_a_model_that_copies_gives_back_the_line(line: str, protects: bool) -> None:
    assert translated(line, copying, protects=protects) == line


def upper_case(text: str) -> list[str]:
    """A model that translates every word, but leaves names and numbers alone."""
    return [" ".join(word if word[:1].isupper() else word.upper() for word in text.split(" "))]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("look at https://x.it/a.", "LOOK AT https://x.it/a."),
        ("write to me@x.it or {name} today", "WRITE TO me@x.it OR {name} TODAY"),
        ("  - the cat  is here", "  - THE CAT  IS HERE"),
        ("tea      1.20", "TEA      1.20"),
        ("wait 47 minutes. then go.", "WAIT 47 MINUTES. THEN GO."),
        ("our site: https://x.it/a", "OUR SITE: https://x.it/a"),
        ("<b>two words</b> here", "<b>TWO WORDS</b> HERE"),
        ("https://x.it/a", "https://x.it/a"),
        ("", ""),
    ],
)
def test_spans_stand_where_their_stand_ins_stood(line: str, expected: str) -> None:
    assert translated(line, upper_case) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("the cat is here.{n}", "THE CAT IS HERE.{n}"),
        ("the cat is here?%s", "THE CAT IS HERE?%s"),
        ("is it here?:name", "IS IT HERE?:name"),
        ("{% if a %}the cat is here.{% endif %}", "{% if a %}THE CAT IS HERE.{% endif %}"),
        ("the cat is here.{n} the two are here", "THE CAT IS HERE.{n} THE TWO ARE HERE"),
        ("the cat is here. {n}", "THE CAT IS HERE. {n}"),
        ("the cat,{n} and two", "THE CAT,{n} AND TWO"),
        ("the cat,:name and two", "THE CAT,:name AND TWO"),
    ],
)
def test_no_space_is_added_between_the_end_of_a_sentence_and_a_placeholder(line: str, expected: str) -> None:
    def separates(text: str) -> list[str]:
        return upper_case(re.sub(r"(?<=[.,?])(?=\w)", " ", text))

    assert translated(line, separates) == expected


@pytest.mark.parametrize("joint", ["/", "-", ":", ", "])
def test_placeholders_with_a_sign_alone_between_them_are_one(joint: str) -> None:
    def reads_a_word(text: str) -> list[str]:
        return upper_case(re.sub(r"(?<=\w)[/:-](?=\w)", " SEPT ", text))

    line = f"the {{done}}{joint}{{total}} cats"
    assert translated(line, reads_a_word) == f"THE {{done}}{joint}{{total}} CATS"


def test_a_mark_at_the_beginning_of_a_line_moves_with_no_word() -> None:
    def reverses(text: str) -> list[str]:
        return upper_case(" ".join(text.split()[::-1]))

    assert translated(r"\lx the cat", reverses) == r"\lx CAT THE"


@pytest.mark.parametrize(
    ("written", "line", "expected"),
    [
        ("\u00ab \\1 \u00bb", 'the book "{n}" is here', "THE BOOK \u00ab {n} \u00bb IS HERE"),
        ('\u00ab "\\1" \u00bb', 'the book "{n}" is here', 'THE BOOK "{n}" IS HERE'),
        ('\u00ab \\1"', 'the book "{n}" is here', 'THE BOOK "{n}" IS HERE'),
        ("\\1 \u00ab is \u00bb", 'the book "{n}" is here', 'THE BOOK "{n}" IS HERE'),
        ('"\\1', "the book \u201c%s\u201d is here", "THE BOOK \u201c%s\u201d IS HERE"),
        ("\\1", "the book '%s' is here", "THE BOOK '%s' IS HERE"),
        ('"\\1', 'the file "EXT:%2$s/%1$s"', 'THE FILE "EXT:%2$s/%1$s"'),
    ],
)
def test_a_placeholder_has_its_quotation_marks_once(written: str, line: str, expected: str) -> None:
    def changes_marks(text: str) -> list[str]:
        return upper_case(re.sub("[\"'\u201c](\\w+)[\"'\u201d]", written, text))

    assert translated(line, changes_marks) == expected


def test_a_word_beside_a_placeholder_in_quotation_marks_is_not_lost() -> None:
    def loses(text: str) -> list[str]:
        return upper_case(re.sub('"| garden', "", text))

    [translation] = formatted(loses).translate(['the book "{n}" garden'])
    assert (translation.text, translation.is_in_pieces) == ('THE BOOK "{n}" GARDEN', True)


def test_a_model_that_changes_numbers_and_names_translates_around_them() -> None:
    def loses(text: str) -> list[str]:
        known = {"wait": "WAIT", "minutes.": "MINUTES.", "for": "FOR"}
        return [" ".join(known.get(word, "?") for word in text.split(" "))]

    [translation] = formatted(loses).translate(["wait 47 minutes."])
    assert translation.text == "WAIT 47 MINUTES."
    assert not translation.is_partly_copied
    assert translated("wait for {name}", loses) == "WAIT FOR {name}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("see 1,250 books and 3 cats.", "SEE 1,250 BOOKS AND 3 CATS."),
        ("leave at 10:45 from 7.", "LEAVE AT 10:45 FROM 7."),
        ("leave at 10:45 a.m. from 7.", "LEAVE AT 10:45 a.m. FROM 7."),
        ("leave at 7 p.m. then go.", "LEAVE AT 7 p.m. THEN GO."),
        ("see {x} with 3 cats.", "SEE {x} WITH 3 CATS."),
    ],
)
def test_a_number_that_the_model_loses_has_a_stand_in_that_it_copies(line: str, expected: str) -> None:
    def copies_few(text: str) -> list[str]:
        words = (word if word.strip(".") in ("25", "15", "Anna") else word.upper() for word in text.split())
        return [" ".join("some" if re.search(r"\b(?!15|25)\d", word) else word for word in words)]

    [translation] = formatted(copies_few).translate([line])
    assert translation.text == expected
    assert not translation.is_in_pieces


@pytest.mark.parametrize("unit", ["minutes", "Minuten", "minutos", "minuti"])
def test_a_word_of_the_source_behind_a_time_stays(unit: str) -> None:
    def in_french(text: str) -> list[str]:
        return [re.sub(rf"\b25 {unit}", "25 minutes", text.replace("3:45", "dix"))]

    languages = {"minutes": "en", "Minuten": "de", "minutos": "es", "minuti": "it"}[unit], "fr"
    assert translated(f"see 3:45 {unit}.", in_french, languages=languages) == "see 3:45 minutes."


def test_a_number_that_the_model_makes_a_part_of_a_word_has_a_stand_in() -> None:
    def makes_one_word(text: str) -> list[str]:
        return [text.upper().replace("0 ", "0les ")]

    [translation] = formatted(makes_one_word).translate(["see 0 cats."])
    assert (translation.text, translation.is_in_pieces) == ("SEE 0 CATS.", False)


def test_further_stand_ins_follow_where_the_first_are_lost() -> None:
    def copies_one(text: str) -> list[str]:
        return [re.sub(r"(?!15)\b\d+", "some", text)]

    assert translated("see 47 cats.", copies_one) == "see 47 cats."
    [translation] = formatted(copies_one).translate(["see 47 cats."])
    assert not translation.is_in_pieces


def test_the_word_for_hours_behind_a_stand_in_goes_where_a_time_stands() -> None:
    def in_french(text: str) -> list[str]:
        return [re.sub(r"\bat (\d+)(?![\d:])", "\u00e0 \\1 heures", text.replace("10:45", "dix"))]

    assert translated("leave at 10:45.", in_french, languages=("en", "fr")) == "leave \u00e0 10:45."
    assert translated("leave at 10.", in_french, languages=("en", "fr")) == "leave \u00e0 10 heures."


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("leave at 14:30.", "leave \u00e0 14:30."),
        ("leave at 14:30 in the morning.", "leave \u00e0 14:30 in the morning."),
        ("leave at 03/04/2026.", "leave \u00e0 03/04/2026."),
        ("leave at 20 %.", "leave \u00e0 20 %."),
        ("leave at $5.20.", "leave \u00e0 $5.20."),
        ("retire at 47.", "retire \u00e0 47 ans."),  # a plain number may need its word
        ("leave at 47 years.", "leave \u00e0 47 ans."),
        ("leave at 14:30 people.", "leave \u00e0 14:30 personnes."),
    ],
)
def test_a_word_that_only_a_stand_in_needed_goes_where_the_span_has_its_unit(line: str, expected: str) -> None:
    """With a bare number, "at 25" may become "à 25 ans", as if it were an age."""

    def in_french(text: str) -> list[str]:
        written = (
            re.sub(r"[\d/:$.]*[/:$][\d/:.$]+|\b20 %|\b47\b(?= y|\.)", "dix", text) if "at 25" not in text else text
        )
        written = re.sub(
            r"\b(25)( years| people)?",
            lambda m: f"{m[1]} {'personnes' if m[2] == ' people' else 'ans'}",
            written,
        )
        return [written.replace("at 25", "\u00e0 25")]

    assert translated(line, in_french, languages=("en", "fr")) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("see two cats{name}.", "ees owt stac{name}."),
        ("see cats%s now", "ees stac%s won"),
        ("the {name}th cat", "eht {name}th tac"),
        ("see v{name} now", "ees v{name} won"),
        ("see 45kgs now", "ees 45kgs won"),
        ("two cats<b>one</b>", "owt stac<b>eno</b>"),
    ],
)
def test_a_word_that_touches_a_span_is_translated_unless_it_is_an_affix(line: str, expected: str) -> None:
    """The model writes each word from its end, so it loses all stand-ins."""

    def backwards(text: str) -> list[str]:
        return [" ".join(word[::-1] for word in text.split(" "))]

    assert translated(line, backwards) == expected


def test_a_part_of_a_sentence_gets_no_full_stop_and_no_capital_letter() -> None:
    def as_sentence(text: str) -> list[str]:
        return [f"{text.rstrip('.').capitalize()}."]

    assert translated("I have <b>two cats</b> here.", as_sentence) == "I have <b>two cats</b> here."
    in_german = translated("I have <b>two cats</b>", as_sentence, languages=("en", "de"))
    assert in_german == "I have <b>Two cats</b>"


@pytest.mark.parametrize(
    ("line", "says", "expected"),
    [
        ("Price list", "Listino.", "Listino"),
        ("See you,", "A presto,.", "A presto,"),
        ("Dear Anna,", "Cara Anna.", "Cara Anna,"),
        ("I see it...", "Lo vedo.", "Lo vedo..."),
        ("I see it\u2026", "Lo vedo.", "Lo vedo\u2026"),
        ("I see it \u2026", "Lo vedo.", "Lo vedo \u2026"),
        ("Dog ...", "Cane.", "Cane ..."),
        ("I see it...", "Lo vedo?", "Lo vedo?"),
        ("The list:", "列表\uff1a", "列表\uff1a"),
        ("Hello.", "Ciao.", "Ciao."),
        ("Hello?", "Ciao.", "Ciao."),
        ("(Hello.)", "(Ciao.).", "(Ciao.)."),
        ("So", "Quindi...", "Quindi..."),
        ("So", "Quindi?", "Quindi"),
        ("Really?!", "Davvero!", "Davvero?!"),
        ("猫", "猫。", "猫"),
    ],
)
def test_a_text_that_is_no_sentence_gets_no_full_stop(line: str, says: str, expected: str) -> None:
    assert translated(line, lambda _: [says], protects=False) == expected
    assert translated(line, lambda _: [says], keeps_layout=False) == says


@pytest.mark.parametrize("keeps_layout", [True, False])
def test_a_lost_colon_at_the_end_comes_back_because_it_is_a_sign(*, keeps_layout: bool) -> None:
    found = translated("The list:", lambda _: ["La lista"], protects=False, keeps_layout=keeps_layout)
    assert found == "La lista:"


def test_a_line_in_capital_letters_is_read_in_small_letters_and_written_in_capitals() -> None:
    seen: list[str] = []

    def watches(text: str) -> list[str]:
        seen.append(text)
        return [text[::-1]]

    assert translated("- \u201cTHE CAT IS HERE.", watches) == "- .EREH SI TAC EHT\u201c"
    assert translated("THE EU", watches) == "UE EHT"
    assert seen == ["\u201cThe cat is here.", "The cat is here.", "THE EU"]


def test_names_in_a_line_of_capital_letters_keep_their_capital() -> None:
    pipeline = load_translator(Path(__file__).parents[2] / "docs/run").pipeline
    read = pipeline.in_small_letters("CAN I SEE STEFANO IN LONDON ON MONDAY, \u00c8LIA?")
    assert read == "Can I see Stefano in London on Monday, \u00e8lia?"


@pytest.mark.parametrize(
    ("line", "read", "expected"),
    [
        ("ONE: The cat is here.", ["One.", "The cat is here."], "ONE: THE CAT IS HERE."),
        ("One: the cat.", ["the cat.", "The cat.", "One.", "the cat."], "ONE: THE CAT."),
        ("- TOM: The cat.", ["The cat."], "- TOM: THE CAT."),
        ("Tom One: The cat.", ["The cat."], "Tom One: THE CAT."),
        ("Q: The cat?", ["The cat?"], "Q: THE CAT?"),
        ("TOM:", ["TOM:"], "TOM:"),
        ("See is: one.", ["See is: one."], "SEE IS: ONE."),
        ("One To: The cat.", ["One To.", "The cat."], "ONE TO: THE CAT."),
        ("One TO: The cat.", ["The cat."], "One TO: THE CAT."),
        ("Bill One: The cat.", ["The cat."], "Bill One: THE CAT."),
        ("BILL ONE: The cat.", ["The cat."], "BILL ONE: THE CAT."),
        ("Bill House: The cat.", ["Bill House.", "The cat."], "BILL HOUSE: THE CAT."),
    ],
)
def test_a_label_is_a_text_of_its_own_or_stays_if_training_has_not_seen_it(
    line: str, read: list[str], expected: str
) -> None:
    asked: list[str] = []

    def watches(text: str) -> list[str]:
        asked.append(text)
        return [text.upper()]

    translator = formatted(watches)
    seen = SeenWords.of(dict.fromkeys(["one", "the", "cat", "to", "bill", "house"], 1))
    knowing = replace(translator, pipeline=replace(translator.pipeline, keeps_text=True, seen_words=seen))
    [translation] = knowing.translate([line])
    assert (translation.text, asked) == (expected, read)


@pytest.mark.parametrize("line", ["ONE: The cat is here.", "One: The cat is here.", "One: The cat."])
def test_a_label_gets_no_exclamation_mark(line: str) -> None:
    translator = formatted(lambda text: [f"{text.rstrip('.')} !"])
    assert [each.text for each in translator.translate([line])] == [f"{line} !".replace(". !", " !")]


@pytest.mark.parametrize(
    ("line", "is_named"),
    [
        ("Full Zork: The cat.", True),
        ("- Full Zork: The cat.", True),
        ("Zork: The cat.", False),  # most are speakers
        ("Anna Zork: The cat.", False),
        ("One Cat: The cat.", False),  # is translated
    ],
)
def test_a_label_that_stays_is_named_if_one_of_its_words_is_no_name(line: str, is_named: bool) -> None:
    tokenizer = train_tokenizer([f"{TEXT} full"] * 3, TokenizerConfig(kind="bpe", vocab_size=400))
    translator = formatted(lambda text: [text.upper()], tokenizer=tokenizer)
    seen = SeenWords.of({"one": 1, "the": 1, "cat": 1, "full": 1, "anna": 1})
    decoding = translator.decoding.model_copy(update={"repair": True})
    pipeline = replace(translator.pipeline, keeps_text=True, seen_words=seen)
    [found] = replace(translator, decoding=decoding, pipeline=pipeline).translate([line])
    assert (LABEL in found.doubts) is is_named


def test_a_small_letter_behind_a_label_stays_small() -> None:
    translator = formatted(lambda text: [text.capitalize()])
    knowing = replace(translator, pipeline=replace(translator.pipeline, keeps_text=True))
    assert [each.text for each in knowing.translate(["One: the cat.", "One: The cat."])] == [
        "One: the cat.",
        "One: The cat.",
    ]


@pytest.mark.parametrize(
    ("line", "read", "expected"),
    [
        ("\u201cone two\u201d", "one two", "\u201cONE TWO\u201d"),
        ("(one two): ", "one two", "(ONE TWO): "),
        ("one (two)", "one (two)", "ONE (TWO)"),
        (
            "\u201cone\u201d is \u201ctwo\u201d",
            "\u201cone\u201d is \u201ctwo\u201d",
            "\u201cONE\u201d IS \u201cTWO\u201d",
        ),
        ("one.", "one.", "ONE."),
        ("one two\u2026", "one two", "ONE TWO\u2026"),
        ("\u201c{one} two\u201d", "Anna two", "\u201c{one} TWO\u201d"),
    ],
)
def test_marks_around_a_text_that_the_model_does_not_know_stay(line: str, read: str, expected: str) -> None:
    seen: list[str] = []

    def watches(text: str) -> list[str]:
        seen.append(text)
        return [text.upper().replace("ANNA", "Anna")]

    assert translated(line, watches, tokenizer=OF_WORDS) == expected
    assert seen == [read]


def test_a_sentence_whose_spans_are_lost_stays_as_it_is_and_says_so() -> None:
    def invents(text: str) -> list[str]:
        return [f"{text} http://never.seen"] if "bad" in text else [text.upper()]

    line = "good word. bad word {x} here."
    [translation] = formatted(invents).translate([line])
    assert translation.text == "GOOD WORD. bad word {x} here."
    assert translation.is_partly_copied


def test_only_alternatives_with_all_spans_are_given() -> None:
    def several(text: str) -> list[str]:
        return [text.replace("47", "48"), text.upper(), text.replace("47", "4")]

    [translation] = formatted(several).translate(["wait 47 minutes"])
    assert [each.text for each in translation.alternatives] == ["WAIT 47 MINUTES"]
    assert translation.text == "WAIT 47 MINUTES"


def test_without_protection_spans_inside_a_sentence_are_left_to_the_model() -> None:
    assert translated("wait 47 minutes", lambda text: [text[::-1]], protects=False) == "setunim 74 tiaw"


def test_cells_without_words_never_reach_the_model() -> None:
    seen: Counter[str] = Counter()

    def watches(text: str) -> list[str]:
        seen[text] += 1
        return [text]

    table = [
        "| item | price |",
        "|:---|--:|",
        "| tea | € 1.20 |",
        "cake    2.50 EUR",
        "10:30",
        "https://x.it",
    ]
    list(formatted(watches, protects=False).translate(table))
    assert set(seen) == {"item", "price", "tea", "cake"}


def test_scores_and_unknown_words_of_the_parts_are_put_together() -> None:
    def translate(texts: Sequence[SourceText]) -> list[Translation]:
        return [
            Translation(text, text, -2.0, (Alternative(text, -2.0),), unknown_words=(text,), num_words=3)
            for text in (each.text for each in texts)
        ]

    pipeline = TextPipeline(SUBWORDS, SUBWORDS, data_of("en", "it"), 50)
    [translation] = translator_of(translate, pipeline, protects=False).translate(["a    b\r\n"])
    assert translation == Translation(
        "a    b\r\n",
        "a    b",
        -4.0,
        (Alternative("a    b", -4.0),),
        unknown_words=("a", "b"),
        num_words=6,
        pieces=(TranslatedPiece("a", "a"), TranslatedPiece("b", "b")),
    )


def test_the_first_text_of_a_line_gets_its_prefix() -> None:
    seen: list[SourceText] = []

    def translate(texts: Sequence[SourceText]) -> list[Translation]:
        seen.extend(texts)
        return [Translation(text, text, -1.0, (Alternative(text, -1.0),)) for text in (each.text for each in texts)]

    pipeline = TextPipeline(SUBWORDS, SUBWORDS, data_of("en", "it"), 50, splits_sentences=True)
    translator = translator_of(translate, pipeline, protects=True)
    lines = ["- one <b>two</b>. cat.", "12"]
    list(translator.translate(lines, prefixes=["prefix", "other"], num_before=7))
    found = [(each.text, each.prefix, each.line_number) for each in seen]
    assert found == [("one", "prefix", 7), ("two", "", 7), ("cat.", "", 7)]
    assert len({each.first_part for each in seen}) == 3


@pytest.mark.parametrize("protects", [False, True])
@pytest.mark.parametrize(
    ("line", "asked", "written"),
    [
        (r"one cat\ntwo", ["one cat", "two"], r"ONE CAT\nTWO"),
        (r"one.\r\nThe cat.\n\n- two", ["one.", "The cat.", "two"], r"ONE.\r\nTHE CAT.\n\n- TWO"),
        (r"one:\tThe cat\\nTwo", ["one:", "The cat", "Two"], r"ONE:\tTHE CAT\\nTWO"),
        ("one cat%nThe two", ["one cat", "The two"], "ONE CAT%nTHE TWO"),
        (r"I don\'t see \"one\"", ['I don\'t see "one"'], r"I DON\'T SEE \"ONE\""),
        ("The &quot;cat&quot; isn&#39;t", ['The "cat" isn\'t'], "THE &quot;CAT&quot; ISN&#39;T"),
        (r"It is in dir\name", None, r"IT IS IN dir\name"),
        (r"The \textbf cat", None, r"THE \textbf CAT"),
        ("The **cat**", None, "THE **CAT**"),
        (r"one \\ two", None, r"ONE \\ TWO"),
        ("one &amp; two", None, "ONE &amp; TWO"),
        ("The %n cat", None, "THE %n CAT"),
    ],
)
def test_what_programs_write_into_texts_is_left_as_it_is(
    line: str, asked: list[str] | None, written: str, protects: bool
) -> None:
    """Line ends and tabs divide texts, quotes are read as signs, and other marks and names stay in their places."""
    seen: list[str] = []

    def translate(texts: Sequence[SourceText]) -> list[Translation]:
        seen.extend(each.text for each in texts)
        # As a model that has seen none of this: it loses the marks, and keeps the names that stand for them.
        texts = [
            re.sub(r"\\\w*|\*\*|\b\w+\\\w+|&amp;|%n", "", text).replace("  ", " ").strip()
            for text in (each.text for each in texts)
        ]
        found = [each if each in STAND_INS else upper_but(each) for each in texts]
        return [Translation(text, text, -1.0, (Alternative(text, -1.0),)) for text in found]

    pipeline = TextPipeline(SUBWORDS, SUBWORDS, data_of("en", "it"), 50, splits_sentences=True)
    of = translator_of(translate, pipeline, protects=protects)
    of = replace(of, decoding=of.decoding.model_copy(update={"repair": True}))
    [translation] = of.translate([line])
    assert translation.text == written
    if asked is not None:
        assert seen == asked


STAND_INS = ["Anna", "Marco"]


@pytest.mark.parametrize("keeps_marks", [True, False])
def test_a_sentence_is_cut_at_marks_that_the_model_knows_only_if_it_loses_them(
    keeps_marks: bool,
) -> None:
    known = train_tokenizer([f"{TEXT} *"] * 3, TokenizerConfig(kind="bpe", vocab_size=400))
    pipeline = TextPipeline(known, known, data_of("en", "it"), 50, splits_sentences=True)
    seen: list[str] = []

    def translate(texts: Sequence[SourceText]) -> list[Translation]:
        seen.extend(each.text for each in texts)
        large = [each.text.upper() for each in texts]
        said = large if keeps_marks else [text.replace("*", "") for text in large]
        return [Translation(text, text, -1.0, (Alternative(text, -1.0),)) for text in said]

    [found] = translator_of(translate, pipeline, protects=True).translate(["The *cat* is one"])
    assert found.text == "THE *CAT* IS ONE"
    assert seen == ["The *cat* is one", *([] if keeps_marks else ["The", "cat", "is one"])]


def upper_but(text: str) -> str:
    return " ".join(word if word in STAND_INS else word.upper() for word in text.split(" "))


def test_a_doubtful_title_of_two_words_is_read_again_in_small_letters() -> None:
    titles = {"My Mother": "Mia madre", "Your Friend:": "Il tuo amico:", "Mary Brown": "Mary Brown"}
    translator = load_translator(Path(__file__).parents[2] / "docs/run")
    assert {each.source: each.text for each in translator.translate(titles)} == titles


@pytest.mark.parametrize(
    ("label", "is_named"), [("Availability", True), ("Requirements", True), ("Felicity", False), ("Bradley", False)]
)
def test_a_label_of_one_unseen_word_that_stays_is_named_if_it_is_a_noun(label: str, *, is_named: bool) -> None:
    translator = load_translator(Path(__file__).parents[2] / "docs/run")
    given = written(f"{label}: Is the dog red?", f"{label}: Il cane è rosso?")
    assert (LABEL in translator.with_doubts_of_line(given).doubts) == is_named


@pytest.mark.parametrize(
    ("source", "translation", "left"),
    [
        ("Red Friend", "Friend rosso", ("Friend",)),
        ("Red Friend:", "Rosso Friend :", ("Friend",)),
        ("Red Friend", "Amico rosso", ()),
        ("Red friend", "Friend rosso", ()),  # no title
        ("Mary Brown", "Mary marrone", ()),
        ("Red Hotel", "Hotel rosso", ()),  # Italian, too
        ("Red Car", "Car rosso", ("Car",)),
        ("Duration:", "Duration :", ("Duration",)),
        ("Duration:", "Durata:", ()),
        ("Hotel:", "Hotel:", ()),
        ("Anna:", "Anna:", ()),
        ("Marco:", "Marco :", ()),
        ("PDF:", "PDF:", ()),
    ],
)
def test_a_word_that_stays_in_a_title_is_named(source: str, translation: str, left: tuple[str, ...]) -> None:
    translator = load_translator(Path(__file__).parents[2] / "docs/run")
    seen = translator.pipeline.seen_words
    assert isinstance(seen, SeenWords)
    seen = replace(seen, written=SeenWords.of({"hotel": 1, "amico": 1, "rosso": 1}))
    translator = replace(translator, pipeline=replace(translator.pipeline, seen_words=seen))
    assert translator.pipeline.left_words(source, translation) == left
    doubts = translator.with_doubts_of_line(written(source, translation)).doubts
    assert (f"{LEAVES}: {', '.join(left)}" in doubts) == bool(left)


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("Open the PDF.", "Apri il pdf.", "Apri il PDF."),
        ("Copy URL", "Copia Url", "Copia URL"),
        ("THE PDF", "il pdf", "il pdf"),  # a line in capital letters
        ("See IL and UN.", "Vedi il e un.", "Vedi il e un."),
        ("NO, he said.", "No, ha detto.", "NO, ha detto."),
        ("The PDF of a.pdf", "Il PDF di a.pdf", "Il PDF di a.pdf"),
        ("The PDF of a.pdf", "Il pdf di a.pdf", "Il PDF di a.pdf"),
        ("from a to x", "da a X", "da a x"),
        ("x is a number", "X è un numero", "x è un numero"),
        ("The value of x is 5.", "Il valore di X è 5.", "Il valore di x è 5."),
        ("Is it x or X?", "È X o X?", "È X o X?"),
        ("Point (x, y)", "Punto (X, y)", "Punto (x, y)"),
        ("I see c.", "C'è la C.", "C'è la c."),
        ("It's Tom's X-ray.", "È la X di Tom.", "È la X di Tom."),
    ],
)
def test_abbreviations_and_letters_keep_their_case(source: str, translation: str, expected: str) -> None:
    assert SMALL_LETTER.search(source) or not source[1:].islower()
    assert with_case_of(SourceText(source), written(source, translation), "it").text == expected


def written(source: str, translation: str) -> Translation:
    return with_alternatives(copied(source), [(translation, -1.0)])
