"""The memory of a model that is sharded: what each device must hold, and what it never holds."""

import re
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config, ModelConfig, load_config
from transformer_cli.data.preparation import prepare_data
from transformer_cli.model import Transformer
from transformer_cli.process import device as memory
from transformer_cli.process.device import Machine
from transformer_cli.process.errors import ConfigError, TryAgainError
from transformer_cli.process.torchrun import read_launch
from transformer_cli.training import run
from transformer_cli.training.initial_weights import require_memory_for_training
from transformer_cli.training.process_group import Processes, whole_copy

CONFIG = """\
name: a
data: {source: phrasebook, num_pairs: 200}
model: {d_model: 16, num_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1}
training: {max_steps: 6, batch_tokens: 100, update_tokens: 900, optimizer: adam}
runtime: {device: cpu, precision: float32, threads: 1, sharding: full}
"""
VOCABULARY = 30_000
CPU, GPU = torch.device("cpu"), torch.device("cuda", 1)
PLENTY = 10**15


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path / "a.yaml"


@pytest.fixture
def large(config_file: Path) -> Callable[..., Config]:
    """A config of 82 million parameters, with settings of the caller."""
    sizes = ["model.d_model=1024", "model.num_heads=8", "model.d_ff=2048"]
    return lambda *settings: load_config(config_file, [*sizes, *settings])


def bytes_of_weights(config: Config) -> int:
    with torch.device("meta"):
        model = Transformer(config.model, VOCABULARY, VOCABULARY)
    return 4 * sum(parameter.numel() for parameter in model.parameters())


def start(monkeypatch: pytest.MonkeyPatch, *, size: int, on_this_machine: int) -> None:
    """This process is one of several, as torchrun would tell it."""
    for name, value in (("RANK", 1), ("WORLD_SIZE", size), ("LOCAL_WORLD_SIZE", on_this_machine)):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")


def check(config: Config, device: torch.device, free: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda place: free[place.type])
    require_memory_for_training(config, (VOCABULARY, VOCABULARY), device, read_launch())


# --- what must fit ---


@pytest.mark.parametrize("ema_decay", ["null", "0.9"])
def test_a_gpu_needs_room_for_its_part_and_for_the_weights_of_a_validation(
    large: Callable[..., Config], monkeypatch: pytest.MonkeyPatch, ema_decay: str
) -> None:
    """Weights, gradients, two moments and the average: 4 or 5 numbers for each parameter, in 8 parts."""
    config = large(f"training.ema_decay={ema_decay}")
    weights = bytes_of_weights(config)
    start(monkeypatch, size=8, on_this_machine=4)
    needed = weights * ((4 if ema_decay == "null" else 5) / 8 + 1)
    check(config, GPU, {"cuda": 1.001 * needed, "cpu": PLENTY}, monkeypatch)
    with pytest.raises(TryAgainError, match=r"cut into 8 parts, and all weights") as refused:
        check(config, GPU, {"cuda": 0.99 * needed, "cpu": PLENTY}, monkeypatch)
    assert f"{needed / 1e9:.1f} GB of memory needed" in str(refused.value)
    assert "free on the device cuda:1" in str(refused.value)
    assert "start more processes with torchrun" in str(refused.value.hint)


