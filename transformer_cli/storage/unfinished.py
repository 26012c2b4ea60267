"""Marks beside unfinished folders: after a kill, the next command in the same place deletes what was left.

A mark is a file `.unfinished-NAME` beside the folder `.tmp-NAME`; the process that fills the folder holds its lock. The
system frees the lock when the process ends, also by `kill -9`. So a lock that can be taken, on a file that holds the
text of a mark, says that nobody works in the folder any more. Names, ages and process numbers alone say nothing.
"""

import json
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from transformer_cli.storage import system_calls
from transformer_cli.storage.system_calls import try_lock

logger = logging.getLogger(__name__)

MARK = ".unfinished-"
TEMPORARY = ".tmp-"
_NAME = re.compile(rf"{re.escape(MARK)}(.+-\d+-\d+)")
_KIND = "an unfinished folder of tfm"


@contextmanager
def marked(partial: Path) -> Iterator[None]:
    """Hold a mark beside a folder that does not exist yet, and whose name begins with `.tmp-`.

    Where no mark can be made, the block runs without one: after a kill, a person must delete the folder.
    """
    mark = partial.with_name(partial.name.replace(TEMPORARY, MARK, 1))
    file = _made(mark)
    try:
        yield
    finally:
        if file is not None:
            os.close(file)
            if not os.path.lexists(partial):
                remove_mark(partial)


def remove_mark(partial: Path) -> None:
    """Remove the mark of a folder that is whole, or that was deleted."""
    with suppress(OSError):
        partial.with_name(partial.name.replace(TEMPORARY, MARK, 1)).unlink()


def _made(mark: Path) -> int | None:
    """The open file of a new mark, whose lock this process holds; None if there can be none."""
    try:
        file = system_calls.open_file(mark, system_calls.NEW)
    except OSError:  # the folder cannot be made either, which its own error will say
        return None
    try:
        # The text comes after the lock: a file without it is never taken for a mark.
        if try_lock(file):
            system_calls.write_at(file, _text(), 0)
            return file
    except OSError:  # the disk is full, for example
        pass
    os.close(file)
    mark.unlink(missing_ok=True)
    return None


def _text() -> bytes:
    # Some network file systems lock nothing for other machines: only the machine that made a mark may judge it.
    return json.dumps({"kind": _KIND, "host": socket.gethostname()}).encode()


def sweep_unfinished(folder: Path, remove_tree: Callable[[Path], None]) -> list[Path]:
    """Delete the marked folders in a folder whose process has ended; errors leave them for the next time.

    Args:
        folder: where folders were made, or are about to be made.
        remove_tree: deletes a folder.
    """
    try:
        names = sorted(filter(_NAME.fullmatch, os.listdir(folder)))
    except OSError:
        return []
    swept = []
    for name in names:
        with suppress(OSError):
            partial = folder / name.replace(MARK, TEMPORARY, 1)
            if _sweep(folder / name, partial, remove_tree):
                swept.append(partial)
                logger.info("%s: removed what an interrupted command had left", partial)
    return swept


def _sweep(mark: Path, partial: Path, remove_tree: Callable[[Path], None]) -> bool:
    """Delete a folder and its mark, if the process that made them has ended; whether there was a folder."""
    file = system_calls.open_file(mark, system_calls.OWN & ~os.O_CREAT)
    try:
        if not try_lock(file) or system_calls.read_at(file, 1000, 0) != _text():
            return False
        is_left = partial.is_dir() and not partial.is_symlink()
        if is_left:
            remove_tree(partial)
        mark.unlink()
        return is_left
    finally:
        os.close(file)
