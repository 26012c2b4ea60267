"""Callbacks: what a caller adds to a training run, such as a progress bar or a log; and the reports that they get."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_cli.checkpoint.stored import StateValues
from transformer_cli.decoding.translator import Translator
from transformer_cli.evaluation import ValidationReport
from transformer_cli.training.step import StepReport

# What is measured between two reports: sums of losses and tokens, and the speed.


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """The training since the last report; losses are means per target token."""

    step: int
    epoch: int
    objective: float  # label-smoothed, in nats
    loss: float  # negative log-likelihood, in nats
    learning_rate: float
    gradient_norm: float  # of the last update, before clipping
    target_tokens_per_second: float
    source_tokens_per_second: float
    num_skipped: (
        int  # updates of the whole run that were skipped, because the gradient was not finite
    )
    num_target_tokens: int  # that the means count, so without those of skipped updates
    gradient_scale: float | None = None  # of the next update, in float16; None in other precisions


class Meter:
    """The speed, and sums since the last report; the sums stay on the device until they are needed."""

    LOSSES = ("objective", "negative_log_likelihood")
    FIELDS = (*LOSSES, "num_target_tokens", "num_skipped", "num_skipped_in_a_row")

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # float64, because float32 rounds sums over many steps; Apple GPUs have no float64.
        dtype = torch.float32 if device.type == "mps" else torch.float64
        self.sums: dict[str, Tensor] = {
            name: torch.zeros((), dtype=dtype, device=device) for name in self.FIELDS
        }
        self.start_lap()

    def start_lap(self) -> None:
        """Measure the speed from now on: over all tokens, those of skipped updates included."""
        self.num_source_tokens_seen = self.num_target_tokens_seen = 0
        self._lap_started_at = time.perf_counter()

    def add(self, report: StepReport) -> None:
        """Count one update; a skipped update adds no loss and no tokens to the sums."""
        is_skipped = ~report.is_finite
        for name in self.LOSSES:
            value = getattr(report, name).to(self.sums[name].dtype)
            self.sums[name] += torch.where(is_skipped, 0.0, value)
        self.sums["num_target_tokens"] += report.num_target_tokens * report.is_finite
        self.sums["num_skipped"] += is_skipped
        in_a_row = self.sums["num_skipped_in_a_row"]
        # While float16 searches for its scale, skipped updates say nothing about the training.
        may_be_scale = report.is_scale_too_large
        is_bad = is_skipped if may_be_scale is None else is_skipped & ~may_be_scale
        self.sums["num_skipped_in_a_row"] = (in_a_row + is_bad) * is_skipped
        self.num_source_tokens_seen += report.num_source_tokens
        self.num_target_tokens_seen += report.num_target_tokens

    def start_interval(self) -> None:
        """Set the sums to 0 after a report; skipped updates are counted over the whole run."""
        self.start_lap()
        for name in (*self.LOSSES, "num_target_tokens"):
            self.sums[name] = torch.zeros_like(self.sums[name])

    def means(self) -> dict[str, float]:
        """The losses per target token; NaN if every update was skipped."""
        num_tokens = self.sums["num_target_tokens"].item() or math.nan
        return {name: self.sums[name].item() / num_tokens for name in self.LOSSES}

    def tokens_per_second(self) -> tuple[float, float]:
        """Source and target tokens a second, without pauses."""
        seconds = max(time.perf_counter() - self._lap_started_at, 1e-9)
        return self.num_source_tokens_seen / seconds, self.num_target_tokens_seen / seconds

    @contextmanager
    def paused(self, *, is_long: bool) -> Iterator[None]:
        """Leave out the time of the block, such as a validation or a save.

        Args:
            is_long: whether the block will take time; a GPU then first finishes the updates that are queued, because
                their time counts.
        """
        if is_long and self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        pause_started_at = time.perf_counter()
        yield
        self._lap_started_at += time.perf_counter() - pause_started_at

    def to_json(self) -> dict[str, float]:
        return {name: value.item() for name, value in self.sums.items()}

    def restore(self, values: StateValues | Mapping[str, Any]) -> None:
        """Put back what `to_json` gave.

        Raises:
            DataError: a value is missing, or cannot be that of a training run.
        """
        state = values if isinstance(values, StateValues) else StateValues(values, "state.json")
        for name in self.FIELDS:
            value = state.number(name)
            if name not in self.LOSSES and not (value >= 0.0 and value.is_integer()):
                raise state.refusal(name, f"is {value} instead of a whole number from 0 on")
            self.sums[name].fill_(value)


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
        """A checkpoint is on the disk.

        A checkpoint is written before the validation of its step, which may take long, and once more behind it if the
        validation has given it a score: then this is called twice for the step.
        """

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
