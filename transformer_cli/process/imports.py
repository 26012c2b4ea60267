"""Things that are imported only when they are used: tables name them as `module:name`."""

from importlib import import_module
from typing import Any


def imported(place: str) -> Any:
    """The function, class or value that a place names, such as `transformer_cli.commands.info:info_command`.

    The core reaches an extension only by such a name.
    """
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
