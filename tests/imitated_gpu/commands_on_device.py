"""A script that runs `tfm` commands one after the other, on the CPU or on the imitated GPU.

    python commands_on_device.py imitation LIBRARY RECORDER < COMMANDS

LIBRARY is the compiled `device.cpp`. RECORDER is a function of `recorded_operations.py`: it replaces CUDA graphs. COMMANDS is a JSON list of lists of arguments. The script writes a JSON list with
the exit code, the output and the messages of each command.
"""

import ctypes
import json
import os
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import matplotlib.figure  # noqa: F401  what commands import when they need it: here once, and not in each child
import recorded_operations
import torch
import torch.utils.tensorboard

from transformer_cli import cli
from transformer_cli.process import device as runtime
from transformer_cli.training import loop
from transformer_cli.training import run as training_run

NAME = "imitation"


class DeviceModule:
    """What PyTorch asks a device for; the device has no random numbers of its own."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def manual_seed_all(self, seed: int) -> None:
        pass

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


def register(library: Path) -> None:
    """Make the compiled device known to PyTorch, under its name."""
    transfers = ctypes.CDLL(str(library)).transfers
    transfers.restype = ctypes.c_int64
    recorded_operations.num_transfers = transfers
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, DeviceModule())
    torch.utils.generate_methods_for_privateuse1_backend()


def run(arguments: list[str]) -> dict[str, Any]:
    """Run a command in a child of this process, which spares the imports."""
    with TemporaryFile() as output, TemporaryFile() as messages:
        child = os.fork()
        if not child:
            os.dup2(output.fileno(), 1)
            os.dup2(messages.fileno(), 2)
            sys.argv = ["tfm", *arguments]
            try:
                cli.main()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException:  # the child must not return into the loop of its parent
                traceback.print_exc()
                code = 1
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (output, messages):
            file.seek(0)
            texts.append(file.read().decode())
    return {"code": os.waitstatus_to_exitcode(status), "output": texts[0], "messages": texts[1]}


def main() -> None:
    device, library, recorder = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    if device != "cpu":
        register(library)
    chosen: Any = runtime
    chosen._choose_device = lambda wanted: torch.device(device)
    of_training: Any = training_run
    of_training.require_cuda_graphs = lambda *_: None
    of_worker: Any = loop
    of_worker.recorder_on = lambda device: getattr(recorded_operations, recorder)
    sys.stdout.write(json.dumps([run(arguments) for arguments in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
