"""No text disappears: what is too long is divided, and what a model loses stays as it is and is named."""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import DecodingConfig, Direction
from transformer_cli.decoding import Hypothesis, Request, Translation, Translator
from transformer_cli.decoding.checks.doubts import BESIDE_PLACEHOLDER, ENCLOSED, MARKS
from transformer_cli.decoding.checks.quality import can_be_green
from transformer_cli.decoding.glossary import Glossary, GlossaryEntry
from transformer_cli.decoding.line_form import LineForm, without_single_marks
from transformer_cli.decoding.loading import load_translator
from transformer_cli.decoding.protected_spans import SpanKeeper, StandIns
from transformer_cli.decoding.translation import SourceText
from transformer_cli.text.quotation_marks import starts_with_lone_quote
from transformer_cli.text.sentences import UNKNOWN_LENGTHS, SeenLengths
from transformer_cli.text.spans import SpanKind, find_spans

from .stub_translators import (
    CLAUSES,
    MOST_WORDS,
    NOUNS,
    TOKENIZER,
    VERBS,
    Model,
    StubEngine,
    asked_by,
    cut_after,
    silent_about,
    stub_translator,
    upper,
)

LONG = ", ".join(CLAUSES) + "."
LONGEST = 12


def translated(line: str, of: Translator) -> Translation:
    [translation] = of.translate([line])
    return translation


class SureOrNot(StubEngine):
    """Gives all its answers one score."""

    def __init__(self, model: Model, score: float) -> None:
        super().__init__(model)
        self.score = score

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        return [
            [each._replace(score=self.score) for each in of_request]
            for of_request in super().translate(requests, options)
        ]


def num_tokens(text: str) -> int:
    return len(TOKENIZER.encode(text)) + 1  # [EOS]


marks = st.sampled_from([", ", "; ", ": ", " - ", " \u2013 ", " and "])
long_texts = st.tuples(st.permutations(CLAUSES), st.lists(marks, min_size=7, max_size=7)).map(
    lambda both: both[0][0] + "".join(map(str.__add__, both[1], both[0][1:])) + "."
)


def test_without_the_guard_the_stub_loses_what_the_guard_keeps() -> None:
    assert translated(LONG, stub_translator(cut_after(), keeps_text=False)).text == "THE HOTEL"
    assert translated(LONG, stub_translator(cut_after())).text == LONG.upper()


@pytest.mark.long
@given(text=long_texts)
def test_a_divided_sentence_keeps_every_clause_in_order_and_every_mark(text: str) -> None:
    of = stub_translator(cut_after())
    found = translated(text, of)
    assert found.text == text.upper()
    assert found.is_divided
    assert not found.is_untranslated
    assert max(map(num_tokens, asked_by(of))) <= LONGEST


@pytest.mark.long
def test_a_divided_sentence_begins_with_a_capital_letter_as_its_source_does() -> None:
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    things = "a cat, a dog, a house, a car, a station, a hotel, a table, a garden, a friend, a book"
    [found] = of.translate([f"I see {things}, a train, a ticket."])
    assert found.is_divided
    assert found.text[0].isupper()
    assert found.text[1:].islower()


def test_no_sentence_is_lost_behind_a_full_stop_without_a_space() -> None:
    """Training has seen late and we, so `late.we` is no name."""
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    [found] = of.translate(["The train is late.we wait."])
    assert found.text == "Il treno è in ritardo. Aspettiamo."


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("The train(s) waits.", "The trains waits."),
        ("The trains(s) (the hotel(s))", "The trains (the hotels)"),
        ("TRAIN(S)", "TRAINS"),
        ("The class(es) waits", "The classes waits"),
        ("The train(sister) waits", "The train(sister) waits"),
        ("The train (s) waits", "The train (s) waits"),
        ("a(s) `train(s)` waits", "a(s) `train(s)` waits"),
    ],
)
def test_a_word_with_its_plural_in_brackets_is_read_as_the_plural(line: str, read: str) -> None:
    form = LineForm(stub_translator(upper).pipeline, keeps_layout=True, protects=True)
    assert form.split(SourceText(line)).text == read
    plain = LineForm(stub_translator(upper, keeps_text=False).pipeline, keeps_layout=True, protects=True)
    assert plain.split(SourceText(line)).text == line


