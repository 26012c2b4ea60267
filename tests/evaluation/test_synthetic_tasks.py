"""Synthetic tasks: exact matches against answers with a known number of faults, published figures beside ours."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from transformer_cli.config import Config, PublishedConfig, SequencesData
from transformer_cli.data.sources.corpus import generate_sequences, sequences_of_length
from transformer_cli.decoding.translator import Translation, Translator
from transformer_cli.evaluation.validation import (
    UNSHIFTED_NOTE,
    ExactMatch,
    exact_match_table,
    exact_matches,
    published_table,
    summary_lines,
)


class Answers:
    """Copies; of every fourth sequence it gets the last symbol wrong, of every tenth it gives nothing."""

    def translate(self, lines: Iterable[str]) -> Iterator[Translation]:
        for number, line in enumerate(lines):
            text = line
            if number % 4 == 0:
                text = " ".join([*line.split()[:-1], "0"])
            if number % 10 == 1:
                text = ""
            yield Translation(line, text, 0.0, ())


def data(**settings: object) -> SequencesData:
    return SequencesData.model_validate({"source": "sequences", "min_length": 4, "max_length": 6} | settings)


def config(task: Any = None, **sections: Any) -> Config:
    training = {"max_steps": 1, "batch_sentences": 2}
    return Config.model_validate(
        {"name": "a", "data": data() if task is None else task, "training": training} | sections
    )


def matches(task: SequencesData, lengths: tuple[int, ...] | None = None) -> list[ExactMatch]:
    run = config(task, validation={"sequence_lengths": lengths})
    return exact_matches(cast(Translator, Answers()), run)


def test_sequences_and_symbols_that_are_right_are_counted_for_each_length() -> None:
    rows = matches(data())
    assert [(row.length, row.num_sequences) for row in rows] == [(4, 100), (5, 100), (6, 100)]
    for row in rows:
        # 25 have a wrong end; 10 others, odd in number, are empty: 0, 4, 8 ... and 1, 11, 21 ...
        assert row.exact == pytest.approx(65.0)
        assert row.symbols == pytest.approx(100 - 25 / row.length - 10)


def test_lengths_beyond_those_of_training_can_be_asked_for() -> None:
    rows = matches(data(), (5, 30))
    assert [row.length for row in rows] == [5, 30]


def test_the_sequences_are_not_those_of_training() -> None:
    task = data(num_pairs=20_000)
    trained = {pair.source for pair in generate_sequences(task, "train", seed=1)}
    tested = {pair.source for pair in sequences_of_length(task, 5, seed=1)}
    assert not trained & tested
    assert len(tested) > 90
    assert {len(source.split()) for source in tested} == {5}


def test_to_memorise_its_own_sequences_are_asked_for() -> None:
    task = data(task="memorise", num_pairs=30)
    own = {pair.source for pair in generate_sequences(task, "train", seed=1)}
    rows = matches(task, (4, 5, 6, 7))
    assert sum(row.num_sequences for row in rows) == 30
    assert 7 not in {row.length for row in rows}
    assert {pair.source for length in (4, 5, 6) for pair in sequences_of_length(task, length, seed=1)} == own


def test_data_that_are_no_synthetic_task_have_no_exact_matches() -> None:
    run = config({"source": "phrasebook"})
    assert exact_matches(cast(Translator, Answers()), run) == []


def metrics_file(folder: Path, *records: dict[str, Any]) -> Path:
    file = folder / "metrics.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return file


def test_a_summary_has_published_losses_then_the_note_then_exact_matches(tmp_path: Path) -> None:
    file = metrics_file(tmp_path, {"kind": "train", "step": 10, "loss": 0.5})
    task = data(end_symbol=False, shift_target=False)
    run = config(task, published={"training_loss": [[10, 0.25]]})
    lines = list(summary_lines(run, file, cast(Translator, Answers())))
    assert lines[2].split() == ["10", "0.50000", "0.25000"]
    assert lines[3] == UNSHIFTED_NOTE
    assert lines[4:] == list(exact_match_table(matches(task), "copy"))


def test_the_summary_of_a_run_without_a_synthetic_task_is_empty_and_loads_no_model(
    tmp_path: Path,
) -> None:
    def refuse() -> Translator:
        pytest.fail("a model was loaded")

    run = config({"source": "phrasebook"})
    assert not list(summary_lines(run, tmp_path / "metrics.jsonl", None))


def test_published_figures_stand_beside_those_of_the_same_step_and_kind(tmp_path: Path) -> None:
    records = [
        {"kind": "train", "step": 10, "loss": 0.5},
        {"kind": "validation", "step": 10, "loss": 0.7},
        {"kind": "train", "step": 20, "loss": 0.25},
    ]
    file = metrics_file(tmp_path, *records)
    published = PublishedConfig(training_loss=((20, 0.2), (30, 0.1)), validation_loss=((10, 0.6), (20, 0.1)))
    lines = [line.split() for line in published_table(published, file)]
    assert ["20", "0.25000", "0.20000"] in lines
    assert ["10", "0.70000", "0.60000"] in lines
    assert sum(line[0].isdecimal() for line in lines) == 2  # what was not reached is left out


def test_lines_of_a_metrics_file_that_tfm_did_not_write_are_passed_over(tmp_path: Path) -> None:
    train = {"kind": "train"}
    file = metrics_file(
        tmp_path,
        train,
        train | {"step": [1], "loss": 0.5},
        train | {"step": 20, "loss": "low"},
        train | {"step": 30, "loss": None},
    )
    published = PublishedConfig(training_loss=((20, 0.2), (30, 0.1)))
    assert not list(published_table(published, file))


def test_a_message_says_that_no_sequence_has_a_requested_length() -> None:
    assert list(exact_match_table([], "memorise")) == ["memorise: no sequence has one of the lengths asked for"]
