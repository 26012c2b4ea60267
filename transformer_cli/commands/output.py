"""What a command writes: facts or lines on standard output; a file that appears whole; or bytes into a pipe or device.

The files of all commands import this one, so it imports slow modules only where they are needed.
"""

import bz2
import errno
import gzip
import json
import logging
import lzma
import os
import re
import select
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from transformer_cli.checkpoint.run_folder import CALIBRATION_FILE, CONVERTED, LOCK_FILE, SHORTLIST_FILE, RunFolder
from transformer_cli.config import load_stored_config
from transformer_cli.config.decoding import WINDOW_LINES
from transformer_cli.process.errors import (
    CannotCreateError,
    StorageError,
    TfmError,
    TryAgainError,
    UsageError,
)
from transformer_cli.process.messages import escaped, escaped_in_json, fitted, for_shell, on_one_line, terminal_width
from transformer_cli.process.signals import cleaned_up, ended_after, tell
from transformer_cli.storage import is_read_only_disk, require_folder_of, require_place, staged_file
from transformer_cli.storage.filesystem import NO_SPACE, size_in_words

if TYPE_CHECKING:
    from transformer_cli.decoding.loading import LoadedRun

logger = logging.getLogger(__name__)

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


Write = Callable[[bytes], None]
_OTHER_OUTPUT = "name another file for the output"


def _zstd(file: BinaryIO) -> Any:
    import zstandard

    return zstandard.ZstdCompressor().stream_writer(file, closefd=False)


# gzip would store a name and a time; without them, equal translations give equal files.
_COMPRESSORS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
    ".zst": _zstd,
}


def fitting(lines: Iterable[str]) -> list[str]:
    """The lines of a table, cut where a terminal would wrap them; a file or a pipe gets them whole."""
    num_columns = terminal_width(sys.stdout)
    return [fitted(line, num_columns) for line in lines]