@pytest.mark.long
@given(clauses=st.lists(st.sampled_from(CLAUSES), min_size=1, max_size=3, unique=True), mark=marks)
def test_a_text_within_the_lengths_of_the_training_is_never_divided(clauses: list[str], mark: str) -> None:
    text = mark.join(clauses) + "."
    of = stub_translator(upper)
    found = translated(text, of)
    assert found.text == text.upper()
    is_long = num_tokens(text) > LONGEST
    assert found.is_divided == is_long
    assert (len(asked_by(of)) == 1) == (not is_long)


def test_a_sentence_of_unknown_length_is_divided_only_if_its_translation_loses_text() -> None:
    for model, is_divided in ((upper, False), (silent_about("mute"), False)):
        of = stub_translator(model, seen=UNKNOWN_LENGTHS)
        assert translated(LONG, of).is_divided == is_divided
        assert len(asked_by(of)) == 1
    of = stub_translator(cut_after(), seen=SeenLengths(None, 0.7))
    found = translated(LONG, of)
    assert (found.text, found.is_divided) == (LONG.upper(), True)


def test_a_heading_whose_translation_is_far_too_short_is_divided_at_its_dash() -> None:
    of = stub_translator(lambda text: ["NO"] if " - " in text else upper(text))
    found = translated("No action - the hotel sleeps", of)
    assert (found.text, found.is_divided) == ("NO ACTION - THE HOTEL SLEEPS", True)


def first_and_last(text: str) -> list[str]:
    """A model that loses all sentences between the first and the last, or the last of two."""
    sentences = [f"{each}." for each in text.upper().rstrip(".").split(". ")]
    return [" ".join([sentences[0], *sentences[2:][-1:]])]


@pytest.mark.parametrize("num_sentences", [2, 3, 5])
def test_no_sentence_of_a_text_that_is_read_at_once_is_lost(num_sentences: int) -> None:
    text = " ".join(f"{each.capitalize()}." for each in CLAUSES[:num_sentences])
    of = stub_translator(first_and_last, seen=UNKNOWN_LENGTHS)
    at_once = replace(of, pipeline=replace(of.pipeline, splits_sentences=False))
    found = translated(text, at_once)
    assert found.text == text.upper()
    assert asked_by(at_once)[0] == text, "the whole text is tried first"
    assert not found.is_divided, "no clause is translated by itself"
    unguarded = replace(at_once.pipeline, keeps_text=False)
    assert translated(text, replace(at_once, pipeline=unguarded)).text != text.upper()


def test_a_text_read_at_once_stays_whole_if_no_sentence_is_lost() -> None:
    text = " ".join(f"{each.capitalize()}." for each in CLAUSES[:3])
    of = stub_translator(upper, seen=UNKNOWN_LENGTHS)
    at_once = replace(of, pipeline=replace(of.pipeline, splits_sentences=False))
    assert translated(text, at_once).text == text.upper()
    assert asked_by(at_once) == [text]


@pytest.mark.parametrize("said", ["", ".", "! ..."])
@pytest.mark.parametrize("line", ["the mute sleeps.", "  - the mute sleeps", "Mute\r\n"])
def test_a_sentence_without_a_translation_stays_as_it_is(line: str, said: str) -> None:
    found = translated(line, stub_translator(silent_about("mute", said)))
    assert found.text == line.rstrip("\r\n")
    assert found.is_untranslated
    assert [each.text for each in found.alternatives] == [found.text]


def test_the_spelling_of_a_text_that_stays_is_that_of_the_line() -> None:
    of = stub_translator(silent_about("mute"))
    line = "MUTE  Zurich  caf\u00e9 \u201csleeps\u201d."
    assert translated(line, of).text == line


def test_marks_between_clauses_are_those_of_the_target_language() -> None:
    text = f"{CLAUSES[0]}, {CLAUSES[1]}; {CLAUSES[2]} - {CLAUSES[3]}."
    wide = text.replace(", ", "\uff0c").replace("; ", "\uff1b")
    seen = SeenLengths(longest=5)
    of = stub_translator(upper, languages=("en", "zh"), seen=seen)
    assert translated(text, of).text == wide.upper()
    of = stub_translator(upper, languages=("zh", "en"), seen=seen)
    assert translated(wide.replace(" - ", "\u3002"), of).text.startswith("THE HOTEL SLEEPS, THE TRAIN")


