"""What a plot shows: for each metric, the curves of the runs or groups of runs, and a table of final and best values."""

import itertools
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from transformer_cli.checkpoint.recorded_series import (
    RecordedSeries,
    Values,
    finite,
    read_series,
)
from transformer_cli.checkpoint.run_folder import RUNS, RunFolder
from transformer_cli.checkpoint.trained_files import find_run
from transformer_cli.commands.output import in_columns
from transformer_cli.config import LOWER_IS_BETTER, load_stored_config
from transformer_cli.config.section import flat_settings
from transformer_cli.process.errors import MissingInputError, UsageError
from transformer_cli.process.messages import on_one_line

logger = logging.getLogger(__name__)

LOSS = "loss"
TITLES = {
    LOSS: "Loss, nats per target token",
    "objective": "Objective, nats per target token",
    "perplexity": "Perplexity",
    "learning_rate": "Learning rate",
    "gradient_norm": "Gradient norm, before clipping",
    "gradient_scale": "Gradient scale of float16",
    "target_tokens_per_second": "Speed, target tokens per second",
    "source_tokens_per_second": "Speed, source tokens per second",
    "num_skipped": "Skipped updates",
}


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
    import numpy as np

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
            count / speeds[step] / 60 if speeds.get(step) else 0.0 for step, count in zip(steps, amounts, strict=True)
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
    import numpy as np

    if step <= steps[-1]:
        return float(np.interp(step, steps, positions))
    slope = (positions[-1] - positions[-2]) / (steps[-1] - steps[-2])
    return positions[-1] + slope * (step - steps[-1])


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

    def facts(self) -> dict[str, Any]:
        """What `--json` tells about it."""
        return {"name": self.name, "folders": [str(folder) for folder, _ in self.members]}


@dataclass(frozen=True, slots=True)
class PlottedCurve:
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
    ranges: dict[int | None, tuple[float, float]]
    """By the step: the same without smoothing."""
    raw: list[float] | None = None
    """The values before smoothing; None if they were not smoothed."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The curves of one metric."""

    metric: str
    title: str
    curves: list[PlottedCurve]

    def best(self, curve: PlottedCurve) -> tuple[int, float] | None:
        """Step and value of the best value as recorded; None for a metric without a best value."""
        points = self.points(curve)
        if not points or self.metric.partition(" ")[0] in _WITHOUT_BEST:
            return None
        is_lower_better = self.metric.partition(" ")[0] in _LOWER
        return min(points, key=lambda point: point[1] if is_lower_better else -point[1])

    def final(self, curve: PlottedCurve) -> tuple[int, float] | None:
        """Step and value of the last value that is a number."""
        return next(reversed(self.points(curve)), None)

    @staticmethod
    def points(curve: PlottedCurve) -> list[tuple[int, float]]:
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


def panels_of(runs: Sequence[PlottedRun], metrics: Sequence[str], axis: Axis, *, smooth: int = 1) -> list[Panel]:
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


