"""A tiny experiment, and callbacks that record the calls of the training loop."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from transformer_cli.acceleration import accelerate
from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.order import Budget, EpochOrder, UpdateSize
from transformer_cli.data.updates import Position, StoredUpdates, Updates
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.training.advice import Alarms
from transformer_cli.training.callbacks import (
    Callback,
    Callbacks,
    Meter,
    StepReport,
    TrainingReport,
)
from transformer_cli.training.loop import (
    Experiment,
    Progress,
    UpdateRunner,
    Validated,
    build_objective,
    run_loop,
)
from transformer_cli.training.optimizers import MovingAverage, Optimizer

from ..data.pair_list import PairList

MACHINE = Machine(torch.device("cpu"), torch.float32)
MODEL = ModelConfig(d_model=8, num_heads=2, d_ff=16, encoder_layers=1, decoder_layers=1)
EOS = 3
# 11 pairs of different lengths: 4 batches of 3 and so 2 updates of 2 batches per epoch.
PAIRS = [TokenPair([4 + i % 5, EOS], [*[4 + i % 3] * (1 + i % 4), EOS]) for i in range(11)]


def settings(**changes: Any) -> TrainingConfig:
    defaults: dict[str, Any] = {
        "max_steps": 9,
        "batch_sentences": 3,
        "accumulate": 2,
        "learning_rate": 1e-2,
        "warmup_steps": 4,
        "log_every": 3,
        "validate_every": 4,
        "save_every": 5,
        "best_metric": "loss",
    }
    return TrainingConfig(**defaults | changes)


def experiment(
    training: TrainingConfig,
    position: tuple[int, int] = (0, 0),
    pairs: list[TokenPair] = PAIRS,
    *,
    machine: Machine = MACHINE,
) -> Experiment:
    torch.manual_seed(0)
    model = accelerate(Transformer(MODEL, 9, 9), machine.device)
    known = PairList(pairs)
    budget = Budget(sentences=training.batch_sentences)
    order = EpochOrder(known.lengths, known.corpus_sizes, [1.0], budget, 7)
    updates = Updates(
        StoredUpdates(known, order, UpdateSize(training.accumulate, training.update_tokens)), Position(*position)
    )
    optimizer = Optimizer(model, training, machine.precision)
    objective = build_objective(training, 9, machine.device)
    decay = training.ema_decay
    runner, average = UpdateRunner(machine), None if decay is None else MovingAverage(model, decay)
    return Experiment(model, optimizer, objective, updates, training, machine, runner, 7, average)


@dataclass
class World(Callback):
    """Writes down what the loop calls; where `watch` says so, it asks to stop."""

    values: Callable[[int], float] = lambda step: 10.0 - step
    losses: Callable[[int], float] = lambda step: 1.0
    wants_save_after: str = ""
    watch: Callable[[str, int], bool | None] = lambda call, step: False
    calls: list[str] = field(default_factory=list)
    reports: list[TrainingReport] = field(default_factory=list)
    saved: list[tuple[Progress, dict[str, float]]] = field(default_factory=list)
    is_stopped: bool = False
    wants_save: bool = False
    is_patient: bool = False  # a request to stop waits for the end of a validation

    def note(self, call: str, step: int) -> None:
        self.calls.append(f"{call} {step}")
        self.is_stopped |= bool(self.watch(call, step))
        self.wants_save |= self.calls[-1] == self.wants_save_after

    def on_step(self, step: int, report: StepReport) -> None:
        self.note("step", step)

    def on_report(self, report: TrainingReport) -> None:
        self.reports.append(report)
        self.note("report", report.step)

    def should_stop(self) -> bool:
        return self.is_stopped

    def should_stop_now(self) -> bool:
        return self.is_stopped and not self.is_patient

    def should_save(self) -> bool:
        return self.wants_save

    def validate(self, step: int, must_stop_now: Callable[[], bool]) -> Validated | None:
        """In two batches; of the value, lower is better."""
        self.note("validate", step)
        for number in (1, 2):
            self.note(f"batch-{number}", step)
            if must_stop_now():
                return None
        return Validated(-self.values(step), self.losses(step))

    def save(self, progress: Progress, meter: Meter) -> None:
        self.saved.append((progress, meter.to_json()))
        self.wants_save = False
        self.note("save", progress.step)

    def without_steps(self) -> list[str]:
        return [call for call in self.calls if not call.startswith(("step", "batch"))]


def train(one: Experiment, progress: Progress, meter: Meter, world: World) -> Progress:
    callbacks = Callbacks([world, Alarms(vocab_size=9)])
    with one.updates, callbacks.running(progress.step, None):
        return run_loop(one, progress, meter, validate=world.validate, save=world.save, callbacks=callbacks)


def run(one: Experiment, world: World, progress: Progress | None = None) -> Progress:
    return train(one, progress or Progress(), Meter(MACHINE.device), world)


def tensors_of(one: Experiment) -> dict[str, torch.Tensor]:
    state = one.model.state_dict() | one.optimizer.state()
    return {name: value.clone() for name, value in state.items()}


def assert_equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name, value in one.items() if not torch.equal(value, other[name])] == []
