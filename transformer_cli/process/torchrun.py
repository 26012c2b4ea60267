"""The rank of this process and the number of processes, as torchrun gives them.

torchrun starts the same command several times, on one machine or on several, and gives each process its number in
environment variables. Source: https://docs.pytorch.org/docs/stable/elastic/run.html
"""

import os
from typing import NamedTuple

from transformer_cli.process.errors import ConfigError, UsageError

_EXAMPLE = "torchrun --nproc-per-node 2 -m transformer_cli train --config en-it.yaml"


NUM_PROCESSES = "WORLD_SIZE"
"""The environment variable that torchrun sets first of all; a process without it is alone."""


class Launch(NamedTuple):
    """The place of this process among the processes that train one model."""

    rank: int = 0
    """The number of this process, from 0; rank 0 writes the files and the log."""
    size: int = 1
    """The number of processes on all machines."""
    local_rank: int = 0
    """The number of this process among those of its machine; it uses the GPU of this number."""
    local_size: int = 1
    """The number of processes on this machine."""
    attempt: int = 0
    """How often torchrun has started all processes again (its option --max-restarts)."""

    store_holder: str = "torchrun"
    """The program that holds the key-value store by which the processes find each other: torchrun, or rank 0."""

    @property
    def is_alone(self) -> bool:
        """Whether there is one process only, with or without torchrun."""
        return self.size == 1


def read_launch() -> Launch:
    """The place of this process; a process that torchrun has not started is alone.

    Raises:
        ConfigError: the environment says that there are several processes, but not which one this is.
    """
    if not os.environ.get(NUM_PROCESSES) or (size := _number(NUM_PROCESSES, 1)) <= 1:
        return Launch()
    if not (os.environ.get("RANK") and os.environ.get("MASTER_ADDR")):
        raise ConfigError(
            f"the environment variable WORLD_SIZE is {size}, so {size} processes should train one model, but RANK "
            "or MASTER_ADDR is not set",
            hint=f"start the processes with torchrun: {_EXAMPLE}; or unset WORLD_SIZE to train with one process",
        )
    rank = _number("RANK", 0)
    if rank >= size:
        raise ConfigError(
            f"the environment variable RANK is {rank}, and WORLD_SIZE is {size}: ranks go from 0 to {size - 1}",
            hint=f"start the processes with torchrun: {_EXAMPLE}",
        )
    return Launch(
        rank=rank,
        size=size,
        local_rank=_number("LOCAL_RANK", rank),
        local_size=_number("LOCAL_WORLD_SIZE", 1),
        attempt=_number("TORCHELASTIC_RESTART_COUNT", 0),
        store_holder="torchrun" if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else "rank 0",
    )


def require_single_process(command: str | None) -> None:
    """Refuse a command that torchrun has started several times, unless it is `tfm train`.

    Raises:
        UsageError: each process would do the same work, and write the same output.
    """
    if command == "train" or (launch := read_launch()).is_alone:
        return
    raise UsageError(
        f"torchrun has started tfm {command or ''} {launch.size} times; only tfm train uses several processes",
        hint=f"run it without torchrun: tfm {command or '--help'}",
    )


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal():
        raise ConfigError(
            f"the environment variable {name} is {text[:50]!r} instead of a whole number",
            hint=f"torchrun sets it: {_EXAMPLE}",
        )
    return int(text)
