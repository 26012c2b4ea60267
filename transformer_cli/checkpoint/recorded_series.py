"""The figures in the metrics.jsonl of a run, as series over the steps, and several runs beside each other; without PyTorch."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer_cli.checkpoint.run_folder import RUNS, RunFolder, name_of_run
from transformer_cli.config import LOWER_IS_BETTER, Config, load_stored_config
from transformer_cli.config.section import flat_settings
from transformer_cli.storage import read_json_lines

Values = dict[int, float | None]
"""Step -> value, in the order of the steps; None where the run recorded null, which stands for NaN and infinity."""
_NO_FIGURES = frozenset({"kind", "step"})


@dataclass(frozen=True, slots=True)
class RecordedSeries:
    """All figures of a run: name -> values. The names are in lower case."""

    training: Mapping[str, Values]
    """Of the reports: loss, learning_rate, gradient_norm, target_tokens_per_second and others."""
    validation: Mapping[str, Values]
    """Of the validations: loss, perplexity and scores."""
    directions: Mapping[str, Values]
    """Of the validations, if the model has several directions: names such as `bleu en-de`."""
    titles: Mapping[str, str]
    """Name of a score -> the name as it is usually written, such as BLEU."""


def read_series(metrics_file: Path) -> RecordedSeries:
    """The series of a run; empty ones if the file does not exist.

    A line that is incomplete, because a training is writing it, is left out. Of several lines of one kind for one step,
    the last one counts.
    """
    found: dict[str, dict[str, Values]] = {"train": {}, "validation": {}, "directions": {}}
    titles: dict[str, str] = {}
    for record in read_json_lines(metrics_file):
        step = record.get("step")
        if not isinstance(step, int) or isinstance(step, bool):
            continue
        if record.get("kind") == "train":
            _add(found["train"], step, record.items())
        elif record.get("kind") == "validation":
            _add(found["validation"], step, _figures(record, titles))
            for part in _objects(record.get("directions")):
                named = ((f"{name} {part.get('direction')}", value) for name, value in _figures(part, titles))
                _add(found["directions"], step, named)
    training, validation, directions = (_in_order(found[kind]) for kind in found)
    return RecordedSeries(training, validation, directions, titles)


def _figures(record: Mapping[str, Any], titles: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Names and values of a validation; the usual spelling of the scores goes into `titles`."""
    yield from ((name, record[name]) for name in ("loss", "perplexity") if name in record)
    for score in _objects(record.get("scores")):
        if isinstance(name := score.get("name"), str):
            titles[name.lower()] = name
            yield name.lower(), score.get("value")


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (one for one in (value if isinstance(value, list) else []) if isinstance(one, dict))


def _add(series: dict[str, Values], step: int, figures: Any) -> None:
    for name, value in figures:
        if name in _NO_FIGURES:
            continue
        if value is None:
            series.setdefault(name, {})[step] = None
        elif isinstance(value, int | float) and not isinstance(value, bool):
            series.setdefault(name, {})[step] = float(value) if math.isfinite(value) else None


def _in_order(series: Mapping[str, Values]) -> dict[str, Values]:
    return {name: dict(sorted(values.items())) for name, values in series.items()}


def finite(values: Values) -> dict[int, float]:
    """The steps whose value is a number."""
    return {step: value for step, value in values.items() if value is not None}


# Several runs beside each other: the settings that differ, and their figures; without PyTorch.


MAX_STEPS_OF_A_CURVE = 12


@dataclass(frozen=True, slots=True)
class Curve:
    """The validations of a run."""

    metric: str
    """`training.best_metric` of the run."""
    figures: Mapping[int, Mapping[str, float]]
    """Step -> name in lower case -> value: loss, perplexity and scores."""

    @property
    def best_step(self) -> int | None:
        """The step with the best value of the metric; of equal values, the one with the lowest loss."""
        sign = 1.0 if self.metric in LOWER_IS_BETTER else -1.0
        ranked = [
            (sign * values[self.metric], values.get("loss", math.inf), step)
            for step, values in self.figures.items()
            if self.metric in values
        ]
        return min(ranked)[2] if ranked else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between runs."""

    names: list[str]
    settings: dict[str, list[Any]]
    """Name of a setting that differs -> its value in each run; None where it is absent."""
    curves: list[Curve]

    def metrics(self) -> list[str]:
        """The names of all figures, in the order in which they first occur."""
        found: dict[str, None] = {}
        for curve in self.curves:
            for values in curve.figures.values():
                found |= dict.fromkeys(values)
        return list(found)

    def steps(self) -> list[int]:
        """The steps of the curves: all of them, or a selection that is evenly spread."""
        every = sorted({step for curve in self.curves for step in curve.figures})
        if len(every) <= MAX_STEPS_OF_A_CURVE:
            return every
        last = MAX_STEPS_OF_A_CURVE - 1
        return [every[i * (len(every) - 1) // last] for i in range(MAX_STEPS_OF_A_CURVE)]


def compare_runs(folders: Sequence[Path], runs_folder: Path = RUNS) -> Comparison:
    """Compare the runs in these folders.

    Args:
        runs_folder: runs in it are called by their names alone.

    Raises:
        MissingInputError, ConfigError: a config cannot be read.
    """
    configs = [load_stored_config(RunFolder(folder).config_file) for folder in folders]
    curves = [_curve(folder, config) for folder, config in zip(folders, configs, strict=True)]
    names = [name_of_run(folder, runs_folder) for folder in folders]
    return Comparison(names, _differences(configs), curves)


def _differences(configs: Sequence[Config]) -> dict[str, list[Any]]:
    flat = [flat_settings(config.model_dump(mode="json")) for config in configs]
    names = dict.fromkeys(name for settings in flat for name in settings if name != "name")
    values = {name: [settings.get(name) for settings in flat] for name in names}
    return {name: run_values for name, run_values in values.items() if _differ(run_values)}


def _differ(values: Sequence[Any]) -> bool:
    return any(value != values[0] for value in values)


def _curve(folder: Path, config: Config) -> Curve:
    figures: dict[int, dict[str, float]] = {}
    for name, values in read_series(RunFolder(folder).metrics_file).validation.items():
        for step, value in values.items():
            figures.setdefault(step, {}).update({} if value is None else {name: value})
    return Curve(config.training.best_metric, figures)
