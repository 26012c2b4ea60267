"""Starts `tfm` as a separate process by a fork, which saves the time of its imports."""

import contextlib
import itertools
import json
import logging
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PARENT = Path(__file__).with_name("forking_parent.py")
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "COLUMNS": "100",
}
LIMIT_SECONDS = 120.0  # of one command, on a very busy machine


class Finished(NamedTuple):
    """The result of a process that has ended."""

    exit_code: int
    out: bytes
    talk: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def lines(self) -> list[str]:
        """The lines of standard output; only line feeds end a line."""
        return self.text.removesuffix("\n").split("\n") if self.out else []


@dataclass
class Process:
    """One running `tfm` process."""

    launcher: "Launcher"
    pid: int
    out: Path
    talk: Path
    exit_code: int | None = None

    def is_running(self) -> bool:
        if self.exit_code is None:
            self.exit_code = self.launcher.ask({"poll": self.pid})
        return self.exit_code is None

    def send(self, signal_number: int) -> None:
        os.kill(self.pid, signal_number)

    def wait(self) -> Finished:
        if hasattr(os, "pidfd_open") and self.is_running():
            # To wait for the end itself costs nothing; to ask every few milliseconds, the parent and this process.
            end = os.pidfd_open(self.pid)
            select.select([end], [], [], LIMIT_SECONDS)
            os.close(end)
        self.wait_until(lambda: not self.is_running())
        assert self.exit_code is not None
        talk = self.talk.read_text(encoding="utf-8", errors="replace")
        return Finished(self.exit_code, self.out.read_bytes(), talk)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        stop_at = time.monotonic() + LIMIT_SECONDS
        while not condition():
            assert time.monotonic() < stop_at, f"waited too long; it said: {self.talk.read_text()}"
            time.sleep(0.005)


class Launcher:
    """Owns the parent; `start` asks it to fork."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        with (folder / "log").open("wb") as talk:
            self._parent = subprocess.Popen(
                [sys.executable, str(PARENT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=talk,
                env=os.environ | ENVIRONMENT,
            )
        self._processes: list[Process] = []

    def ask(self, request: Mapping[str, Any]) -> Any:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(request).encode() + b"\n")
        self._parent.stdin.flush()
        return json.loads(self._parent.stdout.readline())

    def start(
        self,
        arguments: Sequence[str],
        folder: Path,
        *,
        stdin: Path = Path(os.devnull),
        faults: Sequence[Sequence[Any]] = (),
        environment: Mapping[str, str] | None = None,
        terminal: str | None = None,
    ) -> Process:
        """Start a command; with `terminal`, its standard error goes to the terminal of that name."""
        number = next(self._numbers)
        outputs = self._folder / f"out-{number}", self._folder / f"talk-{number}"
        job = {
            "arguments": list(arguments),
            "folder": str(folder),
            "stdin": str(stdin),
            "stdout": str(outputs[0]),
            "stderr": terminal or str(outputs[1]),
            "faults": [list(fault) for fault in faults],
            "environment": dict(environment or {}),
        }
        for output in outputs:
            output.touch()
        process = Process(self, self.ask({"start": job}), *outputs)
        self._processes.append(process)
        return process

    def file_with(self, data: bytes) -> Path:
        """A file with this content, for use as standard input."""
        path = self._folder / f"in-{next(self._numbers)}"
        path.write_bytes(data)
        return path

    def end_all(self) -> None:
        """Kill what a failed test left running."""
        for process in self._processes:
            if process.is_running():
                process.send(signal.SIGKILL)
                process.wait()
        self._processes.clear()

    def close(self) -> None:
        self.end_all()
        self._parent.kill()
        self._parent.wait()
        for pipe in (self._parent.stdin, self._parent.stdout):
            assert pipe is not None
            pipe.close()


def run_here(
    folder: Path, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> Finished:
    """Run `tfm` in this process: for tests that look at what it prints and writes, and not at how its process ends."""
    from transformer_cli import cli

    forget_settings_of_logger()
    with contextlib.ExitStack() as opened:
        read, out, talk = (
            opened.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors=errors))
            for errors in ("strict", "strict", "backslashreplace")
        )
        read.buffer.write(stdin)
        read.seek(0)
        patched = opened.enter_context(pytest.MonkeyPatch.context())
        for name, value in {**ENVIRONMENT, **(environment or {})}.items():
            patched.setenv(name, value)
        patched.chdir(folder)
        patched.setattr(sys, "argv", ["tfm", *arguments])
        for name, stream in (("stdin", read), ("stdout", out), ("stderr", talk)):
            patched.setattr(sys, name, stream)
        opened.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code or 0
        assert isinstance(code, int)
        out.seek(0)  # this also flushes
        talk.seek(0)
        return Finished(code, out.buffer.read(), talk.buffer.read().decode())


def forget_settings_of_logger() -> None:
    """A command that ran in this process left its settings in the package's logger."""
    package = logging.getLogger("transformer_cli")
    package.handlers.clear()
    package.propagate = True
    if package.level != logging.NOTSET:  # setting it empties the caches of all loggers
        package.setLevel(logging.NOTSET)


@dataclass(frozen=True)
class TfmHere:
    """`tfm` in one folder and in this process, for tests to which a process of its own means nothing."""

    folder: Path

    def __call__(self, *arguments: str, **options: Any) -> Finished:
        return run_here(self.folder, *arguments, **options)


@dataclass(frozen=True)
class Tfm:
    """`tfm` in one folder: calling it runs a command to its end."""

    launcher: Launcher
    folder: Path

    def __call__(self, *arguments: str, **options: Any) -> Finished:
        return self.start(*arguments, **options).wait()

    def start(self, *arguments: str, folder: Path | None = None, **options: Any) -> Process:
        if isinstance(options.get("stdin"), bytes):
            options["stdin"] = self.launcher.file_with(options["stdin"])
        return self.launcher.start(arguments, folder or self.folder, **options)
