"""Callbacks: what a caller adds to a training run, such as a progress bar, a log or a reason to stop."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from transformer_cli.decoding.translator import Translator
from transformer_cli.evaluation import ValidationReport
from transformer_cli.training.meter import TrainingReport
from transformer_cli.training.step import StepReport


class Callback:
    """Override the methods that you need; they do nothing by default.

    An exception in a callback ends the training; the last checkpoint stays.
    """

    def on_start(self, first_step: int, num_steps: int | None) -> None:
        """The training begins.

        Args:
            first_step: updates that are done already; above 0 when a run is resumed.
            num_steps: the last step of the run; `patience` may end it earlier.
        """

    def on_step(self, step: int, report: StepReport) -> None:
        """An update is done. Do not read its tensors here: the CPU waits for the GPU."""

    def on_report(self, report: TrainingReport) -> None:
        """Loss and speed since the last report: every `training.log_every` steps, and at max_steps or max_epochs."""

    def on_validation(self, step: int, report: ValidationReport, translator: Translator) -> None:
        """A validation is done; `translator` uses the weights of this step, and only during this call."""

    def on_save(self, step: int, folder: Path) -> None:
        """A checkpoint is on the disk."""

    def should_stop(self) -> bool:
        """Whether to end the training with a checkpoint; asked before the first step and after each one."""
        return False

    def should_stop_now(self) -> bool:
        """Whether to end the training during a validation, as a signal does; asked between its batches.

        Then the validation has no result, and the next call of `train` does it again. A time limit belongs into
        `should_stop`: here, a limit shorter than a validation would stop every validation.
        """
        return False

    def should_save(self) -> bool:
        """Whether to write a checkpoint now and go on; asked between steps and between batches of a validation.

        `on_save` follows.
        """
        return False

    def on_end(self) -> None:
        """The training has ended, perhaps with an error; called once per `on_start`."""


class Callbacks(Callback):
    """Several callbacks as one: each is called in turn."""

    def __init__(self, callbacks: Iterable[Callback] = ()) -> None:
        self._callbacks = tuple(callbacks)

    @contextmanager
    def running(self, first_step: int, num_steps: int | None) -> Iterator[None]:
        """Call `on_start`, and at the end `on_end` of each callback that was started."""
        with ExitStack() as ends:
            for callback in self._callbacks:
                callback.on_start(first_step, num_steps)
                ends.callback(callback.on_end)
            yield

    def on_step(self, step: int, report: StepReport) -> None:
        for callback in self._callbacks:
            callback.on_step(step, report)

    def on_report(self, report: TrainingReport) -> None:
        for callback in self._callbacks:
            callback.on_report(report)

    def on_validation(self, step: int, report: ValidationReport, translator: Translator) -> None:
        for callback in self._callbacks:
            callback.on_validation(step, report, translator)

    def on_save(self, step: int, folder: Path) -> None:
        for callback in self._callbacks:
            callback.on_save(step, folder)

    def should_stop(self) -> bool:
        return any([callback.should_stop() for callback in self._callbacks])

    def should_stop_now(self) -> bool:
        return any([callback.should_stop_now() for callback in self._callbacks])

    def should_save(self) -> bool:
        return any([callback.should_save() for callback in self._callbacks])
