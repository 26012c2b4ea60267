"""The numbers of `state.json`, checked one by one: a checkpoint may come from elsewhere."""

import math
from collections.abc import Mapping
from typing import Any

from transformer_cli.process.errors import DataError
from transformer_cli.process.escaping import shortened

MOST = 10**10
"""The largest count that is accepted: the largest `training.max_steps` that a config may have."""
_HINT = (
    "use another checkpoint: without this folder, tfm train goes on from the previous one; "
    "or start again with --from-scratch"
)


class StateValues:
    """A JSON object whose values are checked when they are read; errors name the file and the field."""

    def __init__(self, values: Mapping[str, Any], origin: str, *, path: str = "") -> None:
        self.values = values
        self._origin = origin
        self._path = path

    def part(self, name: str) -> "StateValues":
        """The object in this field."""
        value = self._value(name)
        if not isinstance(value, dict):
            raise self.refusal(name, "is not a JSON object")
        return StateValues(value, self._origin, path=f"{self._path}{name}.")

    def count(self, name: str, *, most: int = MOST) -> int:
        """A whole number from 0 to `most`."""
        return self._checked_count(name, self._value(name), most)

    def counts(self, name: str, *, least: int) -> list[int]:
        """A list of at least `least` whole numbers."""
        values = self._list(name)
        if len(values) < least:
            raise self.refusal(name, f"has {len(values)} values instead of {least}")
        return [self._checked_count(name, value, MOST) for value in values]

    def number(self, name: str) -> float:
        """A number, which may be infinite."""
        return self._checked_number(name, self._value(name))

    def numbers(self, name: str, *, with_nan: bool = False) -> list[float]:
        """A list of numbers; `with_nan` allows NaN among them."""
        return [
            value
            if with_nan and isinstance(value, float) and math.isnan(value)
            else self._checked_number(name, value)
            for value in self._list(name)
        ]

    def text(self, name: str, *, most: int) -> str:
        """A text of at most `most` characters."""
        value = self._value(name)
        if not isinstance(value, str) or len(value) > most:
            raise self.refusal(name, f"is {_shown(value)} instead of a short text")
        return value

    def refusal(self, name: str, problem: str) -> DataError:
        """The error for a field."""
        return DataError(
            f"{self._origin}: {self._path}{name} {problem}: not the state of a training run",
            hint=_HINT,
        )

    def _value(self, name: str) -> Any:
        if name not in self.values:
            raise self.refusal(name, "is missing")
        return self.values[name]

    def _list(self, name: str) -> list[Any]:
        values = self._value(name)
        if not isinstance(values, list | tuple):
            raise self.refusal(name, f"is {_shown(values)} instead of a list")
        return list(values)

    def _checked_count(self, name: str, value: Any, most: int) -> int:
        if type(value) is not int or not 0 <= value <= most:
            raise self.refusal(
                name, f"is {_shown(value)} instead of a whole number from 0 to {most:,}"
            )
        return value

    def _checked_number(self, name: str, value: Any) -> float:
        is_number = type(value) is float or (type(value) is int and abs(value) <= 2**53)
        if not is_number or math.isnan(value):
            raise self.refusal(name, f"is {_shown(value)} instead of a number")
        return float(value)


def _shown(value: Any) -> str:
    return shortened(repr(value), 40)
