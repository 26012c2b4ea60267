"""The learning curves of a run as charts, from its metrics.jsonl."""

from pathlib import Path

from transformer_cli.checkpoint.recorded_series import Values, finite, read_series
from transformer_cli.evaluation.report.charts import Chart, Series, line_chart


def learning_curves(metrics_file: Path) -> list[Chart]:
    """Charts of the losses, the scores and the learning rate over the steps; none without a readable file."""
    if not metrics_file.is_file():
        return []
    recorded = read_series(metrics_file)
    training, validation = recorded.training, recorded.validation
    losses = [
        _series("training", training.get("loss", {})),
        _series("validation", validation.get("loss", {})),
    ]
    scores = [_series(title, validation.get(name, {})) for name, title in recorded.titles.items()]
    rates = [_series("rate", training.get("learning_rate", {}))]
    found = [
        line_chart("Loss, nats per target token", "step", losses),
        line_chart("Scores on the validation split", "step", scores),
        line_chart("Learning rate", "step", rates),
    ]
    return [chart for chart in found if chart is not None]


def _series(name: str, values: Values) -> Series:
    return Series(name, [(float(step), value) for step, value in finite(values).items()])