def test_only_the_clause_that_is_lost_stays() -> None:
    text = LONG.replace("sister", "mute")
    found = translated(text, stub_translator(silent_about("mute")))
    kept = [part for part in found.text.rstrip(".").split(", ") if part != part.upper()]
    assert found.is_untranslated
    assert len(kept) == 1
    assert "the mute laughs" in kept[0]
    assert found.text.upper() == text.upper()


def test_a_sentence_of_which_a_clause_alone_is_lost_is_translated_as_a_whole() -> None:
    """It is a little longer than those of the training, so its clauses are tried first."""

    def says(text: str) -> list[str]:
        return ["" if "mute" in text and "sister" not in text else text.upper()]

    line = "the mute and the hotel and the train sleeps, and the sister waits and laughs."
    of = stub_translator(says, seen=SeenLengths(longest=12, smallest_ratio=0.7))
    found = translated(line, replace(of, engine=SureOrNot(says, -0.1)))
    assert (found.text, found.is_untranslated) == (line.upper(), False)
    # A model that is not sure of the whole, or has seen only much shorter sentences, leaves the clause.
    unsure = translated(line, replace(of, engine=SureOrNot(says, -9.0)))
    shorter = stub_translator(says, seen=SeenLengths(longest=6, smallest_ratio=0.7))
    much_longer = translated(line, replace(shorter, engine=SureOrNot(says, -0.1)))
    for left in (unsure, much_longer):
        assert left.is_untranslated
        assert "mute" in left.text


@pytest.mark.parametrize(
    "line",
    [
        "the train waits and the hotel sleeps, and the sister waits and laughs.",  # longer than those of the training
        "the train waits, and the sister laughs.",  # its translation lacks the comma
        "the train waits, and the window burns.",  # its translation repeats itself
    ],
)
def test_a_model_that_completes_each_clause_translates_the_whole(line: str) -> None:
    """A model that has read clauses only in pairs, as in "The house is old, but the car is new.", adds the second of each."""

    def says(text: str) -> list[str]:
        if "," not in text:
            return [f"{text.upper().rstrip('.')}, AND THE DOCTOR WAITS."]
        if "window" in text:
            return [f"{' '.join(['THE TRAIN'] * 9)}."]
        return [text.upper().replace(",", "") if len(text) < 45 else text.upper()]

    of = stub_translator(says, repair=True)
    found = translated(line, replace(of, engine=SureOrNot(says, -0.1)))
    assert "DOCTOR" not in found.text
    assert not found.is_divided


def test_a_sentence_beside_one_that_is_lost_is_translated() -> None:
    found = translated("The mute sleeps. The train waits.", stub_translator(silent_about("mute")))
    assert (found.text, found.is_untranslated) == ("The mute sleeps. THE TRAIN WAITS.", True)


def test_a_short_translation_of_which_a_model_is_not_sure_is_not_written() -> None:
    """It has as many tokens as a translation may have, but one word for six."""

    def says(text: str) -> list[str]:
        return ["THE - - - -"] if len(text.split()) > 4 else [text.upper()]

    line = "the hotel and the train waits"
    of = stub_translator(says, seen=SeenLengths(longest=12, smallest_ratio=0.4))
    assert translated(line, replace(of, engine=SureOrNot(says, -5.0))).text == line.upper()
    sure = translated(line, replace(of, engine=SureOrNot(says, -0.1)))
    assert (sure.text, sure.is_divided) == ("THE - - - -", False)


def test_a_short_translation_that_cannot_be_mended_leaves_its_source() -> None:
    of = stub_translator(upper, seen=SeenLengths(longest=12, smallest_ratio=0.4))
    line = "the hotel sleeps train waits"
    found = translated(line, replace(of, engine=SureOrNot(lambda text: ["THE - -"], -9.0)))
    assert (found.text, found.is_untranslated) == (line, True)


@pytest.mark.parametrize("said", ["THE HOTEL,.", "THE HOTEL,, SLEEPS.", ", HOTEL SLEEPS."])
def test_a_clause_that_leaves_only_its_comma_is_translated_by_itself(said: str) -> None:
    def says(text: str) -> list[str]:
        return [said if "," in text else text.upper()]

    line = "The hotel, train, sleeps."
    found = translated(line, stub_translator(says))
    assert (found.text, found.is_divided) == (line.upper(), True)


