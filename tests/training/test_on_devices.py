"""Whole updates on a GPU (`pytest -m gpu`); the same tests run on a CPU, so that they are known to work."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from transformer_cli.acceleration import accelerate
from transformer_cli.config import RuntimeConfig
from transformer_cli.data.updates import Batch
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine, prepare_machine
from transformer_cli.training.callbacks import Meter
from transformer_cli.training.loop import (
    Experiment,
    Progress,
    UpdateRunner,
    build_objective,
)
from transformer_cli.training.optimizers import MovingAverage, Optimizer

from .tiny_world import MODEL, World, assert_equal, experiment, settings, tensors_of, train

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
PRECISIONS = ["float32", "bfloat16", "float16"]


def machine_of(device: str, precision: str) -> Machine:
    config = RuntimeConfig.model_validate({"device": device, "precision": precision})
    return prepare_machine(config)


def on(machine: Machine, **changes: Any) -> tuple[Experiment, Meter]:
    """The tiny experiment, with its model on this machine."""
    training = settings(log_every=1, **changes)
    one = experiment(training)
    torch.manual_seed(0)
    model = accelerate(Transformer(MODEL, 9, 9), machine.device).to(machine.device)
    decay = training.ema_decay
    runner, average = UpdateRunner(machine), None if decay is None else MovingAverage(model, decay)
    optimizer = Optimizer(model, training, machine.precision)
    objective = build_objective(training, 9, machine.device)
    return (
        Experiment(model, optimizer, objective, one.updates, training, machine, runner, 7, average),
        Meter(machine.device),
    )


@contextmanager
def waiting_is_an_error(device: torch.device) -> Iterator[None]:
    """Where the CPU waits for a GPU within the block, PyTorch raises an error."""
    if device.type != "cuda":
        yield
        return
    try:
        with warnings.catch_warnings():  # PyTorch warns of a prototype, after it has set the mode
            warnings.simplefilter("ignore")
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_what_pytorch_says_in_the_first_backward_pass_on_a_gpu_fails_no_test() -> None:
    warnings.warn(
        "Attempting to run cuBLAS, but there was no current CUDA context! Attempting to set the primary context...",
        stacklevel=1,
    )


@pytest.mark.heavy
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "changes",
    [{}, {"r_drop": 1.0, "ema_decay": 0.9}, {"optimizer": "adamw"}, {"optimizer": "muon"}],
    ids=str,
)
def test_an_update_waits_for_nothing_and_the_loss_is_that_of_float32(
    device: str, precision: str, changes: dict[str, Any]
) -> None:
    """The first updates fill caches; from then on no operation may make the CPU wait."""
    losses = []
    for machine in (machine_of(device, precision), Machine(torch.device("cpu"), torch.float32)):
        one, meter = on(machine, **changes)
        one.optimizer.learning_rate = 1e-3
        with one.updates:
            updates: list[list[Batch]] = [next(one.updates) for _ in range(6)]
        for number, batches in enumerate(updates):
            torch.manual_seed(number)
            if number < 2:
                update(one, meter, number, batches)
                continue
            with waiting_is_an_error(machine.device):
                update(one, meter, number, batches)
        losses.append(meter.sums["negative_log_likelihood"].item() / meter.sums["num_target_tokens"].item())
    assert losses[0] == pytest.approx(losses[1], rel=0.1)  # dropout draws other numbers


def update(one: Experiment, meter: Meter, number: int, batches: list[Batch]) -> None:
    report = one.runner.run(
        one.model.train(),
        one.optimizer,
        one.objective,
        batches,
        seed=number,
        clip_norm=1.0,
    )
    if one.average is not None:
        one.average.update(number + 1, report.is_finite)
    meter.add(report)


@pytest.mark.long
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_run_learns_and_its_optimizer_decides_on_the_device(device: str, precision: str) -> None:
    machine = machine_of(device, precision)
    one, meter = on(machine, max_steps=40)
    assert one.optimizer.decides_on_device
    world = World()
    train(one, Progress(), meter, world)
    assert world.reports[-1].loss < 0.8 * world.reports[0].loss
    assert world.reports[-1].num_skipped == 0


@pytest.mark.parametrize("device", DEVICES)
def test_a_gradient_that_is_not_finite_changes_no_weight_in_float16(device: str) -> None:
    one, meter = on(machine_of(device, "float16"), max_steps=2)
    next(one.model.parameters()).register_hook(lambda gradient: gradient * float("nan"))
    before = {name: value.clone() for name, value in one.model.state_dict().items()}
    world = World()
    train(one, Progress(), meter, world)
    after = tensors_of(one)
    assert_equal(before, {name: after[name] for name in before})
    assert [report.gradient_scale for report in world.reports] == [32_768.0, 16_384.0]
