"""The moving average of the weights against PyTorch's and against its formula."""

import copy
from pathlib import Path

import pytest
import torch
from safetensors.torch import save
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import RAW, Snapshot, open_checkpoint
from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.model import Transformer
from transformer_cli.process.errors import DataError, TrainingStoppedError
from transformer_cli.training.optimizers import (
    MovingAverage,
    Optimizer,
    restore_tensors,
    tensors_to_save,
)

from ..experiments import forge

SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1}
TRAINING = TrainingConfig(max_steps=9, batch_sentences=2, ema_decay=0.9)
GOOD, BAD = torch.tensor(True), torch.tensor(False)
IDS = torch.tensor([[4, 5, 3]])


def small_model(tying: str = "none") -> Transformer:
    torch.manual_seed(0)
    return Transformer(ModelConfig.model_validate({**SIZES, "tie_embeddings": tying}), 9, 9)


@torch.no_grad()
def moved(model: Transformer) -> None:
    """Other weights, as an update gives."""
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter))


def trained() -> tuple[Transformer, Optimizer, MovingAverage]:
    model = small_model()
    optimizer, average = Optimizer(model, TRAINING), MovingAverage(model, 0.9)
    optimizer.learning_rate = 0.1
    for step in (1, 2, 3):
        optimizer.zero_grad()
        model(IDS, torch.ones_like(IDS, dtype=torch.bool), IDS).square().sum().backward()
        optimizer.step_if(GOOD)
        average.update(step, GOOD)
    return model, optimizer, average


@pytest.mark.long
@pytest.mark.parametrize("tying", ["none", "target-output", "all"])
def test_late_in_a_run_it_is_the_average_of_pytorch(tying: str) -> None:
    model = small_model(tying)
    average = MovingAverage(model, 0.9)
    theirs = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    theirs.update_parameters(model)  # its first call copies the weights
    for step in range(1000, 1020):
        moved(model)
        average.update(step, GOOD)
        theirs.update_parameters(model)
    pairs = zip(average.model.parameters(), theirs.module.parameters(), strict=True)
    for one, other in pairs:
        assert torch.equal(one, other)


def test_early_in_a_run_it_forgets_the_first_weights_faster() -> None:
    model, decay = small_model(), 0.5
    expected = [parameter.detach().double() for parameter in model.parameters()]
    average = MovingAverage(model, decay)
    for step in range(1, 15):
        moved(model)
        average.update(step, GOOD)
        kept = min(decay, (1 + step) / (10 + step))  # 2/11, 3/12, ... up to 1/2
        expected = [
            kept * old + (1 - kept) * new.detach().double()
            for old, new in zip(expected, model.parameters(), strict=True)
        ]
    for found, wanted in zip(average.model.parameters(), expected, strict=True):
        torch.testing.assert_close(found.double(), wanted, rtol=1e-6, atol=1e-6)


def test_a_skipped_update_does_not_move_it() -> None:
    model = small_model()
    average = MovingAverage(model, 0.9)
    moved(model)
    before = copy.deepcopy(average.model.state_dict())
    average.update(5, BAD)
    assert all(torch.equal(before[n], value) for n, value in average.model.state_dict().items())
    average.update(5, GOOD)
    assert not all(torch.equal(before[n], value) for n, value in average.model.state_dict().items())


@pytest.mark.parametrize("is_good", [True, False])
def test_an_accelerator_computes_the_same_without_being_waited_for(
    is_good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of a GPU, on the CPU: `is_finite` says that it lies elsewhere, and refuses to be read."""

    class OnDevice(torch.Tensor):
        device = torch.device("cuda")  # type: ignore[assignment]

        def __bool__(self) -> bool:
            raise AssertionError("the CPU waits for the device")

    model = small_model()
    both = MovingAverage(model, 0.9), MovingAverage(model, 0.9)
    moved(model)
    both[0].update(3, torch.tensor(is_good))
    both[1].update(3, torch.tensor(is_good).as_subclass(OnDevice))
    for one, other in zip(*(average.model.parameters() for average in both), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_the_saved_model_is_the_average_and_training_goes_on_from_the_raw_weights(
    tmp_path: Path,
) -> None:
    model, optimizer, average = trained()
    translating, resuming = tensors_to_save(model, optimizer, average)
    for name, value in model.state_dict().items():
        assert torch.equal(resuming[name + RAW], value)
        assert torch.equal(translating[name], average.model.state_dict()[name])
    assert not torch.equal(translating["output.weight"], resuming["output.weight.raw"])
    folder = Checkpoints(tmp_path).save(Snapshot(3, translating, resuming, {}, {}))
    checkpoint = Checkpoints(tmp_path).newest_valid()
    assert checkpoint is not None
    assert checkpoint.folder == folder
    twin = small_model()
    twin_optimizer, twin_average = Optimizer(twin, TRAINING), MovingAverage(twin, 0.9)
    moved(twin)
    restore_tensors(checkpoint, twin, twin_optimizer, twin_average)
    found = tensors_to_save(twin, twin_optimizer, twin_average)
    for one, other in zip(found, (translating, resuming), strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], value) for name, value in other.items())


def test_a_checkpoint_with_another_kind_of_state_is_refused(tmp_path: Path) -> None:
    model, optimizer, average = trained()
    for saved, restored in ((average, None), (None, average)):
        folder = tmp_path / str(restored is None)
        Checkpoints(folder).save(Snapshot(3, *tensors_to_save(model, optimizer, saved), {}, {}))
        checkpoint = Checkpoints(folder).newest_valid()
        assert checkpoint is not None
        with pytest.raises(DataError, match=r"optimizer\.safetensors: .*raw"):
            restore_tensors(checkpoint, model, optimizer, restored)


@pytest.mark.long
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_raw_weights_that_are_not_finite_are_neither_saved_nor_read(tmp_path: Path, value: float) -> None:
    model, optimizer, average = trained()
    translating, resuming = tensors_to_save(model, optimizer, average)
    resuming["output.bias.raw"] = torch.full_like(resuming["output.bias.raw"], value)
    with pytest.raises(TrainingStoppedError, match=r"output\.bias\.raw has values that are NaN"):
        Checkpoints(tmp_path).save(Snapshot(3, translating, resuming, {}, {}))
    intact = tensors_to_save(model, optimizer, average)
    folder = Checkpoints(tmp_path).save(Snapshot(3, *intact, {}, {}))
    forge(folder, "optimizer.safetensors", save(resuming))
    with pytest.raises(DataError, match=r"output\.bias\.raw has values that are NaN"):
        restore_tensors(open_checkpoint(folder), model, optimizer, average)