def test_a_clause_that_a_model_cannot_read_stays_between_its_commas() -> None:
    def says(text: str) -> list[str]:
        if "," in text:
            return ["THE HOTEL,, SLEEPS."]
        return ["."] if "mute" in text else [text.upper()]

    found = translated("The hotel, mute, sleeps.", stub_translator(says))
    assert (found.text, found.is_untranslated) == ("THE HOTEL, mute, SLEEPS.", True)


def test_commas_that_the_source_has_twice_are_no_lost_clause() -> None:
    found = translated("the hotel,, sleeps", stub_translator(upper))
    assert (found.text, found.is_divided) == ("THE HOTEL,, SLEEPS", False)


@pytest.mark.long
def test_a_half_that_loses_a_clause_after_a_repair_is_divided_again() -> None:
    """The docs' own model, with halves that only the repair makes."""
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    for line in ("The dog, queue, sees the cat.", "I see the dog, queue, cat, and houses."):
        found = translated(line, of)
        assert ",," not in found.text.replace(" ", "")
        assert "queue" in found.text


@pytest.mark.parametrize("mark", ["...", "\u2026", "!", "?", "! ", "... "])
def test_marks_that_end_sentences_are_no_part_of_the_text_behind_them(mark: str) -> None:
    of = stub_translator(lambda text: ["."] if text[0] in ".\u2026!?" else upper(text))
    assert translated(f"{mark}and the train waits.", of).text == f"{mark}AND THE TRAIN WAITS."


@pytest.mark.parametrize(
    "line",
    [
        "(The hotel sleeps.) The train waits.",
        "The hotel sleeps\u2026 The train waits.",
        "The hotel sleeps... The train waits.",
    ],
)
def test_a_sentence_in_brackets_or_before_an_ellipsis_is_translated_by_itself(line: str) -> None:
    of = stub_translator(upper)
    found = translated(line, of)
    assert found.text == line.upper()
    assert not found.is_divided
    assert asked_by(of)[1] == "The train waits."


def test_a_beginning_of_one_word_or_of_small_letters_is_no_sentence() -> None:
    for line in ("Action\u2026 The train waits.", "The hotel sleeps... and waits."):
        of = stub_translator(upper)
        translated(line, of)
        assert len(asked_by(of)) == 1


def test_rivals_that_lose_text_are_not_listed() -> None:
    of = stub_translator(lambda text: [text.upper(), "", "THE", text.upper().replace("WAITS", "SLEEPS")], num_best=4)
    found = translated("the train waits and the hotel waits.", of)
    assert [each.text for each in found.alternatives] == [
        "THE TRAIN WAITS AND THE HOTEL WAITS.",
        "THE TRAIN SLEEPS AND THE HOTEL SLEEPS.",
    ]


def test_the_nth_best_of_a_divided_sentence_joins_the_nth_best_of_its_clauses() -> None:
    of = stub_translator(lambda text: [text.upper(), text.upper().replace("THE", "NO")], num_best=2)
    found = translated(LONG, of)
    assert [each.text for each in found.alternatives] == [
        LONG.upper(),
        LONG.upper().replace("THE", "NO"),
    ]


def test_a_translation_whose_beginning_is_forced_is_what_the_caller_wants() -> None:
    of = stub_translator(silent_about("mute", "NO"))
    [found] = of.translate(["the mute sleeps and the train waits."], prefixes=["NO"])
    assert (found.text, found.is_untranslated) == ("NO.", False) or found.text == "NO"


def test_rows_of_marks_are_no_lost_words() -> None:
    found = translated("No!!!!!!!!!!!!", stub_translator(lambda text: ["NO!"]))
    assert not found.is_untranslated


def test_protected_spans_come_back_and_no_text_is_lost() -> None:
    of = replace(stub_translator(cut_after(6)), protects_spans=True)
    line = "the hotel sleeps and the train waits at https://x.org and the sister laughs."
    found = translated(line, of)
    assert "https://x.org" in found.text
    for word in ("HOTEL", "TRAIN", "SISTER"):
        assert word in found.text


