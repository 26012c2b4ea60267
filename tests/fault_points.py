"""Faults that a process under test meets: at the n-th passage of a named point, something happens.

Applied in the process itself, before it begins; nothing of this is in the product.
"""

import importlib
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Where in the work of `tfm` a fault can strike: just before this is called.
POINTS = {
    "config": "transformer_cli.commands.train:load_config",
    "data": "transformer_cli.commands.train:prepare_data",
    "step": "transformer_cli.training.loop:train_step",
    "validation": "transformer_cli.commands.session:validate",
    "save": "transformer_cli.storage.manifest:Manifest.encode",  # all files written, no manifest yet
    "encoding": "transformer_cli.data.preparation:encode_pairs",
    "translation": "transformer_cli.decoding.translator:Translator.translate",
}


def at(point: str, number: int, action: str, *arguments: Any) -> None:
    """At the `number`-th passage of a point, counted from 1 in this process, do something."""
    do = ACTIONS[action]

    def before(count: int) -> None:
        if count == number:
            do(*arguments)

    _wrap(point, before)


def _wrap(point: str, before: Callable[[int], None]) -> None:
    module, _, path = POINTS[point].partition(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    original = getattr(owner, name)
    count = 0

    def wrapped(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        before(count)
        return original(*arguments, **options)

    setattr(owner, name, wrapped)


def _signal(name: str, times: int = 1) -> None:
    for _ in range(times):
        os.kill(os.getpid(), signal.Signals[name])


def _signal_group(name: str) -> None:
    os.killpg(os.getpgrp(), signal.Signals[name])


def _pause(place: str) -> None:
    """Make a file, and go on when somebody has removed it."""
    Path(place).touch()
    while Path(place).exists():
        time.sleep(0.005)


def _raise(kind: str, message: str) -> None:
    raise {"MemoryError": MemoryError, "RuntimeError": RuntimeError}[kind](message)


def _call(host: str) -> None:
    socket.create_connection((host, 9), timeout=1)


def _fill_disk() -> None:
    """From now on no file can grow beyond 20,000 bytes: logs still can, weights cannot."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


ACTIONS: dict[str, Callable[..., None]] = {
    "signal": _signal,
    "signal_group": _signal_group,
    "pause": _pause,
    "raise": _raise,
    "fill_disk": _fill_disk,
    "call": _call,
}


def poison(first: int, last: int) -> None:
    """The gradients of these steps, counted from 1 in this process, are not numbers."""
    from transformer_cli.training import loop

    original = loop.train_step
    count = 0

    def poisoned(model: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if not first <= count <= last:
            return original(model, *arguments, **options)
        hook = next(model.parameters()).register_hook(lambda gradient: gradient * float("nan"))
        try:
            return original(model, *arguments, **options)
        finally:
            hook.remove()

    loop.train_step = poisoned  # type: ignore[assignment]


def shift_clock(seconds: float) -> None:
    """The wall clock is wrong; the one that measures spans is not touched."""
    original = time.time
    time.time = lambda: original() + seconds


def block_network(record: str) -> None:
    """Whoever wants to reach or be reached over a network fails, and is written down."""

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


def ascii_streams() -> None:
    """As in a locale that knows no accents."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="ascii", errors="strict")  # type: ignore[union-attr]
