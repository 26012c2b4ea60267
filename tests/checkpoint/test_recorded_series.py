"""The series of metrics.jsonl hold each figure that a run has recorded, also of a file that is being written."""

import json
from pathlib import Path

from transformer_cli.checkpoint.recorded_series import finite, read_series


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
        {"kind": "validation", "step": 20, "loss": 2.5, "perplexity": 12.2, "num_sentences": 7,
         "scores": [score], "directions": [direction]},
    )  # fmt: skip
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
