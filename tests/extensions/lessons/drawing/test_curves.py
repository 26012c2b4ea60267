"""The curves of a plot are the numbers of metrics.jsonl: on each axis, smoothed, and as the mean over seeds."""

import json
import math
from pathlib import Path

import pytest

from transformer_cli.checkpoint.recorded_series import read_series
from transformer_cli.extensions.lessons.drawing.curves import (
    Axis,
    Panel,
    PlottedCurve,
    PlottedRun,
    default_metrics,
    grouped,
    metrics_of,
    panels_of,
    value_rows,
    warn_of_gaps,
)
from transformer_cli.process.errors import UsageError

from .recorded_runs import record, record_run


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run_of(folder: Path) -> PlottedRun:
    return PlottedRun(folder.name, [(folder, read_series(folder / "metrics.jsonl"))])


def only_curve(run: PlottedRun, metric: str, kind: str, axis: Axis = "step", smooth: int = 1) -> PlottedCurve:
    [panel] = panels_of([run], [metric], axis, smooth=smooth)
    [curve] = [one for one in panel.curves if one.kind == kind]
    return curve


def test_a_curve_is_what_the_lines_of_the_file_say() -> None:
    folder = record_run("a")
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for kind, recorded in (("training", "train"), ("validation", "validation")):
        expected = [(line["step"], line["loss"]) for line in lines if line["kind"] == recorded]
        curve = only_curve(run_of(folder), "loss", kind)
        assert list(zip(curve.xs, curve.ys, strict=True)) == expected
    assert only_curve(run_of(folder), "BLEU", "validation").ys == [20.0, 40.0]


def test_by_default_losses_scores_learning_rate_gradients_and_speed_are_drawn() -> None:
    runs = [run_of(record_run("a"))]
    expected = ["loss", "bleu", "cer", "length_ratio", "learning_rate", "gradient_norm", "target_tokens_per_second"]
    assert default_metrics(runs) == expected
    assert metrics_of(runs) == [*expected, "perplexity"]


def test_a_metric_that_no_run_has_is_named_with_those_that_exist() -> None:
    with pytest.raises(UsageError, match="--metric blue: no run has recorded it") as raised:
        panels_of([run_of(record_run("a"))], ["blue"], "step")
    assert "loss, bleu, cer" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("step", [20, 40]),
        ("tokens", [1200, 2400]),  # 600 for each report, every 10 steps
        ("minutes", [1, 2]),  # 600 tokens at 20 a second are half a minute
        ("epoch", [0.8, 1.6]),  # the second epoch begins between steps 20 and 30
    ],
)
def test_each_axis_places_the_validations(axis: Axis, expected: list[float]) -> None:
    curve = only_curve(run_of(record_run("a")), "bleu", "validation", axis)
    assert curve.xs == pytest.approx(expected)
    assert curve.steps == [20, 40]


def test_an_axis_that_a_run_has_not_recorded_is_refused() -> None:
    run = run_of(record_run("a", epochs=(0, 0, 0, 0)))
    with pytest.raises(UsageError, match="the run a has not finished its first epoch"):
        panels_of([run], ["loss"], "epoch")
    folder = record_run("old")
    text = (folder / "metrics.jsonl").read_text().replace("num_target_tokens", "other")
    (folder / "metrics.jsonl").write_text(text)
    with pytest.raises(UsageError, match="the run old has not recorded its tokens"):
        panels_of([run_of(folder)], ["loss"], "minutes")


def test_smoothing_is_the_mean_of_the_reports_around_and_keeps_the_values() -> None:
    folder = record_run("a")
    for step, loss in ((50, 1.0), (60, 7.0), (70, 1.0)):
        record(folder, step, loss)
    curve = only_curve(run_of(folder), "loss", "training", smooth=3)
    assert curve.raw == [9.0, 8.0, 7.0, 6.0, 1.0, 7.0, 1.0]
    assert curve.ys == pytest.approx([8.5, 8.0, 7.0, 14 / 3, 14 / 3, 3.0, 4.0])
    assert only_curve(run_of(folder), "loss", "validation", smooth=3).raw is None
    [panel] = panels_of([run_of(folder)], ["loss"], "step", smooth=3)
    assert panel.title == "Loss, nats per target token; training: mean of 3 reports"
    assert panel.final(curve) == (70, 1.0), "the table shows what was recorded"


def test_the_best_value_is_the_lowest_loss_and_the_highest_bleu() -> None:
    folder = record_run("a")
    record(folder, 50, 7.5)
    panels = panels_of([run_of(folder)], ["loss", "bleu", "cer", "length_ratio", "learning_rate"], "step")
    found = {(one.metric, curve.kind): one.best(curve) for one in panels for curve in one.curves}
    assert found == {
        ("loss", "training"): (40, 6.0),
        ("loss", "validation"): (40, 5.0),
        ("bleu", "validation"): (40, 40.0),
        ("cer", "validation"): (40, 60.0),
        ("length_ratio", "validation"): None,
        ("learning_rate", "training"): None,
    }


def test_a_value_that_is_no_number_makes_a_gap_and_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = record_run("a")
    record(folder, 50, math.nan)
    record(folder, 60, 3.0)
    run = run_of(folder)
    curve = only_curve(run, "loss", "training", smooth=3)
    assert math.isnan(curve.ys[4])
    assert curve.ys[5] == 3.0, "the mean of the numbers around"
    assert Panel.points(curve)[-2:] == [(40, 6.0), (60, 3.0)]
    warn_of_gaps([run])
    [sentence] = caplog.messages
    assert sentence.startswith("a: training loss is not a finite number at 1 of 6 records, first at step 50")


def test_a_run_that_is_given_as_the_current_folder_has_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(record_run("here"))
    [run] = grouped([(Path(), read_series(Path("metrics.jsonl")))])
    assert run.name == "here"


def test_runs_that_differ_only_in_the_seed_are_a_group_with_mean_and_range() -> None:
    folders = [
        record_run("en-it-seed-1", slope=1.0),
        record_run("other", "model.d_model=128"),
        record_run("en-it-seed-2", "seed=2", slope=2.0),
    ]
    record(folders[0], 50, 1.0)  # the other seed has not come so far
    runs = grouped([(folder, read_series(folder / "metrics.jsonl")) for folder in folders])
    assert [run.name for run in runs] == ["en-it (2 seeds)", "other"]
    curve = only_curve(runs[0], "bleu", "validation")
    assert (curve.ys, curve.lows, curve.highs) == ([30.0, 60.0], [20.0, 40.0], [40.0, 80.0])
    assert only_curve(runs[0], "loss", "training").steps == [10, 20, 30, 40]
    group, other = value_rows(runs, panels_of(runs, ["bleu"], "step"))
    assert (group.final, group.final_range, group.best_range) == (60.0, (40.0, 80.0), (40.0, 80.0))
    assert group.shown()["final"] == "60 (40 to 80)"
    assert group.facts()["best_range"] == (40.0, 80.0)
    assert other.shown()["final"] == "40"
    assert "final_range" not in other.facts()
    alone = only_curve(runs[1], "bleu", "validation")
    assert alone.ys == alone.lows == alone.highs == [20.0, 40.0]
