"""Several runs beside each other: the settings that differ, and their figures; without PyTorch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer_cli.checkpoint.records.recorded_series import read_series
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import LOWER_IS_BETTER, Config, load_stored_config
from transformer_cli.config.section import flat_settings

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


def compare(folders: Sequence[Path]) -> Comparison:
    """Compare the runs in these folders.

    Raises:
        MissingInputError, ConfigError: a config cannot be read.
    """
    configs = [load_stored_config(RunFolder(folder).config_file) for folder in folders]
    curves = [_curve(folder, config) for folder, config in zip(folders, configs, strict=True)]
    return Comparison([folder.name for folder in folders], _differences(configs), curves)


def _differences(configs: Sequence[Config]) -> dict[str, list[Any]]:
    flat = [flat_settings(config.model_dump(mode="json")) for config in configs]
    names = dict.fromkeys(name for settings in flat for name in settings if name != "name")
    values = {name: [settings.get(name) for settings in flat] for name in names}
    return {name: of_runs for name, of_runs in values.items() if _differ(of_runs)}


def _differ(values: Sequence[Any]) -> bool:
    return any(value != values[0] for value in values)


def _curve(folder: Path, config: Config) -> Curve:
    figures: dict[int, dict[str, float]] = {}
    for name, values in read_series(RunFolder(folder).metrics_file).validation.items():
        for step, value in values.items():
            figures.setdefault(step, {}).update({} if value is None else {name: value})
    return Curve(config.training.best_metric, figures)
