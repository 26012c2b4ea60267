"""The entry point of `tfm` and of `python -m transformer_cli`: signal handlers first, then all other imports."""

from transformer_cli import signals  # it imports only os, signal and sys


def main() -> None:
    """Install the signal handlers, and run the command line of this process."""
    signals.end_by_signals()
    from transformer_cli import cli

    cli.main()


if __name__ == "__main__":
    main()
