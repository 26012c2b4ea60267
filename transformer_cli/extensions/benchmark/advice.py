"""Suggested changes of settings, and the trials that show whether they help."""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch

from transformer_cli.config import RuntimeConfig
from transformer_cli.extensions.benchmark.measuring import Spread
from transformer_cli.process.device import Machine, num_usable_cpus, prepare_machine
from transformer_cli.process.errors import TfmError

logger = logging.getLogger(__name__)

LEAST_GAIN = 1.03
"""Below this factor a trial cannot tell a gain from noise."""

HOPELESS = 0.8
"""A ratio below this ends a trial: another turn would only take time."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change of settings that may make the training faster."""

    because: str
    """What was measured."""
    what: str
    """The change, in words."""
    overrides: tuple[str, ...]
    """The change, as `--set` takes it."""
    expected: float
    """How many times as fast the training may become; only for the order of the trials."""
    least_gain: float = LEAST_GAIN
    """A trial that gives less has not helped."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A suggestion that was measured, in turns with the unchanged config."""

    suggestion: Suggestion
    ratio: float | None
    """Median: how many times as many target tokens; None: the trial failed."""
    low: float = 0.0
    high: float = 0.0
    unit: str = "second"
    """Per second, or per CPU-second."""
    failure: str = ""

    @property
    def has_helped(self) -> bool:
        """Whether it was faster, and in most turns."""
        return (
            self.ratio is not None and self.ratio >= self.suggestion.least_gain and self.low > 1.0
        )


def worth_trying(found: Iterable[Suggestion | None]) -> list[Suggestion]:
    """The suggestions that promise a gain, the largest first."""
    worth = [one for one in found if one is not None and one.expected >= LEAST_GAIN]
    return sorted(worth, key=lambda one: one.expected, reverse=True)


class Measurable(Protocol):
    """A model that is measured with the settings of a config."""

    @property
    def machine(self) -> Machine: ...

    @property
    def num_threads(self) -> int: ...


Measured = TypeVar("Measured", bound=Measurable)


def tried(
    suggestion: Suggestion,
    subject: Measured,
    changed: Callable[[Sequence[str]], AbstractContextManager[Measured]],
    speed: Callable[[Measured, str], float],
    *,
    num_turns: int,
) -> Trial:
    """The trial of a suggestion. Noise of the machine changes slowly, so it disturbs both measurements of a turn alike.

    Args:
        suggestion: the change.
        subject: what is measured without the change.
        changed: makes the same with other settings.
        speed: measures target tokens per second or per CPU-second.
        num_turns: how often both are measured.
    """
    logger.info("trying %s", " ".join(suggestion.overrides))
    unit, ratios = "second", list[float]()
    try:
        with changed(suggestion.overrides) as other:
            if subject.machine.device.type == "cpu" and other.num_threads == subject.num_threads:
                unit = "CPU-second"  # other programs disturb it less
            speed(subject, unit), speed(other, unit)  # warms up
            while len(ratios) < num_turns and min(ratios, default=1.0) > HOPELESS:
                before = speed(subject, unit)
                ratios.append(speed(other, unit) / before)
    except TfmError as error:
        return Trial(suggestion, None, unit=unit, failure=error.message)
    spread = Spread.of(ratios)
    return Trial(suggestion, spread.median, spread.low, spread.high, unit)


def conclusion(limit: str, trials: list[Trial]) -> str:
    """What limits the work and what to change; only a change that helped in its trial is advised.

    Args:
        limit: what limits the work, as a sentence without its full stop.
        trials: of all suggestions.
    """
    helped = [trial for trial in trials if trial.has_helped]
    if helped:
        best = max(helped, key=lambda trial: trial.ratio or 0.0)
        because, what = best.suggestion.because, best.suggestion.what
        return (
            f"{limit}. {because[0].upper()}{because[1:]}: {what}. A trial of this gave {best.ratio:.2f} times "
            f"as many target tokens per {best.unit} ({best.low:.2f} to {best.high:.2f})."
        )
    if not trials:
        return f"{limit}. No setting promises more."
    results = ", ".join(
        f"{' '.join(trial.suggestion.overrides)} "
        f"({'failed' if trial.ratio is None else f'{trial.ratio:.2f} times as fast'})"
        for trial in trials
    )
    return f"{limit}. Tried, and not faster in most turns: {results}."


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The machine, and what it could do."""

    device: str
    """cpu, cuda or mps."""
    num_threads: int
    num_cores: int
    """CPU cores that this process may use."""
    could_use_bfloat16: bool
    """Whether matrix products are in float32 although this machine is fast at bfloat16."""

    @classmethod
    def of(cls, machine: Machine) -> "MachineFacts":
        """The facts of this machine."""
        kind = machine.device.type
        automatic = prepare_machine(RuntimeConfig.model_validate({"device": kind}))
        is_fast = automatic.precision == torch.bfloat16
        is_float32 = machine.precision == torch.float32
        return cls(kind, torch.get_num_threads(), num_usable_cpus(), is_float32 and is_fast)


def other_precision(facts: MachineFacts) -> Suggestion | None:
    """bfloat16 instead of float32."""
    if not facts.could_use_bfloat16:
        return None
    because = "matrix products are in float32, and this machine is fast at bfloat16"
    return _setting(because, "runtime.precision=bfloat16", expected=2.0)


def other_threads(facts: MachineFacts) -> Suggestion | None:
    """One thread instead of several, or as many as there are cores instead of one.

    Threads wait for each other, so on cores that other programs use too, one thread may be faster than two.
    """
    now, other = facts.num_threads, 1 if facts.num_threads > 1 else facts.num_cores
    if facts.device != "cpu" or now == other:
        return None
    because = f"{_in_words(now)} slower than {_threads(other)}"
    return _setting(because, f"runtime.threads={other}", expected=1.5)


def _in_words(number: int) -> str:
    return f"{_threads(number)} {'is' if number == 1 else 'are'}"


def _threads(number: int) -> str:
    return "one thread" if number == 1 else f"{number} threads"


def _setting(because: str, change: str, *, expected: float) -> Suggestion:
    return Suggestion(because, f"set {change}", (change,), expected)
