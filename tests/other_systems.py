"""Takes away from this process what Windows lacks, before anything of the package is imported.

A script: `other_systems.py PROGRAM ARGUMENTS` runs the function PROGRAM of this file. The stand-ins raise
the errors that Windows raises: no folder can be opened; a file that is open, or mapped into memory, can
neither be renamed nor deleted, nor can a folder that holds one; links need a privilege.
"""

import errno
import importlib
import json
import os
import pkgutil
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# These packages have code of their own for Windows, which they choose by `os.name`.
WITH_OWN_CODE = ("portalocker", "datasets", "tensorboard")
NO_MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "pty")
NO_SIGNALS = ("SIGPIPE", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGALRM", "SIGKILL", "SIGCHLD")
NO_FUNCTIONS = (
    "O_NOFOLLOW",
    "O_DIRECTORY",
    "O_NONBLOCK",
    "O_CLOEXEC",
    "statvfs",
    "fstatvfs",
    "fork",
    "forkpty",
    "pread",
    "pwrite",
    "geteuid",
    "getuid",
    "getpgrp",
    "killpg",
    "setsid",
    "mkfifo",
    "sysconf",
    "getloadavg",
    "sched_getaffinity",
    "posix_fadvise",
    "chown",
    "lchown",
)


def take_away() -> None:
    """Let this process be as poor as a process on Windows."""
    for name in WITH_OWN_CODE:
        importlib.import_module(name)
    disk_usage = shutil.disk_usage
    shutil.disk_usage = _measured(disk_usage(os.sep))  # type: ignore[assignment]
    for name in NO_MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for owner, names in ((signal, NO_SIGNALS), (os, NO_FUNCTIONS)):
        for name in names:
            if hasattr(owner, name):
                delattr(owner, name)
    for functions in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        functions.clear()
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    _replace_opening()
    for name in ("rename", "replace", "unlink", "remove", "rmdir"):
        setattr(os, name, _refusing_open_files(name, getattr(os, name)))
    os.symlink = _no_privilege


def _measured(usage: Any) -> Callable[[Any], Any]:
    return lambda path: usage


def _replace_opening() -> None:
    original_open, original_fsync = os.open, os.fsync
    original_listdir, original_utime = os.listdir, os.utime

    def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return original_open(path, flags, mode)

    def fsync(file: int) -> None:
        access = _flags_of(file) & 0b11
        if access == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        original_fsync(file)

    def listdir(path: Any = ".") -> list[Any]:
        if isinstance(path, int):
            raise TypeError("listdir: path should be string, bytes, os.PathLike or None, not int")
        return original_listdir(path)

    def utime(path: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(path, int):
            raise TypeError("utime: path should be string, bytes or os.PathLike, not int")
        original_utime(path, *arguments, **options)

    os.open, os.fsync, os.listdir, os.utime = opened, fsync, listdir, utime  # type: ignore[assignment]


def _flags_of(file: int) -> int:
    lines = Path(f"/proc/self/fdinfo/{file}").read_text().splitlines()
    return int(dict(line.split(":\t", 1) for line in lines)["flags"], 8)


def _refusing_open_files(name: str, original: Callable[..., None]) -> Callable[..., None]:
    def checked(path: Any, *arguments: Any, **options: Any) -> None:
        for place in (path, *arguments):
            if in_use := _open_below(os.fspath(place)):
                raise PermissionError(errno.EACCES, f"{name}: in use by this process: {in_use}", str(place))
        if name == "rename" and os.path.lexists(arguments[0]):
            raise FileExistsError(errno.EEXIST, "File exists", str(arguments[0]))
        original(path, *arguments, **options)

    return checked


def _open_below(path: str) -> str | None:
    """An open or mapped file that is the path, or lies below it."""
    full = os.path.abspath(path)
    found = [line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(link.readlink()))
        except OSError:
            continue
    return next((one for one in found if one == full or one.startswith(full + os.sep)), None)


def _no_privilege(*_: Any, **__: Any) -> None:
    raise OSError(errno.EPERM, "A required privilege is not held by the client")


def import_all() -> None:
    """Import every module of the package, and print how many there are."""
    package = importlib.import_module("transformer_cli")
    modules = [one.name for one in pkgutil.walk_packages(package.__path__, "transformer_cli.")]
    for name in modules:
        importlib.import_module(name)
    sys.stdout.write(json.dumps(modules))


def commands(listed: str) -> None:
    """Run `tfm` with each list of arguments, one after the other; print the exit codes."""
    main = importlib.import_module("transformer_cli.cli").main
    codes = []
    for arguments in json.loads(listed):
        sys.argv = ["tfm", *arguments]
        try:
            main()
            codes.append(0)
        except SystemExit as end:
            codes.append(end.code if isinstance(end.code, int) else int(end.code is not None))
    sys.stdout.write(f"EXIT CODES {codes}\n")


if __name__ == "__main__":
    take_away()
    {"import_all": import_all, "commands": commands}[sys.argv[1]](*sys.argv[2:])
