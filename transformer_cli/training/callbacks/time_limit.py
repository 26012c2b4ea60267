"""The time limit of a training: `training.max_minutes`."""

import time

from transformer_cli.training.callbacks import Callback
from transformer_cli.training.step import StepReport


class TimeLimit(Callback):
    """Ends the training when the time limit is reached; the time starts when this object is made.

    After each start of the command at least one update is made, so a run that is continued again and again
    comes to its end, however short the limit is.

    Args:
        max_minutes: the limit, or None.
        is_decisive: whether this process decides; of several, only rank 0, which also says why the training ended.
    """

    def __init__(self, max_minutes: float | None, *, is_decisive: bool = True) -> None:
        self.max_minutes = max_minutes if is_decisive else None
        self.has_updated = False
        self._started_at = time.monotonic()

    @property
    def is_reached(self) -> bool:
        """Whether the time limit is reached."""
        if self.max_minutes is None or not self.has_updated:
            return False
        return time.monotonic() - self._started_at >= 60.0 * self.max_minutes

    def on_step(self, step: int, report: StepReport) -> None:
        self.has_updated = True

    def should_stop(self) -> bool:
        """True between two updates after the limit; a validation is never cut short."""
        return self.is_reached
