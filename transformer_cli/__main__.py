"""The entry point of `tfm` and of `python -m transformer_cli`: signal handlers first, then all other imports."""

from transformer_cli.process import signals  # it imports only os, signal and sys


def main() -> None:
    """Install the signal handlers, and run the command line of this process."""
    signals.end_by_signals()
    from transformer_cli.cli import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
