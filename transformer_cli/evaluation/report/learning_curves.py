"""The learning curves of a run as charts, from its metrics.jsonl."""

import math
from pathlib import Path
from typing import Any

from transformer_cli.evaluation.report.charts import Chart, Series, line_chart
from transformer_cli.storage import read_json_lines

Points = list[tuple[float, float]]


def learning_curves(metrics_file: Path) -> list[Chart]:
    """Charts of the losses, the scores and the learning rate over the steps; none without a readable file."""
    if not metrics_file.is_file():
        return []
    records = [record for record in read_json_lines(metrics_file) if _is_number(record.get("step"))]
    training = [record for record in records if record.get("kind") == "train"]
    validation = [record for record in records if record.get("kind") == "validation"]
    losses = [
        Series("training", _points(training, "loss")),
        Series("validation", _points(validation, "loss")),
    ]
    found = [
        line_chart("Loss, nats per target token", "step", losses),
        line_chart("Scores on the validation split", "step", _scores(validation)),
        line_chart("Learning rate", "step", [Series("rate", _points(training, "learning_rate"))]),
    ]
    return [chart for chart in found if chart is not None]


def _points(records: list[dict[str, Any]], name: str) -> Points:
    return [
        (float(record["step"]), float(record[name]))
        for record in records
        if _is_number(record.get(name))
    ]


def _scores(records: list[dict[str, Any]]) -> list[Series]:
    found: dict[str, Points] = {}
    for record in records:
        scores = record.get("scores")
        for score in scores if isinstance(scores, list) else []:
            if isinstance(score, dict) and _is_number(score.get("value")):
                points = found.setdefault(str(score.get("name")), [])
                points.append((float(record["step"]), float(score["value"])))
    return [Series(name, points) for name, points in found.items()]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
