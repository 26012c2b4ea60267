"""Suggested changes of settings, and the trials that show whether they help."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from transformer_cli.extensions.benchmark.measuring import Figures, Pacing, spread
from transformer_cli.process.device import Machine, has_fast_bfloat16, num_usable_cpus
from transformer_cli.process.errors import TfmError

logger = logging.getLogger(__name__)

LEAST_GAIN = 1.03  # below this factor a trial cannot tell a gain from noise
HOPELESS = 0.8  # a ratio below this ends a trial: another turn would only take time
Speed = Callable[[Any, str], float]  # measures target tokens per second or per CPU-second


class Suggestion(NamedTuple):
    """A change of settings that may make the work faster."""

    because: str  # what was measured
    what: str  # the change, in words
    overrides: tuple[str, ...]  # the change, as `--set` takes it
    expected: float  # how many times as fast the work may become; only for the order of the trials
    least_gain: float = LEAST_GAIN  # a trial that gives less has not helped


def setting(because: str, change: str, expected: float) -> Suggestion:
    """The suggestion to give one setting another value."""
    return Suggestion(because, f"set {change}", (change,), expected)


def worth_trying(found: Iterable[Suggestion]) -> list[Suggestion]:
    """The suggestions that promise a gain, the largest first."""
    return sorted((one for one in found if one.expected >= LEAST_GAIN), key=lambda one: -one.expected)


class MachineFacts(NamedTuple):
    """The machine, and what it could do."""

    device: str  # cpu, cuda or mps
    num_threads: int
    num_cores: int  # of the CPU, that this process may use
    could_use_bfloat16: bool  # this machine is fast at it, and matrix products are in float32

    @classmethod
    def of(cls, machine: Machine) -> "MachineFacts":
        """The facts of this machine."""
        could_be_faster = machine.precision == torch.float32 and has_fast_bfloat16(machine.device)
        return cls(machine.device.type, torch.get_num_threads(), num_usable_cpus(), could_be_faster)

    def suggestions(self) -> Iterator[Suggestion]:
        """Threads wait for each other, so on cores that other programs use too, one thread may be faster than two."""
        if self.could_use_bfloat16:
            because = "matrix products are in float32, and this machine is fast at bfloat16"
            yield setting(because, "runtime.precision=bfloat16", 2.0)
        now, other = self.num_threads, 1 if self.num_threads > 1 else self.num_cores
        if self.device == "cpu" and now != other:
            slower = "threads are slower than one thread" if now > 1 else f"thread is slower than {other} threads"
            yield setting(f"{now if now > 1 else 'one'} {slower}", f"runtime.threads={other}", 1.5)


class Trial(NamedTuple):
    """A suggestion that was measured."""

    suggestion: Suggestion
    ratio: float | None  # median: how many times as many target tokens; None: the trial failed
    low: float = 0.0
    high: float = 0.0
    unit: str = "second"  # or CPU-second
    failure: str = ""

    @property
    def has_helped(self) -> bool:
        """Whether it was faster, and in most turns."""
        return self.ratio is not None and self.ratio >= self.suggestion.least_gain and self.low > 1.0


def tried(suggestion: Suggestion, subject: Any, speed: Speed, *, num_turns: int) -> Trial:
    """The trial of a suggestion, by the speed of a `Trainee` or `Subject` without the change and with it, in turns.

    Noise of the machine changes slowly, so it disturbs both measurements of a turn alike.
    """
    logger.info("trying %s", " ".join(suggestion.overrides))
    unit, ratios = "second", list[float]()
    try:
        with subject.changed(suggestion.overrides) as other:
            if subject.machine.device.type == "cpu" and other.num_threads == subject.num_threads:
                unit = "CPU-second"  # other programs disturb it less
            speed(subject, unit), speed(other, unit)  # warms up
            while len(ratios) < num_turns and min(ratios, default=1.0) > HOPELESS:
                before = speed(subject, unit)
                ratios.append(speed(other, unit) / before)
    except TfmError as error:
        return Trial(suggestion, None, unit=unit, failure=error.message)
    found = spread(ratios)
    return Trial(suggestion, found["median"], found["low"], found["high"], unit)


def advised(limit: str, worth: Sequence[Suggestion], subject: Any, speed: Speed, pacing: Pacing) -> Figures:
    """The trials of the first suggestions, and a sentence that says what limits the work (`limit`) and what helped."""
    trials = [tried(one, subject, speed, num_turns=pacing.num_turns) for one in worth[: pacing.num_trials]]
    as_json = [one._asdict() | {"suggestion": one.suggestion._asdict()} for one in trials]
    return {"trials": as_json, "conclusion": conclusion(limit, trials)}


def conclusion(limit: str, trials: Sequence[Trial]) -> str:
    """What limits the work (`limit`, without its full stop) and what to change: only what helped in its trial is advised."""
    if helped := [trial for trial in trials if trial.has_helped]:
        best = max(helped, key=lambda trial: trial.ratio or 0.0)
        because, what, *_ = best.suggestion
        return (
            f"{limit}. {because[0].upper()}{because[1:]}: {what}. A trial of this gave {best.ratio:.2f} times "
            f"as many target tokens per {best.unit} ({best.low:.2f} to {best.high:.2f})."
        )
    results = ", ".join(
        f"{' '.join(one.suggestion.overrides)} ({'failed' if one.ratio is None else f'{one.ratio:.2f} times as fast'})"
        for one in trials
    )
    tail = f"Tried, and not faster in most turns: {results}" if trials else "No setting promises more"
    return f"{limit}. {tail}."
