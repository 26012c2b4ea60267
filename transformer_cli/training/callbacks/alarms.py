"""Warnings while training: a loss that jumps or diverges, memory that is too small."""

import logging
import math

from torch import Tensor

from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import TrainingStoppedError
from transformer_cli.evaluation import ValidationReport
from transformer_cli.training.callbacks import Callback
from transformer_cli.training.meter import TrainingReport
from transformer_cli.training.step import StepReport

logger = logging.getLogger(__name__)

# A warning is given when the loss rises above both limits since the last report. The usual noise stays
# below them; a training that diverges does not.
JUMP_FACTOR = 1.5
JUMP_NATS = 1.0


ADVICE = "lower training.learning_rate, or raise training.warmup_steps"


class Alarms(Callback):
    """Writes warnings; it changes nothing.

    Args:
        vocab_size: entries of the target vocabulary. The loss of a model that guesses among them is its
            logarithm, and a loss far above this and above the first loss means that the training has diverged.
    """

    def __init__(self, vocab_size: int) -> None:
        self.guessing_loss = math.log(vocab_size)
        self.first_loss: tuple[Tensor, int] | None = None  # its sum, and the number of tokens
        self.divergence = ""  # why the training has diverged, at the last report; empty if not
        self.last_loss: float | None = None
        self.num_skipped = 0
        self.num_halved_steps = 0

    def on_step(self, step: int, report: StepReport) -> None:
        """Warn the first time that batches had to be cut in two."""
        if self.first_loss is None:  # its value is read later: here, the CPU would wait for a GPU
            self.first_loss = report.negative_log_likelihood, report.num_target_tokens
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
        """Warn when the loss per token is far above that of the last report, or that of guessing."""
        before, is_whole = self.last_loss, report.num_skipped == self.num_skipped
        if is_whole or not math.isnan(report.loss):  # NaN: every update was skipped
            self._note_divergence(report.step, "training", report.loss)
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

    def on_validation(self, step: int, report: ValidationReport, translator: Translator) -> None:
        """Warn when the loss is not finite; overfitting alone can make a finite one large."""
        if not math.isfinite(report.perplexity):
            self._note_divergence(step, "validation", report.loss)

    def require_convergence(self, step: int) -> None:
        """Raise an error if the training has diverged at the end.

        Raises:
            TrainingStoppedError: the last report or the last validation says so.
        """
        if self.divergence:
            raise TrainingStoppedError(
                f"diverged: after {step:,} steps, {self.divergence}; the model is useless",
                hint=f"{ADVICE}, then start again, with another name or with --from-scratch",
            )

    def _note_divergence(self, step: int, kind: str, loss: float) -> None:
        total, num_tokens = self.first_loss or (0.0, 1)
        limit = max(self.guessing_loss, float(total) / max(1, num_tokens)) + JUMP_NATS
        is_told, self.divergence = bool(self.divergence), ""
        if not loss <= limit:  # NaN too
            self.divergence = (
                f"the {kind} loss is {loss:.4g}, and guessing gives {self.guessing_loss:.2f}"
            )
            if not is_told:
                logger.warning("step %d: diverged: %s; %s", step, self.divergence, ADVICE)

    def on_end(self) -> None:
        """Report how many updates were cut in parts."""
        if self.num_halved_steps > 1:
            logger.warning("updates whose batches were cut in parts: %d", self.num_halved_steps)
