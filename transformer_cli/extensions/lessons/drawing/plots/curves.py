"""What a plot shows: for each metric, the curves of the runs or groups of runs, with final and best values."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer_cli.checkpoint.recorded_series import RecordedSeries, Values, finite
from transformer_cli.config import LOWER_IS_BETTER
from transformer_cli.extensions.lessons.drawing.plots.horizontal_axis import Axis, places
from transformer_cli.extensions.lessons.drawing.plots.metric_titles import LOSS, TITLES
from transformer_cli.process.errors import UsageError

_DRAWN_BY_DEFAULT = ("learning_rate", "gradient_norm", "target_tokens_per_second")
_NOT_DRAWN = frozenset({"epoch", "num_target_tokens"})
_LOWER = LOWER_IS_BETTER | {"objective", "unknown"}
# Neither a low nor a high value of these is the best one.
_WITHOUT_BEST = frozenset({*TITLES, "length_ratio"}) - {LOSS, "objective", "perplexity"}


@dataclass(frozen=True, slots=True)
class PlottedRun:
    """A run, or a group of runs that differ only in the seed."""

    name: str
    members: Sequence[tuple[Path, RecordedSeries]]
    """The folder of each run, and its figures."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a panel; of a group, the mean of its runs, with their range."""

    run: int
    """Index of the run or group."""
    kind: str
    """`training` or `validation`."""
    steps: list[int]
    xs: list[float]
    ys: list[float]
    """NaN where the run recorded no number: a gap in the line."""
    lows: list[float]
    highs: list[float]
    """The lowest and the highest value of the runs of a group; of one run, its values."""
    raw: list[float] | None = None
    """The values before smoothing; None if they were not smoothed."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The curves of one metric."""

    metric: str
    title: str
    curves: list[Curve]

    def best(self, curve: Curve) -> tuple[int, float] | None:
        """Step and value of the best value as recorded; None for a metric without a best value."""
        points = self.points(curve)
        if not points or self.metric.partition(" ")[0] in _WITHOUT_BEST:
            return None
        is_lower_better = self.metric.partition(" ")[0] in _LOWER
        return min(points, key=lambda point: point[1] if is_lower_better else -point[1])

    def final(self, curve: Curve) -> tuple[int, float] | None:
        """Step and value of the last value that is a number."""
        return next(reversed(self.points(curve)), None)

    @staticmethod
    def points(curve: Curve) -> list[tuple[int, float]]:
        """Steps and values as recorded, without smoothing; those that are no numbers are left out."""
        values = curve.ys if curve.raw is None else curve.raw
        pairs = zip(curve.steps, values, strict=True)
        return [(step, value) for step, value in pairs if math.isfinite(value)]


def metrics_of(runs: Sequence[PlottedRun]) -> list[str]:
    """The names of all metrics that some run has recorded; the usual ones first."""
    every = [series for run in runs for _, series in run.members]
    names = dict.fromkeys(name for name in default_metrics(runs))
    for series in every:
        for part in (series.validation, series.training, series.directions):
            names |= dict.fromkeys(name for name in part if name not in _NOT_DRAWN)
    return list(names)


def default_metrics(runs: Sequence[PlottedRun]) -> list[str]:
    """Loss, all scores of the validations, learning rate, gradient norm and speed, as far as they were recorded."""
    every = [series for run in runs for _, series in run.members]
    scores = dict.fromkeys(name for series in every for name in series.titles)
    known = {name for series in every for name in (*series.training, *series.validation)}
    return [name for name in (LOSS, *scores, *_DRAWN_BY_DEFAULT) if name in known]


