"""Device, precision, seeds and threads."""

import getpass
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import RuntimeConfig
from transformer_cli.process import device as runtime
from transformer_cli.process.device import (
    Machine,
    derive_seed,
    environment,
    prepare_machine,
    seed_generators,
)
from transformer_cli.process.errors import ConfigError


@pytest.fixture(autouse=True)
def _process_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # `prepare_machine` sets variables of PyTorch's allocator; those of the user are not what is tested here.
    variables = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name}
    monkeypatch.setattr(runtime.os, "environ", variables)
    threads, kernels = torch.get_num_threads(), torch.backends.cuda
    flash, cudnn = kernels.flash_sdp_enabled(), kernels.cudnn_sdp_enabled()
    yield
    torch.set_num_threads(threads)
    kernels.enable_flash_sdp(flash)
    kernels.enable_cudnn_sdp(cudnn)


@pytest.mark.parametrize(
    ("given", "cuda", "records", "found"),
    [
        ({}, "13.0", False, "expandable_segments:True"),
        ({"PYTORCH_ALLOC_CONF": "a:1"}, "13.0", False, "a:1"),
        ({"PYTORCH_CUDA_ALLOC_CONF": "a:1"}, "13.0", False, None),
        ({}, None, False, None),
        ({}, "13.0", True, None),
    ],
)
def test_segments_of_an_nvidia_gpu_grow_unless_the_user_has_decided(
    given: dict[str, str],
    cuda: str | None,
    records: bool,
    found: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime.os, "environ", {**os.environ, **given})
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(runtime.sys, "platform", "linux")
    prepare_machine(RuntimeConfig(device="cpu"), records=records)
    assert runtime.os.environ.get("PYTORCH_ALLOC_CONF") == found


parts = st.lists(st.integers(0, 2**31) | st.sampled_from(["step", "weights"]), min_size=1, max_size=3)


@given(parts, parts)
def test_a_seed_is_a_function_of_its_parts(one: list[int | str], other: list[int | str]) -> None:
    assert (derive_seed(*one) == derive_seed(*other)) == (one == other)
    assert 0 <= derive_seed(*one) < 2**63


def test_seeds_are_the_same_on_every_machine_and_for_ever() -> None:
    """A resumed run depends on it."""
    assert derive_seed(1, "step", 1) == 68_171_336_078_889_987


def test_dropout_depends_on_the_seeded_parts_alone() -> None:
    def mask(*seed: int | str) -> torch.Tensor:
        seed_generators(derive_seed(*seed))
        return torch.nn.functional.dropout(torch.ones(64), 0.5)

    first = mask(1, "step", 5)
    torch.rand(100)
    assert torch.equal(mask(1, "step", 5), first)
    assert not torch.equal(mask(1, "step", 6), first)
    assert not torch.equal(mask(2, "step", 5), first)


def test_products_that_are_remembered_are_limited_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LRU_CACHE_CAPACITY", raising=False)
    prepare_machine(RuntimeConfig(device="cpu"))
    assert os.environ["LRU_CACHE_CAPACITY"] == "16"
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "9")
    prepare_machine(RuntimeConfig(device="cpu"))
    assert os.environ["LRU_CACHE_CAPACITY"] == "9"


def test_the_config_sets_device_precision_and_threads() -> None:
    machine = prepare_machine(RuntimeConfig(device="cpu", precision="bfloat16", threads=1))
    assert (machine.device, machine.precision) == (torch.device("cpu"), torch.bfloat16)
    assert torch.get_num_threads() == 1
    assert machine.describe() == "CPU, 1 thread, bfloat16"
    with machine.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


def test_full_precision_is_not_touched() -> None:
    with Machine(torch.device("cpu"), torch.float32).autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


