"""The machine: device, precision, threads, memory, random numbers, and versions of software."""

import ctypes
import hashlib
import logging
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from transformer_cli import __version__
from transformer_cli.process import plain_form
from transformer_cli.process.errors import ConfigError, TryAgainError

if TYPE_CHECKING:
    from transformer_cli.config import RuntimeConfig

logger = logging.getLogger(__name__)

_CPU_INFO = Path("/proc/cpuinfo")
_HAS_GLIBC = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
_SMALL_CACHES = {
    # oneDNN keeps code for each shape of a matrix product, for up to 1024 shapes without this limit. With 24 instead
    # of 128 the process is 135 MB smaller, and updates are hardly slower. oneDNN reads this at its first product.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "24",
    # PyTorch keeps up to 1024 further objects of this kind. With 64, a translation of many lines is about 100 MB smaller
    # (its memory stops growing after 10,000 lines, and not after 150,000), and a training, too; with 16, a translation is
    # 100 MB smaller again and a training 40 MB. Both take the same time.
    "LRU_CACHE_CAPACITY": "16",
}
"""Environment variables that `prepare_machine` sets, unless the user has set them."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The device of the tensors, and the precision of matrix products."""

    device: torch.device
    precision: torch.dtype
    is_quantised: bool = False
    """Whether translations round inputs and weights of linear layers to 8 bits; `precision` is then float32."""
    records_passes: bool = False
    """Whether a training repeats recorded passes, as CUDA graphs."""

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
        precision = self.precision_name + (f", the plain form ({plain_form.SWITCH})" if plain_form.IS_PLAIN else "")
        if self.device.type == "cuda":
            return f"{torch.cuda.get_device_name(self.device)}, {precision}"
        if self.device.type == "cpu":
            threads = torch.get_num_threads()
            return f"CPU, {threads} {'thread' if threads == 1 else 'threads'}, {precision}"
        return f"{self.device.type}, {precision}"


def prepare_machine(config: "RuntimeConfig", *, records: bool = False) -> Machine:
    """Choose device and precision, and set the number of threads.

    Args:
        records: whether an NVIDIA GPU will repeat recorded kernels: passes of a training, or steps of a search.

    Raises:
        ConfigError: the config asks for a device that this machine does not have, or for int8 on a GPU.
    """
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    for name, capacity in _SMALL_CACHES.items():
        os.environ.setdefault(name, capacity)
    if _HAS_GLIBC:
        # Let glibc keep freed memory: each step frees and allocates large tensors, and page faults cost time.
        trim_threshold, mmap_threshold = -1, -3
        libc = ctypes.CDLL(None)
        libc.mallopt(mmap_threshold, 1 << 30)
        libc.mallopt(trim_threshold, (1 << 31) - 1)
    if not records:
        let_segments_grow()
    device = _choose_device(config.device)
    # The name says cuda, but attention on a CPU follows it too, and has a flash kernel that suits it.
    torch.backends.cuda.enable_flash_sdp(device.type != "cuda")
    if device.type == "cuda":
        # Of the fused kernels of attention, only the memory-efficient one stays on. From torch 2.11 on, cuDNN would come first on some
        # cards; it makes a plan for each new shape (0.11 to 0.14 s on an H100), and nearly every batch has a new shape. The
        # flash kernel works on 128 positions at a time: up to 128 positions it was 1.1 to 2.8 times as slow, at 256 as fast.
        torch.backends.cuda.enable_cudnn_sdp(False)
    is_quantised = config.precision == "int8"
    if is_quantised and device.type != "cpu":
        raise ConfigError(
            f"runtime.precision: int8 is for CPUs, but runtime.device is {device.type}",
            hint="set runtime.device=cpu, or runtime.precision=auto",
        )
    precision = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(config.precision, torch.float32)
    if config.precision == "auto":
        if has_fast_bfloat16(device):
            precision = torch.bfloat16
        elif device.type == "cuda" and has_tensor_cores():
            precision = torch.float16
    is_recorded = records and (device.type == "cuda" or config.cuda_graphs is True)
    return Machine(device, precision, is_quantised, is_recorded)


def require_training_precision(config: "RuntimeConfig") -> None:
    """Raise ConfigError for a precision in which no model can be trained."""
    if config.precision == "int8":
        raise ConfigError(
            "runtime.precision: int8 is for translations, and no model is trained with it",
            hint="train in another precision, then: tfm translate --set runtime.precision=int8",
        )


