"""Paths that name an open file descriptor of this process, such as /dev/stdout or /dev/fd/63."""

import os
import re
from pathlib import Path

STANDARD = Path("-")
"""A path that means standard input or standard output."""
MAX_LINKS = 40
_STANDARD_NAMES = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_NUMBERED = re.compile(r"(/dev/fd|/proc/self/fd|/proc/(?P<process>\d+)/fd)/(?P<number>\d{1,9})")


def descriptor_of(path: Path) -> int | None:
    """The number of the open file descriptor that a path names, directly or through symbolic links.

    Such a path must not be opened again or replaced: the shell may have opened the file for appending, or
    at another position. None: the path names no descriptor.
    """
    name = os.path.abspath(path)
    for _ in range(MAX_LINKS):
        if name in _STANDARD_NAMES:
            return _STANDARD_NAMES[name]
        folder, last = os.path.split(name)
        for spelled in (name, os.path.join(os.path.realpath(folder), last)):
            match = _NUMBERED.fullmatch(spelled)
            if match and (match["process"] or str(os.getpid())) == str(os.getpid()):
                return int(match["number"])
        try:
            name = os.path.abspath(os.path.join(folder, os.readlink(name)))
        except OSError:  # no link, or no such file
            return None
    return None