@pytest.mark.parametrize(
    ("has_cuda", "has_mps", "expected"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_auto_takes_the_best_device_that_there_is(
    monkeypatch: pytest.MonkeyPatch, has_cuda: bool, has_mps: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_cuda)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_90"])
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: has_mps)
    machine = prepare_machine(RuntimeConfig(device="auto", precision="float32"))
    assert machine.device.type == expected


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_here_is_refused(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=f"runtime.device: {device}, but PyTorch") as refused:
        prepare_machine(RuntimeConfig(device=device))  # type: ignore[arg-type]
    assert "runtime.device=auto" in str(refused.value)


@pytest.mark.parametrize(
    ("has_amx", "has_avx512", "vendor", "expected"),
    [
        (True, True, "GenuineIntel", torch.bfloat16),
        (False, True, "AuthenticAMD", torch.bfloat16),
        (False, True, "GenuineIntel", torch.float32),
        (False, True, None, torch.float32),
        (False, False, "AuthenticAMD", torch.float32),
    ],
)
def test_auto_takes_bfloat16_where_the_processor_is_fast_at_it(
    has_amx: bool,
    has_avx512: bool,
    vendor: str | None,
    expected: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: has_amx, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_avx512, raising=False)
    monkeypatch.setattr(runtime, "_CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(runtime.platform, "processor", lambda: "")
    if vendor is not None:
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {vendor}\n")
    assert prepare_machine(RuntimeConfig(device="cpu")).precision == expected


def test_pytorch_says_what_the_processor_can_do() -> None:
    """Without these private functions, `auto` would be float32 on every CPU, and nobody would see it."""
    assert isinstance(torch.cpu._is_amx_tile_supported(), bool)
    assert isinstance(torch.cpu._is_avx512_bf16_supported(), bool)


def test_the_environment_names_versions_and_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "canary")
    described = environment("avx2")
    assert described["packages"]["torch"] == torch.__version__
    text = json.dumps(described)
    for private in ("canary", os.getcwd(), os.path.expanduser("~")):
        assert private not in text
    assert getpass.getuser() not in described.values()
    assert environment(None) == described | {"kernels": None}


@pytest.mark.parametrize(
    ("capability", "has_bfloat16", "expected"),
    [
        ((9, 0), True, torch.bfloat16),
        ((8, 0), True, torch.bfloat16),
        ((7, 5), False, torch.float16),
        ((7, 0), False, torch.float16),
        ((6, 1), False, torch.float32),
    ],
)
def test_auto_takes_the_low_precision_that_a_card_is_fast_at(
    monkeypatch: pytest.MonkeyPatch,
    capability: tuple[int, int],
    has_bfloat16: bool,
    expected: torch.dtype,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *, including_emulation: has_bfloat16)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "get_arch_list", list)
    assert prepare_machine(RuntimeConfig(device="cuda")).precision == expected


def test_float16_is_chosen_by_the_config_on_any_device() -> None:
    machine = prepare_machine(RuntimeConfig(device="cpu", precision="float16"))
    with machine.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float16


