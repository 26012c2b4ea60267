"""Fault injection: at the n-th call of a named function, a fault happens in the process under test.

The process applies its faults itself before `tfm` starts; the package contains none of this code.
"""

import atexit
import errno
import functools
import importlib
import inspect
import os
import resource
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from faults import WRITING

# The points at which a fault can happen: just before a call of this function.
POINTS = {
    "config": "transformer_cli.config.loading:find_config",
    "data": "transformer_cli.training.run:prepare_data",
    "connection": "transformer_cli.training.joining:_wait_for_address",
    "step": "transformer_cli.training.loop:UpdateRunner.run",
    "forward": "transformer_cli.model.transformer:Transformer.decoder_output",
    "validation": "transformer_cli.training.run:validate",
    "batch": "transformer_cli.decoding.pytorch_engine:PyTorchEngine._padded",
    "board": "transformer_cli.training.callbacks:_EventFile.__init__",
    "save": "transformer_cli.storage.filesystem:Manifest.encode",  # all files written, no manifest yet
    "verification": "transformer_cli.checkpoint.checkpoints:Checkpoints._verify_saved",
    "rotation": "transformer_cli.checkpoint.checkpoints:Checkpoints._rotate",
    "averaging": "transformer_cli.training.averaging:mean_weights",
    "average": "transformer_cli.training.averaging:write_average",
    "choice": "transformer_cli.training.averaging:_tell_and_link",  # the average is on the disk
    "report": "transformer_cli.training.callbacks:append_json_line",
    "encoding": "transformer_cli.data.encoded:encode_short_pairs",
    "translation": "transformer_cli.decoding.translator:Translator.translate_window",
}
DISK = "transformer_cli.storage.filesystem:FileSystem."
"""One operation on the disk, by its name; "disk" as a point counts all of them."""
POINTS |= {operation: DISK + operation for operation in WRITING}


def at(point: str, number: int, action: str, *arguments: Any) -> None:
    """Do something at the `number`-th call of a point, counted from 1 in this process."""
    do = ACTIONS[action]

    def before(count: int) -> None:
        if count == number:
            do(*arguments)

    _wrap_all(WRITING if point == "disk" else (point,), before)


def each(point: str, action: str, *arguments: Any) -> None:
    """Do something at every call of a point."""
    _wrap_all(WRITING if point == "disk" else (point,), lambda _: ACTIONS[action](*arguments))


def _wrap_all(points: Sequence[str], before: Callable[[int], None]) -> None:
    count = 0

    def counted() -> None:
        nonlocal count
        count += 1
        before(count)

    for point in points:
        _wrap(POINTS[point], counted)


def _wrap(place: str, before: Callable[[], None]) -> None:
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    original = getattr(owner, name)

    def wrapped(*arguments: Any, **options: Any) -> Any:
        before()
        return original(*arguments, **options)

    is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
    setattr(owner, name, staticmethod(wrapped) if is_static else wrapped)


def _signal(name: str, times: int = 1) -> None:
    for _ in range(times):
        os.kill(os.getpid(), signal.Signals[name])


def _signal_group(name: str) -> None:
    os.killpg(os.getpgrp(), signal.Signals[name])


def _pause(place: str) -> None:
    """Create a file and wait until the test has removed it."""
    Path(place).touch()
    while Path(place).exists():
        time.sleep(0.005)


def _raise(kind: str, message: str) -> None:
    raise {"MemoryError": MemoryError, "RuntimeError": RuntimeError}[kind](message)


def _fail(name: str) -> None:
    code = getattr(errno, name)
    raise OSError(code, os.strerror(code))


def _fail_from_now_on(operation: str, name: str) -> None:
    """From now on, an operation on the disk always fails."""
    _wrap(POINTS[operation], lambda: _fail(name))