def test_a_warning_names_the_lines(caplog: pytest.LogCaptureFixture) -> None:
    of = stub_translator(silent_about("mute"))
    with caplog.at_level(logging.WARNING):
        list(of.translate(["the train waits.", "mute.", LONG]))
    assert [message.partition(":")[0] for message in caplog.messages] == ["line 3", "line 2"]


@given(
    texts=st.lists(long_texts | st.sampled_from(CLAUSES), max_size=3),
    most=st.integers(0, MOST_WORDS),
)
def test_without_the_guard_a_line_is_what_the_model_says(texts: list[str], most: int) -> None:
    model = cut_after(most)
    of = stub_translator(model, keeps_text=False)
    assert [found.text for found in of.translate(texts)] == [
        said if text.endswith(".") else said.rstrip(".") for text in texts for said in model(text)
    ]


def test_details_have_a_part_for_each_clause_and_link_the_words_of_the_line() -> None:
    text = LONG.replace(", the sister", " - the sister")
    for line, num_dashes in ((LONG, 0), (text, 1)):
        of = stub_translator(cut_after())
        [found] = of.translate([line], with_details=True)
        assert found.text == line.upper()
        assert found.details is not None
        assert len(found.details.parts) == len(asked_by(of)) > 2
        num_words = len(line.split())
        # The stub translates word by word, and a dash between two clauses is no word of a clause.
        dash = line.split().index("-") if num_dashes else None
        expected = [(place, place) for place in range(num_words) if place != dash]
        assert [tuple(link) for link in found.details.links] == expected


def test_a_line_of_which_a_part_stays_has_no_details() -> None:
    [found] = stub_translator(silent_about("mute")).translate(["mute."], with_details=True)
    assert (found.text, found.confidence) == ("mute.", None)


@pytest.mark.parametrize(
    ("languages", "line", "mark"),
    [(("en", "ar"), LONG, "\u060c "), (("en", "it"), LONG, ", "), (("ar", "it"), LONG.replace(",", "\u060c"), ", ")],
)
def test_the_commas_between_clauses_are_those_of_the_target_language(
    languages: tuple[str, str], line: str, mark: str
) -> None:
    found = translated(line, stub_translator(cut_after(), languages=languages))
    assert found.text == mark.join(clause.upper() for clause in CLAUSES) + "."


def test_the_parts_of_a_heading_are_translated_by_themselves_and_named_by_nobody() -> None:
    heading = f"{' '.join(NOUNS[:6]).capitalize()} - {' '.join(VERBS[:6]).capitalize()}"
    of = stub_translator(cut_after())
    found = translated(heading, of)
    assert (found.text, found.is_divided) == (heading.upper(), False)
    assert translated(heading, stub_translator(cut_after(), keeps_text=False)).text == "HOTEL TRAIN"


def ends_at_an_ellipsis(text: str) -> list[str]:
    """A model that has seen an ellipsis only at the end of a text."""
    first, mark, _ = text.replace("\u2026", "...").partition("...")
    return [first.strip().upper() + ("." if mark else "")]


@pytest.mark.parametrize("repair", [True, False])
@pytest.mark.parametrize(
    "line",
    [
        "The hotel... sleeps.",
        "The hotel\u2026 sleeps.",
        "No... the train waits.",
        "No, the house... the garden\u2026 sleeps.",
        "The hotel sleeps... and the train waits.",
    ],
)
def test_the_words_behind_an_ellipsis_are_translated(line: str, *, repair: bool) -> None:
    of = stub_translator(ends_at_an_ellipsis, seen=SeenLengths(30, 0.7), repair=repair)
    found = translated(line, of)
    assert found.text == line.upper()
    assert not found.is_divided


def test_words_stay_if_no_comma_shows_where_the_ellipsis_stood() -> None:
    of = stub_translator(lambda text: [ends_at_an_ellipsis(text)[0].replace(",", "")])
    assert translated("The hotel... sleeps.", of).text == "THE HOTEL SLEEPS."


def test_an_ellipsis_that_a_model_writes_costs_no_further_search() -> None:
    of = stub_translator(upper)
    assert translated("The hotel... sleeps.", of).text == "THE HOTEL... SLEEPS."
    assert len(asked_by(of)) == 1


