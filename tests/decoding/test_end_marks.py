"""Texts without an end mark are read with one if the model is surer then, and their translations have none."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Hypothesis, Request, Translator
from transformer_cli.decoding.end_marks import marked_forms
from transformer_cli.decoding.translation import SourceText

from .stub_translators import StubEngine, stub_translator


class SureOfSentences(StubEngine):
    """Writes capital letters; what has no end mark becomes longer, with another score."""

    def __init__(self, score: float) -> None:
        super().__init__(lambda text: [])
        self.score = score
        self.asked: list[str] = []

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        return [[self._found(self.tokenizer.decode(request.ids))] for request in requests]

    def _found(self, text: str) -> Hypothesis:
        self.asked.append(text)
        is_sentence = text.endswith((".", "?"))
        said = text.upper() if is_sentence else f"{text.upper()} HOUSE"
        score = self.score if not is_sentence else -0.5 if text.endswith("?") else -1.0
        return Hypothesis((*self.tokenizer.encode(said), self.tokenizer.eos_id), score)


def translator_of(engine: SureOfSentences, *, is_recorded: bool = True) -> Translator:
    stub = stub_translator(lambda text: [], repair=True)
    seen = {"the", "train", "waits", "TRAIN", "HOTEL"} if is_recorded else None
    return replace(stub, engine=engine, pipeline=replace(stub.pipeline, seen_words=seen))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("the train waits", "THE TRAIN WAITS"),
        ("- the train waits", "- THE TRAIN WAITS"),
        ("the train waits.", "THE TRAIN WAITS."),
        ("TRAIN HOTEL", "TRAIN HOTEL"),
    ],
)
def test_a_text_is_read_with_the_end_mark_of_which_the_model_is_surest(line: str, expected: str) -> None:
    engine = SureOfSentences(score=-1.5)
    [found] = translator_of(engine).translate([line])
    assert found.text == expected
    assert found.source == line


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("where is the train", ["where is the train.", "where is the train?"]),
        ("Isn\u2019t the train late", ["Isn\u2019t the train late.", "Isn\u2019t the train late?"]),
        ("the train waits", ["the train waits."]),
    ],
)
def test_only_what_may_be_a_question_is_read_as_one(text: str, forms: list[str]) -> None:
    assert [each.text for each in marked_forms(SourceText(text), "en")] == forms


def test_a_model_that_is_as_sure_without_an_end_mark_reads_the_text_as_it_stands() -> None:
    [found] = translator_of(SureOfSentences(score=-1.1)).translate(["the train waits"])
    assert found.text == "THE TRAIN WAITS HOUSE"


@pytest.mark.parametrize("line", ["the train waits.", "the train waits?", "12", "NATO"])
def test_other_lines_are_read_as_they_stand(line: str) -> None:
    engine = SureOfSentences(score=-1.5)
    list(translator_of(engine).translate([line]))
    assert not any(text.endswith(".") for text in engine.asked if not line.endswith("."))


def test_a_model_without_a_record_of_its_training_gets_no_other_form() -> None:
    engine = SureOfSentences(score=-1.5)
    list(translator_of(engine, is_recorded=False).translate(["the train waits"]))
    assert set(engine.asked) == {"the train waits"}
