"""The child process that runs a learner's files: the only place of this package that runs code of a user.

It runs in a process of its own, because a learner's code may loop for ever, end the process, or take all memory.
The checks call the functions; the outcomes go to the parent through a pipe, as JSON.
"""

import importlib
import importlib.util
import io
import json
import linecache
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType, ModuleType
from typing import Literal, NamedTuple

from transformer_cli.extensions.lessons.exercises.catalogue import (
    EXERCISES,
    FINALE,
    Exercise,
    WrongAnswer,
    exercise_named,
)
from transformer_cli.process.messages import escaped

MAX_CHARACTERS = 4000
MAX_LINES = 20


class LimitedOutput(io.TextIOBase):
    """A text stream in place of standard output and standard error of a learner's code.

    Args:
        name: stands before each line.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._num_characters_left = MAX_CHARACTERS
        self._num_lines_left = MAX_LINES
        self._line = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Pass on the complete lines of the text."""
        for part in text[: self._num_characters_left].splitlines(keepends=True):
            if self._num_characters_left == 0:  # `flush` has ended the output
                break
            self._num_characters_left -= len(part)
            self._line += part
            if part.endswith("\n"):
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Pass on the last line."""
        if not self._line:
            return
        self._num_lines_left -= 1
        if self._num_lines_left == 0 or self._num_characters_left == 0:
            self._line = "... (the rest of what this code prints is left out)"
            self._num_characters_left = 0
        line = escaped(self._line.removesuffix("\n")).encode("utf-8", "backslashreplace")
        os.write(2, self._name.encode() + b" prints: " + line + b"\n")
        self._line = ""


READY = b"ready"
SPARE_BYTES = 4 << 30
_MAX_FRAMES = 4


Status = Literal["passes", "not begun", "fails", "waits"]


class CheckOutcome(NamedTuple):
    """What `tfm exercises --check` tells about one exercise."""

    name: str
    status: Status
    message: str = ""
    """What is wrong; empty for an exercise that passes."""
    hint: str = ""
    """What to change, for `--hint`."""
    lines: tuple[str, ...] = ()
    """Further lines: where the learner's code failed, or what the finale shows."""

    has_ended_child: bool = False
    """Whether the child process that ran the code ended with this outcome."""

    def to_bytes(self) -> bytes:
        """The outcome as JSON, for the pipe between two processes."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "CheckOutcome":
        """The outcome in the bytes of `to_bytes`."""
        values = json.loads(data)
        return cls(**{**values, "lines": tuple(values["lines"])})


def check_in_child(connection: Connection, folder: Path, names: list[str], seconds: dict[str, float]) -> None:
    """Check the exercises with these names in their order, and send the outcome of each.

    Args:
        connection: the end of the pipe to the parent.
        folder: the learner's folder.
        names: of exercises, and perhaps that of the finale.
        seconds: the time limit of each.
    """
    # The parent imports this module too, and needs no PyTorch.
    import torch

    from transformer_cli.process.device import limit_memory

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    torch.set_num_threads(1)
    limit_memory(SPARE_BYTES)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))  # a learner may write modules of their own
    for exercise in EXERCISES:  # imported before the time of the first one begins
        exercise.load_check()
    connection.send_bytes(READY)
    for name in names:
        printed = LimitedOutput(_file_name(name))
        sys.stdout = sys.stderr = printed
        alarm = threading.Timer(seconds[name], _give_up, (connection, folder, name, seconds[name]))
        alarm.daemon = True
        alarm.start()
        outcome = _outcome(folder, name)
        alarm.cancel()
        printed.flush()
        connection.send_bytes(outcome.to_bytes())


def load_module(path: Path) -> ModuleType:
    """Run a learner's file as a module."""
    spec = importlib.util.spec_from_file_location(f"exercise_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _file_name(name: str) -> str:
    return FINALE if name == FINALE else exercise_named(name).file_name


def _outcome(folder: Path, name: str) -> CheckOutcome:
    try:
        if name == FINALE:
            from transformer_cli.extensions.lessons.exercises.finale import play_finale

            modules = {one.name: load_module(folder / one.file_name) for one in EXERCISES}
            return CheckOutcome(name, "passes", lines=tuple(play_finale(modules)))
        _check(folder, exercise_named(name))
        return CheckOutcome(name, "passes")
    except WrongAnswer as wrong:
        return CheckOutcome(name, "fails", wrong.message, wrong.hint or "")
    except BaseException as error:  # also SystemExit, which a learner's code may raise
        return _crash(name, folder, error)


def _check(folder: Path, exercise: Exercise) -> None:
    learner = load_module(folder / exercise.file_name)
    for function in exercise.functions:
        if not callable(getattr(learner, function, None)):
            raise WrongAnswer(
                f"the function {function} is missing",
                f"{exercise.file_name} must define it with this name",
            )
    exercise.load_check()(learner)


def _crash(name: str, folder: Path, error: BaseException) -> CheckOutcome:
    """The error and the learner's own lines that led to it; lines of this package and of PyTorch are left out."""
    frames = [(frame, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    lines = _lines_of(frames, folder)
    summary = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    if isinstance(error, SyntaxError):
        text = (error.text or "").strip()
        lines = [f"{Path(error.filename or '').name}, line {error.lineno}: {text}"]
        message = f"the file is not Python: {error.msg}"
        hint = "mend this line, or the one before it: its brackets, quotes, colon and indentation"
        return CheckOutcome(name, "fails", message, hint, tuple(lines))
    if isinstance(error, SystemExit):
        message, hint = "the code calls sys.exit or exit", "end the function with return"
        return CheckOutcome(name, "fails", message, hint, tuple(lines))
    if isinstance(error, NotImplementedError) and str(error):  # the second function of a file is still blank
        return CheckOutcome(name, "fails", str(error), lines=tuple(lines))
    if not lines:
        return CheckOutcome(name, "fails", f"the function cannot be called or compared: {summary}")
    return CheckOutcome(name, "fails", f"the code stops with an error: {summary}", lines=tuple(lines))


def _lines_of(frames: Iterable[tuple[FrameType, int]], folder: Path) -> list[str]:
    """For the learner's frames, outermost first: file, line number, function and text."""
    shown = []
    for frame, number in frames:
        code = frame.f_code
        if Path(code.co_filename).parent == folder:
            text = linecache.getline(code.co_filename, number).strip()
            shown.append(f"{Path(code.co_filename).name}, line {number}, in {code.co_name}: {text}")
    return shown[-_MAX_FRAMES:]


def _give_up(connection: Connection, folder: Path, name: str, seconds: float) -> None:
    """Send where the main thread is, and end this process: there is no other way to stop its code."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    frames = reversed(list(traceback.walk_stack(frame)))
    lines = _lines_of(frames, folder)
    connection.send_bytes(too_slow(name, seconds, lines).to_bytes())
    os._exit(1)


def too_slow(name: str, seconds: float, lines: Iterable[str] = ()) -> CheckOutcome:
    """The outcome of code that takes too long."""
    message = f"the code was stopped after {seconds:.0f} seconds; is there a loop without an end?"
    hint = "find the loop, and the condition that should end it; for searches, that is EOS or max_length"
    return CheckOutcome(name, "fails", message, hint, tuple(lines), has_ended_child=True)


def _end_with_the_parent() -> None:
    parent = parent_process()
    if parent is not None:
        with suppress(OSError):
            parent.join()
        os._exit(1)
