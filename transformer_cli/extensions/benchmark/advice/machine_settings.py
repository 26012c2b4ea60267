"""Suggestions about `runtime`, for training and translating alike."""

from dataclasses import dataclass

import torch

from transformer_cli.config import RuntimeConfig
from transformer_cli.extensions.benchmark.advice.trials import Suggestion
from transformer_cli.process.device import Machine, num_usable_cpus, prepare_machine


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

    def unit(self, *, changes_threads: bool) -> str:
        """The unit of time of a trial: CPU-seconds if they are comparable, because other programs disturb them less."""
        return "CPU-second" if self.device == "cpu" and not changes_threads else "second"


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
