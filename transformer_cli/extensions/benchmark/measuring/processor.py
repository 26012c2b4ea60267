"""The name of the processor, for reports: a speed means little without it."""

import platform
import re
from pathlib import Path

_LINUX = Path("/proc/cpuinfo")


def processor_name() -> str:
    """The processor, such as AMD EPYC 9B14, as the system calls it; else its architecture."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", _LINUX.read_text(errors="replace"), re.M)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()
