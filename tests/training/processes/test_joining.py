"""Joining other processes: what is refused, with a message that says what to do."""

import signal
import subprocess
import sys

import pytest
import torch
from torch import distributed as dist

from transformer_cli.config import RuntimeConfig
from transformer_cli.process.device import Machine
from transformer_cli.process.errors import ConfigError, InterruptedBySignal, TryAgainError
from transformer_cli.process.torchrun import Launch
from transformer_cli.training import joining
from transformer_cli.training.joining import joined_processes, place_on_device
from transformer_cli.training.process_group import ALONE, Processes

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
    with pytest.raises(ConfigError, match=r"8 processes on this machine, .* finds 4 GPUs") as refused:
        place_on_device(machine("cuda"), EIGHT, RUNTIME)
    assert "--nproc-per-node 4" in str(refused.value.hint)


def test_tasks_of_slurm_that_see_one_gpu_each_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setenv("SLURM_GPUS_PER_TASK", "1")
    assert place_on_device(machine("cuda"), EIGHT, RUNTIME).device == torch.device("cuda", 0)
    assert chosen == [torch.device("cuda", 0)]
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")  # torchrun within a job starts more processes than GPUs
    with pytest.raises(ConfigError, match="finds 1 GPUs"):
        place_on_device(machine("cuda"), EIGHT, RUNTIME)


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
        joined_processes(EIGHT, CPU),
    ):
        pass


def test_a_process_that_does_not_come_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    monkeypatch.setattr(joining, "MEET_SECONDS", 0.5)
    monkeypatch.setattr(joining, "_TELL_SECONDS", 0.1)
    caplog.set_level("INFO")
    three = Launch(rank=0, size=3, local_size=3, store_holder="rank 0")
    with (
        pytest.raises(TryAgainError, match=r"rank 0 of 3 has waited .* seconds for rank 1, 2\n"),
        joined_processes(three, CPU),
    ):
        pass
    assert "waiting for rank 1, 2 of 3 processes" in caplog.text


@pytest.mark.parametrize(
    ("device", "error", "disconnects"),
    [
        ("cuda", None, True),
        ("cuda", InterruptedBySignal(15, "stopped"), True),
        ("cuda", TryAgainError("rank 1 has ended"), False),
        ("cpu", TryAgainError("rank 1 has ended"), True),
    ],
)
def test_after_an_error_with_gpus_no_process_waits_for_the_others(
    device: str, error: Exception | None, disconnects: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(dist, "destroy_process_group", lambda: calls.append("disconnected"))
    monkeypatch.setattr(joining, "end_within", lambda seconds: calls.append("ends soon"))
    joining.leave_group(torch.device(device), error)
    assert calls == ["disconnected" if disconnects else "ends soon"]


@pytest.mark.process
@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="the system has no alarm")
def test_a_process_that_does_not_end_by_itself_is_ended() -> None:
    code = "import time; from transformer_cli.training import joining; joining.end_within(1); time.sleep(60)"
    ended = subprocess.run([sys.executable, "-c", code], timeout=50)
    assert ended.returncode == -signal.SIGALRM


def test_one_process_needs_no_torch_distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dist, "ReduceOp")
    assert ALONE.sums(1, 2) == [1, 2]
    assert ALONE.any_of(True, False) == [True, False]


def test_memory_that_is_too_small_for_a_sum_is_no_lost_process() -> None:
    def fails() -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 20 MiB")

    with pytest.raises(RuntimeError, match="out of memory"):
        Processes(0, 2).together(fails)


@pytest.mark.heavy
@pytest.mark.process
def test_training_with_one_process_imports_nothing_of_sharding() -> None:
    """`torch.distributed.tensor` alone takes two seconds to import."""
    check = "import sys, transformer_cli.training.run; print([name for name in sys.modules if 'fsdp' in name or 'distributed.tensor' in name])"
    printed = subprocess.run([sys.executable, "-c", check], capture_output=True, check=True)
    assert printed.stdout == b"[]\n"
