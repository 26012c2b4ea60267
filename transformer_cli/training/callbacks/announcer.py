"""What is told before the first step, and once during the run: the plan, its warnings, and the time left."""

import logging

from transformer_cli.config import Config
from transformer_cli.data.preparation import PreparedData
from transformer_cli.runtime import Machine
from transformer_cli.training.callbacks import Callback
from transformer_cli.training.callbacks.plan import Plan, warnings
from transformer_cli.training.callbacks.slow_settings import slow_settings
from transformer_cli.training.meter import TrainingReport
from transformer_cli.training.step import StepReport

logger = logging.getLogger(__name__)

# The speed of fewer updates than this says little about the whole run.
MIN_UPDATES_FOR_SPEED = 20


class Announcer(Callback):
    """Logs the plan and its warnings before the first step, and once the time that is left."""

    def __init__(self, config: Config, data: PreparedData, machine: Machine) -> None:
        self.config, self.data, self.machine = config, data, machine
        self.num_steps = 0
        self.step = 0
        self.num_updates = self.num_tokens = 0
        self.seconds = 0.0
        self.has_told_time = False

    def on_start(self, first_step: int, num_steps: int | None) -> None:
        if num_steps is None:
            return
        self.num_steps = num_steps
        plan = Plan.of(self.config, self.data, num_steps)
        for line in plan.lines(self.config):
            logger.info("%s", line)
        # At the level of the plan, INFO: a script that hides these messages hides the warnings too.
        of_machine = slow_settings(self.config.runtime, self.machine)
        for warning in (*warnings(plan, self.config), *of_machine):
            logger.info("warning: %s", warning)

    def on_step(self, step: int, report: StepReport) -> None:
        self.num_updates += 1
        self.num_tokens += report.num_target_tokens

    def on_report(self, report: TrainingReport) -> None:
        """The speed of a report leaves out validations and saves, and so does the time."""
        self.seconds += self.num_tokens / max(report.target_tokens_per_second, 1e-9)
        self.num_tokens = 0
        left = self.num_steps - report.step
        if self.has_told_time or left < 1 or self.num_updates < MIN_UPDATES_FOR_SPEED:
            return
        self.has_told_time = True
        logger.info(
            "about %s left for %s updates, at the speed of the first %d; validations take further time%s",
            _duration(left * self.seconds / self.num_updates), f"{left:,}", self.num_updates, self._limit(),
        )  # fmt: skip

    def _limit(self) -> str:
        minutes = self.config.training.max_minutes
        return "" if minutes is None else f"; training.max_minutes={minutes:g} may stop it before"


def _duration(seconds: float) -> str:
    if seconds < 1.5:
        return "a second"
    if seconds < 90:
        return f"{round(seconds)} seconds"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} minutes"
    hours = seconds / 3600
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"
