"""Settings that make training on a CPU much slower are named before the first step."""

from typing import Any

import pytest
import torch

from transformer_cli.config import RuntimeConfig
from transformer_cli.process.device import Machine, num_usable_cpus
from transformer_cli.training.advice import slow_settings

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
def test_a_slow_setting_is_named_on_a_cpu_alone(
    settings: dict[str, Any], precision: torch.dtype, named: str
) -> None:
    runtime = RuntimeConfig(**settings)
    [warning] = slow_settings(runtime, Machine(CPU, precision))
    assert named in warning
    assert slow_settings(runtime, Machine(GPU, precision)) == []


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_usual_settings_are_not_warned_of(precision: torch.dtype) -> None:
    assert slow_settings(RuntimeConfig(), Machine(CPU, precision)) == []
    assert slow_settings(RuntimeConfig(threads=TOO_MANY - 1), Machine(CPU, precision)) == []
