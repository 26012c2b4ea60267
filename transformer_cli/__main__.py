"""The entry point of `tfm` and of `python -m transformer_cli`: signal handlers first, then all other imports."""

import os

from transformer_cli.process import signals  # it imports only os, signal and sys


def main() -> None:
    """Install the signal handlers, and run the command line of this process."""
    signals.end_by_signals()
    # OpenMP threads that wait for others sleep. By default they spin, so they keep cores busy, and where other
    # programs use the cores too, the thread that has work gets none. OpenMP reads the variable when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from transformer_cli.cli import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
