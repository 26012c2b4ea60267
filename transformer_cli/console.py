"""The progress bar of a training run, on a terminal."""

import sys
from typing import Any

from tqdm import tqdm

from transformer_cli.training.callbacks import Callback
from transformer_cli.training.meter import TrainingReport
from transformer_cli.training.step import StepReport


class ProgressBar(Callback):
    """Steps done, the loss and the speed; shows nothing where standard error is no terminal."""

    def __init__(self) -> None:
        self.bar: tqdm[Any] | None = None

    def on_start(self, first_step: int, num_steps: int | None) -> None:
        self.bar = tqdm(
            total=num_steps,
            initial=first_step,
            unit=" steps",
            disable=not sys.stderr.isatty(),
            dynamic_ncols=True,
            smoothing=0.05,
        )

    def on_step(self, step: int, report: StepReport) -> None:
        if self.bar is not None:
            self.bar.update(step - self.bar.n)

    def on_report(self, report: TrainingReport) -> None:
        if self.bar is not None:
            speed = f"{report.target_tokens_per_second:,.0f} tok/s"
            self.bar.set_postfix_str(
                f"loss {report.loss:.3f}, lr {report.learning_rate:.1e}, {speed}"
            )

    def on_end(self) -> None:
        if self.bar is not None:
            self.bar.close()