def test_an_ellipsis_between_two_sentences_stays() -> None:
    of = stub_translator(lambda text: [text.upper().replace("...", ".")])
    line = "The hotel sleeps... The train waits."
    assert translated(line, of).text == line.upper()


@pytest.mark.long
@pytest.mark.parametrize("address", ["anna@example.org", "http://example.org/a", "report.pdf"])
def test_an_address_before_a_sentence_is_no_part_of_it(address: str) -> None:
    """As a part of the sentence, a name in its place, the model of docs/run loses "where"."""
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    sentence = "Where is the station?"
    [alone, found] = of.translate([sentence, f"{address} {sentence}"])
    assert found.text == f"{address} {alone.text}"


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("The hotel sleeps.)", "THE HOTEL SLEEPS.)"),
        ("(The hotel sleeps.", "(THE HOTEL SLEEPS."),
        ("- [The hotel sleeps.", "- [THE HOTEL SLEEPS."),
        ("The hotel (the house)", "THE HOTEL THE HOUSE"),
    ],
)
def test_a_bracket_without_a_partner_at_an_edge_is_copied(line: str, written: str) -> None:

    def letters_alone(text: str) -> list[str]:
        return [" ".join("".join(each for each in text if each not in "()[]").upper().split())]

    assert translated(line, stub_translator(letters_alone)).text == written


@pytest.mark.parametrize("quote", ["\u2018", "'", "`"])
@pytest.mark.parametrize("text", ["{}The hotel sleeps.", "The train waits. {}The hotel sleeps. The house burns."])
def test_a_single_quote_that_is_not_closed_is_copied(quote: str, text: str) -> None:
    def letters_alone(text: str) -> list[str]:
        return ["".join(each for each in text if each not in "\u2018'`").upper()]

    line = text.format(quote)
    assert translated(line, stub_translator(letters_alone)).text == line.upper()


@pytest.mark.parametrize(
    ("text", "is_lone"),
    [
        ("\u2018The dog\u2019s house.", True),
        ("\u2018The dogs.\u2019", False),
        ("'Tis good.", False),
        ("'Em", False),
        ("'s Avonds", False),
        ("'I am here.", True),
        ("\u201cThe dog.", False),
        ("", False),
    ],
)
def test_a_short_word_may_begin_with_an_apostrophe(text: str, is_lone: bool) -> None:
    assert starts_with_lone_quote(text) is is_lone


def test_an_ellipsis_that_is_lost_makes_a_doubt_and_a_bracket_comes_back() -> None:
    def without_marks(text: str) -> list[str]:
        return [" ".join(text.upper().replace("(", "").replace("...", "").replace(",", "").split())]

    of = stub_translator(without_marks, repair=True)
    bracket, ellipsis = (translated(line, of) for line in ("The hotel (sleeps.", "The hotel... sleeps."))
    assert (bracket.text, bracket.doubts) == ("THE HOTEL (SLEEPS.", ())
    assert (ellipsis.text, ellipsis.doubts) == ("THE HOTEL... SLEEPS.", ())
    assert translated("The hotel sleeps.", of).doubts == ()


@pytest.mark.parametrize("line", ["Does the hotel sleep?"])
def test_a_lost_question_mark_makes_a_doubt(line: str) -> None:
    def words_alone(text: str) -> list[str]:
        return [" ".join(re.sub(r"[?:]", " ", text.upper()).split())]

    found = translated(line, stub_translator(words_alone, repair=True, keep_layout=False))
    assert any(doubt.startswith(MARKS) for doubt in found.doubts)
    assert not can_be_green(found)
    kept = translated(line, stub_translator(lambda text: [text.upper()], repair=True))
    assert not any(doubt.startswith(MARKS) for doubt in kept.doubts)


@pytest.mark.long
def test_words_beside_a_placeholder_that_are_lost_make_a_doubt() -> None:
    """The model of docs/run loses the last noun, whole and in pieces; without a noun at its end, the line has no doubt."""
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    lost, whole = of.translate(["You have %d dogs and {n} cats.", "The {name} dog is big."])
    assert lost.text.endswith("{n}.")
    assert BESIDE_PLACEHOLDER in lost.doubts
    assert not can_be_green(lost)
    assert (whole.text, whole.doubts) == ("Il cane {name} è grande.", ())


