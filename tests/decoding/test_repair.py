"""Doubtful translations are searched again, and the best of what is found is kept."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from transformer_cli.config import DecodingConfig, TokenizerConfig
from transformer_cli.decoding import Hypothesis, Request, TokenIds, Translator
from transformer_cli.decoding.checks.brackets import lost_brackets, pieces_around_brackets, without_empty_brackets
from transformer_cli.decoding.checks.doubts import MARKS, NEGATION, NUMBERS, REPEATS, UNSEEN, UNSURE, WORDLESS
from transformer_cli.decoding.checks.quality import Quality, QualityPromise, pieces_per_word
from transformer_cli.decoding.engine import Explanation, search_confidence
from transformer_cli.decoding.translation import Link
from transformer_cli.text.sentences import SeenLengths, Sentence
from transformer_cli.text.tokenizer import train_tokenizer

from .stub_translators import StubEngine, stub_translator

Say = Callable[[str, DecodingConfig], list[tuple[str, float]]]
"""What an engine finds for a text with some options: translations and their scores, best first."""


class TalkingEngine(StubEngine):
    """Answers by the options, too."""

    def __init__(self, say: Say) -> None:
        super().__init__(lambda text: [])
        self.say = say
        self.options: list[DecodingConfig] = []

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        self.options.append(options)
        return [self._found(request, options) for request in requests]

    def _found(self, request: Request, options: DecodingConfig) -> list[Hypothesis]:
        text = self.tokenizer.decode(request.ids)
        self.asked.append(text)
        return [
            Hypothesis((*self.tokenizer.encode(said), self.tokenizer.eos_id), score)
            for said, score in self.say(text, options)[: options.num_best]
        ]


def translator_that(say: Say, **decoding: Any) -> Translator:
    of = stub_translator(lambda text: [], **{"repair": True, **decoding})
    return replace(of, engine=TalkingEngine(say))


LOOP = "HOTEL HOTEL HOTEL HOTEL"


def loops_unless_blocked(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
    if options.no_repeat_ngram_size is not None:
        return [("THE HOTEL", -4.0), ("THE", -5.0)]
    return [(LOOP, -1.0)]


def test_a_loop_is_searched_again_without_repetitions() -> None:
    of = translator_that(loops_unless_blocked)
    [found] = of.translate(["the hotel"])
    assert (found.text, found.is_repaired, found.doubts) == ("THE HOTEL", True, ())


def test_a_word_that_is_said_twice_is_searched_again() -> None:
    def says_twice(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        return [("HOTEL HOTEL", -1.0), ("HOTEL", -2.0)]

    for say in (says_twice, lambda text, options: [("HOTEL HOTEL", -1.0)]):
        [found] = translator_that(say, languages=("en", "fr")).translate(["hotel"])
        assert (found.text, found.is_repaired, found.doubts) == ("HOTEL", True, ())


@pytest.mark.parametrize(("said", "text"), [("THE HOTEL HOTEL", "THE HOTEL"), ("THE HOTEL HOTEL HOTEL", "THE WINDOW")])
def test_a_translation_without_one_doubled_word_comes_before_another_one(said: str, text: str) -> None:
    """The other one is more probable, which decides where more than a word was cut."""

    class Doubting(TalkingEngine):
        def explain(self, requests: Sequence[Request], targets: Sequence[TokenIds], **_: Any) -> list[Explanation]:
            found = super().explain(requests, targets)
            return [replace(each, token_log_probs=each.token_log_probs - 0.9) for each in found]

    def say(source: str, options: DecodingConfig) -> list[tuple[str, float]]:
        return [(said, -0.5), ("THE WINDOW", -1.0)]

    translator = replace(translator_that(say, languages=("en", "fr")), engine=Doubting(say))
    [found] = translator.translate(["the hotel"])
    assert (found.text, found.is_repaired) == (text, True)


@pytest.mark.parametrize(("length", "num_searches"), [(30, 1), (10, 2)])
def test_a_run_of_letters_that_is_no_word_is_searched_once_and_stays(length: int, num_searches: int) -> None:
    """A key that was held down, or a key for a program: each search of it goes on to the longest translation."""
    of = translator_that(loops_unless_blocked)
    text = "hotel" * length
    [found] = of.translate([text])
    assert isinstance(of.engine, TalkingEngine)
    assert len(of.engine.options) == num_searches
    assert (found.text == text) is (num_searches == 1)


def test_without_the_setting_a_loop_stays() -> None:
    of = translator_that(loops_unless_blocked, repair=False)
    [found] = of.translate(["the hotel"])
    assert (found.text, found.is_repaired, found.doubts) == (LOOP, False, ())


@pytest.mark.parametrize("settings", [{"sampling": {}}, {"diversity": {"groups": 2}}])
def test_other_searches_are_not_repaired(settings: dict[str, Any]) -> None:
    of = translator_that(loops_unless_blocked, **settings)
    [found] = of.translate(["the hotel"])
    assert found.text == LOOP


def test_the_first_of_several_translations_is_repaired_as_a_single_one_is() -> None:
    def say(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        if options.no_repeat_ngram_size is not None:
            return [("THE HOTEL", -4.0), ("THE TRAIN", -5.0)]
        return [(LOOP, -1.0), ("HOTEL HOTEL HOTEL HOTEL HOTEL", -2.0), ("THE", -4.5)]

    [alone] = translator_that(say).translate(["the hotel"])
    [several] = translator_that(say, num_best=3).translate(["the hotel"])
    assert (several.text, several.score) == (alone.text, alone.score)
    assert (several.doubts, several.is_repaired) == ((), True)
    assert [each.text for each in several.alternatives] == ["THE HOTEL", "THE", "THE TRAIN"]


def test_a_lost_number_comes_back_in_each_of_several_translations() -> None:
    of = translator_that(
        lambda text, options: [(text.upper().replace("1234567", ""), -1.0), ("HOTEL", -2.0)],
        num_best=2,
    )
    [found] = of.translate(["the hotel 1234567"])
    assert [each.text for each in found.alternatives] == ["THE HOTEL 1234567", "HOTEL 1234567"]


def test_a_good_translation_is_searched_once() -> None:
    of = translator_that(lambda text, options: [("THE HOTEL", -1.0)])
    assert [each.text for each in of.translate(["the hotel"])] == ["THE HOTEL"]
    assert isinstance(of.engine, TalkingEngine)
    assert len(of.engine.options) == 1


def only_marks_unless_it_loops(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
    """A loop for the whole text; a mark for its halves, and wherever a loop is forbidden."""
    is_blocked = options.no_repeat_ngram_size is not None or options.sampling is not None
    is_whole = text == "the hotel, the train"
    return [(LOOP, -1.0)] if is_whole and not is_blocked else [("!", -0.1)]


def test_a_mark_is_no_better_translation_of_words_than_a_loop() -> None:
    of = translator_that(only_marks_unless_it_loops)
    [found] = of.translate(["the hotel, the train"])
    assert (found.text, found.is_repaired) == (LOOP, False)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_translation_without_words_is_named_or_not_written(keeps: bool) -> None:
    of = translator_that(lambda text, options: [(".", -0.1)], keeps_text=keeps)
    [found] = of.translate(["the hotel"])
    if keeps:
        assert (found.text, found.is_untranslated) == ("the hotel", True)
    else:
        assert (found.text, found.doubts) == (".", (WORDLESS,))


def test_what_cannot_be_repaired_is_named_and_stays() -> None:
    of = translator_that(lambda text, options: [(LOOP, -1.0)])
    [found] = of.translate(["the hotel"])
    assert (found.text, found.is_repaired, found.doubts) == (LOOP, False, (REPEATS,))


def test_samples_are_drawn_if_the_wide_beam_finds_only_loops() -> None:
    def say(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        return [("THE HOTEL", -5.0)] if options.sampling else [(LOOP, -1.0)]

    [found] = translator_that(say).translate(["the hotel"])
    assert found.text == "THE HOTEL"


def test_a_text_that_loops_in_every_search_is_divided() -> None:
    def say(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        return [(LOOP, -1.0)] if "," in text else [(text.upper(), -1.0)]

    [found] = translator_that(say).translate(["the hotel waits, the train sleeps"])
    assert "TRAIN" in found.text
    assert (found.is_repaired, found.is_divided, found.doubts) == (True, True, ())


def test_a_line_with_a_doubt_changes_no_other_line() -> None:
    def say(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        return loops_unless_blocked(text, options) if "hotel" in text else [(text.upper(), -1.0)]

    lines = ["the train", "the hotel", "the train waits"]
    found = [each.text for each in translator_that(say).translate(lines)]
    assert found == ["THE TRAIN", "THE HOTEL", "THE TRAIN WAITS"]


def test_a_much_less_probable_translation_does_not_win_by_a_negation() -> None:
    """The lists know not all words that negate, so the search has the last word."""

    def say(score: float) -> Say:
        return lambda text, options: [
            ("no train waits", -1.0),
            *([("train waits", score)] if options.num_best > 1 else []),
        ]

    for score, expected in ((-1.1, "train waits"), (-3.0, "no train waits")):
        of = translator_that(say(score), languages=("it", "en"))
        [found] = of.translate(["the train"])
        assert found.text == expected
        assert (NEGATION in found.doubts) == (expected == "no train waits")


def test_a_lost_placeholder_comes_back_by_protection() -> None:
    of = translator_that(lambda text, options: [(text.upper().replace("{0}", ""), -1.0)])
    [found] = of.translate(["the hotel {0}"])
    assert "{0}" in found.text
    assert found.is_repaired


def forgets_the_second_clause(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
    """A model that translates what stands before the first comma, and some words for the rest."""
    first, comma, rest = text.partition(", ")
    return [(f"{first} {' '.join(rest.split()[:2])}".upper() if comma else text.upper(), -1.0)]


SECOND = "hotel train sleeps, sister garden works house."


def test_a_clause_that_a_translation_lacks_is_translated_by_itself() -> None:
    [found] = translator_that(forgets_the_second_clause).translate([SECOND])
    assert (found.text, found.is_divided, found.is_repaired) == (SECOND.upper(), True, True)
    for kept in ({"repair": False}, {"keeps_text": False}):
        [left] = translator_that(forgets_the_second_clause, **kept).translate([SECOND])
        assert (left.text, left.is_divided) == ("HOTEL TRAIN SLEEPS SISTER GARDEN", False)


def test_a_word_with_another_known_spelling_in_its_clause_alone_is_linked() -> None:
    """Inside the sentence "ThE" is read as "the", and as the first word of its clause as "The"."""
    line = "hotel train sleeps, ThE  garden works house."
    [found] = translator_that(forgets_the_second_clause).translate([line], with_details=True)
    assert (found.text, found.is_divided) == ("HOTEL TRAIN SLEEPS, THE GARDEN WORKS HOUSE.", True)
    assert found.details is not None
    assert [*found.details.links] == [Link(place, place) for place in range(7)]


def test_a_sentence_stays_whole_if_its_clauses_have_no_more_words_alone() -> None:
    def without_commas(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        return [(text.replace(",", "").upper(), -1.0)]

    of = translator_that(without_commas)
    [found] = of.translate([SECOND])
    assert (found.text, found.is_divided) == (SECOND.replace(",", "").upper(), False)
    assert isinstance(of.engine, TalkingEngine)
    assert "hotel train sleeps." in of.engine.asked


def test_a_translation_with_all_its_clauses_is_searched_once() -> None:
    of = translator_that(lambda text, options: [(text.upper(), -1.0)])
    assert [each.text for each in of.translate([SECOND])] == [SECOND.upper()]
    assert isinstance(of.engine, TalkingEngine)
    assert {*of.engine.asked} == {SECOND}


@pytest.mark.parametrize("label", ["x:", "l=", "no = "])
def test_a_sentence_glued_to_the_next_one_by_a_label_is_not_lost(label: str) -> None:
    """A model that stops at the first full stop."""
    of = translator_that(lambda text, options: [(text.partition(".")[0].upper() + ".", -1.0)])
    [found] = of.translate([f"The hotel train sleeps.{label}The sister garden works."])
    assert "SISTER GARDEN WORKS" in found.text
    assert "HOTEL TRAIN SLEEPS" in found.text


def test_signs_do_not_come_back_in_place_of_words() -> None:
    """A model that says less of a line without quotation marks."""
    whole = "HOTEL TRAIN SLEEPS SISTER GARDEN."
    of = translator_that(lambda text, options: [(whole if "[UNK]" in text else "HOTEL.", -1.0)])
    [found] = of.translate(['The "hotel train" sleeps the sister garden.'])
    assert (found.text, found.doubts) == (whole, (f'{MARKS}: "',))


@pytest.mark.parametrize(
    ("score", "second", "num_searches"),
    [(-0.01, "WORKS HOUSE GARDEN", 1), (-0.01, "WORKS", 3), (-3.0, "WORKS HOUSE GARDEN", 3)],
)
def test_a_short_translation_with_every_clause_is_searched_again_only_if_the_model_is_unsure(
    score: float, second: str, num_searches: int
) -> None:
    source = "The hotel train sleeps, she sister garden works house."

    def short(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        return [(f"TRAIN SLEEPS, {second}." if "," in text else "TRAIN.", score)]

    of = translator_that(short)
    written, read = (len(of.pipeline.source_ids(text)) for text in (short(source, of.decoding)[0][0], source))
    ratio = 0.5 * written / read  # nearly all translations of the training are longer than this times the source
    of = replace(of, pipeline=replace(of.pipeline, seen=SeenLengths(None, ratio)))
    assert [each.text for each in of.translate([source])] == [f"TRAIN SLEEPS, {second}."]
    assert isinstance(of.engine, TalkingEngine)
    assert len(of.engine.asked) == num_searches


def without_brackets(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
    """A model that knows no brackets: it loses them with the words inside."""
    kept = re.sub(r" ?[(\[].*?[)\]]", "", text).strip()
    return [(kept.upper() or ".", -1.0)]


@pytest.mark.parametrize("protects", [False, True])
@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("The hotel (the house) sleeps.", "THE HOTEL (THE HOUSE) SLEEPS."),
        ("(the train) The sister waits.", "(THE TRAIN) THE SISTER WAITS."),
        ("The hotel [the garden [the house]].", "THE HOTEL [THE GARDEN [THE HOUSE]]."),
        (
            "The train falls. The hotel (the house) burns! The doctor works.",
            "THE TRAIN FALLS. THE HOTEL (THE HOUSE) BURNS! THE DOCTOR WORKS.",
        ),
        ("  - the hotel | the train (the house)", "  - THE HOTEL | THE TRAIN (THE HOUSE)"),
        ("THE HOTEL (THE HOUSE) SLEEPS.", "THE HOTEL (THE HOUSE) SLEEPS."),
    ],
)
def test_the_words_in_brackets_that_a_model_loses_are_translated_by_themselves(
    line: str, text: str, protects: bool
) -> None:
    of = replace(translator_that(without_brackets), protects_spans=protects)
    [found] = of.translate([line])
    assert (found.text, found.is_in_pieces, found.is_repaired) == (text, True, True)


def test_brackets_that_a_model_keeps_cost_no_further_search() -> None:
    of = translator_that(lambda text, options: [(text.upper(), -1.0)])
    [found] = of.translate(["The hotel (the house) sleeps."])
    assert (found.text, found.is_in_pieces) == ("THE HOTEL (THE HOUSE) SLEEPS.", False)
    assert isinstance(of.engine, TalkingEngine)
    assert {*of.engine.asked} == {"The hotel (the house) sleeps."}


def test_without_the_setting_brackets_stay_lost() -> None:
    [found] = translator_that(without_brackets, repair=False).translate(["The hotel (the house)."])
    assert (found.text, found.is_repaired) == ("THE HOTEL.", False)


def test_brackets_with_a_given_beginning_are_left_to_the_model() -> None:
    [found] = translator_that(without_brackets).translate(["The hotel (the house) sleeps."], prefixes=["THE"])
    assert found.text == "THE HOTEL SLEEPS."


def confused_by_marks(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
    """What a model writes that has never read brackets: any word in their place, and others beside it."""
    return [("THE TRAIN" if re.search(r"[(\[\"]", text) else text.upper(), -1.0)]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("The hotel () sleeps.", "THE HOTEL () SLEEPS."),
        ("The hotel ( ... ) sleeps [] the house.", "THE HOTEL ( ... ) SLEEPS [] THE HOUSE."),
        ("() The hotel sleeps.", "() THE HOTEL SLEEPS."),
        ("The hotel sleeps (...) []", "THE HOTEL SLEEPS (...) []"),
        ('The "" hotel sleeps.', 'THE "" HOTEL SLEEPS.'),
    ],
)
def test_brackets_around_nothing_do_not_change_the_words_beside_them(line: str, text: str) -> None:
    [found] = translator_that(confused_by_marks).translate([line])
    assert (found.text, found.source) == (text, line)
    assert (found.is_repaired, found.is_in_pieces) == (True, True), "their places are guessed"
    [plain] = translator_that(confused_by_marks, repair=False).translate([line])
    assert "SLEEPS" not in plain.text


@pytest.mark.parametrize("line_break", ["\r", "\n", "\u2028", "\x0b", "\x85"])
@pytest.mark.parametrize(
    "form",
    [
        "({}) The hotel sleeps.",
        '"{}" The hotel sleeps.',
        "\u2014 {} The hotel sleeps \u201c",
        "The hotel {}(...) sleeps.",
    ],
)
def test_what_comes_back_from_a_line_has_no_line_break(form: str, line_break: str) -> None:
    line = form.format(line_break)
    [found] = translator_that(confused_by_marks).translate([line])
    assert found.source == line
    assert len(f"{found.text}|".splitlines()) == 1


def test_many_brackets_around_nothing_are_found_in_one_pass() -> None:
    # With a time that grows with the square of the length, this would take minutes.
    rest, brackets = without_empty_brackets("a (...) " * 30_000)
    assert (len(rest.split()), len(brackets)) == (30_000, 30_000)
    assert brackets[14_999] == ("(...)", 0.5)


def test_words_around_a_loop_stay_and_one_copy_of_it() -> None:
    def loops(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        blocked = options.no_repeat_ngram_size is not None
        return [("THE", -1.0) if blocked else ("SISTER WAITS HOTEL BURNS HOTEL BURNS.", -1.5)]

    [found] = translator_that(loops).translate(["The sister waits the hotel burns."])
    assert (found.text, found.is_repaired, found.doubts) == (
        "SISTER WAITS HOTEL BURNS.",
        True,
        (),
    )


class Measuring(TalkingEngine):
    """Says of each given token that its log-probability is -0.5, and that all tokens of the source were read alike."""

    def explain(self, requests: Sequence[Request], targets: Sequence[TokenIds], **_: Any) -> list[Explanation]:
        explained = super().explain(requests, targets)
        return [
            replace(
                one,
                token_log_probs=np.full_like(one.token_log_probs, -0.5),
                attention=np.full_like(one.attention, 1 / one.attention.shape[1]),
            )
            for one in explained
        ]


@pytest.mark.parametrize("settings", [{}, {"length_penalty": 1.0}, {"coverage_penalty": 0.2}])
def test_the_score_of_a_translation_without_its_repeated_words_is_that_of_the_text(
    settings: dict[str, Any],
) -> None:
    def loops(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        blocked = options.no_repeat_ngram_size is not None
        return [("THE", -9.0) if blocked else ("SISTER WAITS HOTEL BURNS HOTEL BURNS.", -1.5)]

    of = translator_that(loops, **settings)
    [found] = replace(of, engine=Measuring(loops)).translate(["The sister waits the hotel burns."])
    assert found.text == "SISTER WAITS HOTEL BURNS."
    num_written, num_read = 6, 8  # words, the full stop and [EOS]
    expected = -0.5 * num_written / ((5 + num_written) / 6) ** of.decoding.length_penalty
    if "coverage_penalty" in settings:
        expected += 0.2 * num_read * math.log(num_written / num_read)
    assert found.score == pytest.approx(expected)


def test_a_search_that_ends_early_is_no_repair_of_a_loop() -> None:
    def loops(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        return [("THE", -4.0) if options.no_repeat_ngram_size is not None else (LOOP, -1.0)]

    [found] = translator_that(loops).translate(["The hotel sleeps in the big train."])
    assert found.text != "THE"


def confused_by_capitals(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
    return [(text.upper() if text[1:].islower() else LOOP, -1.0)]


@pytest.mark.parametrize("line", ["tHe hOTeL sLeePs.", "The Hotel Sleeps.", "tHE HOTEL SLEEPS."])
def test_a_doubtful_line_in_an_odd_case_is_read_in_small_letters(line: str) -> None:
    of = translator_that(confused_by_capitals)
    of = replace(of, pipeline=replace(of.pipeline, spellings=None))
    [found] = of.translate([line])
    assert (found.text, found.source) == ("THE HOTEL SLEEPS.", line)
    assert (found.doubts, found.is_repaired) == ((), True)


def test_a_line_in_an_odd_case_without_doubts_stays() -> None:
    of = translator_that(lambda text, options: [("THE HOTEL SLEEPS.", -1.0)], known_spellings=False)
    [found] = of.translate(["The Hotel Sleeps."])
    assert isinstance(of.engine, TalkingEngine)
    assert (len(of.engine.asked), found.is_repaired) == (1, False)


def test_a_lost_number_comes_back_by_protection() -> None:
    of = translator_that(lambda text, options: [("THE HOTEL", -1.0)])
    [found] = of.translate(["the hotel 1234567"])
    assert "1234567" in found.text
    assert NUMBERS not in found.doubts


def calibrated(of: Translator, *, least_confidence: float, most_pieces: float) -> Translator:
    quality = Quality({}, 0.0, least_confidence, most_pieces, None, QualityPromise("chrf", 60, 0.05, 0.95), {})
    return replace(of, pipeline=replace(of.pipeline, qualities={"en-it": quality}))


@pytest.mark.parametrize(("score", "is_kept"), [(-1.0, True), (-3.0, False)])
def test_guesses_between_numbers_do_not_replace_a_translation_with_another_number(score: float, is_kept: bool) -> None:
    def say(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        if any(map(str.isdigit, text)):
            return [("THE TRAIN WAITS 4 HOTEL 3", -1.0)]
        return [(text.upper(), score)]

    [found] = translator_that(say).translate(["the train 13 waits 14 hotel"])
    assert (found.is_in_pieces, NUMBERS in found.doubts) == (is_kept, not is_kept)


def test_an_unsure_translation_of_unknown_words_is_not_written() -> None:
    of = translator_that(lambda text, options: [("THE HOTEL", -9.0)])
    assert [each.text for each in of.translate(["the train"])] == ["THE HOTEL"]
    unsure = calibrated(of, least_confidence=0.5, most_pieces=0.5)
    [found] = unsure.translate(["the train"])
    assert (found.text, found.is_untranslated) == ("the train", True)
    known = calibrated(of, least_confidence=0.5, most_pieces=9.0)
    [found] = known.translate(["the train"])
    assert (found.text, found.doubts) == ("THE HOTEL", (UNSURE,))


@pytest.mark.parametrize(("line", "is_kept"), [("train.", False), ("train", True), ("the train.", True)])
def test_a_word_of_one_token_with_a_mark_is_no_unknown_word(line: str, is_kept: bool) -> None:
    of = translator_that(lambda text, options: [("THE TRAIN", -9.0)])
    [found] = calibrated(of, least_confidence=0.5, most_pieces=0.5).translate([line])
    assert found.is_untranslated is is_kept


@pytest.mark.parametrize("sign", ["\U0001f600", "<p>"])
def test_words_beside_an_emoji_or_a_tag_do_not_stay_because_of_it(sign: str) -> None:
    of = translator_that(lambda text, options: [("THE TRAIN", -9.0 if re.search(r"UNK|<", text) else -0.1)])
    unsure = calibrated(of, least_confidence=0.5, most_pieces=0.5)
    [found] = unsure.translate([f"the {sign}train"])
    assert "TRAIN" in found.text
    assert sign in found.text
    assert not found.is_untranslated


def test_a_row_of_marks_makes_no_pieces_of_a_word() -> None:
    assert pieces_per_word("Every Monday!!!!", range(8)) == 8 / 5
    assert pieces_per_word("Every Monday!", range(5)) == 5 / 2


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("kind", ["gnmt", "average"])
def test_the_confidence_is_the_mean_probability_whatever_the_length_penalty(alpha: float, kind: str) -> None:
    options = DecodingConfig.model_validate({"length_penalty": alpha, "length_normalization": kind})
    length, log_prob = 7, -3.5
    divisor = ((5 + length) / 6 if kind == "gnmt" else length) ** alpha
    hypothesis = Hypothesis(tuple(range(length)), log_prob / divisor)
    found = search_confidence(hypothesis, options)
    assert found == pytest.approx(2.718281828 ** (log_prob / length))
    with_coverage = options.model_copy(update={"coverage_penalty": 0.2})
    assert search_confidence(hypothesis, with_coverage) is None


def test_nothing_is_no_repair() -> None:
    def say(text: str, options: DecodingConfig) -> list[tuple[str, float]]:
        is_first = options == translator.decoding.model_copy(update={"num_best": options.num_best})
        return [(LOOP, -1.0)] if is_first else [("", -1.0), (LOOP, -1.0)]

    translator = translator_that(say, keep_text=False)
    [found] = translator.translate(["the hotel"])
    assert found.text == LOOP


@pytest.mark.parametrize(
    ("text", "translation", "lost"),
    [
        ("The house is [here](a.html).", "LA CASA È QUI](a.html).", "[here]"),
        ("The house is [here](a.html).", "LA CASA È [QUI](a.html).", ""),
        ("The house (4) is [here].", "LA CASA (4) È QUI.", "[here]"),
        ("The house (I think) sleeps.", "LA CASA (CREDO DORME.", "(I think)"),
        ("The house (I think)sleeps.", "LA CASA CREDO DORME.", "(I think)"),
        ("The house(I think) sleeps.", "LA CASA CREDO DORME.", "(I think)"),
        ("The house(s) sleeps.", "LA CASA DORME.", ""),
        ("The house (I think) sleeps.", "\u623f\u5b50\uff08\u6211\u60f3\uff09\u3002", ""),
    ],
)
def test_brackets_around_what_is_protected_do_not_stand_for_others(text: str, translation: str, lost: str) -> None:
    start = text.find(lost)
    assert lost_brackets(text, translation) == ([start, start + len(lost) - 1] if lost else [])


@pytest.mark.parametrize("with_details", [False, True])
def test_the_doubts_of_the_whole_line_are_told_with_details_too(with_details: bool) -> None:
    translator = translator_that(lambda text, options: [(text.upper(), -1.0)])
    knowing = replace(translator, pipeline=replace(translator.pipeline, seen_words={"the", "works"}))
    [found] = knowing.translate(["the house works"], with_details=with_details)
    assert found.doubts == (f"{UNSEEN}: house",)


@pytest.mark.parametrize(
    ("inside", "translated"),
    [
        ('"dog house", "dog"', ["dog house", "dog"]),
        ("\u201cdog\u201d / \u201ccat\u201d; \u201ccow\u201d", ["dog", "cat", "cow"]),
        ('"dog" and "cat"', ['dog" and "cat']),
        ("dog, cat", ["dog, cat"]),
        ("of {n}", ["of {n}"]),  # a placeholder is not cut
    ],
)
def test_quoted_parts_of_a_list_in_brackets_are_pieces(inside: str, translated: list[str]) -> None:
    text = f"We see it ({inside}) here."
    pieces = pieces_around_brackets([Sentence(text, "")])
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.text for piece in pieces if piece.is_translated] == ["We see it", *translated, "here"]


OGHAM = {
    "the house": "\u1690\u1685 \u1688\u1693\u1690\u1689\u1686",
    "the red house": "\u1690\u1685 \u1688\u1693\u1690\u1689\u1686 \u1687\u1693\u1690\u168f\u168c",
}


@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("into_ogham", [True, False])
def test_a_script_that_the_vocabulary_has_can_be_read_and_written(*, is_shared: bool, into_ogham: bool) -> None:
    """Irish in Ogham is no text that the model cannot read, nor a translation with letters of another script."""
    texts = OGHAM if into_ogham else {there: here for here, there in OGHAM.items()}
    sides = [[*texts], [*texts.values()]]
    source, target = (train_tokenizer(sides[0] + sides[1] if is_shared else side, TokenizerConfig()) for side in sides)
    target = source if is_shared else target

    class Reader(TalkingEngine):
        def _found(self, request: Request, options: DecodingConfig) -> list[Hypothesis]:
            said = texts[source.decode(request.ids)]
            return [Hypothesis((*target.encode(said), target.eos_id), -1.0)]

    of = translator_that(lambda text, options: [], languages=("en", "ga") if into_ogham else ("ga", "en"))
    pipeline = replace(of.pipeline, source_tokenizer=source, target_tokenizer=target, spellings=None)
    of = replace(of, pipeline=pipeline, engine=Reader(lambda text, options: []))
    assert {each.source: (each.text, each.doubts) for each in of.translate([*texts])} == {
        text: (said, ()) for text, said in texts.items()
    }
