"""What an ablation measures on a trained model."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from transformer_cli.config import Config
from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding import Translator
from transformer_cli.evaluation import validate
from transformer_cli.evaluation.confidence import Calibration, calibration_on
from transformer_cli.evaluation.synthetic_tasks import ExactMatch, exact_matches
from transformer_cli.evaluation.validation import ValidationReport
from transformer_cli.storage import read_json_lines


@dataclass
class Trained:
    """A trained model of an ablation; each figure is computed once, when it is asked for."""

    config: Config
    metrics_file: Path
    translator: Translator
    pairs: list[SentencePair]
    """Held-out pairs."""

    @cached_property
    def report(self) -> ValidationReport:
        scores = ("bleu", "unknown", "length_ratio")
        return validate(self.translator, self.pairs, scores=scores, num_samples=0)

    @cached_property
    def calibration(self) -> Calibration:
        found = calibration_on(self.translator, self.pairs)
        assert found is not None, "ablations translate with PyTorch, which tells probabilities"
        return found

    @cached_property
    def exact_matches(self) -> list[ExactMatch]:
        return exact_matches(self.translator, self.config)

    def reported(self, kind: str) -> list[float]:
        """The losses that the training has reported: `train` or `validation`."""
        records = read_json_lines(self.metrics_file)
        return [
            loss
            for record in records
            if record.get("kind") == kind and isinstance(loss := record.get("loss"), float)
        ]


class Measure(NamedTuple):
    """A figure for each variant, and how the table shows it."""

    title: str
    of: Callable[[Trained], float]
    digits: int


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


MEASURES = {
    "training loss": Measure(
        "training loss, nats per token", lambda one: one.reported("train")[-1], 3
    ),
    "loss": Measure("validation loss, nats per token", lambda one: one.report.loss, 3),
    "perplexity": Measure("perplexity", lambda one: one.report.perplexity, 2),
    "forced": Measure(
        "right tokens if the target is given, %", lambda one: 100 * one.calibration.accuracy, 1
    ),
    "symbols": Measure(
        "right symbols when generated, %", lambda one: _mean(row.symbols for row in one.exact_matches), 1
    ),
    "exact": Measure(
        "whole sequences right, %", lambda one: _mean(row.exact for row in one.exact_matches), 1
    ),
    "bleu": Measure("BLEU", lambda one: one.report.metric("bleu"), 1),
    "unknown": Measure("words that are [UNK], %", lambda one: one.report.metric("unknown"), 1),
    "length": Measure("length, references = 1", lambda one: one.report.metric("length_ratio"), 3),
    "confidence": Measure(
        "mean probability of the best token, %", lambda one: 100 * one.calibration.confidence, 1
    ),
    "calibration": Measure(
        "expected calibration error, %", lambda one: 100 * one.calibration.error, 1
    ),
}  # fmt: skip
"""By the name that an ablation uses."""
