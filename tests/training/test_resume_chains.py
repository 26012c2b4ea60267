"""A run that is stopped and continued any number of times, at any step (C2, C4, C10)."""

import functools
import json
from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from transformer_cli.checkpoint.run_folder import RAW, Checkpoint
from transformer_cli.config import TrainingConfig
from transformer_cli.data import updates
from transformer_cli.training.callbacks import Meter
from transformer_cli.training.loop import Progress
from transformer_cli.training.optimizers import restore_tensors, tensors_to_save

from .tiny_world import MACHINE, World, assert_equal, experiment, train
from .tiny_world import settings as training_settings

pytestmark = pytest.mark.long

TRAINING = training_settings(clip_norm=0.5, max_steps=12, log_every=5, patience=9)
WSD = {"schedule": "warmup_stable_decay", "decay_steps": 5, "min_learning_rate": 1e-3}
VARIANTS = {
    "adamw, cosine": {"optimizer": "adamw", "schedule": "cosine", "min_learning_rate": 1e-3},
    "adafactor, linear": {"optimizer": "adafactor", "weight_decay": 0.1, "schedule": "linear"},
    "muon, warm-up, stable, decay": {"optimizer": "muon", "weight_decay": 0.1, **WSD},
    "plateau": {"schedule": "plateau", "plateau_patience": 1, "plateau_factor": 0.3},
    "moving average": {"ema_decay": 0.9},
    "moving average of muon": {"ema_decay": 0.5, "optimizer": "muon"},
}
Tensors = dict[str, torch.Tensor]
Found = tuple[Tensors, list[tuple[Any, ...]], Progress]


def trained_with_stops(cuts: list[int], *, forgets: str = "", training: TrainingConfig = TRAINING) -> Found:
    """Train and stop after each of these steps; each continuation gets only the saved JSON and tensors.

    Args:
        cuts: the steps.
        forgets: a part of the state that the continuation does not get.
        training: the settings.
    """
    progress, meter_state, saved = Progress(), Meter(MACHINE.device).to_json(), None
    reports: list[tuple[Any, ...]] = []
    for cut in [*sorted(cuts), training.max_steps]:
        assert cut is not None
        one = experiment(training, tuple(progress.position))
        if saved is not None:
            restore_tensors(cast(Checkpoint, saved), one.model, one.optimizer, one.average)
        meter = Meter(MACHINE.device)
        meter.restore(meter_state)
        world = World(
            values=lambda step: abs(4.0 - step),  # the first validation, after step 4, is the best
            watch=lambda call, step, cut=cut: (call, step) == ("step", cut),
        )
        progress = train(one, progress, meter, world)
        progress = Progress.from_json(json.loads(json.dumps(progress.to_json())))
        if forgets == "the position":
            progress = Progress.from_json(progress.to_json() | {"position": (0, 0)})
        if forgets == "the plateau":
            progress = replace(progress, plateau_drops=0)
        meter_state = json.loads(json.dumps(meter.to_json()))
        saved = Saved(*map(cloned, tensors_to_save(one.model, one.optimizer, one.average)))
        if forgets == "the moments":
            zeros = {name: torch.zeros_like(value) for name, value in saved.tensors[1].items()}
            saved = Saved(saved.tensors[0], zeros)
        if forgets == "the raw weights":
            raw = {f"{name}{RAW}": value for name, value in saved.tensors[0].items()}
            saved = Saved(saved.tensors[0], saved.tensors[1] | raw)
        reports += [(r.step, r.epoch, r.loss, r.objective, r.gradient_norm, r.learning_rate) for r in world.reports]
    return saved.tensors[0] | saved.tensors[1], reports, progress


class Saved:
    """The tensors of a checkpoint, without a disk."""

    def __init__(self, model: Tensors, optimizer: Tensors) -> None:
        self.tensors = model, optimizer

    def model(self, expected: Tensors) -> Tensors:
        return self._checked(self.tensors[0], expected)

    def optimizer(self, expected: Tensors) -> Tensors:
        return self._checked(self.tensors[1], expected)

    def _checked(self, tensors: Tensors, expected: Tensors) -> Tensors:
        shapes = [{name: (t.shape, t.dtype) for name, t in one.items()} for one in (tensors, expected)]
        assert shapes[0] == shapes[1]
        return dict(tensors)


def cloned(tensors: Tensors) -> Tensors:
    return {name: value.clone() for name, value in tensors.items()}


