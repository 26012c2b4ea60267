"""A tree of settings as a flat mapping, to compare two configs setting by setting."""

from typing import Any


def flat_settings(values: Any, name: str = "") -> dict[str, Any]:
    """Map the dotted name of each setting to its value; an item of a list is named by its index.

    An empty list or mapping has no entry.

    Args:
        values: mappings, lists and plain values, as `model_dump(mode="json")` returns them.
        name: the dotted name of `values` itself.
    """
    if isinstance(values, list):
        values = dict(enumerate(values))
    if not isinstance(values, dict):
        return {name: values}
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= flat_settings(value, f"{name}.{key}" if name else str(key))
    return flat
