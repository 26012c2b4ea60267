"""What limits the training, and which settings might help: from measured figures to sentences.

A suggestion is a change that is worth a trial. The benchmark makes the trial, and advises the change if it helped.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from transformer_cli.extensions.benchmark.advice.machine_settings import (
    MachineFacts,
    other_precision,
    other_threads,
)
from transformer_cli.extensions.benchmark.advice.trials import LEAST_GAIN, Suggestion, worth_trying
from transformer_cli.extensions.benchmark.training.timed_updates import DATA, OPTIMIZER, OTHER
from transformer_cli.extensions.benchmark.training.training_figures import TrainingFigures

MUCH_PADDING, MUCH_WAITING = 0.1, 0.02
MEMORY_TO_USE = 0.8
"""The share of the memory that a suggestion plans to use; the rest is for batches that differ."""
LARGEST_RAISE = 8.0
SMALL_SHARE = 0.15
"""A share of the peak below which the short kernels of a model may be what limits a GPU."""
LEAST_GAIN_OF_LARGER_BATCHES = 1.15
"""Larger updates change what a model learns from the same number of tokens, so they must gain more than noise."""
WHAT_IS_OTHER = (
    "Other work (Python code of the training loop, copies of batches to the device, the moving average of the weights, "
    "logging)"
)


@dataclass(frozen=True, slots=True)
class Situation:
    """Settings and facts, beside the figures, on which a suggestion depends."""

    machine: MachineFacts
    batch_setting: str
    """training.batch_tokens or training.batch_sentences."""
    batch_size: int
    accumulate: int
    update_tokens: int | None
    """training.update_tokens, which fixes the target tokens of an update."""
    num_batches: int
    """Of an epoch."""
    fixed_bytes: int
    """Memory that does not grow with the batch: libraries, weights, gradients and the optimizer's state."""
    is_compiled: bool
    may_record: bool
    """Whether runtime.cuda_graphs can be set, and is not."""
    padding_at: Mapping[int, float]
    """The share of padding for other values of training.batch_tokens."""

    @property
    def keeps_update(self) -> bool:
        """Whether an update keeps its size when batches are larger: it then consists of fewer batches."""
        return self.accumulate > 1 or self.update_tokens is not None


def limit_of(figures: TrainingFigures) -> str:
    """One sentence: the phase that takes the most time, and the share of the peak."""
    name, phase = max(figures.phases.items(), key=lambda item: item[1].share)
    subject = WHAT_IS_OTHER if name == OTHER else f"{name[0].upper()}{name[1:]}"
    limit = (
        f"{subject} takes {phase.share:.0%} of an update of "
        f"{figures.update_milliseconds.median:,.0f} ms; the matrix products reach "
        f"{figures.share_of_peak:.0%} of this machine's peak"
    )
    waiting = figures.phases[DATA].share
    if waiting >= MUCH_WAITING:
        limit += f"; waiting for data takes {waiting:.0%}: one thread prepares the batches"
    if figures.num_halvings:
        limit += f"; {figures.num_halvings} batches did not fit into memory and were cut in two"
    return limit


def suggestions(figures: TrainingFigures, situation: Situation) -> list[Suggestion]:
    """What is worth a trial, the largest expected gain first."""
    return worth_trying(rule(figures, situation) for rule in RULES)


