"""The median of repeated measurements, and how far they spread."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np


class Spread(NamedTuple):
    """A tenth of the measurements lies below `low`, a tenth above `high`."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """The spread of one or more values."""
        low, median, high = np.quantile(list(values), [0.1, 0.5, 0.9]).tolist()
        return cls(median, low, high)
