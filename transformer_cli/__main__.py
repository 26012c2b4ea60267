"""The entry point of `tfm` and of `python -m transformer_cli`: signal handlers first, then all other imports."""

import atexit
import gc
import os

from transformer_cli.process import signals  # it imports only os, signal and sys

_OBJECTS_OF_A_START = 250_000
"""A sentence with NumPy makes 100,000 objects; the import of PyTorch makes more than this number."""


def main() -> None:
    """Install the signal handlers, and run the command line of this process.

    While modules and models are loaded, the number of objects grows, and none of them is garbage: the garbage collector, which
    would look at all of them again and again, begins later. It leaves them out at the end: the process gives all its memory back.
    """
    signals.end_by_signals()
    usual = gc.get_threshold()

    def begin(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(begin)
        gc.freeze()
        gc.set_threshold(*usual)

    gc.callbacks.append(begin)
    gc.set_threshold(_OBJECTS_OF_A_START, *usual[1:])
    atexit.register(gc.freeze)
    # pydantic would look for plugins of its own in the files of all installed packages, and `tfm` needs none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from transformer_cli.cli import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
