"""The progress of a run, and its way to JSON and back."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.checkpoint.state_values import StateValues
from transformer_cli.config import TrainingConfig
from transformer_cli.data.batches.updates import Position
from transformer_cli.errors import DataError
from transformer_cli.training.progress import (
    Progress,
    checked_validation,
    goodness,
    is_finished,
    is_out_of_patience,
    is_validation_due,
    reaches_limit,
)


def settings(**changes: Any) -> TrainingConfig:
    return TrainingConfig(**{"max_steps": 10, "batch_tokens": 10, "validate_every": 4} | changes)


scores = st.floats(allow_nan=False, width=32)


@st.composite
def progresses(draw: st.DrawFn) -> Progress:
    """Any that a run can have: epochs and validations are not more than updates."""
    step = draw(st.integers(0, 10**9))
    return Progress(
        step=step,
        position=Position(draw(st.integers(0, min(step, 999))), draw(st.integers(0, step))),
        validated_at=draw(st.integers(0, step)),
        best_goodness=draw(st.lists(scores, max_size=4).map(tuple)),
        validations_without_best=draw(st.integers(0, min(step, 99))),
    )


@given(progresses())
def test_progress_survives_json(progress: Progress) -> None:
    assert Progress.from_json(json.loads(json.dumps(progress.to_json()))) == progress


@pytest.mark.parametrize(
    "change",
    [
        {"step": None},
        {"position": [1]},
        {"position": 3},
        {"best_goodness": "best"},
        {"step": math.inf},
        {"step": -1},
        {"step": 10**11},
        {"step": 2.0},
        {"step": True},
        {"step": "5"},
        {"step": [5]},
        {"position": [0, -1]},
        {"position": [6, 0]},
        {"position": [10**11, 0]},
        {"position": [0, 0, 0]},
        {"position": [0.5, 0]},
        {"position": "10"},
        {"best_goodness": [math.nan]},
        {"best_goodness": [True]},
        {"best_goodness": [10**400]},
        {"best_goodness": {"a": 1}},
        {"validated_at": 6},
        {"validated_at": -1},
        {"validations_without_best": -1},
        {"validations_without_best": 10**6},
    ],
    ids=str,
)
def test_a_damaged_progress_is_refused(change: dict[str, Any]) -> None:
    (field,) = change
    with pytest.raises(DataError, match=rf"state\.json: {field} (is|has) ") as refusal:
        Progress.from_json(Progress(step=5).to_json() | change)
    assert refusal.value.hint is not None
    assert len(str(refusal.value)) < 500


def test_the_figures_of_a_validation_are_those_of_an_earlier_step_or_of_this_one() -> None:
    progress = Progress(step=5)
    assert checked_validation(StateValues({}, "state.json"), progress) == {}
    for value in (3.5, math.inf, math.nan):  # what a metric may be
        figures = {"step": 5, "value": value}
        assert checked_validation(StateValues(figures, "state.json"), progress) == figures
    for figures in ({"step": 6, "value": 1.0}, {"step": 5}, {"step": 5, "value": "good"}, {"x": 1}):
        with pytest.raises(DataError, match=r"state\.json: (step|value) "):
            checked_validation(StateValues(figures, "state.json"), progress)


@pytest.mark.parametrize("key", Progress().to_json())
def test_a_progress_that_lacks_something_is_refused(key: str) -> None:
    values = Progress().to_json()
    del values[key]
    with pytest.raises(DataError, match=key):
        Progress.from_json(values)


@given(st.lists(scores, max_size=12), st.integers(1, 4))
def test_the_best_of_all_validations_are_remembered(values: list[float], keep_best: int) -> None:
    progress = Progress()
    for value in values:
        progress = progress.after_validation(value, keep_best=keep_best)
    assert progress.best_goodness == tuple(sorted(values, reverse=True)[:keep_best])
    since = len(values) - 1 - values.index(max(values)) if values else 0
    if values and max(values) > -math.inf:
        assert progress.validations_without_best == since


def test_a_tie_is_no_new_best() -> None:
    progress = Progress().after_validation(1.0, keep_best=1).after_validation(1.0, keep_best=1)
    assert progress.validations_without_best == 1


def test_a_nan_score_is_never_the_best_and_uses_up_patience() -> None:
    progress = Progress(step=3).after_validation(math.nan, keep_best=2)
    assert (progress.best_goodness, progress.validations_without_best) == ((), 1)
    assert progress.validated_at == 3


@pytest.mark.parametrize(
    ("metric", "sign"),
    [
        ("bleu", 1),
        ("chrf", 1),
        ("loss", -1),
        ("perplexity", -1),
        ("ter", -1),
        ("cer", -1),
        ("wer", -1),
    ],
)
def test_a_better_score_has_a_higher_goodness(metric: str, sign: int) -> None:
    assert goodness(2.0, metric) == sign * 2.0


def test_validation_is_due_at_its_cadence_and_at_the_end_but_never_twice() -> None:
    training = settings()
    due = [step for step in range(12) if is_validation_due(Progress(step=step), training)]
    assert due == [4, 8, 10, 11], "0 counts as validated"
    assert not is_validation_due(Progress(step=8, validated_at=8), training)


def test_a_run_is_finished_when_nothing_is_left_to_do() -> None:
    training = settings(patience=2)
    assert not is_finished(Progress(step=9, validated_at=8), training)
    assert not is_finished(Progress(step=10, validated_at=8), training), "one validation is missing"
    assert is_finished(Progress(step=10, validated_at=10), training)
    assert is_finished(Progress(step=8, validated_at=8, validations_without_best=2), training)


def test_the_first_limit_that_is_reached_counts() -> None:
    training = settings(max_epochs=3)
    assert reaches_limit(Progress(step=10), training)
    assert reaches_limit(Progress(step=4, position=Position(3, 0)), training)
    assert not reaches_limit(Progress(step=9, position=Position(2, 5)), training)


def test_without_patience_a_run_goes_on() -> None:
    assert not is_out_of_patience(Progress(validations_without_best=10**6), settings())