def require_cuda_graphs(config: "RuntimeConfig", machine: Machine) -> None:
    """Raise ConfigError if a training asks for CUDA graphs on a device that has none."""
    if config.cuda_graphs is True and machine.device.type != "cuda":
        raise ConfigError(
            f"runtime.cuda_graphs: true needs an NVIDIA GPU, but the device is: {machine.describe()}",
            hint="--set runtime.cuda_graphs=false",
        )


def _choose_device(wanted: str) -> torch.device:
    has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    unused = unused_gpu() if wanted in ("auto", "cuda") else None
    if wanted == "auto":
        if unused is not None:
            logger.warning("%s; so the CPU computes", unused)
        return torch.device("cuda" if has_cuda and not unused else "mps" if has_mps else "cpu")
    if (wanted == "cuda" and (unused or not has_cuda)) or (wanted == "mps" and not has_mps):
        raise ConfigError(
            f"runtime.device: {wanted}, but PyTorch {torch.__version__} finds no such device on this machine"
            + (f": {unused}" if unused else ""),
            hint="--set runtime.device=auto chooses a device that exists",
        )
    return torch.device(wanted)


_NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
_WHEELS = "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl"
_OLDEST_DRIVERS = {"12": "525", "13": "580"}
"""First number of the CUDA version -> the oldest driver. Source: CUDA Toolkit Release Notes, "CUDA Minor Version Compatibility"."""


def unused_gpu() -> str | None:
    """Why an NVIDIA GPU of this machine cannot be used, and what to do; None if there is none, or if it can be used."""
    if torch.version.hip is not None:  # cards of AMD have architectures of other names
        return None
    if torch.cuda.is_available():
        capability, architectures = torch.cuda.get_device_capability(), torch.cuda.get_arch_list()
        if has_kernels_for(capability, architectures):
            return None
        name, version = torch.cuda.get_device_name(), ".".join(map(str, capability))
        is_newer = capability > max(map(_number_of, architectures))
        return (
            f"PyTorch {torch.__version__} has no kernels for the GPU {name} (compute capability {version}), only for "
            f"{', '.join(architectures)}; "
            + (
                "a newer PyTorch may have them: pip install --upgrade torch"
                if is_newer
                else f"its wheels for CUDA 12.6 serve older cards: {_WHEELS}/cu126"
            )
        )
    driver = _nvidia_driver()
    if driver is None or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return None
    found = f"there is an NVIDIA GPU with the driver {driver}, but PyTorch {torch.__version__}"
    if torch.version.cuda is None:
        # For Windows, PyPI has no other wheels.
        return f"{found} was built without CUDA: " + (
            f"{_WHEELS}/cu126" if sys.platform == "win32" else "pip install --force-reinstall torch"
        )
    oldest = _OLDEST_DRIVERS.get(torch.version.cuda.partition(".")[0])
    needs = f", which needs a driver from {oldest} on," if oldest else ""
    return f"{found} is for CUDA {torch.version.cuda}{needs} and cannot use it; update the driver, or {_WHEELS}/cu126"


def _nvidia_driver() -> str | None:
    """The version of the driver that the kernel has loaded, which only Linux tells; None: there is no driver."""
    if sys.platform == "win32":
        library = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "nvcuda.dll")
        return "of an unknown version" if library.exists() else None
    try:
        found = re.search(r"Module.*?\s(\d+(?:\.\d+)+)\s", _NVIDIA_DRIVER.read_text(errors="replace"))
    except OSError:
        return None
    return found.group(1) if found else "of an unknown version"


def has_kernels_for(capability: tuple[int, int], architectures: Sequence[str]) -> bool:
    """Whether kernels of one of these architectures run on a card.

    Kernels for `sm_80` run on cards of the same first number and the same or a larger second one; `compute_90` is code that
    the driver compiles for any newer card. Source: CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility".

    Args:
        capability: the compute capability of the card.
        architectures: of `torch.cuda.get_arch_list()`; an empty list says nothing, so it counts as True.
    """
    numbers = [(one.startswith("compute_"), _number_of(one)) for one in architectures]
    return not numbers or any(
        number <= capability and (is_compiled_later or number[0] == capability[0])
        for is_compiled_later, number in numbers
    )


def _number_of(architecture: str) -> tuple[int, int]:
    """Of `sm_90a`: 9 and 0."""
    digits = "".join(filter(str.isdecimal, architecture))
    return int(digits[:-1] or 0), int(digits[-1:] or 0)


def has_fast_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        # With AVX-512 alone, processors of Intel multiply bfloat16 no faster than float32; those of AMD do.
        has_amx = getattr(torch.cpu, "_is_amx_tile_supported", bool)()
        return has_amx or (getattr(torch.cpu, "_is_avx512_bf16_supported", bool)() and _is_of_amd())
    return False


def _is_of_amd() -> bool:
    try:
        return "AuthenticAMD" in _CPU_INFO.read_text(errors="replace")
    except OSError:  # no Linux
        return "AuthenticAMD" in platform.processor()


def has_tensor_cores() -> bool:
    """Whether the current CUDA device multiplies 16-bit numbers much faster than float32: Volta and newer."""
    return torch.cuda.get_device_capability() >= (7, 0)


def num_usable_cpus() -> int:
    """The CPUs that this process may use; a container or a scheduler may allow fewer than the machine has."""
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def derive_seed(*parts: int | str) -> int:
    """A seed of 63 bits, a pure function of the parts."""
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def seed_generators(seed: int) -> None:
    """Set the seed of the CPU's random numbers, and of those of a GPU that is in use."""
    if torch.cuda.is_initialized() or torch.backends.mps.is_available():
        torch.manual_seed(seed)
    else:
        # For a GPU that may be used later, `torch.manual_seed` writes down which functions called it: 0.1 to 0.2 ms in each update.
        torch.default_generator.manual_seed(seed)


def processor_name() -> str:
    """The processor, such as AMD EPYC 9B14, as the system calls it; else its architecture."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", _CPU_INFO.read_text(errors="replace"), re.M)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def environment(kernels: str | None) -> dict[str, Any]:
    """Versions and hardware, for environment.json; no paths, user names or environment variables.

    Args:
        kernels: the level of the kernels in C, see `kernel_level`.
    """
    packages = ("torch", "datasets", "tokenizers", "sacrebleu", "jiwer", "numpy")
    return {
        "tfm": __version__,  # also where the package is not installed, but found through PYTHONPATH
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in packages},
        "system": f"{platform.system()} {platform.machine()}",
        "cpu_cores": os.cpu_count(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "kernels": kernels,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


PEAKS_OF_DATA_SHEETS = {
    "B200": 2250e12,
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "A100": 312e12,
    "RTX 4090": 165e12,
    "RTX 3090": 71e12,
    "L4": 121e12,
    "V100": 125e12,
    "T4": 65e12,
}
"""A part of the name of an NVIDIA card -> FLOP a second of dense products in bfloat16 or float16, added up in float32.

Source: the data sheets and architecture papers of NVIDIA; those of H100 and H200 are of SXM cards unless the name says otherwise.
"""


def peak_of_data_sheet(name: str, precision: torch.dtype) -> float | None:
    """The FLOP a second that the data sheet of a card promises; None for another precision or a card that is not in the table."""
    if precision not in (torch.bfloat16, torch.float16) or "Laptop" in name:
        return None
    words = f" {name} ".replace("-", " ")
    return next((peak for part, peak in PEAKS_OF_DATA_SHEETS.items() if f" {part} " in words), None)


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has done all its work; a CPU has none left, and other devices may have no way to wait."""
    if device.type in ("cuda", "mps", "xpu"):
        torch.accelerator.synchronize(device)


# Memory: how much is free, whether a model fits, how much was used at most, and how much the allocator keeps.


_SURELY_FREE = 64 << 20
"""For at most this number of bytes the system is not asked how much is free: PyTorch itself has just taken several times as much."""
PROC, CONTROL_GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def require_memory(needed: int, device: torch.device, what: str, *, hint: str) -> None:
    """Raise an error if memory is too small, before it is allocated: Linux would kill the process without a message.

    Args:
        needed: bytes.
        device: the device that will hold them.
        what: the object that needs them, for the message.
        hint: what the user can do.

    Raises:
        TryAgainError: less memory is free.
    """
    if needed <= _SURELY_FREE and device.type == "cpu":
        return
    free = free_bytes(device)
    if free is None or needed <= free:
        return
    place = "this machine" if device.type == "cpu" else f"the device {device}"
    raise TryAgainError(f"{what}: {_gigabytes(needed)} of memory needed, {_gigabytes(free)} free on {place}", hint=hint)


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:,.1f} GB"


def free_bytes(device: torch.device) -> int | None:
    """The bytes that this process can still allocate on a device; None if the system does not tell."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    # An Apple GPU uses the memory of the machine.
    known = [size for size in (_free_on_machine(), _free_in_groups()) if size is not None]
    return min(known, default=None)


def resident_memory() -> tuple[int | None, int | None]:
    """The memory of the machine that this process has, libraries included, and the most that it had; None where the system does not tell."""
    sizes = dict[str, int]()
    with suppress(OSError):
        status = (PROC / "self/status").read_text("ascii")
        sizes = {name: 1024 * int(size) for name, size in re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", status)}
    now, peak = sizes.get("VmRSS"), sizes.get("VmHWM")
    if peak is None and sys.platform != "win32":
        import resource  # not on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return now, peak


def _free_on_machine() -> int | None:
    """On Linux the available memory and swap; elsewhere all memory, where the system tells it."""
    with suppress(OSError, ValueError, IndexError):
        lines = (PROC / "meminfo").read_text("ascii").splitlines()
        kibibytes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        if "MemAvailable" in kibibytes:
            return 1024 * (kibibytes["MemAvailable"] + kibibytes.get("SwapFree", 0))
    with suppress(AttributeError, OSError, ValueError):  # Windows has no sysconf
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _free_in_groups() -> int | None:
    """The smallest free memory of a control group of this process (container, batch job); None without a limit."""
    left = []
    for folder, limit_file, usage_file in _groups():
        with suppress(OSError, ValueError):  # "max", where there is no limit, is no number
            limit = int((folder / limit_file).read_text())
            usage = int((folder / usage_file).read_text())
            # The kernel keeps files in memory, and drops them as soon as memory is needed.
            reclaimable = 0
            with suppress(OSError, ValueError):
                lines = (folder / "memory.stat").read_text().splitlines()
                numbers = dict(line.split() for line in lines)
                inactive = numbers.get("inactive_file", 0)
                reclaimable = int(numbers.get("total_inactive_file", inactive))
            left.append(max(0, limit - usage + reclaimable))
    return min(left, default=None)


def _groups() -> Iterator[tuple[Path, str, str]]:
    """The groups of this process up to the root, and their files of limit and usage, versions 1 and 2."""
    with suppress(OSError):
        for line in (PROC / "self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                root, files = CONTROL_GROUPS, ("memory.max", "memory.current")
            elif controllers == "memory":
                root = CONTROL_GROUPS / "memory"
                files = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            else:
                continue
            # Inside a container the path may be that of the host; its own group is then the root.
            own = root / path.lstrip("/")
            for folder in (own, *own.parents):
                yield folder, *files
                if folder == root:
                    break


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device. To a GPU it goes from pinned memory, and the CPU does not wait for the copy."""
    if device.type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)  # does not copy a tensor that is already pinned


_ALLOCATOR_SETTINGS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def let_segments_grow() -> None:
    """Let PyTorch's allocator of an NVIDIA GPU extend its segments, unless the user has set how it allocates.

    Nearly each batch has sizes of its own; near the limit of memory, segments that cannot grow would hold the free memory in pieces.
    PyTorch reads the variable when it starts CUDA, as a question about a card does. (CUDA graphs have few sizes and memory of their own.)
    """
    is_possible = torch.version.cuda is not None and sys.platform == "linux"
    if is_possible and not any(name in os.environ for name in _ALLOCATOR_SETTINGS):
        os.environ[_ALLOCATOR_SETTINGS[0]] = "expandable_segments:True"


def return_freed_memory() -> None:
    """Give freed memory back to the system, after work with objects of other sizes, such as decoding or reading a corpus."""
    if pyarrow := sys.modules.get("pyarrow"):
        pyarrow.default_memory_pool().release_unused()
    if _HAS_GLIBC:
        ctypes.CDLL(None).malloc_trim(0)


def forget_peak_memory(device: torch.device) -> None:
    """Forget earlier peaks, such as that of preparing the data; only Linux forgets that of resident memory."""
    return_freed_memory()
    with suppress(OSError):
        (PROC / "self/clear_refs").write_text("5", encoding="ascii")
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: torch.device, *, has_graphs: bool = False) -> dict[str, int | None]:
    """The most memory of the machine, and of a CUDA device, that the process had since `forget_peak_memory`; and what it could have.

    In bytes; None where the system does not report it. The memory of CUDA graphs was allocated when they were recorded, so with
    them all that PyTorch has reserved counts.
    """
    now, peak = resident_memory()
    free, device_peak, device_usable = free_bytes(torch.device("cpu")), None, None
    if device.type == "cuda":
        device_peak = (torch.cuda.max_memory_reserved if has_graphs else torch.cuda.max_memory_allocated)(device)
        device_usable = (free_bytes(device) or 0) + torch.cuda.memory_allocated(device)
    usable = None if now is None or free is None else now + free
    return {"resident": peak, "usable": usable, "device": device_peak, "device_usable": device_usable}


def limit_memory(spare_bytes: int) -> None:
    """Limit the memory of this process to what it has and some spare bytes; on Linux only."""
    try:
        import resource
    except ImportError:
        return
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # macOS has no such file, and does not keep the limit either
        return
    most = used + spare_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