@pytest.mark.long
def test_a_sentence_that_loses_words_beside_a_placeholder_is_translated_in_pieces() -> None:
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    [found] = of.translate(["You have %d new messages."])
    assert found.text.endswith("%d nuovi messaggi.")
    assert found.is_in_pieces


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    ["I want to eat, e.g. a pizza.", "We go, e.g. to the sea.", "I have a dog, i.e. a cat."],
)
def test_an_abbreviation_that_is_lost_makes_a_doubt(line: str) -> None:
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    [found] = of.translate([line])
    assert any(doubt.startswith(MARKS) for doubt in found.doubts)
    assert not can_be_green(found)


@pytest.mark.long
def test_a_line_that_loses_a_number_too_has_each_doubt_once() -> None:
    """It is translated again, with protected spans."""
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    [found] = of.translate(["I have 4 birds. The dog... is big."])
    assert found.doubts == (f"{MARKS}: ...",)


@pytest.mark.long
@pytest.mark.parametrize("quotes", ["''", "\u2018\u2019"])
def test_single_quotes_around_a_text_are_copied(quotes: str) -> None:
    """The model of docs/run knows an apostrophe only inside words."""
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    for sentence in ("The dog is big.", "I don't see the dog."):
        [alone, found] = of.translate([sentence, sentence.join(quotes)])
        assert found.text == alone.text.join(quotes)


@pytest.mark.long
def test_a_sentence_inside_marks_is_translated_and_words_that_stay_are_named() -> None:
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    texts = [
        "{{The dog is big.}}",
        "<<The dog is big.>>",
        "[[The dog is big.]]",
        "[[station]]",
        "{first name}",
        "{name}",
    ]
    found = list(of.translate(texts))
    inner = "Il cane è grande."
    assert [each.text for each in found] == [f"{{{{{inner}}}}}", f"<<{inner}>>", f"[[{inner}]]", *texts[3:]]
    assert [each.doubts for each in found] == [(), (), (), (ENCLOSED,), (ENCLOSED,), ()]


@pytest.mark.long
def test_an_ampersand_stays() -> None:
    """The model of docs/run does not know it, and lost it, or made a word of it."""
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    found = list(of.translate(["The dog & the cat and the horse are here.", "AT&T is big."]))
    assert [each.text.count("&") for each in found] == [1, 1]
    assert found[0].source == "The dog & the cat and the horse are here."
    assert "AT&T" in found[1].text
    assert not any(doubt.startswith(MARKS) for doubt in found[0].doubts)


@pytest.mark.long
def test_a_line_whose_ampersand_came_back_has_an_estimate() -> None:
    """It was written although nothing was green."""
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    assert of.pipeline.quality is not None
    nothing_is_green = replace(of.pipeline.quality, threshold=1.1)
    pipeline = replace(of.pipeline, qualities={str(of.languages): nothing_is_green})
    strict = replace(of, pipeline=pipeline, estimates=True, only_green=True)
    found = list(strict.translate(["The dog & the cat sleep.", "The dog is big."]))
    assert [each.text for each in found] == ["", ""]
    assert all(each.estimate is not None for each in found)
    [left_out] = strict.translate(["The dog is big."], with_details=True)
    assert left_out.details is not None
    assert (left_out.text, left_out.details.links) == ("", ()), "no words, so no links of them"


@pytest.mark.long
def test_an_ampersand_of_a_term_and_one_between_capitals() -> None:
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    term = Glossary.of({"dog & cat": "cane e gatto"})
    [found] = of.with_glossary(term).translate(["The dog & cat sleep."])
    assert "cane e gatto" in found.text
    assert all(each.is_applied for each in found.terms)
    [capitals] = of.translate(["TERMS & CONDITIONS"])
    [plain] = replace(of, decoding=of.decoding.model_copy(update={"repair": False})).translate(["TERMS AND CONDITIONS"])
    assert capitals.text in ("TERMS & CONDITIONS", plain.text.replace(" E ", " & "))


