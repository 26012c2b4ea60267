"""How a command ends: one message, one exit code, and no traceback, whatever happens in it."""

import contextlib
import errno
import io
import os
import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

import typer

from transformer_cli.errors import TfmError, is_out_of_memory


def run_to_exit(app: typer.Typer) -> None:
    """Run the command line of this process; every error becomes one message and an exit code."""
    _prepare_streams()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end_by_signal)
    try:
        try:
            app(prog_name="tfm")
        finally:
            sys.stdout.flush()
    except TfmError as error:
        _exit_with_error(f"tfm: {error}", error.exit_code)
    except (BrokenPipeError, SystemExit) as end:  # typer turns a BrokenPipeError into a SystemExit
        if BrokenPipeError in (type(end), type(end.__context__)):  # the reader has closed the pipe:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end as `cat` does; shells show 141
            signal.raise_signal(signal.SIGPIPE)
        raise
    except BaseException as error:  # a panic in Rust is a BaseException
        if is_out_of_memory(error):
            _exit_with_error("tfm: out of memory\n  hint: lower the size of the batches", 75)
        if isinstance(error, OSError):
            place, is_full = error.filename or "standard output", error.errno == errno.ENOSPC
            hint = "make room, then try again" if is_full else "--debug shows the traceback"
            message = f"tfm: {place}: {error.strerror or error}\n  hint: {hint}"
            _exit_with_error(message, 75 if is_full else 74)
        what = f"tfm: internal error, please report it: {type(error).__name__}: {error}"
        _exit_with_error(f"{what}\n  hint: --debug shows the traceback", 70)


def _prepare_streams() -> None:
    """Set UTF-8 in any locale; reopen closed streams, or a file of ours would get descriptor 0, 1 or 2."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _end_by_signal(signal_number: int, frame: FrameType | None) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, f"tfm: ended by {signal.Signals(signal_number).name}\n".encode())
    sys.exit(128 + signal_number)


def _exit_with_error(message: str, exit_code: int) -> NoReturn:
    if "--debug" in sys.argv[1:]:
        traceback.print_exc()
    with contextlib.suppress(OSError):  # stderr may be closed
        typer.echo(message, err=True)
    sys.exit(exit_code)
