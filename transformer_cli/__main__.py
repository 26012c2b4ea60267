"""The entry point of `tfm` and of `python -m transformer_cli`: signal handlers first, then all other imports."""

import atexit
import gc
import os

from transformer_cli.process import signals  # it imports only os, signal and sys

_OBJECTS_OF_A_START = 250_000
"""A sentence with NumPy makes 100,000 objects; the import of PyTorch makes more than this number."""


def main() -> None:
    """Install the signal handlers, and run the command line of this process."""
    signals.end_by_signals()
    _spare_the_garbage_collector()
    # pydantic would look for plugins of its own in the files of all installed packages, and `tfm` needs none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from transformer_cli.cli import main as run_command_line

    run_command_line()


def _spare_the_garbage_collector() -> None:
    """Let Python look for garbage when modules and models are loaded, which all stay, and not once more at the end.

    The collector looks at all objects again and again while their number grows: 50 ms of a sentence with NumPy, 200 ms of one
    with PyTorch, and 90 ms at the end of the process, which gives all its memory back anyway.
    """
    usual = gc.get_threshold()

    def begin(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(begin)
        gc.freeze()
        gc.set_threshold(*usual)

    gc.callbacks.append(begin)
    gc.set_threshold(_OBJECTS_OF_A_START, *usual[1:])
    atexit.register(gc.freeze)


if __name__ == "__main__":
    main()
