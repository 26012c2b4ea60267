"""The phases of repeated work: how long each takes, and its share."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_cli.extensions.benchmark.measuring.spread import Spread


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of the work."""

    milliseconds: Spread
    share: float
    """Of the time of all updates (0 to 1); the shares of all phases sum up to 1."""


def phases_of(laps: Sequence[dict[str, float]], names: Sequence[str]) -> dict[str, Phase]:
    """The phases of several laps, in the given order."""
    seconds = {name: sum(lap.get(name, 0.0) for lap in laps) for name in names}
    all_seconds = sum(seconds.values())
    return {
        name: Phase(
            Spread.of(1000.0 * lap.get(name, 0.0) for lap in laps),
            seconds[name] / all_seconds,
        )
        for name in names
    }
