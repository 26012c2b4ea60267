"""The progress of a run, and its way to JSON and back."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import TrainingConfig
from transformer_cli.data.batches.updates import Position
from transformer_cli.errors import DataError
from transformer_cli.training.progress import (
    Progress,
    Validated,
    goodness,
    is_finished,
    is_out_of_patience,
    is_validation_due,
    reaches_limit,
)


def settings(**changes: Any) -> TrainingConfig:
    return TrainingConfig(**{"max_steps": 10, "batch_tokens": 10, "validate_every": 4} | changes)


scores = st.floats(allow_nan=False, width=32)
progresses = st.builds(
    lambda best, **numbers: Progress(
        best_goodness=tuple(value for value, _ in best),
        best_losses=tuple(loss for _, loss in best),
        **numbers,
    ),
    best=st.lists(st.tuples(scores, scores), max_size=4),
    step=st.integers(0, 10**9),
    position=st.builds(Position, st.integers(0, 999), st.integers(0, 10**9)),
    validated_at=st.integers(0, 10**9),
    validations_without_best=st.integers(0, 99),
)


@given(progresses)
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
    ],
)
def test_a_damaged_progress_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"state\.json"):
        Progress.from_json(Progress().to_json() | change)


@pytest.mark.parametrize("key", Progress().to_json().keys() - {"best_losses"})
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
        progress = progress.after_validation(Validated(value, loss), keep_best=keep_best)
    return progress


few = st.sampled_from([-math.inf, 0.0, 1.0, 2.5])


@given(st.lists(st.tuples(scores | few, scores | few), max_size=12), st.integers(1, 4))
def test_the_best_of_all_validations_are_remembered(
    values: list[tuple[float, float]], keep_best: int
) -> None:
    """The oracle sorts all of them at once; Python keeps the order of those that are equal."""
    progress = after(values, keep_best=keep_best)
    best = sorted(values, key=lambda one: (-one[0], one[1]))[:keep_best]
    assert list(zip(progress.best_goodness, progress.best_losses, strict=True)) == best
    metric = [value for value, _ in values]
    if values and max(metric) > -math.inf:
        assert progress.validations_without_best == len(values) - 1 - metric.index(max(metric))


@given(st.lists(st.tuples(few, few), min_size=1, max_size=12), st.integers(1, 4))
def test_a_validation_is_among_the_best_if_it_is_remembered(
    values: list[tuple[float, float]], keep_best: int
) -> None:
    """Of values that are equal in both, the earlier ones are kept."""
    before, last = after(values[:-1], keep_best=keep_best), values[-1]
    expected = sum((-one[0], one[1]) <= (-last[0], last[1]) for one in values[:-1]) < keep_best
    assert before.is_among_best(Validated(*last), keep_best=keep_best) == expected


def test_a_tie_is_decided_by_the_loss_and_is_no_new_best_for_patience() -> None:
    progress = after([(1.0, 3.0), (1.0, 2.0), (1.0, 2.5)])
    assert (progress.best_goodness, progress.best_losses) == ((1.0,), (2.0,))
    assert progress.validations_without_best == 2


def test_in_a_state_without_losses_an_earlier_validation_wins_a_tie() -> None:
    """Checkpoints of earlier versions have no `best_losses`."""
    values = after([(1.0, 3.0), (0.5, 2.0)], keep_best=2).to_json()
    del values["best_losses"]
    old = Progress.from_json(values)
    assert not old.is_among_best(Validated(0.5, 0.0), keep_best=2)
    assert old.is_among_best(Validated(0.75, 9.0), keep_best=2)


def test_a_nan_score_is_never_the_best_and_uses_up_patience() -> None:
    progress = Progress(step=3).after_validation(Validated(math.nan, 1.0), keep_best=2)
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