@pytest.mark.long
def test_cuda_graphs_need_room_for_further_gradients(
    large: Callable[..., Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights, three times gradients, two moments."""
    config = large("runtime.sharding=none", "runtime.cuda_graphs=true")
    needed = 6 * bytes_of_weights(config)
    check(config, GPU, {"cuda": 1.001 * needed, "cpu": PLENTY}, monkeypatch)
    with pytest.raises(TryAgainError, match="and the gradients of a recorded pass"):
        check(config, GPU, {"cuda": 0.99 * needed, "cpu": PLENTY}, monkeypatch)


def test_without_sharding_a_gpu_needs_room_for_everything(
    large: Callable[..., Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights, gradients, two moments, and the gradients on their way to the others."""
    config = large("runtime.sharding=none")
    weights = bytes_of_weights(config)
    start(monkeypatch, size=8, on_this_machine=4)
    check(config, GPU, {"cuda": 5.01 * weights, "cpu": PLENTY}, monkeypatch)
    with pytest.raises(TryAgainError, match=r"state of adam, and the gradients that are sent: ") as refused:
        check(config, GPU, {"cuda": 4.99 * weights, "cpu": PLENTY}, monkeypatch)
    assert "--set runtime.sharding=full" in str(refused.value.hint)


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "device", "copies"),
    [
        # Each process builds the model, and with sharding its average, on the CPU.
        (["runtime.sharding=none", "training.ema_decay=0.9"], GPU, 1),
        ([], GPU, 1),
        (["training.ema_decay=0.9"], GPU, 2),
        # Each process trains on the CPU.
        (["runtime.sharding=none"], CPU, 5),
        ([], CPU, 4 / 8 + 1),
    ],
)
def test_the_processes_of_a_machine_share_its_memory(
    large: Callable[..., Config],
    monkeypatch: pytest.MonkeyPatch,
    settings: list[str],
    device: torch.device,
    copies: float,
) -> None:
    config = large(*settings)
    needed = 4 * copies * bytes_of_weights(config)
    start(monkeypatch, size=8, on_this_machine=4)
    check(config, device, {"cuda": PLENTY, "cpu": 1.001 * needed}, monkeypatch)
    with pytest.raises(TryAgainError, match=r"for all 4 processes on this machine: ") as refused:
        check(config, device, {"cuda": PLENTY, "cpu": 0.99 * needed}, monkeypatch)
    [found] = re.findall(r"([\d.]+) GB of memory needed", str(refused.value))
    assert float(found) == pytest.approx(needed / 1e9, abs=0.06)
    assert "start fewer processes on this machine" in str(refused.value.hint)


def test_batches_cannot_be_tried_with_a_sharded_model(config_file: Path) -> None:
    with pytest.raises(ConfigError, match=r"batch_tokens: auto tries .* whole model") as refused:
        load_config(config_file, ["training.batch_tokens=auto"])
    assert "set training.batch_tokens to a number" in str(refused.value.hint)
    load_config(config_file, ["training.batch_tokens=auto", "runtime.sharding=none"])


# --- what a device holds ---


@dataclass(frozen=True)
class OneOfTwo(Processes):
    """The second of two processes; it notes when it waits for the first."""

    rank: int = 1
    size: int = 2
    events: list[str] = field(default_factory=list)

    def sums(self, *numbers: int) -> list[int]:
        self.events.append("waited")
        return list(numbers)


@pytest.mark.long
@pytest.mark.parametrize("ema_decay", ["null", "0.9"])
def test_a_model_and_its_average_are_cut_before_they_are_on_the_device(
    config_file: Path, monkeypatch: pytest.MonkeyPatch, ema_decay: str
) -> None:
    """The device is `meta`, which any machine has; the other process has checked its memory before."""
    config = load_config(config_file, [f"training.ema_decay={ema_decay}"])
    data, processes = prepare_data(config, Path("data")), OneOfTwo()
    new_model, places = run.new_model, list[set[str]]()

    class AllAreCut(Exception):
        pass

    def noted(*arguments: Any) -> Transformer:
        processes.events.append("built")
        return new_model(*arguments)

    def shard(model: Transformer, device: torch.device, *_: Any) -> None:
        assert device.type == "meta"
        places.append({parameter.device.type for parameter in model.parameters()})

    def build_optimizer(*_: Any) -> None:
        raise AllAreCut

    monkeypatch.setattr(run, "new_model", noted)
    monkeypatch.setattr(run, "shard", shard)
    monkeypatch.setattr(run, "Optimizer", build_optimizer)
    machine = Machine(torch.device("meta"), torch.float32)
    with pytest.raises(AllAreCut):
        run.build_session(RunFolder(Path("run")), config, data, machine, processes)
    assert places == [{"cpu"}] * (1 if ema_decay == "null" else 2)
    assert processes.events == ["waited", "built"]


def test_the_tensors_of_a_validation_are_put_together_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = ModelConfig(d_model=8, num_heads=2, d_ff=16, encoder_layers=1, decoder_layers=1)
    model, alive = Transformer(sizes, 9, 9), weakref.WeakSet[Tensor]()
    numbers: list[int] = []

    def put_together(tensor: Tensor) -> Tensor:
        numbers.append(len(alive))
        together = tensor.clone()
        alive.add(together)
        return together

    monkeypatch.setattr("transformer_cli.training.process_group.whole", put_together)
    copy = whole_copy(model, CPU)
    assert max(numbers) <= 1, "the one before may still have its name"
    expected = model.state_dict()
    assert len(numbers) == len(expected)
    assert copy.state_dict().keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in copy.state_dict().items())
    assert not copy.training
