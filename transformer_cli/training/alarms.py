"""When to warn while training: a loss that jumps, memory that does not suffice."""

import logging

from transformer_cli.training.step import StepReport

logger = logging.getLogger(__name__)

# Of the loss since the last report: noise stays below, a training that comes apart does not.
JUMP_FACTOR = 1.5
JUMP_NATS = 1.0


class Alarms:
    """Watches one process' training; nothing of it decides anything."""

    def __init__(self) -> None:
        self.last_loss: float | None = None
        self.num_skipped = 0
        self.num_halved_steps = 0

    def after_step(self, step: int, report: StepReport) -> None:
        """Tell once, at the first time, that batches had to be cut in two."""
        if report.num_halvings == 0:
            return
        self.num_halved_steps += 1
        if self.num_halved_steps == 1:
            logger.warning(
                "step %d: memory did not suffice, so its batches were cut in parts; the update is the "
                "same, but takes longer. Lower training.batch_tokens if this happens often",
                step,
            )

    def after_report(self, step: int, loss: float, *, num_skipped: int) -> None:
        """Tell where the loss per token is far above that of the report before."""
        before, is_whole = self.last_loss, num_skipped == self.num_skipped
        # What was skipped added no loss: such a report says too little to be compared with.
        self.last_loss, self.num_skipped = loss if is_whole else None, num_skipped
        if before is None or not loss > max(JUMP_FACTOR * before, before + JUMP_NATS):
            return  # nor is a loss that is not a number a jump
        logger.warning(
            "step %d: the training loss has jumped from %.2f to %.2f; if it stays there, lower "
            "training.learning_rate, raise training.warmup_steps or set training.clip_norm",
            step,
            before,
            loss,
        )

    def at_end(self) -> None:
        """Tell how many updates there were of which memory could not hold the batches."""
        if self.num_halved_steps > 1:
            logger.warning("updates whose batches were cut in parts: %d", self.num_halved_steps)