def in_columns(rows: Iterable[Sequence[str]], num_left: int | None = None) -> list[str]:
    """The lines of a table; the cells of the first `num_left` columns stand at the left, the others at the right; None: all at the left."""
    listed = [[on_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if num_left is not None and place >= num_left else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in listed
    ]


def show(facts: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Write the facts as one line of JSON, or write the lines of text; control characters become codes."""
    shown = [escaped_in_json(json.dumps(facts, ensure_ascii=False))] if as_json else map(escaped, lines)
    with ended_after():
        sys.stdout.write("\n".join(shown) + "\n")


def check_output(path: Path | None) -> None:
    """Refuse an output that cannot be written, before the translation begins.

    Raises:
        CannotCreateError: the path is a folder, a disk, a write-protected file or a file of a run, or its folder does not exist or
            may not be written.
    """
    if path is None or descriptor_of(path) is not None:
        return
    _require_no_part_of_run(path)

    require_folder_of(path)
    if path.is_dir():
        raise CannotCreateError(f"{path}: this is a folder, where the name of a file is expected")
    status = _status(path)
    if status is None:
        if path.is_symlink() and not Path(os.path.realpath(path)).parent.is_dir():
            raise CannotCreateError(f"{path}: a link into a folder that does not exist")
    elif stat.S_ISBLK(status.st_mode):
        raise CannotCreateError(f"{path}: a disk, not a file", hint=_OTHER_OUTPUT)
    elif stat.S_ISREG(status.st_mode) and is_read_only_disk(path):  # a pipe can be written wherever it is
        raise CannotCreateError(f"{path}: {os.strerror(errno.EROFS)}", hint=_OTHER_OUTPUT)
    # The system lets root write to any file; a file without permission to write was protected on purpose.
    elif not status.st_mode & 0o222 or not os.access(path, os.W_OK):
        mode = stat.S_IMODE(status.st_mode)
        raise CannotCreateError(
            f"{path}: no permission to write to this file (its mode is {mode:04o})",
            hint=f"permit it: chmod u+w {for_shell(path)}; or {_OTHER_OUTPUT}",
        )
    if status is None or stat.S_ISREG(status.st_mode):  # it is written beside its place, and renamed
        require_place(Path(os.path.realpath(path)) if path.is_symlink() else path)


def _require_no_part_of_run(path: Path) -> None:
    """Refuse to write into a checkpoint or an export, and over a file of a run; other files may lie beside those of a run.

    Raises:
        CannotCreateError: the path is there.
    """
    folder, last = os.path.split(os.path.realpath(path))
    while last:
        in_folder = partial(os.path.join, folder)
        if all(map(os.path.isfile, map(in_folder, ("MANIFEST.json", "model.safetensors")))):
            kind = "a checkpoint"
        elif os.path.isfile(in_folder("tfm-export.json")):
            kind = "an export"
        elif os.path.isdir(in_folder("checkpoints")) and last in _names_in_run(Path(folder)):
            kind = "a run"
        else:
            folder, last = os.path.split(folder)
            continue
        raise CannotCreateError(f"{path}: this belongs to {kind}, {folder}", hint="name another output")


def _names_in_run(folder: Path) -> set[str]:
    """The names of the files and folders of a run; none if the folder holds no run."""
    run = RunFolder(folder)
    if not run.is_begun():
        return set()
    own = (
        *run.records(),
        run.environment_file,
        run.log_file,
        run.checkpoints_folder,
        run.given_folder,
    )
    converted = (one.name for one in folder.glob(f"{CONVERTED}*"))
    return {LOCK_FILE, CALIBRATION_FILE, SHORTLIST_FILE, *(one.name for one in own), *converted}


def require_other_file(output: Path | None, given: os.stat_result, name: str) -> None:
    """Refuse an output that is the same file as something that is read.

    Args:
        output: None is standard output.
        given: the status of what is read.
        name: of what is read, for the message.

    Raises:
        UsageError: both are one file, perhaps under several names.
    """
    written = output_status(output)
    if written is None or not stat.S_ISREG(given.st_mode) or not os.path.samestat(given, written):
        return
    raise UsageError(
        f"{output or 'standard output'}: this output is the same file as {name}",
        hint=_OTHER_OUTPUT,
    )


def require_no_corpus(output: Path | None, loaded: "LoadedRun") -> None:
    """Refuse an output that is a file of the corpus from which a model has learned.

    Args:
        output: None is standard output.

    Raises:
        UsageError: it is one.
    """
    if output is None or not output.is_file():
        return
    from transformer_cli.data.sources.corpus import local_files

    for run in (member.run for member in loaded.members):
        if run is None or not run.config_file.is_file():
            continue
        try:
            corpus = local_files(load_stored_config(run.config_file).data)
        except TfmError:  # the corpus is no longer there
            continue
        for path in corpus.values():
            require_other_file(output, path.stat(), f"{path}, which is in the corpus of {run.path}")


def output_status(path: Path | None) -> os.stat_result | None:
    """The status of the file, pipe or device to which the output goes; None if it does not exist yet."""
    number = 1 if path is None else descriptor_of(path)
    if number is None:
        assert path is not None
        return _status(path)
    try:
        return os.fstat(number)
    except OSError as error:
        if path is None:
            return None  # standard output is closed: writing to it will raise an error
        raise CannotCreateError(f"{path}: {error.strerror}", hint=_OTHER_OUTPUT) from error


def write_and_tell(path: Path, content: bytes, more: str = "") -> None:
    """Write a file that stands beside the output, such as a picture or a page, and log its name and its size.

    Args:
        path: checked by `check_output` before.
        content: of the file.
        more: what the log line says after the size.
    """
    with opened_output(path) as write:
        write(content)
    logger.info("wrote %s (%s)%s", path, size_in_words(len(content)), more)


@contextmanager
def opened_output_of_typing(path: Path | None) -> Iterator[Write]:
    """As `opened_output`, but any end of the block makes the file appear: also a signal, or an error.

    The file then holds all that was written. A person who types at a terminal may end with Ctrl-C.
    """
    with ExitStack() as opened:
        write = opened.enter_context(opened_output(path))
        with cleaned_up(opened.close):
            try:
                yield write
            finally:
                with ended_after():
                    opened.close()


@contextmanager
def opened_output_of_lines(path: Path | None, *, can_resume: bool) -> Iterator[Write]:
    """As `opened_output`; if a signal ends the process, it tells that nothing is kept, and which option keeps lines.

    Args:
        path: of the output.
        can_resume: whether the lines stand in a file, which can be read again.
    """
    if path is None or not is_new_or_regular(path):
        with opened_output(path) as write:
            yield write
        return
    how = "--resume" if can_resume else "with the lines in a file, --input FILE --resume"
    told = f"tfm: nothing was written to {path}; {how} keeps each {WINDOW_LINES:,} finished lines, and the same command then goes on\n"
    with cleaned_up(lambda: tell(told)), opened_output(path) as write:
        yield write


def is_new_or_regular(path: Path) -> bool:
    """Whether the output is a file that will hold it, not a pipe, a device or an open descriptor."""
    return descriptor_of(path) is None and _is_regular_or_new(path)


@contextmanager
def opened_output(path: Path | None) -> Iterator[Write]:
    """Open the output; yields a function that writes bytes to it at once.

    A regular file is written under another name and renamed at the end of the block, so it appears whole or
    not at all. It keeps its permissions, its owner and its extended attributes. A symbolic link stays, and
    the file that it names is replaced; other hard links of that file keep the old text. A name that ends in
    .gz, .bz2, .xz or .zst makes a compressed file. A pipe, a device or an open descriptor, such as
    /dev/stdout, is written to directly.
    """
    number = 1 if path is None else descriptor_of(path)
    if number == 1:
        yield _standard_output
    elif number is not None or not _is_regular_or_new(path):
        assert path is not None
        with _opened(path, number) as file:
            yield _writing(file, path)
    else:
        assert path is not None
        with _staged(path) as file:
            yield _writing(file, path)


def _standard_output(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


def _is_regular_or_new(path: Path | None) -> bool:
    status = None if path is None else _status(path)
    return status is None or stat.S_ISREG(status.st_mode)


@contextmanager
def _opened(path: Path, number: int | None) -> Iterator[BinaryIO]:
    """A pipe or device by its path, or an open descriptor by its number."""
    try:
        flags = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
        descriptor = os.open(path, flags) if number is None else os.dup(number)
    except OSError as error:
        problem = f"cannot be opened for writing: {error.strerror}"
        raise CannotCreateError(f"{path}: {problem}", hint=_OTHER_OUTPUT) from error
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        yield file  # without a buffer, closing writes nothing


@contextmanager
def _staged(path: Path) -> Iterator[Any]:
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    with staged_file(target, is_swept=True) as unfinished, unfinished.open("wb") as file:
        _take_over(target, unfinished)
        compress = _COMPRESSORS.get(path.suffix.lower())
        if compress is None:
            yield file
            return
        with compress(file) as compressed:
            yield compressed


def _take_over(target: Path, unfinished: Path) -> None:
    """Give a new file the permissions, extended attributes and owner of the file that it will replace."""
    status = _status(target)
    if status is None:
        return
    with suppress(OSError):  # only root may give a file away
        if hasattr(os, "chown"):
            os.chown(unfinished, status.st_uid, status.st_gid)
    os.chmod(unfinished, stat.S_IMODE(status.st_mode))
    with suppress(OSError):  # some file systems have no extended attributes
        shutil.copystat(target, unfinished)
    os.utime(unfinished)


def _writing(file: Any, path: Path) -> Write:
    """A function that writes all bytes to a file at once, and whose errors name the path."""

    def write(data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                num_written = file.write(rest)
                if num_written is None:  # another program set the descriptor to non-blocking
                    select.select([], [file], [])
                rest = rest[num_written or 0 :]
            file.flush()
        except BrokenPipeError:
            raise  # the reader has closed the pipe: the process ends by SIGPIPE, as `cat` does
        except OSError as error:
            if error.errno in NO_SPACE:
                hint = "make room, then run the same command again"
                raise TryAgainError(f"{path}: {error.strerror}", hint=hint) from error
            raise StorageError(f"{path}: {error.strerror}") from error

    return write


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotCreateError(f"{path}: {error.strerror}", hint=_OTHER_OUTPUT) from error
