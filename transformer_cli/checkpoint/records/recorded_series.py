"""The figures in the metrics.jsonl of a run, as series over the steps; without PyTorch."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
                named = (
                    (f"{name} {part.get('direction')}", value)
                    for name, value in _figures(part, titles)
                )
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
