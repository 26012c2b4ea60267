"""Optional packages, which the extras of pyproject.toml install."""

import importlib.util

from transformer_cli.process.errors import UsageError


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
