"""The imitated GPU as a library, and commands that run on it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils.cpp_extension import include_paths, library_paths

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def compiled(library: Path) -> Path:
    """The device as a library of this PyTorch."""
    options = ["-std=c++20", "-O0", "-shared", "-fPIC", "-DAT_PER_OPERATOR_HEADERS"]
    options += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
    options += [option for folder in include_paths() for option in ("-isystem", folder)]
    linked = [f"-L{folder}" for folder in library_paths()]
    linked += ["-lc10", "-ltorch_cpu", "-ltorch"]
    source = str(HERE / "device.cpp")
    subprocess.run(["g++", *options, source, *linked, "-o", str(library)], check=True)
    return library


def answers_of(
    device: str,
    library: Path,
    folder: Path,
    commands: Mapping[str, list[str]],
    *,
    recorder: str = "record",
) -> dict[str, Any]:
    """What each command says on a device, if it runs in a folder.

    Args:
        device: cpu or imitation.
        library: of the device.
        folder: current folder of the commands.
        commands: their arguments, by name.
        recorder: a function of recorded_operations.py, for `runtime.cuda_graphs`.
    """
    script = str(HERE / "commands_on_device.py")
    done = subprocess.run(
        [sys.executable, script, device, str(library), recorder],
        input=json.dumps(list(commands.values())),
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(commands, json.loads(done.stdout), strict=True))


def training_of(name: str, settings: list[str]) -> list[str]:
    """The arguments of a training of tiny.yaml."""
    options = [option for setting in (f"name={name}", *settings) for option in ("--set", setting)]
    return ["train", "--config", "tiny.yaml", *options]
