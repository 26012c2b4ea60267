"""The progress of a run, and its way to JSON and back."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.acceleration.optimizers import without_tracer
from transformer_cli.checkpoint.limits import (
    is_finished,
    is_validation_due,
    limits_reached,
    reaches_limit,
)
from transformer_cli.checkpoint.run_folder import StateValues, goodness
from transformer_cli.config import TrainingConfig
from transformer_cli.data.updates import Position
from transformer_cli.process.errors import DataError
from transformer_cli.training.loop import (
    Progress,
    Validated,
    checked_validation,
)


def settings(**changes: Any) -> TrainingConfig:
    return TrainingConfig(**{"max_steps": 10, "batch_tokens": 10, "validate_every": 4} | changes)


ADDED_LATER = {"best_losses", "plateau_drops", "plateau_validations", "num_micro_batches"}
scores = st.floats(allow_nan=False, width=32)


@st.composite
def progresses(draw: st.DrawFn) -> Progress:
    """Any that a run can have: epochs and validations are not more than updates."""
    step = draw(st.integers(0, 10**9))
    best = draw(st.lists(st.tuples(scores, scores), max_size=4))
    return Progress(
        step=step,
        position=Position(draw(st.integers(0, min(step, 999))), draw(st.integers(0, step))),
        validated_at=draw(st.integers(0, step)),
        best_goodness=tuple(value for value, _ in best),
        best_losses=tuple(loss for _, loss in best),
        validations_without_best=draw(st.integers(0, min(step, 99))),
        plateau_drops=draw(st.integers(0, min(step, 9))),
        plateau_validations=draw(st.integers(0, min(step, 9))),
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
        {"best_losses": [1.0]},
        {"best_losses": None},
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
    with pytest.raises(DataError, match=rf"state\.json: {field}(\[[0-9]\])? (is|has) ") as refusal:
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


@pytest.mark.parametrize("key", sorted(Progress().to_json().keys() - ADDED_LATER))
def test_a_progress_that_lacks_something_is_refused(key: str) -> None:
    values = Progress().to_json()
    del values[key]
    with pytest.raises(DataError, match=key):
        Progress.from_json(values)


def after(values: list[tuple[float, float]], *, keep_best: int = 1) -> Progress:
    """The progress after validations with these values, of a score and of the loss, one at each step."""
    progress = Progress()
    for step, (value, loss) in enumerate(values, start=1):
        progress = replace(progress, step=step)
        progress, _ = progress.after_validation(Validated(value, loss), keep_best=keep_best)
    return progress


few = st.sampled_from([-math.inf, 0.0, 1.0, 2.5])


@pytest.mark.long
@given(st.lists(st.tuples(scores | few, scores | few), max_size=12), st.integers(1, 4))
def test_the_best_of_all_validations_are_remembered(values: list[tuple[float, float]], keep_best: int) -> None:
    """The oracle sorts all of them at once; Python keeps the order of those that are equal."""
    progress = after(values, keep_best=keep_best)
    best = sorted(values, key=lambda one: (-one[0], one[1]))[:keep_best]
    assert list(zip(progress.best_goodness, progress.best_losses, strict=True)) == best
    metric = [value for value, _ in values]
    if values and max(metric) > -math.inf:
        assert progress.validations_without_best == len(values) - 1 - metric.index(max(metric))


@given(st.lists(st.tuples(few, few), min_size=1, max_size=12), st.integers(1, 4))
def test_a_validation_is_among_the_best_if_it_is_remembered(values: list[tuple[float, float]], keep_best: int) -> None:
    """Of values that are equal in both, the earlier ones are kept."""
    before, last = after(values[:-1], keep_best=keep_best), values[-1]
    expected = sum((-one[0], one[1]) <= (-last[0], last[1]) for one in values[:-1]) < keep_best
    assert before.after_validation(Validated(*last), keep_best=keep_best)[1] == expected


def test_a_tie_is_decided_by_the_loss_and_is_no_new_best_for_patience() -> None:
    progress = after([(1.0, 3.0), (1.0, 2.0), (1.0, 2.5)])
    assert (progress.best_goodness, progress.best_losses) == ((1.0,), (2.0,))
    assert progress.validations_without_best == 2


def test_in_a_state_without_losses_an_earlier_validation_wins_a_tie() -> None:
    """Checkpoints of earlier versions have no `best_losses`."""
    values = after([(1.0, 3.0), (0.5, 2.0)], keep_best=2).to_json()
    del values["best_losses"]
    old = Progress.from_json(values)
    assert not old.after_validation(Validated(0.5, 0.0), keep_best=2)[1]
    assert old.after_validation(Validated(0.75, 9.0), keep_best=2)[1]


def test_a_nan_score_is_never_the_best_and_uses_up_patience() -> None:
    progress, is_among_best = Progress(step=3).after_validation(Validated(math.nan, 1.0), keep_best=2)
    assert (progress.best_goodness, progress.validations_without_best, is_among_best) == ((), 1, False)
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
    assert not limits_reached(Progress(validations_without_best=10**6), settings())


@given(st.lists(st.floats(0, 9, width=16), max_size=30), st.integers(1, 4))
def test_a_plateau_is_that_of_pytorch(values: list[float], patience: int) -> None:
    """PyTorch's `patience` counts the validations before the one after which the rate falls."""
    without_tracer()
    rates = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        rates, mode="max", factor=0.5, patience=patience - 1, threshold=0.0, eps=0.0
    )
    progress = Progress(step=100)
    for value in values:
        scheduler.step(value)
        progress, _ = progress.after_validation(Validated(value, 1.0), keep_best=2, plateau_patience=patience)
        progress = Progress.from_json(json.loads(json.dumps(progress.to_json())))
        assert rates.param_groups[0]["lr"] == 0.5**progress.plateau_drops


def test_without_a_plateau_nothing_is_counted_for_it() -> None:
    progress = Progress(step=9)
    for value in (3.0, 2.0, 1.0):
        progress, _ = progress.after_validation(Validated(value, 1.0), keep_best=1)
    assert (progress.plateau_drops, progress.plateau_validations) == (0, 0)


@pytest.mark.parametrize("name", ["plateau_drops", "plateau_validations"])
def test_counts_of_a_plateau_that_no_run_has_are_refused(name: str) -> None:
    for value in (-1, 99, 1.5):
        with pytest.raises(DataError, match=name):
            Progress.from_json(Progress(step=9).to_json() | {name: value})
