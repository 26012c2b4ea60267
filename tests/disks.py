"""File systems of their own, small or read-only, for tests of disks that are really so."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mounted(place: Path, options: str) -> Iterator[bool]:
    """A tmpfs on an empty folder, such as of "size=2m"; False where mounting is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    try:
        is_mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        is_mounted = False
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", str(place)], check=True)