def _note(place: str, text: str) -> None:
    """Add a line to a file."""
    with open(place, "a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def _call(host: str) -> None:
    socket.create_connection((host, 9), timeout=1)


def _fill_disk() -> None:
    """Limit every file to 20,000 bytes from now on: enough for logs, not for weights."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def _fill_folder(folder: str) -> None:
    """Leave no byte free on the file system on which a folder lies."""
    with open(Path(folder, "filler"), "ab", buffering=0) as filler:
        for size in (1 << 16, 1 << 10, 1):
            with suppress(OSError):
                while filler.write(bytes(size)):
                    pass


def note_saves(place: str) -> None:
    """Write down the step of each save that was acknowledged."""
    from transformer_cli.checkpoint.checkpoints import Checkpoints

    original = Checkpoints.save

    def save(self: Checkpoints, snapshot: Any, *arguments: Any) -> Path:
        folder = original(self, snapshot, *arguments)
        _note(place, str(snapshot.step))
        return folder

    Checkpoints.save = save  # type: ignore[assignment, method-assign]


def note_batches(place: str) -> None:
    """Write a line for each batch of sources that a model in eval mode reads to its end."""
    from transformer_cli.model.transformer import Encoder

    original = Encoder.forward

    def forward(self: Encoder, *arguments: Any) -> Any:
        result = original(self, *arguments)
        if not self.training:
            _note(place, "read")
        return result

    Encoder.forward = forward  # type: ignore[assignment, method-assign]


def limit(name: str, most: int) -> None:
    """A limit as `ulimit` sets it: "RLIMIT_NOFILE", 64."""
    resource.setrlimit(getattr(resource, name), (most, most))


def limit_memory(more_bytes: int) -> None:
    """Let the process allocate only this much more address space from now on."""
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit("RLIMIT_AS", in_use + more_bytes)


def limit_files(most: int) -> None:
    """Let the process open only this many more files than are open now."""
    limit("RLIMIT_NOFILE", len(os.listdir("/proc/self/fd")) - 1 + most)


def _start(kind: str) -> None:
    """Start a thread or a process that is still running at the end."""
    if kind == "thread":
        threading.Thread(target=time.sleep, args=(60,), name="late", daemon=True).start()
    elif os.fork() == 0:
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.01)
        os._exit(0)


def umask(mask: int) -> None:
    os.umask(mask)


def pretend_free(num_bytes: int) -> None:
    """Let every file system report this much free space."""
    from transformer_cli.storage import FileSystem

    FileSystem.free_bytes = lambda self, path: num_bytes  # type: ignore[assignment, method-assign]


def note_processes(place: str) -> None:
    """Record every start of a process, by any code, and the threads that still run at the end."""

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event in PROCESS_EVENTS:
            _note(place, event)

    def look() -> None:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        if used.ru_maxrss:
            _note(place, "a child has ended")
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # a task may end meanwhile
                if (task / "children").read_text():
                    _note(place, "a child is there")
        for thread in threading.enumerate():
            # The thread of a progress bar only monitors; it ends after all other threads.
            if thread is not threading.main_thread() and thread.name != "tqdm_monitor":
                _note(place, f"thread {thread.name!r}")

    sys.addaudithook(hear)
    atexit.register(look)


PROCESS_EVENTS = frozenset(
    {"os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system", "subprocess.Popen"}
)


ACTIONS: dict[str, Callable[..., None]] = {
    "signal": _signal,
    "signal_group": _signal_group,
    "pause": _pause,
    "raise": _raise,
    "fail": _fail,
    "fail_from_now_on": _fail_from_now_on,
    "note": _note,
    "sleep": time.sleep,
    "fill_folder": _fill_folder,
    "limit_files": limit_files,
    "limit_memory": limit_memory,
    "start": _start,
    "fill_disk": _fill_disk,
    "call": _call,
    "move": shutil.move,
    "remove_tree": shutil.rmtree,
    "make_folder": os.mkdir,
    "make_link": os.symlink,
}


def poison(first: int, last: int) -> None:
    """Set the gradients of these steps, counted from 1 in this process, to NaN."""
    from transformer_cli.training import loop

    original = loop.UpdateRunner.run
    count = 0

    def poisoned(runner: Any, model: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if not first <= count <= last:
            return original(runner, model, *arguments, **options)
        hook = next(model.parameters()).register_hook(lambda gradient: gradient * float("nan"))
        try:
            return original(runner, model, *arguments, **options)
        finally:
            hook.remove()

    loop.UpdateRunner.run = poisoned  # type: ignore[assignment, method-assign]


def shift_clock(seconds: float) -> None:
    """Set the wall clock wrong; the clock that measures durations stays right."""
    original = time.time
    time.time = lambda: original() + seconds


def block_network(record: str) -> None:
    """Record every network call of the process and let it fail."""

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        is_local = event in ("socket.connect", "socket.bind") and isinstance(arguments[1], str)
        if event in NETWORK_EVENTS and not is_local:
            with open(record, "a", encoding="utf-8") as file:
                file.write(f"{event} {arguments[1:]}\n")
            raise OSError(f"the network is blocked: {event}")

    sys.addaudithook(refuse)


NETWORK_EVENTS = frozenset(
    {"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"}
)


def without_module(name: str) -> None:
    """Let the import of a module fail, as on a system that does not have it."""
    sys.modules[name] = None  # type: ignore[assignment]


def signal_before_key(name: str) -> None:
    """Let a signal come after the prompt is shown and just before the readline library waits for a key.

    The hook of the library is a function in C, so no step of Python follows in which the signal would be handled.
    """
    import ctypes
    import readline

    send = getattr(ctypes.CDLL(None), "raise")
    readline.set_pre_input_hook(functools.partial(send, int(signal.Signals[name])))


def ascii_streams() -> None:
    """Set the standard streams to ASCII, as in the locale C."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="ascii", errors="strict")  # type: ignore[union-attr]


def little_memory(max_sentences: int) -> None:
    """Let training run out of memory for batches of more sentences than this."""
    from transformer_cli.model.transformer import Transformer

    original = Transformer.decoder_output

    def decoder_output(self: Transformer, source_ids: Any, *arguments: Any) -> Any:
        if self.training and len(source_ids) > max_sentences:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return original(self, source_ids, *arguments)

    Transformer.decoder_output = decoder_output  # type: ignore[assignment, method-assign]
