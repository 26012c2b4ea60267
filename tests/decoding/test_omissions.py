"""Words of a source for which its translation has nothing: a model of which it is known how probable each translation is finds them."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transformer_cli.config import Direction, TokenizerConfig
from transformer_cli.decoding import Hypothesis, Request, TokenIds, Translator
from transformer_cli.decoding.checks import omissions
from transformer_cli.decoding.checks.doubts import OMITS, REPEATS, UNSEEN, doubts_about
from transformer_cli.decoding.checks.omissions import has_only_please, with_omissions, with_stand_ins, without_each_word
from transformer_cli.decoding.checks.quality import FEATURES, Quality, QualityPromise
from transformer_cli.decoding.engine import Explanation
from transformer_cli.decoding.loading import load_translator
from transformer_cli.decoding.protected_spans import StandIns
from transformer_cli.decoding.translation import Translation
from transformer_cli.text.languages import FUNCTION_WORDS
from transformer_cli.text.spans import SpanKind
from transformer_cli.text.tokenizer import train_tokenizer

from .stub_translators import Model, StubEngine, stub_translator, upper


class WordByWord(StubEngine):
    """A word is probable if the source has it; the more words of the source are not written, the less probable is each."""

    def explain(self, requests: Sequence[Request], targets: Sequence[TokenIds], **_: Any) -> list[Explanation]:
        found = super().explain(requests, targets)
        return [
            replace(each, token_log_probs=self._log_probs(request.ids, target))
            for each, request, target in zip(found, requests, targets, strict=True)
        ]

    def _log_probs(self, source: TokenIds, target: TokenIds) -> np.ndarray[Any, np.dtype[np.float32]]:
        self.asked.append(self.tokenizer.decode(source))
        read = {*self.asked[-1].lower().split()}
        written = [self.tokenizer.decode([token]).lower() for token in target]
        num_silent = len(read.difference(written))
        return np.array([(-0.1 if word in read else -5.0) - 0.1 * num_silent for word in written], np.float32)


def translator_of(model: Model, **changes: Any) -> Translator:
    return replace(stub_translator(upper), engine=WordByWord(model), estimates=True, **changes)


def without(*words: str) -> Model:
    return lambda text: [" ".join(word for word in text.upper().split() if word.lower() not in words)]


@pytest.mark.parametrize(
    ("line", "lost", "doubts"),
    [
        ("the hotel garden sleeps", ("garden",), (f"{OMITS}: garden",)),
        ("the hotel garden sleeps", ("hotel", "garden"), (f"{OMITS}: hotel, garden",)),
        ("the hotel garden sleeps", (), ()),
        ("the hotel sleeps", ("the",), ()),  # a small word often has no word of its own
        ("garden", (), ()),
    ],
)
def test_a_word_without_which_the_translation_is_more_probable_is_named(
    line: str, lost: tuple[str, ...], doubts: tuple[str, ...]
) -> None:
    [found] = translator_of(without(*lost)).translate([line])
    assert found.doubts == doubts


@pytest.mark.parametrize("language", ["de", "en", "es", "fr", "it", "nl", "pt"])
def test_function_words_of_a_language_are_not_looked_for(language: str) -> None:
    pipeline = stub_translator(upper, languages=(language, "en")).pipeline
    words = FUNCTION_WORDS[language].split()
    tokenizer = train_tokenizer([" ".join([*words, "Si", "hotel", "train"])] * 2, TokenizerConfig())
    of_language = replace(pipeline, source_tokenizer=tokenizer)
    ids = tuple(tokenizer.encode(f"Si hotel {' '.join(words)} train"))
    assert [word[0] for word, _ in without_each_word(ids, of_language)] == ["hotel", "train"]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("good morning hotel", ["hotel"]),
        ("hotel, good evening", ["hotel"]),
        ("hotel good morning", ["hotel", "good", "morning"]),
        ("good hotel morning", ["good", "hotel", "morning"]),
    ],
)
def test_a_greeting_is_said_with_one_word_in_other_languages(text: str, asked: list[str]) -> None:
    pipeline = stub_translator(lambda _: []).pipeline
    tokenizer = train_tokenizer(["good morning evening hotel , ."] * 2, TokenizerConfig())
    of_language = replace(pipeline, source_tokenizer=tokenizer)
    assert [word[0] for word, _ in without_each_word(tuple(tokenizer.encode(text)), of_language)] == asked


def test_the_same_part_of_several_lines_is_read_once() -> None:
    translator = translator_of(without("garden"))
    lines = ["the hotel garden sleeps"] * 3
    assert [each.doubts for each in translator.translate(lines)] == [(f"{OMITS}: garden",)] * 3
    engine = translator.engine
    assert isinstance(engine, WordByWord)
    assert engine.asked.count("the hotel sleeps") == 1


def test_only_some_are_read_at_a_time_because_their_attention_takes_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omissions, "_READ_AT_ONCE", 2)
    asked: list[int] = []
    explain = WordByWord.explain

    def counted(engine: WordByWord, requests: Sequence[Request], targets: Sequence[TokenIds], **more: Any) -> Any:
        asked.append(len(requests))
        return explain(engine, requests, targets, **more)

    monkeypatch.setattr(WordByWord, "explain", counted)
    lines = ["the hotel garden sleeps", "the sister waits", "the garden window falls"]
    found = [each.doubts for each in translator_of(without("garden")).translate(lines)]
    assert found == [(f"{OMITS}: garden",), (), (f"{OMITS}: garden",)]
    assert asked == [3, 2, 2, 2, 2]  # the lines themselves first


def test_a_part_with_a_word_that_the_model_cannot_read_is_not_asked() -> None:
    [found] = translator_of(without("garden", "unk")).translate(["the hotel qqq garden sleeps"])
    assert not any(doubt.startswith(OMITS) for doubt in found.doubts)


@pytest.mark.parametrize(("source", "is_told"), [("the {x} hotel sleeps", False), ("THE NO HOTEL SLEEPS", True)])
def test_a_name_in_place_of_a_protected_span_is_not_told(source: str, is_told: bool) -> None:
    translator = translator_of(without("no"))
    [found] = translator.translate(["the No hotel sleeps"])
    assert found.doubts == (f"{OMITS}: No",)
    [again] = with_omissions(translator, [replace(found, source=source, doubts=())])
    assert bool(again.doubts) is is_told


@pytest.mark.parametrize(("language", "is_asked"), [("en", True), ("zh", False)])
def test_a_language_without_spaces_is_not_asked(language: str, is_asked: bool) -> None:
    stub = translator_of(without("garden"))
    other = stub_translator(upper, languages=(language, "it"))
    [found] = translator_of(without("garden"), pipeline=other.pipeline).translate(["the hotel garden sleeps"])
    assert any(doubt.startswith(OMITS) for doubt in found.doubts) is is_asked
    assert stub.estimates


def quality_of(*, finds_omissions: bool) -> Quality:
    return Quality(
        weights=dict.fromkeys(FEATURES, 0.0),
        bias=5.0,
        least_confidence=0.0,
        most_pieces=math.inf,
        threshold=0.1,
        promise=QualityPromise("chrf", 30.0, 0.05, 0.95),
        conditions={},
        finds_omissions=finds_omissions,
    )


@pytest.mark.parametrize("finds_omissions", [True, False])
def test_such_a_translation_is_not_green_unless_the_calibration_has_not_looked_for_omissions(
    finds_omissions: bool,
) -> None:
    stub = translator_of(without("garden"))
    pipeline = replace(
        stub.pipeline, qualities={str(stub.pipeline.languages): quality_of(finds_omissions=finds_omissions)}
    )
    [found] = replace(stub, pipeline=pipeline).translate(["the hotel garden sleeps"])
    assert found.estimate is not None
    assert found.estimate.is_green is not finds_omissions


def test_a_translation_with_another_doubt_is_not_read_again() -> None:
    translator = translator_of(without("garden"))
    [found] = translator.translate(["the hotel garden sleeps"])
    doubtful = replace(found, doubts=(REPEATS,))
    unseen = replace(found, doubts=(f"{UNSEEN}: hotel",))
    of_both: list[Translation] = with_omissions(translator, [doubtful, unseen])
    assert [each.doubts for each in of_both] == [(REPEATS,), (f"{UNSEEN}: hotel", f"{OMITS}: garden")]


@pytest.mark.parametrize(
    ("source", "translation", "repeats"),
    [
        ("Yes, this is Peter Miller speaking.", "Oui, c'est Peter que Peter.", True),
        ("Dear Anna, come soon.", "Anna, Anna, viens.", True),
        ("Anna knows that Anna is late.", "Anna sait qu'Anna est en retard.", False),
        ("Will Anna come?", "Anna va-t-elle venir, va ?", False),
        ("The Hotel is open.", "L'hôtel est un hôtel ouvert.", False),
    ],
)
def test_a_name_that_stands_twice_is_a_repetition(source: str, translation: str, repeats: bool) -> None:
    from transformer_cli.config import Direction

    assert (REPEATS in doubts_about(source, translation, Direction("en", "fr"))) is repeats


class Beam(WordByWord):
    """Its hypotheses have scores that differ little, and each target token attends a little to every source token."""

    distance = 0.1
    least_attended = ("garden",)
    most_attention = 0.5

    def _hypotheses(self, request: Request) -> list[Hypothesis]:
        found = super()._hypotheses(request)
        return [each._replace(score=-0.1 - rank * self.distance) for rank, each in enumerate(found)]

    def explain(self, requests: Sequence[Request], targets: Sequence[TokenIds], **_: Any) -> list[Explanation]:
        found = super().explain(requests, targets)
        return [
            replace(each, attention=self._attention(request.ids, each))
            for each, request in zip(found, requests, strict=True)
        ]

    def _attention(self, source: TokenIds, explanation: Explanation) -> np.ndarray[Any, np.dtype[np.float32]]:
        words = [self.tokenizer.decode([token]) for token in source]
        row = [0.1 if word in self.least_attended else self.most_attention for word in words]
        return np.array([row] * len(explanation.token_log_probs), np.float32)


def beam_of(*texts: str, **attributes: Any) -> Translator:
    translator = stub_translator(lambda _: list(texts), languages=("en", "en"), repair=True)
    engine = Beam(lambda _: list(texts))
    for name, value in attributes.items():
        setattr(engine, name, value)
    return replace(translator, engine=engine)


LINE = "the hotel garden sleeps"
LOST, WHOLE, OTHER = "THE HOTEL SLEEPS", "THE HOTEL GARDEN SLEEPS", "THE HOTEL TRAIN SLEEPS"


@pytest.mark.parametrize(
    ("beam", "attributes", "text"),
    [
        ((LOST, WHOLE), {}, WHOLE),
        ((LOST, OTHER, WHOLE), {}, LOST),  # only the first that is fuller is asked
        ((LOST, WHOLE), {"distance": 0.7}, LOST),  # much less probable
        ((LOST, WHOLE), {"least_attended": ("hotel",), "most_attention": 0.9}, LOST),  # garden has its attention
        ((WHOLE, LOST), {}, WHOLE),
        ((LOST, f"{WHOLE} WORKS"), {}, LOST),  # more words than the source
        ((LOST, "NO HOTEL GARDEN SLEEPS"), {}, LOST),  # another doubt
        ((LOST,), {}, LOST),
    ],
)
def test_a_hypothesis_that_has_the_lost_word_takes_the_place_of_the_best_one(
    beam: tuple[str, ...], attributes: dict[str, Any], text: str
) -> None:
    [found] = beam_of(*beam, **attributes).translate([LINE])
    assert found.text == text
    assert found.is_repaired is (text != beam[0])


def test_without_repairs_the_best_hypothesis_stays() -> None:
    translator = beam_of(LOST, WHOLE)
    plain = replace(translator, decoding=translator.decoding.model_copy(update={"repair": False}))
    assert [each.text for each in plain.translate([LINE])] == [LOST]


def test_of_the_beam_as_many_are_left_as_are_wanted() -> None:
    translator = beam_of(LOST, WHOLE, OTHER)
    options = translator.decoding.model_copy(update={"num_best": 2})
    [found] = replace(translator, decoding=options).translate([LINE])
    assert [each.text for each in found.alternatives] == [WHOLE, LOST]


def test_of_a_language_without_a_list_of_small_words_nothing_is_chosen() -> None:
    translator = beam_of(LOST, WHOLE)
    other = stub_translator(upper, languages=("en", "sv"), repair=True)
    assert [each.text for each in replace(translator, pipeline=other.pipeline).translate([LINE])] == [LOST]


def short_of(*lost: str, **attributes: Any) -> Translator:
    model = without(*lost)
    translator = stub_translator(lambda _: [], languages=("en", "en"), repair=True)
    engine = Beam(model)
    for name, value in {"least_attended": lost, **attributes}.items():
        setattr(engine, name, value)
    return replace(translator, engine=engine)


@pytest.mark.parametrize(
    ("line", "lost", "attributes", "words"),
    [
        ("the hotel garden sleeps", ("garden",), {}, "garden"),
        ("the hotel garden sleeps", (), {}, ""),
        ("the hotel sleeps", ("the",), {}, ""),  # as many content words
        # A token attends to each word enough, so the model has read it; of a label, each word is left out.
        ("the hotel garden window sleeps", ("garden", "window"), {"least_attended": (), "most_attention": 0.9}, ""),
        ("the hotel garden sleeps", ("garden",), {"least_attended": (), "most_attention": 0.9}, "garden"),
    ],
)
def test_without_an_estimate_a_lost_word_of_a_short_translation_is_named(
    line: str, lost: tuple[str, ...], attributes: dict[str, Any], words: str
) -> None:
    [found] = short_of(*lost, **attributes).translate([line])
    assert found.doubts == ((f"{OMITS}: {words}",) if words else ())


def test_a_translation_as_long_as_its_source_is_not_read_again() -> None:
    translator = short_of()
    translator.engine.least_attended = ("garden",)  # type: ignore[attr-defined]
    assert [each.doubts for each in translator.translate(["the hotel garden sleeps"])] == [()]
    assert isinstance(translator.engine, Beam)
    assert "the hotel sleeps" not in translator.engine.asked


def test_without_repairs_nothing_is_said_of_lost_words() -> None:
    translator = short_of("garden")
    plain = replace(translator, decoding=translator.decoding.model_copy(update={"repair": False}))
    assert [each.doubts for each in plain.translate(["the hotel garden sleeps"])] == [()]


def test_lines_that_lost_words_have_one_message(caplog: pytest.LogCaptureFixture) -> None:
    list(short_of("garden", "window").translate(["the hotel garden sleeps", "the hotel", "the hotel window sleeps"]))
    assert [each.message for each in caplog.records] == [
        "lines 1, 3: the translation has nothing for words of its source: garden, window"
    ]


@pytest.mark.parametrize(
    ("source", "translation", "read"),
    [
        ("{n} days ago", "il y a {n}", ("25 days ago", "il y a 25")),
        ("{n} kg of bread", "{n} kg", ("Anna of bread", "Anna")),
        ("{a} and {b}", "{a} et {b}", ("Anna and Tom", "Anna et Tom")),
        ("Open <b>the door</b>", "Ouvrez <b>", ("Open the door", "Ouvrez")),
        ("Press P to play", "Appuyez sur P", ("Press P to play", "Appuyez sur P")),
    ],
)
def test_lost_words_are_looked_for_beside_the_words_that_the_model_reads_for_placeholders(
    source: str, translation: str, read: tuple[str, str]
) -> None:
    stand_ins = StandIns({SpanKind.WORD: ("Anna", "Tom"), SpanKind.NUMBER: ("25", "15")})
    assert with_stand_ins(source, translation, stand_ins) == read


def test_words_that_a_model_loses_beside_spans_and_in_clauses_are_named() -> None:
    words = {
        "{n} days ago": "days",
        "{count} minutes ago": "minutes",
        "I am here, please come in.": "come",
        "There is no water, please call us.": "call",
        "Hello {name}, how are you?": "",
        "The door is open, but the window is closed.": "",
    }
    translator = load_translator(Path(__file__).parents[2] / "docs/run")
    assert {each.source: each.doubts for each in translator.translate(words)} == {
        line: (f"{OMITS}: {lost}",) if lost else () for line, lost in words.items()
    }


@pytest.mark.parametrize(
    ("source", "translation", "has_only"),
    [
        ("I am here, please come in.", "Sono qui, per favore.", True),
        ("I am here, please come in.", "Sono qui, per favore entra.", False),
        ("I am here, please come in.", "Sono qui, entra, per favore.", False),
        ("Please come in.", "Entra, per favore.", False),
        ("Please come in.", "Per favore.", True),
        ("A book, please.", "Un libro, per favore.", False),
        ("If you are here please come in.", "Se sei qui, per favore.", True),
        ("If you are here please come in.", "Se sei qui per favore.", True),
        ("If you are here please come in.", "Se sei qui, entra per favore.", False),
        ("Would you all please come in?", "Entrate, per favore.", False),
        ("I am here, come in.", "Sono qui.", False),
    ],
)
def test_please_is_no_translation_of_a_clause(source: str, translation: str, has_only: bool) -> None:
    assert has_only_please(source, translation, Direction("en", "it")) == has_only


@pytest.mark.parametrize("estimates", [False, True])
def test_a_word_that_an_unsure_translation_hardly_attends_to_is_named(*, estimates: bool) -> None:
    words = {
        "He is quick to voice his concerns.": "concerns",
        "I moved back in with my parents.": "moved",
        "Go straight down this street and turn right at the third light.": "street",
        "Let's get together tonight.": "",  # the source without "together" makes the translation far less probable
        "The doctor said that the baby is healthy.": "",
    }
    translator = load_translator(Path(__file__).parents[2] / "docs/demonstration")
    found = replace(translator, estimates=estimates).translate(words)
    assert {each.source: each.doubts for each in found} == {
        line: (f"{OMITS}: {lost}",) if lost else () for line, lost in words.items()
    }


def test_a_label_with_as_many_words_as_its_translation_may_have_lost_one() -> None:
    translator = load_translator(Path(__file__).parents[2] / "docs/demonstration")
    label, with_number = translator.translate(["Copy text and pictures", "The MP3 player is old."])
    assert label.doubts == (f"{OMITS}: text",)
    assert "Boston" not in " ".join(with_number.doubts)  # which the model reads for MP3


@pytest.mark.parametrize(
    ("label", "lost"),
    [
        ("Orange Sink", ["Sink"]),
        ("The Machine Learning Approach", ["Machine", "Learning", "Approach"]),
        ("Black Kitchen Floor", ["Black", "Kitchen", "Floor"]),  # of as many words: Le sol de la cuisine
        ("Change Server", ["Server"]),  # to which the translation attends
        ("Bar color:", ["Bar", "color"]),
        ("Shuffle mode", ["Shuffle"]),
        ("Tom drank milk", []),
        ("He grew old", []),
        ("Don't forget your bag", []),
    ],
)
def test_labels_that_have_lost_words_are_named_and_never_green(label: str, lost: list[str]) -> None:
    translator = load_translator(Path(__file__).parents[2] / "docs/demonstration")
    [plain], [marked] = (replace(translator, estimates=each).translate([label]) for each in (False, True))
    assert marked.text == plain.text
    for found in (plain, marked):
        named = [doubt.removeprefix(f"{OMITS}: ").split(", ") for doubt in found.doubts if doubt.startswith(OMITS)]
        assert bool(named) == bool(lost)
        assert {word.lower() for words in named for word in words} <= {word.lower() for word in lost}
    assert marked.estimate is not None
    assert not (lost and marked.estimate.is_green)
