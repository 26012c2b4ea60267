"""Joining other processes: what is refused, with a message that says what to do."""

import subprocess
import sys

import pytest
import torch

from transformer_cli.config import RuntimeConfig
from transformer_cli.errors import ConfigError, TryAgainError
from transformer_cli.runtime import Machine
from transformer_cli.torchrun import Launch
from transformer_cli.training.processes import joining
from transformer_cli.training.processes.joining import joined, place_on_device

from ...ranks import free_port

EIGHT = Launch(rank=9, size=16, local_rank=1, local_size=8)
CPU = torch.device("cpu")
RUNTIME = RuntimeConfig()


def machine(device: str) -> Machine:
    return Machine(torch.device(device), torch.float32)


def test_each_process_of_a_machine_gets_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    assert place_on_device(machine("cuda"), EIGHT, RUNTIME).device == torch.device("cuda", 1)
    assert chosen == [torch.device("cuda", 1)]
    assert place_on_device(machine("cpu"), EIGHT, RUNTIME).device == CPU
    assert place_on_device(machine("mps"), Launch(), RUNTIME).device == torch.device("mps")


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    with pytest.raises(
        ConfigError, match=r"8 processes on this machine, .* finds 4 GPUs"
    ) as refused:
        place_on_device(machine("cuda"), EIGHT, RUNTIME)
    assert "--nproc-per-node 4" in str(refused.value.hint)


def test_several_processes_on_an_apple_gpu_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"mps, and 16 processes"):
        place_on_device(machine("mps"), EIGHT, RUNTIME)


def test_processes_that_cannot_be_reached_are_named_with_their_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = free_port()
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(port))
    monkeypatch.setattr(joining, "CONNECT_SECONDS", 0.5)
    with (
        pytest.raises(TryAgainError, match=rf"rank 9 of 16 cannot reach .* at 127.0.0.1:{port}"),
        joined(EIGHT, CPU),
    ):
        pass


def test_training_with_one_process_imports_nothing_of_sharding() -> None:
    """`torch.distributed.tensor` alone takes two seconds to import."""
    check = "import sys, transformer_cli.training.run; print([name for name in sys.modules if 'fsdp' in name or 'distributed.tensor' in name])"
    printed = subprocess.run([sys.executable, "-c", check], capture_output=True, check=True)
    assert printed.stdout == b"[]\n"
