"""Recognises the folder of a run after it was renamed, removed, or replaced by another of its name."""

import os
import weakref
from contextlib import suppress
from pathlib import Path

from transformer_cli.storage import system_calls
from transformer_cli.storage.lock import is_locked_here


class KnownFolder:
    """Recognises a folder by its device and inode, or by the lock that this process holds in it.

    It keeps the folder open if the system can do this, so that no new folder gets the same inode.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = _identity(path)
        with suppress(OSError):
            descriptor = system_calls.open_folder(path)
            if descriptor is not None:
                weakref.finalize(self, os.close, descriptor)

    def is_in_place(self) -> bool:
        """Whether the folder still has its name.

        Some network file systems give a folder a new inode, but not a new lock file.
        """
        now = _identity(self.path)
        return now is not None and (now == self._identity or is_locked_here(self.path))

    def find_nearby(self) -> Path | None:
        """The folder under another name in the same parent folder, if it is there."""
        try:
            siblings = sorted(self.path.absolute().parent.iterdir())
        except OSError:
            return None
        found = [path for path in siblings if _identity(path) == self._identity]
        return self.path.with_name(found[0].name) if found and self._identity else None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