def _precision(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    return other_precision(situation.machine)


def _threads(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    return other_threads(situation.machine)


def _compiling(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    if situation.machine.device != "cuda" or situation.is_compiled:
        return None
    because = "the layers are not compiled"
    return Suggestion(because, "set runtime.compile=true", ("runtime.compile=true",), 1.2)


def _cuda_graphs(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    share = figures.share_of_peak
    if situation.machine.device != "cuda" or not situation.may_record or share > SMALL_SHARE:
        return None
    because = f"the matrix products reach only {share:.0%} of the peak, as if the GPU waited for the CPU to start them"
    gain = min(2.0, SMALL_SHARE / max(share, 0.01))
    return Suggestion(because, "set runtime.cuda_graphs=true", ("runtime.cuda_graphs=true",), gain)


def _core_for_data(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    waiting, now = figures.phases[DATA].share, situation.machine.num_threads
    has_no_core = now > 2 and now >= situation.machine.num_cores
    if situation.machine.device != "cpu" or waiting < MUCH_WAITING or not has_no_core:
        return None
    because = f"waiting for data takes {waiting:.0%} of an update"
    what = f"leave a core for the thread that prepares batches: set runtime.threads={now - 1}"
    return Suggestion(because, what, (f"runtime.threads={now - 1}",), 1.0 / (1.0 - waiting))


def _padding(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    now = figures.padding_share
    if now < MUCH_PADDING or not situation.padding_at:
        return None
    batch_tokens, padding = min(situation.padding_at.items(), key=lambda item: item[1])
    because = f"padding is {now:.0%} of a batch"
    overrides: tuple[str, ...] = (f"training.batch_tokens={batch_tokens}",)
    verb = "lower training.batch_tokens to"
    if situation.batch_setting == "training.batch_sentences":
        overrides = ("training.batch_sentences=null", *overrides)
        verb = "replace training.batch_sentences by training.batch_tokens:"
    what = f"{verb} {batch_tokens:,}, which leaves {padding:.0%}"
    return Suggestion(because, what, overrides, (1.0 - padding) / (1.0 - now))


def _larger_batches(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    factor = min(LARGEST_RAISE, _room_for_batches(figures, situation), situation.num_batches / 50)
    if situation.update_tokens is not None:
        # One batch is the least; a larger one would make the update larger than the setting says.
        factor = min(factor, figures.batches_per_update)
    if factor < 1.5:
        return None
    # Matrix products are larger, and the work that is done once per batch is done less often.
    less_often = figures.phases[OTHER].share
    if not situation.keeps_update:
        less_often += figures.phases[OPTIMIZER].share
    gain = 1.0 / (1.0 - less_often * (1.0 - 1.0 / factor))
    if situation.machine.device != "cpu":
        gain = max(gain, min(factor, 0.5 / max(figures.share_of_peak, 0.01)))
    least = LEAST_GAIN if situation.keeps_update else LEAST_GAIN_OF_LARGER_BATCHES
    return Suggestion(_memory_in_words(figures), *_raised(situation, factor), gain, least)


def _room_for_batches(figures: TrainingFigures, situation: Situation) -> float:
    """How many times as large batches fit into memory."""
    memory = figures.memory
    used, usable = (
        (memory.resident, memory.usable)
        if memory.device is None
        else (memory.device, memory.device_usable)
    )
    if used is None or usable is None or used <= situation.fixed_bytes:
        return 1.0
    room = MEMORY_TO_USE * usable - situation.fixed_bytes
    return room / (used - situation.fixed_bytes)


def _raised(situation: Situation, factor: float) -> tuple[str, tuple[str, ...]]:
    """Larger batches, of which an update has fewer if its size is set; in words and as overrides."""
    setting = situation.batch_setting
    if situation.accumulate > 1:
        accumulate = math.ceil(situation.accumulate / factor)
        size = situation.batch_size * situation.accumulate // accumulate
        changes = (f"{setting}={size}", f"training.accumulate={accumulate}")
        return (
            f"raise {setting} to {size:,} and lower training.accumulate to {accumulate}",
            changes,
        )
    size = _rounded(situation.batch_size * factor)
    if situation.update_tokens is not None:
        effect = f"an update keeps its size of about {situation.update_tokens:,} target tokens"
    else:
        effect = f"an update then sees {size / situation.batch_size:.1f} times as many tokens"
    return f"raise {setting} to {size:,} ({effect})", (f"{setting}={size}",)


def _rounded(number: float) -> int:
    """Two digits, then zeros; rounded down."""
    step: int = 10 ** max(0, len(str(int(number))) - 2)
    return int(number) // step * step


def _memory_in_words(figures: TrainingFigures) -> str:
    share = figures.memory.used_share or 0.0
    return f"{share:.0%} of the memory is used"


Rule = Callable[[TrainingFigures, Situation], Suggestion | None]
RULES: tuple[Rule, ...] = (
    _precision,
    _compiling,
    _cuda_graphs,
    _threads,
    _core_for_data,
    _padding,
    _larger_batches,
)
