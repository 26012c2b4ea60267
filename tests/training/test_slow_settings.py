"""Settings that make training on a CPU much slower are named before the first step."""

from typing import Any

import pytest
import torch

from transformer_cli.config import RuntimeConfig
from transformer_cli.process.device import Machine, num_usable_cpus
from transformer_cli.training.advice import (
    STUCK_GPUS_SECONDS,
    limit_of_watchdog,
    slow_settings,
)

CPU, GPU = torch.device("cpu"), torch.device("cuda")
TOO_MANY = num_usable_cpus() + 1


@pytest.mark.parametrize(
    ("settings", "precision", "named"),
    [
        ({"threads": TOO_MANY}, torch.float32, f"set runtime.threads to at most {TOO_MANY - 1}"),
        ({}, torch.float16, "set runtime.precision to auto"),
        ({"compile": True}, torch.float32, "set runtime.compile to false"),
    ],
)
def test_a_slow_setting_is_named_on_a_cpu_alone(settings: dict[str, Any], precision: torch.dtype, named: str) -> None:
    runtime = RuntimeConfig(**settings)
    [warning] = slow_settings(runtime, Machine(CPU, precision))
    assert named in warning
    assert slow_settings(runtime, Machine(GPU, torch.bfloat16)) == []


@pytest.mark.parametrize(("capability", "is_slow"), [((8, 9), True), ((6, 1), False)])
def test_float32_is_named_on_a_gpu_that_is_fast_at_16_bits(
    capability: tuple[int, int], is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    found = slow_settings(RuntimeConfig(), Machine(GPU, torch.float32))
    assert ["TF32" in one and "runtime.precision to auto" in one for one in found] == [True] * is_slow


@pytest.mark.parametrize(
    ("seconds", "device", "num_processes", "limit"),
    [
        (None, "cuda", 2, STUCK_GPUS_SECONDS),
        (None, "cuda", 1, None),
        (None, "cpu", 2, None),
        (7.0, "cuda", 2, 7.0),
        (7.0, "cpu", 1, 7.0),
    ],
)
def test_several_gpus_have_a_watchdog_by_themselves(
    seconds: float | None, device: str, num_processes: int, limit: float | None
) -> None:
    machine = Machine(torch.device(device), torch.float32)
    runtime = RuntimeConfig(stuck_after_seconds=seconds)
    assert limit_of_watchdog(runtime, machine, num_processes) == limit


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_usual_settings_are_not_warned_of(precision: torch.dtype) -> None:
    assert slow_settings(RuntimeConfig(), Machine(CPU, precision)) == []
    assert slow_settings(RuntimeConfig(threads=TOO_MANY - 1), Machine(CPU, precision)) == []
