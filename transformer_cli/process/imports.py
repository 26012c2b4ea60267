"""Things that are imported only when they are used: tables name them as `module:name`; and optional packages."""

import importlib.util
from importlib import import_module
from typing import Any

from transformer_cli.process.errors import UsageError


def imported(place: str) -> Any:
    """The function, class or value that a place names, such as `transformer_cli.commands.info:info_command`.

    The core reaches an extension only by such a name.
    """
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def require_extra(extra: str, modules: tuple[str, ...], *, purpose: str) -> None:
    """Check that the packages of an extra are installed, without importing them.

    Args:
        extra: its name in pyproject.toml, such as serve.
        modules: the modules that are needed.
        purpose: who needs them, such as "tfm serve".

    Raises:
        UsageError: a module is not installed; the hint names the command that installs the extra.
    """
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise UsageError(
            f"{purpose} needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            hint=f'in the folder of this project: pip install ".[{extra}]"',
        )
