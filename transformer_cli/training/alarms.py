"""Warnings while training: a loss that jumps, memory that is too small."""

import logging

from transformer_cli.training.callbacks import Callback
from transformer_cli.training.meter import TrainingReport
from transformer_cli.training.step import StepReport

logger = logging.getLogger(__name__)

# A warning is given when the loss rises above both limits since the last report. The usual noise stays
# below them; a training that diverges does not.
JUMP_FACTOR = 1.5
JUMP_NATS = 1.0


class Alarms(Callback):
    """Writes warnings; it changes nothing."""

    def __init__(self) -> None:
        self.last_loss: float | None = None
        self.num_skipped = 0
        self.num_halved_steps = 0

    def on_step(self, step: int, report: StepReport) -> None:
        """Warn the first time that batches had to be cut in two."""
        if report.num_halvings == 0:
            return
        self.num_halved_steps += 1
        if self.num_halved_steps == 1:
            logger.warning(
                "step %d: out of memory, so its batches were cut in parts; from now on, batches of this "
                "size are cut beforehand. Such an update takes longer and draws other dropout masks; lower "
                "training.batch_tokens to avoid it",
                step,
            )

    def on_report(self, report: TrainingReport) -> None:
        """Warn when the loss per token is far above that of the last report."""
        before, is_whole = self.last_loss, report.num_skipped == self.num_skipped
        # Skipped updates add no loss, so a report with some of them is not compared.
        self.last_loss, self.num_skipped = report.loss if is_whole else None, report.num_skipped
        if before is None or not report.loss > max(JUMP_FACTOR * before, before + JUMP_NATS):
            return  # a loss of NaN is no jump either
        logger.warning(
            "step %d: the training loss has jumped from %.2f to %.2f; if it stays there, lower "
            "training.learning_rate, raise training.warmup_steps or set training.clip_norm",
            report.step,
            before,
            report.loss,
        )

    def on_end(self) -> None:
        """Report how many updates were cut in parts."""
        if self.num_halved_steps > 1:
            logger.warning("updates whose batches were cut in parts: %d", self.num_halved_steps)
