"""Arrays of numbers as compact JSON: one byte for each number, in base64."""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST = 255


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """An array of numbers between two bounds; its JSON has one byte for each number."""

    values: NDArray[Any]
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Numbers":
        """An array whose bounds are its own, the same distance above and below zero."""
        bound = float(np.abs(values).max(initial=0.0)) or 1.0
        return cls(values, -bound, bound)

    def to_json(self) -> dict[str, Any]:
        """Byte b stands for low + (high - low) * b / 255; the numbers are in the order of rows (C order)."""
        shares = (self.values.astype(np.float64) - self.low) / (self.high - self.low)
        codes = np.rint(shares.clip(0.0, 1.0) * _LARGEST).astype(np.uint8)
        return {
            "shape": list(self.values.shape),
            "dtype": "u8",
            "low": self.low,
            "high": self.high,
            "data": base64.b64encode(codes.tobytes()).decode("ascii"),
        }


def unpacked(packed: dict[str, Any]) -> NDArray[np.float64]:
    """The array of a JSON value that `Numbers.to_json` made, to within half of (high - low) / 255."""
    codes = np.frombuffer(base64.b64decode(packed["data"]), np.uint8).reshape(packed["shape"])
    return packed["low"] + (packed["high"] - packed["low"]) * codes.astype(np.float64) / _LARGEST
