"""The machine: device, precision, threads, random numbers, and versions of software."""

import hashlib
import logging
import os
import platform
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from transformer_cli.process.errors import ConfigError
from transformer_cli.process.memory import keep_freed_memory

if TYPE_CHECKING:  # the settings stand above this room
    from transformer_cli.config import RuntimeConfig

logger = logging.getLogger(__name__)

_CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Machine:
    """The device of the tensors, and the precision of matrix products."""

    device: torch.device
    precision: torch.dtype
    is_quantised: bool = False
    """Whether translations round inputs and weights of linear layers to 8 bits; `precision` is then float32."""

    def autocast(self) -> AbstractContextManager[Any]:
        """Matrix products in `precision`; weights and sums stay float32."""
        if self.precision == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.precision)

    @property
    def precision_name(self) -> str:
        """As in `runtime.precision`."""
        return "int8" if self.is_quantised else str(self.precision).removeprefix("torch.")

    def describe(self) -> str:
        """Device and precision in a few words."""
        precision = self.precision_name
        if self.device.type == "cuda":
            return f"{torch.cuda.get_device_name(self.device)}, {precision}"
        if self.device.type == "cpu":
            threads = torch.get_num_threads()
            return f"CPU, {threads} {'thread' if threads == 1 else 'threads'}, {precision}"
        return f"{self.device.type}, {precision}"


def prepare_machine(config: "RuntimeConfig") -> Machine:
    """Choose device and precision, and set the number of threads.

    Raises:
        ConfigError: the config asks for a device that this machine does not have, or for int8 on a GPU.
    """
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    keep_freed_memory()
    device = _choose_device(config.device)
    is_quantised = config.precision == "int8"
    if is_quantised and device.type != "cpu":
        raise ConfigError(
            f"runtime.precision: int8 is for CPUs, but runtime.device is {device.type}",
            hint="set runtime.device=cpu, or runtime.precision=auto",
        )
    return Machine(device, _choose_precision(config.precision, device), is_quantised)


def require_training_precision(config: "RuntimeConfig") -> None:
    """Raise ConfigError for a precision in which no model can be trained."""
    if config.precision == "int8":
        raise ConfigError(
            "runtime.precision: int8 is for translations, and no model is trained with it",
            hint="train in another precision, then: tfm translate --set runtime.precision=int8",
        )


def require_cuda_graphs(config: "RuntimeConfig", machine: Machine) -> None:
    """Raise ConfigError if a training asks for CUDA graphs on a device that has none."""
    if config.cuda_graphs and machine.device.type != "cuda":
        raise ConfigError(
            f"runtime.cuda_graphs: true needs an NVIDIA GPU, but the device is: {machine.describe()}",
            hint="--set runtime.cuda_graphs=false",
        )


def _choose_device(wanted: str) -> torch.device:
    has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if wanted == "auto":
        return torch.device("cuda" if has_cuda else "mps" if has_mps else "cpu")
    if (wanted == "cuda" and not has_cuda) or (wanted == "mps" and not has_mps):
        raise ConfigError(
            f"runtime.device: {wanted}, but PyTorch {torch.__version__} finds no such device on this machine",
            hint="--set runtime.device=auto chooses a device that exists",
        )
    return torch.device(wanted)


def _choose_precision(wanted: str, device: torch.device) -> torch.dtype:
    if wanted != "auto":
        return {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(wanted, torch.float32)
    if _has_fast_bfloat16(device):
        return torch.bfloat16
    return torch.float16 if _has_fast_float16(device) else torch.float32


def _has_fast_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        # With AVX-512 alone, processors of Intel multiply bfloat16 no faster than float32; those of AMD do.
        return _cpu_has("_is_amx_tile_supported") or (
            _cpu_has("_is_avx512_bf16_supported") and _is_of_amd()
        )
    return False


def _cpu_has(check: str) -> bool:
    return bool(getattr(torch.cpu, check, lambda: False)())


def _is_of_amd() -> bool:
    try:
        return "AuthenticAMD" in _CPU_INFO.read_text(errors="replace")
    except OSError:  # no Linux
        return "AuthenticAMD" in platform.processor()


def _has_fast_float16(device: torch.device) -> bool:
    """Whether an NVIDIA card is of Volta or newer; these multiply matrices in float16 much faster than in float32."""
    return device.type == "cuda" and torch.cuda.get_device_capability() >= (7, 0)


def num_usable_cpus() -> int:
    """The CPUs that this process may use; a container or a scheduler may allow fewer than the machine has."""
    of_process: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return len(of_process(0)) if of_process is not None else os.cpu_count() or 1


def derive_seed(*parts: int | str) -> int:
    """A seed of 63 bits, a pure function of the parts."""
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def seed_everything(*parts: int | str) -> None:
    """Set the seed of PyTorch, so that random numbers depend on these parts only."""
    torch.manual_seed(derive_seed(*parts))


def environment(kernels: str | None) -> dict[str, Any]:
    """Versions and hardware, for environment.json; no paths, user names or environment variables.

    Args:
        kernels: the level of the kernels in C, see `kernel_level`.
    """
    packages = ("torch", "datasets", "tokenizers", "sacrebleu", "jiwer", "numpy")
    return {
        "tfm": metadata.version("transformer-cli"),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in packages},
        "system": f"{platform.system()} {platform.machine()}",
        "cpu_cores": os.cpu_count(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "kernels": kernels,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }
