"""Memory: how much is free, whether a model fits, and how much the allocator keeps."""

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from transformer_cli.process.errors import TryAgainError

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
    free = free_bytes(device)
    if free is None or needed <= free:
        return
    place = "this machine" if device.type == "cpu" else f"the device {device}"
    raise TryAgainError(
        f"{what}: {_gigabytes(needed)} of memory needed, {_gigabytes(free)} free on {place}",
        hint=hint,
    )


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
            left.append(max(0, limit - usage + _reclaimable(folder)))
    return min(left, default=None)


def _reclaimable(group: Path) -> int:
    """Bytes of files that the kernel keeps, and drops as soon as memory is needed."""
    with suppress(OSError, ValueError):
        lines = (group / "memory.stat").read_text().splitlines()
        numbers = dict(line.split() for line in lines)
        return int(numbers.get("total_inactive_file", numbers.get("inactive_file", 0)))
    return 0


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
    return tensor.pin_memory().to(
        device, non_blocking=True
    )  # does not copy a tensor that is already pinned


def _has_glibc() -> bool:
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc"


def keep_freed_memory() -> None:
    """Let glibc keep freed memory: each step frees and allocates large tensors, and page faults cost time."""
    # oneDNN keeps code for each shape of a matrix product, for up to 1024 shapes without this limit. With 24 instead
    # of 128 the process is 135 MB smaller, and updates are hardly slower. oneDNN reads this at its first product.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "24")
    # PyTorch keeps up to 1024 further objects of this kind. With 64, a translation of many lines is about 100 MB smaller
    # (its memory stops growing after 10,000 lines, and not after 150,000), and a training, too; with 16, a translation is
    # 100 MB smaller again and a training 40 MB. Both take the same time.
    os.environ.setdefault("LRU_CACHE_CAPACITY", "16")
    if not _has_glibc():
        return
    trim_threshold, mmap_threshold = -1, -3
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_threshold, 1 << 30)
    libc.mallopt(trim_threshold, (1 << 31) - 1)


def return_freed_memory() -> None:
    """Give freed memory back to the system, after work with objects of other sizes, such as decoding or reading a corpus."""
    if pyarrow := sys.modules.get("pyarrow"):
        pyarrow.default_memory_pool().release_unused()
    if _has_glibc():
        ctypes.CDLL(None).malloc_trim(0)


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
