"""Training in float16: the loss is scaled so that gradients neither vanish nor overflow."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from transformer_cli.checkpoint.run_folder import StateValues
from transformer_cli.config import TrainingConfig
from transformer_cli.process.device import Machine
from transformer_cli.process.errors import DataError, TrainingStoppedError
from transformer_cli.training.callbacks import Meter
from transformer_cli.training.loop import Experiment, Progress
from transformer_cli.training.optimizers import GRADIENT_SCALE, GradientScale, Optimizer

from .tiny_world import World, assert_equal, experiment, run, settings, tensors_of, train

CPU = torch.device("cpu")
HALF, FULL, BRAIN = (Machine(CPU, dtype) for dtype in (torch.float16, torch.float32, torch.bfloat16))
FIRST_SCALE = 65_536.0


def scale_of(**values: Any) -> GradientScale:
    scale = GradientScale(CPU)
    scale.restore(StateValues({GRADIENT_SCALE: {"growth_tracker": 0, **values}}, "state.json"))
    return scale


def with_scale(training: TrainingConfig, **values: Any) -> Experiment:
    one = experiment(training, machine=HALF)
    one.optimizer.scale = scale_of(**values)
    return one


@pytest.mark.heavy
@pytest.mark.parametrize(
    "changes",
    [{}, {"r_drop": 1.0}, {"optimizer": "muon"}, {"optimizer": "adafactor", "ema_decay": 0.9}],
    ids=str,
)
def test_training_in_float16_follows_training_in_float32(changes: dict[str, Any]) -> None:
    training = settings(log_every=1, max_steps=30, clip_norm=0.5, **changes)
    losses = []
    for machine in (HALF, FULL):
        world = World()
        run(experiment(training, machine=machine), world)
        losses.append([report.loss for report in world.reports])
        assert {r.gradient_scale for r in world.reports} == {FIRST_SCALE if machine is HALF else None}
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert losses[0] != losses[1]
    assert losses[0][-1] < 0.8 * losses[0][0]


@pytest.mark.parametrize("scale", [1.0, FIRST_SCALE])
def test_a_small_gradient_survives_float16_only_if_it_is_scaled(scale: float) -> None:
    layer = nn.Linear(4, 3)
    optimizer = Optimizer(layer, settings(), torch.float16)
    optimizer.scale = scale_of(scale=scale)
    with torch.autocast("cpu", torch.float16):
        loss = 1e-9 * layer(torch.ones(2, 4)).float().sum()
    optimizer.scale.scaled(loss).backward()
    optimizer.scale.unscale(optimizer.torch_optimizers)
    expected = torch.full_like(layer.weight, 2e-9 if scale > 1.0 else 0.0)
    assert layer.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad, expected, rtol=1e-2, atol=0.0)


@pytest.mark.long
def test_an_overflow_halves_the_scale_until_an_update_succeeds_and_does_not_end_the_run() -> None:
    """More updates are skipped in a row than `max_skipped_in_a_row` allows for other reasons."""
    one = with_scale(settings(log_every=1, max_steps=40, max_skipped_in_a_row=3), scale=2.0**40)
    states = [tensors_of(one)]
    world = World(watch=lambda name, step: name == "step" and states.append(tensors_of(one)))
    run(one, world)
    counts = [report.num_skipped for report in world.reports]
    num_at_first = sum(count == step for step, count in enumerate(counts, start=1))
    assert num_at_first > 10
    assert world.reports[-1].gradient_scale == 2.0**40 / 2.0 ** counts[-1]
    for state in states[1 : num_at_first + 1]:
        assert_equal(state, states[1])
        assert_equal(states[0], {name: state[name] for name in states[0]})
    assert not torch.equal(states[num_at_first + 1]["output.weight"], states[0]["output.weight"])
    assert world.saved[-1][1]["num_skipped_in_a_row"] == 0


def test_at_a_scale_of_one_bad_updates_count_and_end_the_run() -> None:
    one = with_scale(settings(max_steps=40, max_skipped_in_a_row=3), scale=4.0)
    next(one.model.parameters()).register_hook(lambda gradient: gradient * math.nan)
    with pytest.raises(TrainingStoppedError, match=r"step 5: the last 3 updates"):
        run(one, World())


@pytest.mark.long
def test_after_2000_good_updates_the_scale_is_doubled_also_across_a_resume() -> None:
    """The count of good updates is saved, so a resumed run doubles the scale at the same update."""
    training = settings(log_every=1)
    whole, half = (with_scale(training, scale=8.0, growth_tracker=1_995) for _ in range(2))
    world, first = World(), World(watch=lambda call, step: (call, step) == ("step", 3))
    run(whole, world)
    assert [report.gradient_scale for report in world.reports] == [8.0] * 4 + [16.0] * 5
    progress = run(half, first)
    assert half.optimizer.scale is not None
    saved = half.optimizer.scale.to_json()
    assert saved == {"scale": 8.0, "growth_tracker": 1_998}
    rest = with_scale(training, **saved)
    rest.model.load_state_dict(half.model.state_dict())
    rest.optimizer.restore(half.optimizer.state())
    second = World()
    continued = Experiment(rest.model, rest.optimizer, rest.objective, half.updates, training, HALF, rest.runner, 7)
    train(continued, progress, Meter(CPU), second)
    assert [r.gradient_scale for r in second.reports] == [8.0] + [16.0] * 5
    assert_equal(tensors_of(rest), tensors_of(whole))


@pytest.mark.parametrize("machine", [FULL, BRAIN], ids=str)
def test_in_other_precisions_nothing_is_scaled_and_nothing_saved(machine: Machine) -> None:
    assert Optimizer(nn.Linear(4, 3), settings(), machine.precision).scale is None


def test_a_checkpoint_of_a_run_that_did_not_scale_begins_with_the_first_scale() -> None:
    scale = GradientScale(CPU)
    scale.restore(StateValues({"progress": Progress().to_json()}, "state.json"))
    assert scale.to_json() == {"scale": FIRST_SCALE, "growth_tracker": 0}


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"scale": 0.0},
        {"scale": -2.0},
        {"scale": math.inf},
        {"scale": math.nan},
        {"scale": "2"},
        {"scale": 2.0, "growth_tracker": -1},
    ],
    ids=str,
)
def test_a_forged_scale_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"state\.json: gradient_scale\.\w+ is"):
        scale_of(**values)
