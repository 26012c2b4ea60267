"""What is free, what is refused because it cannot fit, and what stays resident."""

import sys
from pathlib import Path

import pytest
import torch

from transformer_cli.process import device as memory
from transformer_cli.process.device import free_bytes, require_memory, to_device
from transformer_cli.process.errors import TryAgainError

CPU = torch.device("cpu")
MEMINFO = "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 2000 kB\nSwapFree: 500 kB\n"
FREE_ON_MACHINE = 2500 * 1024


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder whose `proc` and `cgroup` are those of the machine."""
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "CONTROL_GROUPS", tmp_path / "cgroup")
    write(tmp_path, {"proc/meminfo": MEMINFO})
    return tmp_path


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


GROUPS = {
    "no group": ({}, FREE_ON_MACHINE),
    "version 2 without a limit": (
        {"proc/self/cgroup": "0::/job\n", "cgroup/job/memory.max": "max\n", "cgroup/job/memory.current": "5\n"},
        FREE_ON_MACHINE,
    ),
    "version 2": (
        {
            "proc/self/cgroup": "0::/job\n",
            "cgroup/job/memory.max": "1000\n",
            "cgroup/job/memory.current": "700\n",
            "cgroup/job/memory.stat": "anon 500\ninactive_file 150\n",
        },
        450,
    ),
    "version 2, the limit of a parent": (
        {
            "proc/self/cgroup": "0::/batch/job\n",
            "cgroup/batch/memory.max": "1000\n",
            "cgroup/batch/memory.current": "700\n",
        },
        300,
    ),
    "version 1": (
        {
            "proc/self/cgroup": "9:cpu:/\n4:memory:/job\n",
            "cgroup/memory/job/memory.limit_in_bytes": "1000\n",
            "cgroup/memory/job/memory.usage_in_bytes": "1100\n",
            "cgroup/memory/job/memory.stat": "inactive_file 1\ntotal_inactive_file 150\n",
        },
        50,
    ),
    "version 1, in a container that does not see the path of the host": (
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n",
            "cgroup/memory/memory.limit_in_bytes": "1000\n",
            "cgroup/memory/memory.usage_in_bytes": "400\n",
        },
        600,
    ),
}


@pytest.mark.parametrize("kind", GROUPS)
def test_free_is_what_the_machine_and_every_control_group_leave(kind: str, system: Path) -> None:
    files, expected = GROUPS[kind]
    write(system, files)
    assert free_bytes(CPU) == expected


def test_this_machine_tells_what_is_free() -> None:
    free = free_bytes(CPU)
    assert free is not None
    assert 10**6 < free < 10**15


def test_without_proc_all_memory_of_the_machine_is_the_limit(system: Path) -> None:
    (system / "proc/meminfo").unlink()
    free = free_bytes(CPU)
    assert free is None or free > 10**6


def test_what_does_not_fit_is_refused_with_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 3 * 10**9)
    require_memory(3 * 10**9, CPU, "model", hint="lower it")
    with pytest.raises(TryAgainError, match=r"model: 3\.5 GB of memory needed, 3\.0 GB free") as error:
        require_memory(3_500_000_000, CPU, "model", hint="lower it")
    assert error.value.exit_code == 75
    monkeypatch.setattr(memory, "free_bytes", lambda device: None)
    require_memory(10**18, CPU, "model", hint="lower it")  # a system that does not tell


def test_a_tensor_stays_where_it_is_if_that_is_its_device() -> None:
    tensor = torch.ones(3)
    assert to_device(tensor, CPU) is tensor


@pytest.mark.gpu
def test_a_copy_to_a_gpu_arrives_whole_without_waiting() -> None:
    device = torch.device("cuda")
    given = [torch.randint(1000, (1000, 1000)) for _ in range(20)]
    copies = [to_device(one, device) for one in given]
    assert all(torch.equal(one, copy.cpu()) for one, copy in zip(given, copies, strict=True))


@pytest.mark.gpu
def test_a_gpu_tells_what_is_free() -> None:
    free = free_bytes(torch.device("cuda"))
    assert free is not None
    assert 0 < free <= torch.cuda.mem_get_info()[1]


def test_for_a_small_model_nobody_asks_how_much_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 0)
    require_memory(64 << 20, CPU, "model", hint="lower it")
    with pytest.raises(TryAgainError, match="model"):
        require_memory((64 << 20) + 1, CPU, "model", hint="lower it")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forgets an earlier peak")
def test_a_tensor_that_is_gone_counts_until_the_next_start() -> None:
    memory.forget_peak_memory(CPU)
    before = memory.peak_memory(CPU)["resident"]
    torch.ones(100_000_000, dtype=torch.uint8)
    after = memory.peak_memory(CPU)["resident"]
    assert before is not None
    assert after is not None
    assert after > before + 80_000_000
    memory.forget_peak_memory(CPU)
    again = memory.peak_memory(CPU)["resident"]
    assert again is not None
    assert again < after - 80_000_000
