"""The series of metrics.jsonl hold each figure that a run has recorded, also of a file that is being written."""

import json
from itertools import pairwise
from pathlib import Path

from transformer_cli.checkpoint.recorded_series import (
    MAX_STEPS_OF_A_CURVE,
    Comparison,
    Curve,
    finite,
    read_series,
)


def write(folder: Path, *lines: object) -> Path:
    file = folder / "metrics.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines]
    file.write_text("".join(texts), encoding="utf-8")
    return file


def test_each_figure_has_its_series(tmp_path: Path) -> None:
    score = {"name": "chrF++", "value": 20.5, "signature": ""}
    direction = {"direction": "en-de", "loss": 2.0, "scores": [score | {"value": 21.0}]}
    file = write(
        tmp_path,
        {"kind": "train", "step": 20, "loss": 3.0, "learning_rate": 0.1},
        {"kind": "train", "step": 10, "loss": 4, "learning_rate": 0.2},
        {
            "kind": "validation",
            "step": 20,
            "loss": 2.5,
            "perplexity": 12.2,
            "num_sentences": 7,
            "scores": [score],
            "directions": [direction],
        },
    )
    found = read_series(file)
    assert found.training == {"loss": {10: 4.0, 20: 3.0}, "learning_rate": {10: 0.2, 20: 0.1}}
    assert list(found.training["loss"]) == [10, 20], "in the order of the steps"
    assert found.validation == {"loss": {20: 2.5}, "perplexity": {20: 12.2}, "chrf++": {20: 20.5}}
    assert found.directions == {"loss en-de": {20: 2.0}, "chrf++ en-de": {20: 21.0}}
    assert found.titles == {"chrf++": "chrF++"}


def test_a_torn_last_line_is_left_out_and_a_repeated_step_counts_once(tmp_path: Path) -> None:
    one = {"kind": "train", "step": 10, "loss": 4.0}
    file = write(tmp_path, one, one | {"loss": 5.0}, '{"kind": "train", "step": 20, "lo')
    assert read_series(file).training == {"loss": {10: 5.0}}


def test_a_value_that_is_no_number_is_none(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        {"kind": "train", "step": 1, "loss": None},
        '{"kind": "train", "step": 2, "loss": NaN}\n',
        {"kind": "train", "step": 3, "loss": True, "name": "text"},
        {"kind": "train", "step": 4, "loss": 1.5},
        {"kind": "train", "step": "5", "loss": 1.5},
        {"kind": "validation", "step": 5, "scores": [7, {"name": 1}], "directions": 3},
        "noise\n",
    )
    found = read_series(file)
    assert found.training == {"loss": {1: None, 2: None, 4: 1.5}}
    assert finite(found.training["loss"]) == {4: 1.5}
    assert found.validation == {}


def test_a_run_without_the_file_has_no_series(tmp_path: Path) -> None:
    found = read_series(tmp_path / "metrics.jsonl")
    assert (found.training, found.validation, found.directions) == ({}, {}, {})


def curve(num_steps: int) -> Curve:
    return Curve("loss", {step: {"loss": 1.0} for step in range(10, 10 * num_steps + 1, 10)})


def test_a_long_curve_is_shown_from_its_first_to_its_last_step_evenly() -> None:
    for num_steps in (MAX_STEPS_OF_A_CURVE, MAX_STEPS_OF_A_CURVE + 1, 100):
        steps = Comparison(["a"], {}, [curve(num_steps), curve(3)]).steps()
        assert len(steps) == MAX_STEPS_OF_A_CURVE
        assert (steps[0], steps[-1]) == (10, 10 * num_steps)
        gaps = [later - earlier for earlier, later in pairwise(steps)]
        assert max(gaps) - min(gaps) <= 10
    assert Comparison(["a"], {}, [curve(3), curve(2)]).steps() == [10, 20, 30]


def test_the_best_step_is_that_of_the_metric_and_of_equal_ones_that_of_the_lowest_loss() -> None:
    figures = {1: {"bleu": 20.0, "loss": 2.0}, 2: {"bleu": 30.0, "loss": 3.0}, 3: {"bleu": 30.0, "loss": 2.5}}
    assert Curve("bleu", figures).best_step == 3
    assert Curve("loss", figures).best_step == 1
    assert Curve("chrf", figures).best_step is None
