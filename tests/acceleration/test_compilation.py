"""`runtime.compile`: what is compiled where, and the reason that the log gives."""

import sys
from typing import Any, NamedTuple

import pytest
import torch

from transformer_cli.acceleration.accelerate import planned_compilation
from transformer_cli.config import Config, load_config
from transformer_cli.training.config_changes import accept_changes

compilation = sys.modules[planned_compilation.__module__]  # the function `accelerate` hides the module of its name
CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)


class Properties(NamedTuple):
    """What PyTorch tells of an RTX 4090."""

    memory_clock_rate: int = 10_501_000  # kHz
    memory_bus_width: int = 384


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with an RTX 4090, Triton and a compiler."""
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: Properties())
    monkeypatch.setattr(compilation, "missing_for_compilation", lambda _: None)


def base(**runtime: Any) -> Config:
    changes = [f"runtime.{name}={str(value).lower()}" for name, value in runtime.items()]
    return load_config("wmt14-en-de-base.yaml", changes)


def asked_too_early() -> int:
    raise AssertionError("the number of updates decides nothing here, and counting takes long")


@pytest.mark.parametrize("value", [True, False])
def test_a_setting_overrides_the_rule_and_a_cpu_compiles_no_loss(value: bool) -> None:
    for device in (CPU, CUDA):
        found = planned_compilation(base(compile=value), device, asked_too_early)
        assert found == (value, value and device == CUDA, "")


def test_a_cpu_compiles_nothing_by_itself() -> None:
    assert planned_compilation(base(), CPU, asked_too_early) == (False, False, "")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("num_steps", "are_compiled"), [(1_000, False), (200_000, True)])
def test_on_a_gpu_the_loss_is_compiled_and_the_layers_in_long_runs(num_steps: int, are_compiled: bool) -> None:
    found = planned_compilation(base(), CUDA, lambda: num_steps)
    assert found[:2] == (are_compiled, True)
    # 35 bytes for 25,000 cells, a width of 512 and 12 layers, at 0.8 of 1,008 GB/s.
    seconds = num_steps * 35 * 25_000 * 512 * 12 / (0.8 * 1.008096e12)
    assert f"save about {seconds:,.0f} s" in found.reason
    assert ("the loss and the layers" if are_compiled else "the loss alone") in found.reason
    assert planned_compilation(base(), CUDA, lambda: num_steps, 100).layers is False


@pytest.mark.usefixtures("gpu")
def test_what_is_missing_for_torch_compile_is_named_and_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compilation, "missing_for_compilation", lambda _: "there is no C compiler")
    found = planned_compilation(base(), CUDA, asked_too_early)
    assert found[:2] == (False, False)
    assert "because there is no C compiler" in found.reason


def test_triton_a_card_a_compiler_and_headers_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    monkeypatch.setattr(compilation.importlib.util, "find_spec", lambda name: None)
    assert compilation.missing_for_compilation(CUDA) == "the package triton is not installed"
    monkeypatch.setattr(compilation.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(compilation.shutil, "which", lambda name: None)
    assert compilation.missing_for_compilation(CUDA) == "there is no C compiler such as gcc"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (6, 1))
    assert "7.0 or newer" in str(compilation.missing_for_compilation(CUDA))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    monkeypatch.setattr(compilation.shutil, "which", lambda name: name)
    monkeypatch.setattr(compilation.sysconfig, "get_paths", lambda: {"include": "/nowhere"})
    assert "headers of Python" in str(compilation.missing_for_compilation(CUDA))


def test_a_run_of_an_earlier_version_goes_on_without_a_word_about_the_new_default() -> None:
    before, now = base(compile=False), base()
    assert now.runtime.compile == "auto"
    assert accept_changes(before, now) == []
    assert accept_changes(now, base(compile=True)) == ["runtime.compile: was auto, now true"]
