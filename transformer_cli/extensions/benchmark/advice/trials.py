"""Trials: the speed with a suggested change of settings is measured, in turns with the unchanged settings."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from transformer_cli.extensions.benchmark.measuring.spread import Spread
from transformer_cli.process.errors import TfmError

LEAST_GAIN = 1.03
"""Below this factor a trial cannot tell a gain from noise."""

HOPELESS = 0.8
"""A ratio below this ends a trial: another turn would only take time."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change of settings that may make the training faster."""

    because: str
    """What was measured."""
    what: str
    """The change, in words."""
    overrides: tuple[str, ...]
    """The change, as `--set` takes it."""
    expected: float
    """How many times as fast the training may become; only for the order of the trials."""
    least_gain: float = LEAST_GAIN
    """A trial that gives less has not helped."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A suggestion that was measured, in turns with the unchanged config."""

    suggestion: Suggestion
    ratio: float | None
    """Median: how many times as many target tokens; None: the trial failed."""
    low: float = 0.0
    high: float = 0.0
    unit: str = "second"
    """Per second, or per CPU-second."""
    failure: str = ""

    @property
    def has_helped(self) -> bool:
        """Whether it was faster, and in most turns."""
        return (
            self.ratio is not None and self.ratio >= self.suggestion.least_gain and self.low > 1.0
        )


def worth_trying(found: Iterable[Suggestion | None]) -> list[Suggestion]:
    """The suggestions that promise a gain, the largest first."""
    worth = [one for one in found if one is not None and one.expected >= LEAST_GAIN]
    return sorted(worth, key=lambda one: one.expected, reverse=True)


def tried(
    suggestion: Suggestion,
    before: Callable[[], float],
    after: Callable[[], float],
    *,
    num_turns: int,
    unit: str,
) -> Trial:
    """The trial of a suggestion. Noise of the machine changes slowly, so it disturbs both measurements of a turn alike.

    Args:
        suggestion: the change.
        before, after: measure target tokens per unit of time, without the change and with it.
        num_turns: how often both are measured.
        unit: second or CPU-second.
    """
    ratios: list[float] = []
    try:
        before(), after()  # warms up
        while len(ratios) < num_turns and min(ratios, default=1.0) > HOPELESS:
            speed_before = before()
            ratios.append(after() / speed_before)
    except TfmError as error:
        return Trial(suggestion, None, unit=unit, failure=error.message)
    spread = Spread.of(ratios)
    return Trial(suggestion, spread.median, spread.low, spread.high, unit)


def conclusion(limit: str, trials: list[Trial]) -> str:
    """What limits the work and what to change; only a change that helped in its trial is advised.

    Args:
        limit: what limits the work, as a sentence without its full stop.
        trials: of all suggestions.
    """
    helped = [trial for trial in trials if trial.has_helped]
    if helped:
        best = max(helped, key=lambda trial: trial.ratio or 0.0)
        because, what = best.suggestion.because, best.suggestion.what
        return (
            f"{limit}. {because[0].upper()}{because[1:]}: {what}. A trial of this gave {best.ratio:.2f} times "
            f"as many target tokens per {best.unit} ({best.low:.2f} to {best.high:.2f})."
        )
    if not trials:
        return f"{limit}. No setting promises more."
    results = ", ".join(
        f"{' '.join(trial.suggestion.overrides)} "
        f"({'failed' if trial.ratio is None else f'{trial.ratio:.2f} times as fast'})"
        for trial in trials
    )
    return f"{limit}. Tried, and not faster in most turns: {results}."