@pytest.mark.long
def test_a_clause_behind_a_comma_whose_end_is_lost_is_translated_by_itself() -> None:
    """The model of docs/run made "c'era un prezzo" of the second clause: short, but not too short for a translation."""
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    text = "This evening she is talking about the farmer, there was a problem with my printer."
    [found] = of.translate([text])
    assert found.text.endswith("contadino, c'era un problema con la mia stampante.")
    assert found.is_divided


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("{the dog is big}", "the dog is big"),
        ("<<the dog>>", "the dog"),
        ("<the dog}", "<the dog}"),
        ("[[the dog]]", "the dog"),
        ("(a house", "a house"),
        ("a house)", "a house"),
        ("the house (a big one)", "the house (a big one)"),
        ("the dog :)", "the dog :)"),
        ("'the dog'", "the dog"),
        ("{}", "{}"),
    ],
)
def test_marks_around_a_sentence_are_left_out_with_their_partner(text: str, inside: str) -> None:
    start, end = without_single_marks(f"- {text}.", 2, 2 + len(text))
    assert f"- {text}."[start:end] == inside


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("the {x} hotel burns.", ["the Anna hotel burns."]),
        ("the {x}hotel burns.", ["the", "hotel burns."]),
        ("the hotel%(x)s burns.", ["the hotel", "burns."]),
        ("{x}hotel", ["hotel"]),
        ("the hotel of {x}'s doctor", ["the hotel of Anna's doctor"]),
    ],
)
def test_no_name_stands_for_a_placeholder_that_touches_a_word(text: str, asked: list[str]) -> None:
    stand_ins = StandIns({SpanKind.WORD: ("Anna",), SpanKind.NUMBER: ()})
    keeper = SpanKeeper(TOKENIZER, TOKENIZER, stand_ins, Direction("en", "it"), lambda text: ())
    pieces = next(keeper.attempts(text, find_spans(text)))
    assert [piece.text.strip() for piece in pieces if piece.is_translated] == asked


def test_the_ending_of_a_possessive_placeholder_is_not_read_as_a_word() -> None:
    of = replace(stub_translator(upper), protects_spans=True)
    found = translated("{{name}}'s hotel burns.", of)
    assert found.text == "{{name}}'s HOTEL BURNS."
    assert found.is_in_pieces


HOUSE = GlossaryEntry("hotel", "house")


@pytest.mark.parametrize(
    ("text", "term", "asked", "expected"),
    [
        ("THE HOTEL BURNS", HOUSE, "The hotel burns", "THE HOUSE BURNS"),
        ("THE HOTEL", HOUSE, "The hotel", "THE HOUSE"),
        ("THE HOTEL BURNS", replace(HOUSE, source="HOTEL", keeps_case=True), "THE HOTEL BURNS", "THE house BURNS"),
        ("THE TRAIN", HOUSE, "THE TRAIN", "THE TRAIN"),
    ],
)
def test_a_line_in_capitals_with_a_term_is_read_in_small_letters_and_written_in_capitals(
    text: str, term: GlossaryEntry, asked: str, expected: str
) -> None:
    of = stub_translator(upper).with_glossary(Glossary((term,)))
    found = translated(text, of)
    assert found.text == expected
    assert all(each.is_applied for each in found.terms)
    assert asked_by(of)[0] == asked


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "translation"),
    [
        ("Two men\u00b3 are walking in the park.", "Due uomini\u00b3 stanno camminando nel parco."),
        ("Two men<sup>2</sup> are walking in the park.", "Due uomini<sup>2</sup> stanno camminando nel parco."),
        ("Two men are walking\u00b2 in the park.", "Due uomini stanno camminando\u00b2 nel parco."),
        ("00:12 Good morning.", "00:12 Buongiorno."),
        ("Object.keys is good.", "Object.keys \u00e8 buono."),
    ],
)
def test_a_note_a_time_and_a_name_of_a_program_do_not_spoil_their_sentence(line: str, translation: str) -> None:
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    assert [each.text for each in of.translate([line])] == [translation]


@pytest.mark.long
@pytest.mark.parametrize("line", ["The cat is a/b small.", "The file is read.me and it is good."])
def test_single_letters_with_a_slash_and_dotted_names_of_seen_words_are_kept(line: str) -> None:
    of = load_translator(Path(__file__).parents[2] / "docs/run")
    [found] = of.translate([line])
    [kept] = [word for word in line.split() if "/" in word or ".me" in word]
    assert kept in found.text
