"""Texts that are not written as sentences are read as ones if the model is surer then, and their translations look like them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from transformer_cli.config import DecodingConfig, TokenizerConfig
from transformer_cli.decoding import Hypothesis, Request, Translator
from transformer_cli.decoding.end_marks import sentence_readings
from transformer_cli.decoding.translation import SourceText
from transformer_cli.text.tokenizer import train_tokenizer

from .stub_translators import Model, StubEngine, stub_translator

TOKENIZER = train_tokenizer(
    ["the The train Train waits hotel Hotel la La . . ?", "Paolo Paolo paolo", "THE TRAIN WAITS"], TokenizerConfig()
)


class SureOfSentences(StubEngine):
    """Writes capital letters behind one word of its own; what has no end mark becomes longer, with another score."""

    def __init__(self, score: float) -> None:
        super().__init__(lambda text: [])
        self.score = score
        self.asked: list[str] = []

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        return [[self._found(self.tokenizer.decode(request.ids))] for request in requests]

    def _found(self, text: str) -> Hypothesis:
        self.asked.append(text)
        is_sentence = text.endswith((".", "?"))
        said = f"Action {text.upper()}" if is_sentence else f"{text.upper()} HOUSE"
        score = self.score if not is_sentence else -0.5 if text.endswith("?") else -1.0
        return Hypothesis((*self.tokenizer.encode(said), self.tokenizer.eos_id), score)


def translator_of(
    engine: SureOfSentences, *, is_recorded: bool = True, languages: tuple[str, str] = ("en", "it")
) -> Translator:
    stub = stub_translator(lambda text: [], repair=True, languages=languages)
    seen = {"the", "train", "waits", "TRAIN", "HOTEL"} if is_recorded else None
    return replace(stub, engine=engine, pipeline=replace(stub.pipeline, seen_words=seen))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The train waits", "Action THE TRAIN WAITS"),
        ("the train waits", "action THE TRAIN WAITS"),
        ("- the train waits", "- action THE TRAIN WAITS"),
        ("the train waits.", "action THE TRAIN WAITS."),
        ("The train waits.", "Action THE TRAIN WAITS."),
        ("TRAIN HOTEL", "ACTION TRAIN HOTEL"),
        ("The train waits,", "Action THE TRAIN WAITS,"),
        ("the train waits:", "action THE TRAIN WAITS:"),
    ],
)
def test_a_text_is_read_with_the_marks_of_which_the_model_is_surest_and_its_translation_begins_as_it_does(
    line: str, expected: str
) -> None:
    engine = SureOfSentences(score=-1.5)
    [found] = translator_of(engine).translate([line])
    assert found.text == expected
    assert found.source == line


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("where is the train", ["Where is the train.", "Where is the train?"]),
        ("where is the train?", ["Where is the train?"]),
        ("Isn\u2019t the train late", ["Isn\u2019t the train late.", "Isn\u2019t the train late?"]),
        ("the train waits", ["The train waits."]),
        ("the train and Paolo", ["The train and Paolo."]),
        ("train", ["Train.", "The train."]),
        ("Old Trains", ["Old Trains.", "The old trains."]),
        ("Old Cancel", ["Old Cancel."]),
        ("The train waits.", []),
        ("iPhone has a train.", []),
        ("a.html is here.", []),
        ("see a.html.", ["See a.html."]),
        ("NATO", []),
        ("Dear Paolo,", ["Dear Paolo."]),
        ("where is the train;", ["Where is the train."]),  # half of a sentence
        ("train,", ["Train.", "The train."]),  # an entry of a list
        ("The train waits.,", []),
        ("NATO:", []),
    ],
)
def test_a_text_is_read_as_sentences_are_written(text: str, forms: list[str]) -> None:
    pipeline = replace(stub_translator(lambda text: []).pipeline, seen_words={"train", "Old", "Trains"})
    assert [each.text.text for each in sentence_readings(SourceText(text), pipeline)] == forms


def test_the_text_with_the_prefix_of_its_translation_is_read_as_it_stands() -> None:
    pipeline = stub_translator(lambda text: []).pipeline
    assert sentence_readings(SourceText("the train", prefix="il"), pipeline) == []


def test_german_nouns_keep_their_capital_letter() -> None:
    [found] = translator_of(SureOfSentences(score=-1.5), languages=("en", "de")).translate(["the train waits"])
    assert found.text == "Action THE TRAIN WAITS"


def translator_with(model: Model) -> Translator:
    """A translator of more words, which is surer of what begins with an article."""
    engine = SureOfArticles(model, TOKENIZER)
    stub = stub_translator(lambda text: [], repair=True)
    seen = {"the", "train", "Train", "waits", "paolo"}
    pipeline = replace(stub.pipeline, source_tokenizer=TOKENIZER, target_tokenizer=TOKENIZER, seen_words=seen)
    return replace(stub, engine=engine, pipeline=pipeline)


class SureOfArticles(StubEngine):
    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        found = super().translate(requests, options)
        are_nouns = [self.tokenizer.decode(request.ids).startswith("The ") for request in requests]
        return [
            [Hypothesis(each.ids, -0.3 if is_noun else -1.2) for each in of_one]
            for of_one, is_noun in zip(found, are_nouns, strict=True)
        ]


@pytest.mark.parametrize(
    ("line", "expected"), [("train", "hotel"), ("Train", "Hotel"), ("the train", "la hotel"), ("The train", "La hotel")]
)
def test_one_or_two_words_are_read_with_an_article_which_their_translation_does_not_have(
    line: str, expected: str
) -> None:
    translator = translator_with(lambda text: [text.replace("The train", "La hotel")])
    assert [each.text for each in translator.translate([line])] == [expected]


def test_an_article_alone_is_no_translation_of_a_word() -> None:
    translator = translator_with(lambda text: [text.replace("The train", "La").replace("train", "hotel")])
    assert [each.text for each in translator.translate(["train"])] == ["hotel"]


def test_a_name_of_the_source_keeps_its_capital_letter() -> None:
    translator = translator_with(
        lambda text: [text.replace("Paolo waits", "Paolo hotel").replace("The train", "Hotel")]
    )
    lines = ["paolo waits the", "the train waits"]
    assert [each.text for each in translator.translate(lines)] == ["Paolo hotel the", "hotel waits"]


@pytest.mark.parametrize("line", ["train", "Train", "the train", "the train waits"])
def test_what_the_model_only_copies_stays_as_it_was_given(line: str) -> None:
    assert [each.text for each in translator_with(lambda text: [text]).translate([line])] == [line]


def test_a_model_that_is_as_sure_without_an_end_mark_reads_the_text_as_it_stands() -> None:
    [found] = translator_of(SureOfSentences(score=-1.1)).translate(["The train waits"])
    assert found.text == "THE TRAIN WAITS HOUSE"


@pytest.mark.parametrize("line", ["The train waits.", "The train waits?", "12", "NATO"])
def test_other_lines_are_read_as_they_stand(line: str) -> None:
    engine = SureOfSentences(score=-1.5)
    list(translator_of(engine).translate([line]))
    assert not any(text.endswith(".") for text in engine.asked if not line.endswith("."))


def test_a_model_without_a_record_of_its_training_gets_no_other_form() -> None:
    engine = SureOfSentences(score=-1.5)
    list(translator_of(engine, is_recorded=False).translate(["the train waits"]))
    assert set(engine.asked) == {"the train waits"}
