"""The horizontal axis of a plot: converts the steps of a run to epochs, target tokens or minutes."""

import itertools
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from transformer_cli.checkpoint.recorded_series import RecordedSeries, finite
from transformer_cli.process.errors import UsageError

Axis = Literal["step", "epoch", "tokens", "minutes"]
AXIS_LABELS: dict[Axis, str] = {
    "step": "step",
    "epoch": "epochs",
    "tokens": "target tokens",
    "minutes": "minutes of training, without validations and saves",
}
Place = Callable[[Sequence[int]], list[float]]
"""Steps -> positions on the axis."""


def places(run: str, series: RecordedSeries, axis: Axis) -> Place:
    """The positions of the steps of a run.

    Between two reports of the training, a position is interpolated.

    Raises:
        UsageError: the run has not recorded what the axis needs.
    """
    if axis == "step":
        return lambda steps: [float(step) for step in steps]
    knots = _epochs(run, series) if axis == "epoch" else _tokens(run, series, axis)
    return lambda steps: [_interpolated(step, *knots) for step in steps]


Knots = tuple[list[float], list[float]]
"""Steps, and their positions."""


def _tokens(run: str, series: RecordedSeries, axis: Axis) -> Knots:
    counts = finite(series.training.get("num_target_tokens", {}))
    speeds = finite(series.training.get("target_tokens_per_second", {}))
    steps = sorted(finite(series.training.get("learning_rate", {})))
    if not steps or counts.keys() != set(steps):
        raise UsageError(
            f"--x {axis}: the run {run} has not recorded its tokens; it was trained by an earlier version",
            hint="draw it with --x step",
        )
    amounts = [counts[step] for step in steps]
    if axis == "minutes":
        amounts = [
            count / speeds[step] / 60 if speeds.get(step) else 0.0
            for step, count in zip(steps, amounts, strict=True)
        ]
    return [0.0, *map(float, steps)], [0.0, *map(float, np.cumsum(amounts))]


def _epochs(run: str, series: RecordedSeries) -> Knots:
    """An epoch begins halfway between the last report of the epoch before and its own first one."""
    epochs = finite(series.training.get("epoch", {}))
    steps, positions = [0.0], [0.0]
    listed = sorted(epochs)
    for before, step in itertools.pairwise(listed):
        if epochs[step] > epochs[before]:
            steps.append((before + step) / 2)
            positions.append(epochs[step])
    if len(steps) == 1:
        raise UsageError(
            f"--x epoch: the run {run} has not finished its first epoch",
            hint="draw it with --x step",
        )
    return steps, positions


def _interpolated(step: float, steps: list[float], positions: list[float]) -> float:
    """The position of a step; behind the last known step, the last slope goes on."""
    if step <= steps[-1]:
        return float(np.interp(step, steps, positions))
    slope = (positions[-1] - positions[-2]) / (steps[-1] - steps[-2])
    return positions[-1] + slope * (step - steps[-1])
