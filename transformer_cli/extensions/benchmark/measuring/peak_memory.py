"""The largest memory that a piece of work takes, on the machine and on a GPU."""

import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from transformer_cli.process.memory import free_bytes, return_freed_memory

PROCESS = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """Bytes; None where the system does not report them."""

    resident: int | None
    """The largest memory of the machine that the process had, libraries included."""
    usable: int | None
    """The memory that this process could have: what it has, and what is free."""
    device: int | None = None
    """On a CUDA device: the largest memory of its tensors."""
    device_usable: int | None = None

    @property
    def used_share(self) -> float | None:
        """Share (0 to 1) of the memory that decides how large a batch may be."""
        used, usable = (
            (self.resident, self.usable)
            if self.device is None
            else (self.device, self.device_usable)
        )
        return used / usable if used is not None and usable else None


def start_measuring(device: torch.device) -> None:
    """Reset earlier peaks, such as that of preparing the data; only Linux can reset the peak of resident memory."""
    return_freed_memory()
    with suppress(OSError):
        (PROCESS / "clear_refs").write_text("5", encoding="ascii")
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: torch.device, *, has_graphs: bool = False) -> PeakMemory:
    """The peak since `start_measuring`.

    Args:
        device: of the model.
        has_graphs: whether CUDA graphs are replayed. Their memory was allocated when they were recorded, so all memory
            counts that PyTorch has reserved.
    """
    free = free_bytes(torch.device("cpu"))
    now = resident_bytes()
    usable = None if now is None or free is None else now + free
    if device.type != "cuda":
        return PeakMemory(_largest_resident(), usable)
    own = torch.cuda.memory_allocated(device)
    of_device = (free_bytes(device) or 0) + own
    peak_of = torch.cuda.max_memory_reserved if has_graphs else torch.cuda.max_memory_allocated
    return PeakMemory(_largest_resident(), usable, peak_of(device), of_device)


def resident_bytes() -> int | None:
    """Resident memory: memory of the machine that the process has now; only Linux reports it."""
    return _resident("VmRSS")


def _largest_resident() -> int | None:
    peak = _resident("VmHWM")
    if peak is not None or sys.platform == "win32":
        return peak
    import resource  # not on Windows

    in_bytes = sys.platform == "darwin"
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if in_bytes else 1024)


def _resident(name: str) -> int | None:
    with suppress(OSError):
        found = re.search(rf"{name}:\s+(\d+) kB", (PROCESS / "status").read_text(encoding="ascii"))
        return None if found is None else 1024 * int(found[1])
    return None