def _curve(index: int, run: PlottedRun, what: tuple[str, str], axis: Axis, window: int) -> PlottedCurve | None:
    kind, metric = what
    members = [
        (places(_name(folder), series, axis), values)
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
    return PlottedCurve(
        index,
        kind,
        steps,
        _means(positions),
        _means(smoothed),
        _extremes(smoothed, min),
        _extremes(smoothed, max),
        dict(zip(steps, zip(_extremes(rows, min), _extremes(rows, max), strict=True), strict=True)),
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
    titles = {key: title for run in runs for _, one in run.members for key, title in one.titles.items()}
    title = titles.get(name, name)
    return f"{title} {direction}".strip()


def warn_of_gaps(runs: Sequence[PlottedRun]) -> None:
    """Log a warning for each series that has values that are not numbers."""
    for run in runs:
        for folder, series in run.members:
            for kind, part in (("training", series.training), ("validation", series.validation)):
                for name, values in part.items():
                    missing = sorted(values.keys() - finite(values).keys())
                    if missing:
                        logger.warning(
                            "%s: %s %s is not a finite number at %d of %d records, first at step %s; "
                            "the curve has gaps there",
                            _name(folder),
                            kind,
                            name,
                            len(missing),
                            len(values),
                            missing[0],
                        )


def plotted_runs(names: Sequence[str], *, is_grouped: bool = False) -> list[PlottedRun]:
    """The runs that have recorded something, each once.

    Args:
        names: of runs, or their folders; none: the newest run.
        is_grouped: whether runs that differ only in the seed are one.

    Raises:
        MissingInputError: there is no such run, or no run has recorded anything.
    """
    folders = [_newest()] if not names else [_folder(name) for name in names]
    unique = {folder.resolve(): folder for folder in folders}
    found = []
    for folder in unique.values():
        series = read_series(RunFolder(folder).metrics_file)
        if series.training or series.validation:
            found.append((folder, series))
        else:
            logger.warning("%s: nothing is recorded yet; it is left out", folder)
    if not found:
        listed = ", ".join(map(str, unique.values()))
        raise MissingInputError(
            f"{listed}: nothing is recorded in metrics.jsonl",
            hint="a training records a line every training.log_every updates, and one at each validation",
        )
    if is_grouped:
        return grouped(found)
    return [PlottedRun(name, [one]) for name, one in zip(_names(found), found, strict=True)]


def _newest() -> Path:
    try:
        return _run_of(find_run(None))
    except MissingInputError:
        # A run that trains may have no checkpoint yet.
        files = [path for path in RUNS.glob("*/metrics.jsonl") if path.is_file()]
        if not files:
            raise
        return max(files, key=lambda path: path.stat().st_mtime).parent


def _folder(name: str) -> Path:
    for place in (RUNS / name, Path(name)):
        if name.strip() and RunFolder(place).metrics_file.is_file():
            return place
    return _run_of(find_run(name))


def _run_of(found: Path) -> Path:
    """The folder of the run itself, where a checkpoint of it was found."""
    return (RunFolder.containing(found) or RunFolder(found)).path


def _name(folder: Path) -> str:
    """The name of a folder, also of one that is given as `.` or `..`."""
    return folder.resolve().name


def _names(members: Sequence[tuple[Path, RecordedSeries]]) -> list[str]:
    """The names of the folders; the whole path where two folders have the same name."""
    short = [_name(folder) for folder, _ in members]
    return [name if short.count(name) == 1 else str(folder) for name, (folder, _) in zip(short, members, strict=True)]


_ABSENT = "-"
_IGNORED = frozenset({"name", "seed"})


def grouped(members: Sequence[tuple[Path, RecordedSeries]]) -> list[PlottedRun]:
    """The runs, with those that differ only in `seed` and `name` put together; in the order of their first run.

    Raises:
        MissingInputError, ConfigError: the config of a run cannot be read.
    """
    groups: dict[frozenset[tuple[str, str]], list[tuple[Path, RecordedSeries]]] = {}
    for folder, series in members:
        config = load_stored_config(RunFolder(folder).config_file)
        settings = flat_settings(config.model_dump(mode="json"))
        key = frozenset((name, repr(value)) for name, value in settings.items() if name not in _IGNORED)
        groups.setdefault(key, []).append((folder, series))
    return [PlottedRun(_name_of_group([_name(folder) for folder, _ in of]), of) for of in groups.values()]


def _name_of_group(names: Sequence[str]) -> str:
    """The beginning that the names have in common, with the number of the runs."""
    if len(names) == 1:
        return names[0]
    # The beginning of the first and the last name in the order of the alphabet is that of all.
    pairs = zip(min(names), max(names), strict=False)
    common = "".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    start = common.rstrip("-_. ").removesuffix("seed").rstrip("-_. ")
    return f"{start or names[0]} ({len(names)} seeds)"


class ValueRow(NamedTuple):
    """The final and the best value of a curve."""

    metric: str
    run: str
    of: str
    final: float | None
    final_step: int | None
    best: float | None
    best_step: int | None
    final_range: tuple[float, float] | None = None
    """The lowest and the highest value of the runs of a group at `final_step`; None for a single run."""
    best_range: tuple[float, float] | None = None

    def shown(self) -> dict[str, str]:
        """The row as texts; of a group, each mean with the range of its runs."""
        cells = self._asdict()
        ranges = {"final": cells.pop("final_range"), "best": cells.pop("best_range")}
        shown = {name: _shown(value) for name, value in cells.items()}
        for name, found in ranges.items():
            if found is not None:
                shown[name] += f" ({' to '.join(map(_shown, found))})"
        return shown

    def facts(self) -> dict[str, Any]:
        """What `--json` tells about it."""
        return {
            name: value for name, value in self._asdict().items() if not (name.endswith("_range") and value is None)
        }


def value_rows(runs: Sequence[PlottedRun], panels: Sequence[Panel]) -> list[ValueRow]:
    """A row for each curve, in the order of the panels."""
    rows = []
    for panel in panels:
        for curve in panel.curves:
            final_step, final = panel.final(curve) or (None, None)
            best_step, best = panel.best(curve) or (None, None)
            run = runs[curve.run]
            ranges = [curve.ranges.get(step) if len(run.members) > 1 else None for step in (final_step, best_step)]
            rows.append(ValueRow(panel.metric, run.name, curve.kind, final, final_step, best, best_step, *ranges))
    return rows


def table_of_values(rows: Sequence[ValueRow]) -> list[str]:
    """The rows as lines, with a head."""
    heads = ("metric", "run", "of", "final", "at step", "best", "at step")
    cells = [heads, *(tuple(row.shown().values()) for row in rows)]
    return in_columns(cells, num_left=3)


def _shown(value: float | str | None) -> str:
    if value is None:
        return _ABSENT
    if isinstance(value, str):
        return on_one_line(value)
    return f"{value:,}" if isinstance(value, int) else _number_shown(value)


def _number_shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
