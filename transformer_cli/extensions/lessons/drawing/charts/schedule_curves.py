"""Pictures of learning rates: that of a config, and all kinds of schedules side by side."""

from typing import TYPE_CHECKING

import numpy as np

from transformer_cli.config import Config, TrainingConfig
from transformer_cli.extensions.lessons.drawing.theme import (
    SMALL,
    TEXT,
    Theme,
    grid,
    new_figure,
    style,
)
from transformer_cli.training.schedules import learning_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUM_POINTS = 400


def draw_schedule(config: Config, theme: Theme) -> "Figure":
    """The learning rate of each update of a config."""
    training = config.training
    figure = new_figure(3.8, theme)
    axes = figure.subplots()
    steps = steps_of(training)
    rates = [learning_rate(step, training, d_model=config.model.d_model) for step in steps]
    axes.plot(steps, rates, color=theme.lines[0], linewidth=2.2, label=training.schedule)
    _mark_peak(axes, steps, rates, theme)
    axes.set_xlabel("step: the number of the update")
    axes.set_ylabel("learning_rate(step)")
    style(axes, theme, title=_title(config))
    set_limits(axes, steps, max(rates) * 1.12)
    grid(axes, theme)
    return figure


def steps_of(training: TrainingConfig) -> list[int]:
    """Steps for a smooth curve, from 1 to max_steps; the last step of the warm-up is one of them."""
    last = last_step(training)
    steps = np.linspace(1, last, min(NUM_POINTS, last)).round().astype(int)
    return sorted({*steps.tolist(), min(max(training.warmup_steps, 1), last)})


def last_step(training: TrainingConfig) -> int:
    """max_steps; without it, ten times the warm-up, because the corpus decides when the run ends."""
    return training.max_steps or max(10 * training.warmup_steps, 1000)


def _title(config: Config) -> str:
    training = config.training
    shown = [f"training.schedule: {training.schedule}", f"warmup_steps: {training.warmup_steps:,}"]
    if training.schedule == "noam":
        shown.append(f"model.d_model: {config.model.d_model}")
    return "    ".join(shown)


def _mark_peak(axes: "Axes", steps: list[int], rates: list[float], theme: Theme) -> None:
    peak = int(np.argmax(rates))
    axes.plot([steps[peak]], [rates[peak]], "o", color=theme.lines[1], markersize=6)
    axes.annotate(
        f"{in_words(rates[peak])} at step {steps[peak]:,}",
        (steps[peak], rates[peak]),
        xytext=(6, 5),  # above the curve, which may be flat at its peak
        textcoords="offset points",
        va="bottom",
        fontsize=TEXT,
        color=theme.ink,
    )


def in_words(rate: float) -> str:
    """A learning rate as people write it, such as 7.0e-4."""
    return f"{rate:.1e}".replace("e-0", "e-") if rate else "0"


def in_words_exactly(rate: float) -> str:
    """A learning rate with as many digits as it needs, two to four, such as 1.75e-3: for the ticks of an axis."""
    digits, exponent = f"{rate:.3e}".split("e")
    whole, part = digits.split(".")
    return f"{whole}.{part.rstrip('0') or '0'}e{int(exponent)}" if rate else "0"


def set_limits(axes: "Axes", steps: list[int], highest: float) -> None:
    """Show all steps, and learning rates up to `highest`; numbers as people write them."""
    from matplotlib.ticker import FuncFormatter

    axes.set_xlim(0, steps[-1])
    axes.set_ylim(0, highest)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: in_words_exactly(rate)))
    axes.tick_params(labelsize=SMALL)