@functools.cache
def whole_training() -> Found:
    return trained_with_stops([])


@pytest.mark.heavy
@settings(max_examples=6)
@given(cuts=st.lists(st.integers(1, 11), unique=True, min_size=1, max_size=6))
def test_a_run_stopped_anywhere_and_often_ends_bit_for_bit_alike(cuts: list[int]) -> None:
    tensors, reports, progress = trained_with_stops(cuts)
    assert_equal(tensors, whole_training()[0])
    assert reports == whole_training()[1]
    assert progress == whole_training()[2]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_optimizer_schedule_and_average_continues_bit_for_bit(variant: str) -> None:
    training = training_settings(**TRAINING.model_dump(exclude_unset=True) | VARIANTS[variant])
    whole = trained_with_stops([], training=training)
    tensors, reports, progress = trained_with_stops([1, 2, 4, 5, 8, 9, 11], training=training)
    assert_equal(tensors, whole[0])
    assert (reports, progress) == whole[1:]
    assert any(
        not torch.equal(value, whole_training()[0][name])
        for name, value in whole[0].items()
        if name in whole_training()[0]
    )


@pytest.mark.parametrize(
    ("variant", "forgets"),
    [
        ("plateau", "the plateau"),
        ("moving average", "the raw weights"),
        ("muon, warm-up, stable, decay", "the moments"),
        ("adafactor, linear", "the moments"),
    ],
)
def test_the_comparison_notices_what_a_variant_forgets(variant: str, forgets: str) -> None:
    training = training_settings(**TRAINING.model_dump(exclude_unset=True) | VARIANTS[variant])
    whole, _, _ = trained_with_stops([], training=training)
    tensors, _, _ = trained_with_stops([3, 9], forgets=forgets, training=training)
    assert any(not torch.equal(value, whole[name]) for name, value in tensors.items())


@pytest.mark.parametrize("forgets", ["the position", "the moments"])
def test_the_comparison_notices_what_is_forgotten(forgets: str) -> None:
    tensors, _, _ = trained_with_stops([3, 7], forgets=forgets)
    assert any(not torch.equal(value, whole_training()[0][name]) for name, value in tensors.items())


@pytest.mark.parametrize("num_ahead", [1, 2, 64])
def test_how_far_batches_are_prepared_ahead_changes_nothing(num_ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """C4: also after a stop, which discards batches that were prepared but not used."""
    monkeypatch.setattr(updates, "UPDATES_AHEAD", num_ahead)
    assert_equal(trained_with_stops([])[0], whole_training()[0])
    assert_equal(trained_with_stops([2, 5])[0], whole_training()[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # a warning inside PyTorch
@pytest.mark.parametrize("halves", [(False, True), (True, False), (True, True)])
def test_compiled_and_plain_layers_continue_each_other(halves: tuple[bool, bool]) -> None:
    """C10: names and shapes are equal, values up to rounding; dropout is off, because its bits may differ."""
    training = training_settings(max_steps=6, validate_every=100, save_every=100)
    found = []
    for plan in ((False, False), halves):
        tensors: dict[str, torch.Tensor] = {}
        moments: dict[str, torch.Tensor] = {}
        progress = Progress()
        torch.compiler.reset()
        for cut, is_compiled in zip((3, 6), plan, strict=True):
            one = experiment(training, tuple(progress.position))
            for module in one.model.modules():
                if isinstance(module, nn.Dropout):
                    module.p = 0.0
            if tensors:
                one.model.load_state_dict(tensors)
                one.optimizer.restore(moments)
            if is_compiled:
                for layer in (*one.model.encoder.layers, *one.model.decoder.layers):
                    layer.compile(backend="aot_eager")
            world = World(watch=lambda call, step, cut=cut: (call, step) == ("step", cut))
            progress = train(one, progress, Meter(MACHINE.device), world)
            tensors = {name: value.clone() for name, value in one.model.state_dict().items()}
            moments = one.optimizer.state()
        found.append(tensors | moments)
    assert list(found[0]) == list(found[1])
    assert not any("_orig_mod" in name for name in found[0])
    for name, value in found[0].items():
        # The same number added to all keys changes no attention weight: the gradient of a key's bias is nothing but
        # rounding, and Adam scales it up.
        if "key.bias" not in name:
            torch.testing.assert_close(found[1][name], value, rtol=1e-4, atol=1e-5)
