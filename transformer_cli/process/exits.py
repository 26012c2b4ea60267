"""How a command ends after any error: with one message, one exit code, and no traceback."""

import contextlib
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from typing import NoReturn, TextIO

import typer

from transformer_cli.process.errors import TfmError, is_out_of_memory
from transformer_cli.process.escaping import escaped

_HINTS = {
    errno.ENOSPC: "make room, then try again",
    errno.EACCES: "name another file or folder, or ask for the permission to use this one",
    errno.EPERM: "name another file or folder, or ask for the permission to use this one",
    errno.EROFS: "nothing can be written on this disk; name another file or folder",
    errno.ENAMETOOLONG: "give a shorter name; most systems allow 255 bytes",
    errno.ELOOP: "this link leads to itself; name the file that is meant",
    errno.EMFILE: "this process may not open more files; allow more with ulimit -n",
}

_NO_THREAD = (
    "no further thread can be started: memory, or the threads of this user, are used up\n"
    "  hint: end other programs, or allow more threads with ulimit -u"
)


@contextlib.contextmanager
def errors_as_exit_codes() -> Iterator[None]:
    """The block of the command line of this process: every error in it becomes one message and an exit code."""
    _prepare_streams()
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BaseException as error:  # a panic in Rust is a BaseException
        _exit_after(error)
        raise
    finally:
        try:
            sys.stderr.flush()
        except (OSError, ValueError):  # standard error is closed, or its terminal is gone
            _send_nowhere(sys.stderr)


def _exit_after(error: BaseException) -> None:
    """Show the message of an error and exit with its code; return if the error is an exit itself."""
    if isinstance(error, TfmError):
        if getattr(error.__cause__, "errno", None) == errno.EMFILE:
            error.hint = _HINTS[errno.EMFILE]  # whatever was opened, this is the cause
        _exit_with_error(f"tfm: {error}", error.exit_code)
    if isinstance(
        error, BrokenPipeError | SystemExit
    ):  # typer turns a BrokenPipeError into a SystemExit
        if BrokenPipeError in (
            type(error),
            type(error.__context__),
        ):  # the reader has closed the pipe
            _end_like_cat()
        return
    if is_out_of_memory(error):
        if "thread" in str(error).casefold():
            _exit_with_error(f"tfm: {_NO_THREAD}", 75)
        _exit_with_error("tfm: out of memory\n  hint: lower the size of the batches", 75)
    if isinstance(error, OSError):
        is_full = error.errno == errno.ENOSPC
        if error.filename is None:
            _send_nowhere(sys.stdout)
        _exit_with_error(_message_of(error), 75 if is_full else 74)
    what = f"tfm: internal error, please report it: {type(error).__name__}: {error}"
    _exit_with_error(f"{what}\n  hint: --debug shows the traceback", 70)


def _message_of(error: OSError) -> str:
    if error.filename is None and error.errno == errno.EBADF:
        return (
            "tfm: standard output is closed, so the output is lost\n"
            "  hint: send it to a file or a program: > out.txt, or | less"
        )
    hint = _HINTS.get(error.errno or 0, "--debug shows the traceback")
    return f"tfm: {error.filename or 'standard output'}: {error.strerror or error}\n  hint: {hint}"


def _send_nowhere(stream: TextIO) -> None:
    """Send the buffer to the null device: Python would write it at exit, fail again, and exit with code 120."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _end_like_cat() -> None:
    """End by SIGPIPE, which a shell shows as 141; a system without SIGPIPE gets 141 as exit code."""
    number = getattr(signal, "SIGPIPE", None)
    if number is None:
        os._exit(141)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _prepare_streams() -> None:
    """Set UTF-8 in any locale; reopen closed streams, so that no other file gets descriptor 0, 1 or 2.

    A command that needs neither standard input nor standard output works as usual. Standard output is
    reopened for reading only: so writing to it is an error, and no output is lost without a message.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            flags = os.O_RDONLY if name == "stdout" else os.O_RDWR
            os.open(os.devnull, flags)  # gets the lowest free descriptor
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # On Windows, a line would end with a carriage return too.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def _exit_with_error(message: str, exit_code: int) -> NoReturn:
    if "--debug" in sys.argv[1:]:
        traceback.print_exc()
    rank = os.environ.get("RANK", "0")  # set by torchrun
    if rank != "0":
        message = f"rank {rank}: {message}"
        if exit_code > 128:  # rank 0 logs that a signal has stopped the run
            sys.exit(exit_code)
    with contextlib.suppress(OSError):  # stderr may be closed
        typer.echo(escaped(message), err=True)
    sys.exit(exit_code)