def panels_of(
    runs: Sequence[PlottedRun], metrics: Sequence[str], axis: Axis, *, smooth: int = 1
) -> list[Panel]:
    """The panels of a plot, in the order of the metrics.

    Args:
        metrics: names as `metrics_of` lists them; upper or lower case.
        smooth: each value of the training is replaced by the mean of this many reports around it.

    Raises:
        UsageError: no run has recorded a metric, or what the axis needs.
    """
    known = metrics_of(runs)
    unknown = [name for name in metrics if name.lower() not in known]
    if unknown:
        raise UsageError(
            f"--metric {unknown[0]}: no run has recorded it",
            hint=f"the runs have {', '.join(known)}",
        )
    return [_panel(runs, name, axis, smooth) for name in dict.fromkeys(map(str.lower, metrics))]


def _panel(runs: Sequence[PlottedRun], metric: str, axis: Axis, smooth: int) -> Panel:
    curves = []
    for index, run in enumerate(runs):
        for kind in ("training", "validation"):
            window = smooth if kind == "training" and metric != "learning_rate" else 1
            curve = _curve(index, run, (kind, metric), axis, window)
            if curve is not None:
                curves.append(curve)
    title = _title(runs, metric)
    if any(curve.raw is not None for curve in curves):
        title += f"; training: mean of {smooth} reports"
    return Panel(metric, title, curves)


def _curve(
    index: int, run: PlottedRun, what: tuple[str, str], axis: Axis, window: int
) -> Curve | None:
    kind, metric = what
    members = [
        (places(folder.name, series, axis), values)
        for folder, series in run.members
        if (values := _values(series, kind, metric))
    ]
    if not members:
        return None
    # The mean of a group is that of all its runs: a step that one of them lacks is left out.
    steps = sorted(set.intersection(*(set(values) for _, values in members)))
    if len(members) < len(run.members) or not steps:
        return None
    rows = [[_number(values[step]) for step in steps] for _, values in members]
    positions = [place(steps) for place, _ in members]
    raw = _means(rows)
    smoothed = [_smoothed(row, window) for row in rows]
    return Curve(
        index,
        kind,
        steps,
        _means(positions),
        _means(smoothed),
        _extremes(smoothed, min),
        _extremes(smoothed, max),
        raw if window > 1 else None,
    )


def _values(series: RecordedSeries, kind: str, metric: str) -> Values:
    if kind == "training":
        return series.training.get(metric, {})
    return series.validation.get(metric) or series.directions.get(metric, {})


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _means(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def _extremes(rows: Sequence[Sequence[float]], choose: Callable[..., float]) -> list[float]:
    columns = zip(*rows, strict=True)
    return [choose(one) if all(map(math.isfinite, one)) else math.nan for one in columns]


def _smoothed(values: Sequence[float], window: int) -> list[float]:
    """The mean of the values around each one; fewer at the ends, and NaN where the value itself is NaN."""
    means = []
    for place, value in enumerate(values):
        around = values[max(0, place - (window - 1) // 2) : place + window // 2 + 1]
        numbers = [one for one in around if math.isfinite(one)]
        means.append(sum(numbers) / len(numbers) if math.isfinite(value) else math.nan)
    return means


def _title(runs: Sequence[PlottedRun], metric: str) -> str:
    if metric in TITLES:
        return TITLES[metric]
    name, _, direction = metric.partition(" ")
    if name == LOSS:
        return f"Loss {direction}, nats per target token"
    titles = {
        key: title for run in runs for _, one in run.members for key, title in one.titles.items()
    }
    title = titles.get(name, name)
    return f"{title} {direction}".strip()


def gaps(runs: Sequence[PlottedRun]) -> list[str]:
    """A sentence for each series that has values that are not numbers."""
    found = []
    for run in runs:
        for folder, series in run.members:
            for kind, part in (("training", series.training), ("validation", series.validation)):
                for name, values in part.items():
                    missing = sorted(values.keys() - finite(values).keys())
                    if missing:
                        found.append(
                            f"{folder.name}: {kind} {name} is not a finite number at {len(missing)} of {len(values)} "
                            f"records, first at step {missing[0]}; the curve has gaps there"
                        )
    return found
