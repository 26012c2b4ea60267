"""Several `tfm` processes that train one model: as torchrun starts them, but forked, which saves their imports."""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from .experiments import newest_checkpoint
from .launcher import Finished, Process, Tfm


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start_ranks(
    tfm: Tfm,
    *arguments: str,
    size: int = 2,
    faults: dict[int, Sequence[Any]] | None = None,
    further: dict[int, Sequence[str]] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Process]:
    """Start `tfm` once per rank, all in one folder; `faults` and `further` arguments are those of single ranks."""
    port = free_port()
    return [
        tfm.start(
            *arguments,
            *(further or {}).get(rank, ()),
            faults=(faults or {}).get(rank, ()),
            environment={
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(size),
                "LOCAL_WORLD_SIZE": str(size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                **(environment or {}),
            },
        )
        for rank in range(size)
    ]


def run_ranks(tfm: Tfm, *arguments: str, **options: Any) -> list[Finished]:
    return [process.wait() for process in start_ranks(tfm, *arguments, **options)]


def weights_of(run_folder: Path) -> dict[str, torch.Tensor]:
    return load_file(newest_checkpoint(run_folder) / "model.safetensors")


def assert_close(one: Path, other: Path, *, within: float = 1e-6) -> None:
    """The newest checkpoints of two runs have the same names and, but for rounding, the same weights."""
    ours, theirs = weights_of(one), weights_of(other)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        if name.endswith("key.bias"):
            continue  # its true gradient is 0, and Adam makes steps of its rounding errors
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=within, msg=name)
