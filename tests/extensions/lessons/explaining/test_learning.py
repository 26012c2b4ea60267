"""What validations keep: the probabilities and the attention of an explanation, in a file that may come from elsewhere."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.decoding import Translator
from transformer_cli.evaluation.validation import Sample, ValidationReport
from transformer_cli.extensions.lessons.explaining.explainer import Explainer
from transformer_cli.extensions.lessons.explaining.learning import (
    NUM_WATCHED,
    LearningRecorder,
    Moment,
    WatchedSentence,
    films,
    read_moments,
    watch,
)
from transformer_cli.process.errors import DataError
from transformer_cli.storage import append_json_line
from transformer_cli.training.callbacks import Recorder

from .varied_translators import varied_translator


@pytest.fixture(scope="module")
def small() -> Translator:
    return varied_translator()


def watched(small: Translator, source: str = "uno due tre", translation: str = "") -> WatchedSentence:
    made = translation or next(iter(small.translate([source]))).text
    sentence = watch(small, source, "reference", made)
    assert sentence is not None
    return sentence


def test_a_watched_sentence_is_what_an_explanation_says(small: Translator) -> None:
    kept = watched(small, "due due due due")
    [sentence] = Explainer.of(small).explain("due due due due").sentences
    best = sentence.hypotheses[0]
    assert [token.piece for token in kept.tokens] == [token.piece for token in best.tokens]
    probabilities = [token.probability for token in best.tokens]
    assert [token.probability for token in kept.tokens] == pytest.approx(probabilities, abs=1e-5)
    assert kept.confidence == pytest.approx(math.exp(np.log(probabilities).mean()), abs=1e-5)
    layer = sentence.attention.aligning_layer
    mean = sentence.attention.cross.values[layer].mean(0)
    assert kept.attention is not None
    np.testing.assert_allclose(kept.attention, mean, atol=1e-5)
    assert list(kept.source_pieces) == [token.piece for token in sentence.source.tokens]


def test_moments_come_back_from_the_file(small: Translator, tmp_path: Path) -> None:
    file = tmp_path / "learning.jsonl"
    for step in (100, 200):
        append_json_line(file, Moment(step, (watched(small),)).to_json())
    moments = read_moments(file)
    assert [moment.step for moment in moments] == [100, 200]
    [again] = moments[0].sentences
    expected = watched(small)
    assert (again.source, again.target, again.translation) == (
        "uno due tre",
        "reference",
        expected.translation,
    )
    assert again.confidence == pytest.approx(expected.confidence, abs=1e-4)
    assert again.attention is not None
    assert expected.attention is not None
    np.testing.assert_allclose(again.attention, expected.attention, atol=1 / 255)


def test_a_run_without_the_file_has_no_moments(tmp_path: Path) -> None:
    assert read_moments(tmp_path / "learning.jsonl") == []


@pytest.mark.long
@pytest.mark.parametrize(
    "damage",
    [
        {"step": "1"},
        {"sentences": 3},
        {"sentences": [{}]},
        {"sentences": ["text"]},
        {"source": 5},
        {"tokens": [["a", "b"]]},
        {"tokens": [["a", 0.5]]},
        {"attention": {"shape": [-1, 9], "data": "AAAA", "low": 0, "high": 1}},
        {"attention": {"shape": [1], "data": "!", "low": 0, "high": 1}},
        {"attention": {"data": ""}},
        {"attention": 1},
        {"sentences": []},
        {"tokens": [["a", float("nan")]], "attention": None},
        {"tokens": [["a", 1.5]], "attention": None},
    ],
    ids=lambda one: json.dumps(one)[:40],
)
def test_a_line_that_no_training_wrote_is_an_error(small: Translator, tmp_path: Path, damage: dict[str, Any]) -> None:
    file = tmp_path / "learning.jsonl"
    record = Moment(1, (watched(small),)).to_json()
    if damage.keys() <= {"step", "sentences"}:
        record |= damage
    else:
        record["sentences"][0] |= damage
    append_json_line(file, record)
    with pytest.raises(DataError, match=r"learning\.jsonl: line 1 is not one that a training"):
        read_moments(file)


def test_films_follow_each_sentence_in_the_order_of_the_steps(small: Translator) -> None:
    one, other = watched(small), watched(small, "sette otto")
    moments = [Moment(1, (one, other)), Moment(2, (one, other)), Moment(3, (other,))]
    assert [[step for step, _ in film] for film in films(moments)] == [[1, 2], [1, 2, 3]]


def test_a_sentence_that_is_too_long_is_read_to_the_limit(small: Translator) -> None:
    kept = watched(small, "uno " * 30, "due " * 30)
    assert len(kept.source_pieces) == len(kept.tokens) == 12  # model.max_length


def test_an_empty_translation_has_the_probability_of_its_end(small: Translator) -> None:
    sentence = watch(small, "uno", "due", "")
    assert sentence is not None
    assert [token.piece for token in sentence.tokens] == ["[EOS]"]


def test_an_engine_that_cannot_explain_is_passed_over(small: Translator) -> None:
    class Silent:
        """An engine without `explain`."""

    silent: Any = Silent()
    assert watch(replace(small, engine=silent), "uno", "due", "tre") is None


def test_a_validation_keeps_its_first_samples_and_a_repeated_one_takes_the_place_of_the_first(
    small: Translator, tmp_path: Path
) -> None:
    sources = ("uno due", "due tre", "tre uno", "due due")
    texts = [one.text for one in small.translate(sources)]
    samples = [Sample(one, "reference", text) for one, text in zip(sources, texts, strict=True)]
    report = ValidationReport(1.5, 4.48, [], 7, 70, samples)
    for first_step in (0, 4):  # the second process resumes at the step of the validation
        recorder = Recorder(RunFolder(tmp_path))
        recorder.on_start(first_step, 10)
        LearningRecorder(recorder).on_validation(4, report, small)
        recorder.on_end()
    [moment] = read_moments(tmp_path / "learning.jsonl")
    assert moment.step == 4
    assert [one.source for one in moment.sentences] == [*sources[:NUM_WATCHED]]
    board = EventAccumulator(str(tmp_path / "tensorboard" / "validation")).Reload()
    for number, one in enumerate(moment.sentences):
        values = [event.value for event in board.Scalars(f"confidence/{number}")]
        assert values[-1] == pytest.approx(one.confidence, abs=1e-4)