def test_int8_is_float32_with_quantised_layers_and_for_cpus_only(
    cuda: pytest.MonkeyPatch,
) -> None:
    machine = prepare_machine(RuntimeConfig(device="cpu", precision="int8", threads=1))
    assert (machine.precision, machine.is_quantised) == (torch.float32, True)
    assert machine.describe() == "CPU, 1 thread, int8"
    with pytest.raises(ConfigError, match=r"int8 is for CPUs, but runtime\.device is cuda"):
        prepare_machine(RuntimeConfig(device="cuda", precision="int8"))


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """PyTorch says that there is a V100, for which it has kernels."""
    for name, value in {
        "is_available": True,
        "get_device_name": "Tesla V100",
        "get_device_capability": (7, 0),
        "get_arch_list": ["sm_70", "sm_80"],
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *, including_emulation: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    return monkeypatch


def test_attention_on_an_nvidia_gpu_makes_no_plan_for_each_shape_and_no_tiles_of_128_positions(
    cuda: pytest.MonkeyPatch,
) -> None:
    torch.backends.cuda.enable_cudnn_sdp(True)
    prepare_machine(RuntimeConfig(device="cuda"))
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert not torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.cuda.mem_efficient_sdp_enabled()
    prepare_machine(RuntimeConfig(device="cpu"))
    assert torch.backends.cuda.flash_sdp_enabled()  # attention on a CPU has a flash kernel too


def test_the_seed_of_an_update_is_that_of_pytorch() -> None:
    torch.manual_seed(7)
    wanted = torch.rand(3)
    seed_generators(8)
    seed_generators(7)
    assert torch.equal(torch.rand(3), wanted)
    assert torch.initial_seed() == 7


@pytest.mark.parametrize(
    ("capability", "architectures", "expected"),
    [
        ((7, 0), ["sm_70", "sm_80"], True),
        ((8, 6), ["sm_75", "sm_80"], True),
        ((9, 0), ["sm_80", "sm_90a"], True),
        ((12, 0), ["sm_90", "compute_90"], True),
        ((7, 0), ["sm_75", "sm_80", "compute_80"], False),
        ((8, 0), ["sm_75", "sm_86"], False),
        ((12, 0), ["sm_80", "sm_90"], False),
        ((12, 0), [], True),
    ],
)
def test_kernels_run_on_cards_of_their_generation(
    capability: tuple[int, int], architectures: list[str], expected: bool
) -> None:
    assert runtime.has_kernels_for(capability, architectures) == expected


def test_a_card_without_kernels_is_left_alone_and_the_right_wheel_is_named(
    cuda: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cuda.setattr(torch.cuda, "get_arch_list", lambda: ["sm_75", "sm_90"])
    assert prepare_machine(RuntimeConfig(device="auto")).device.type == "cpu"
    assert "no kernels for the GPU Tesla V100 (compute capability 7.0)" in caplog.text
    assert "index-url https://download.pytorch.org/whl/cu126" in caplog.text
    with pytest.raises(ConfigError, match="no kernels for the GPU Tesla V100"):
        prepare_machine(RuntimeConfig(device="cuda"))
    cuda.setattr(torch.cuda, "get_device_capability", lambda: (12, 0))
    assert "pip install --upgrade torch" in str(runtime.unused_gpu())


def test_windows_names_a_wheel_for_the_gpu_that_pypi_has_none_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runtime.sys, "platform", "win32")
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert runtime.unused_gpu() is None
    (tmp_path / "System32").mkdir()
    (tmp_path / "System32/nvcuda.dll").touch()
    told = runtime.unused_gpu()
    assert told is not None
    assert told.endswith(
        "was built without CUDA: pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu126"
    )


@pytest.mark.parametrize(
    ("of_wheel", "said"),
    [
        (None, "was built without CUDA: pip install"),
        ("13.0", "is for CUDA 13.0, which needs a driver from 580 on, and cannot use it; update the driver"),
    ],
)
def test_a_gpu_that_pytorch_cannot_use_is_named_instead_of_a_silent_training_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    of_wheel: str | None,
    said: str,
) -> None:
    driver = tmp_path / "version"
    driver.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n")
    monkeypatch.setattr(runtime, "_NVIDIA_DRIVER", driver)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", of_wheel)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    prepare_machine(RuntimeConfig(device="auto"))
    assert "an NVIDIA GPU with the driver 535.104.05" in caplog.text
    assert said in caplog.text
    caplog.clear()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # the user wants no GPU
    prepare_machine(RuntimeConfig(device="auto"))
    prepare_machine(RuntimeConfig(device="cpu"))
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("name", "teraflop"),
    [
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA GeForce RTX 4090", 165),
        ("Tesla T4", 65),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA A10G", None),
    ],
)
def test_the_peak_of_a_data_sheet_is_that_of_the_card(name: str, teraflop: int | None) -> None:
    expected = None if teraflop is None else teraflop * 1e12
    assert runtime.peak_of_data_sheet(name, torch.bfloat16) == expected
    assert runtime.peak_of_data_sheet(name, torch.float32) is None
