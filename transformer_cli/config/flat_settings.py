"""A tree of settings as a flat mapping, to compare two configs setting by setting."""

from collections.abc import Iterable
from typing import Any


def flat_settings(values: Any, name: str = "") -> dict[str, Any]:
    """Map the dotted name of each setting to its value; an item of a list is named by its index.

    An empty list or mapping has no entry.

    Args:
        values: mappings, lists and plain values, as `model_dump(mode="json")` returns them.
        name: the dotted name of `values` itself.
    """
    items: Iterable[tuple[Any, Any]]
    if isinstance(values, dict):
        items = values.items()
    elif isinstance(values, list):
        items = enumerate(values)
    else:
        return {name: values}
    flat: dict[str, Any] = {}
    for key, value in items:
        flat |= flat_settings(value, f"{name}.{key}" if name else str(key))
    return flat
