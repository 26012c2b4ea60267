"""Pictures of learning rates: that of a config, and all kinds of schedules side by side."""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from transformer_cli.config import Config, TrainingConfig
from transformer_cli.config.schema import DEFAULT_LEARNING_RATES, ScheduleName
from transformer_cli.extensions.lessons.drawing.theme import (
    SMALL,
    TEXT,
    Theme,
    grid,
    new_figure,
    style,
)
from transformer_cli.process.errors import ConfigError
from transformer_cli.training.optimizers import learning_rate

NUM_POINTS = 400


def draw_schedule(config: Config, theme: Theme) -> Figure:
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


def _mark_peak(axes: Axes, steps: list[int], rates: list[float], theme: Theme) -> None:
    peak = int(np.argmax(rates))
    axes.plot([steps[peak]], [rates[peak]], "o", color=theme.lines[1], markersize=6)
    axes.annotate(
        f"{rate_in_words(rates[peak])} at step {steps[peak]:,}",
        (steps[peak], rates[peak]),
        xytext=(6, 5),  # above the curve, which may be flat at its peak
        textcoords="offset points",
        va="bottom",
        fontsize=TEXT,
        color=theme.ink,
    )


def rate_in_words(rate: float) -> str:
    """A learning rate as people write it, such as 7.0e-4."""
    return _in_words(*f"{rate:.1e}".split("e")) if rate else "0"


def _in_words(digits: str, exponent: str) -> str:
    """Digits and a power of ten: 7.0e-4, and 1.0 where the power is none."""
    return f"{digits}e{int(exponent)}" if int(exponent) else digits


def exact_rate_in_words(rate: float) -> str:
    """A learning rate with as many digits as it needs, two to four, such as 1.75e-3: for the ticks of an axis."""
    digits, exponent = f"{rate:.3e}".split("e")
    whole, part = digits.split(".")
    return _in_words(f"{whole}.{part.rstrip('0') or '0'}", exponent) if rate else "0"


def set_limits(axes: Axes, steps: list[int], highest: float) -> None:
    """Show all steps, and learning rates up to `highest`; numbers as people write them."""
    axes.set_xlim(0, steps[-1])
    axes.set_ylim(0, highest)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: exact_rate_in_words(rate)))
    axes.tick_params(labelsize=SMALL)


NUM_DROPS = 3
"""Of the example of plateau, at equal distances after the warm-up."""
_TEXTS: dict[ScheduleName, str] = {
    "noam": "the paper, equation 3",
    "inverse_sqrt": "falls as 1 / sqrt(step)",
    "cosine": "falls along half a wave",
    "linear": "falls along a line",
    "constant": "stays at the peak",
    "warmup_stable_decay": "falls in the last decay_steps",
    "plateau": "drops when the score stalls",
}


def draw_schedules(config: Config, theme: Theme) -> Figure:
    """One panel for each kind of schedule; pale curves show the others.

    Raises:
        ConfigError: the run ends before its warm-up.
    """
    if last_step(config.training) <= config.training.warmup_steps:
        raise ConfigError(
            f"training.max_steps ({last_step(config.training)}) is not above warmup_steps "
            f"({config.training.warmup_steps}), so the schedules do not differ",
            hint="--set training.max_steps=N, or lower training.warmup_steps",
        )
    kinds = get_args(ScheduleName)
    trainings = {kind: with_schedule(config.training, kind) for kind in kinds}
    steps = steps_of(config.training)
    curves = {
        kind: [_rate(step, training, config.model.d_model) for step in steps] for kind, training in trainings.items()
    }
    figure = new_figure(6.9, theme)
    panels: Any = figure.subplots(3, 3, sharex=True, sharey=True)
    highest = max(map(max, curves.values()))
    for axes, kind in zip(panels.flat, kinds, strict=False):
        for other in kinds:
            if other != kind:
                axes.plot(steps, curves[other], color=theme.faint, linewidth=1.0)
        color = theme.lines[1 if kind == config.training.schedule else 0]
        axes.plot(steps, curves[kind], color=color, linewidth=2.4, label=kind, zorder=3)
        style(axes, theme)
        axes.set_title(f"{kind}\n{_TEXTS[kind]}", fontsize=SMALL, color=theme.ink, loc="left")
        set_limits(axes, steps, highest * 1.12)
        axes.locator_params(axis="x", nbins=2)
        axes.locator_params(axis="y", nbins=4)
        grid(axes, theme)
    _say_settings(panels.flat[len(kinds) :], config, theme)
    for axes in (panels[1, 1], panels[1, 2]):
        axes.tick_params(labelbottom=True)
    figure.supxlabel("step: the number of the update", fontsize=SMALL, color=theme.muted)
    figure.supylabel("learning_rate(step)", fontsize=SMALL, color=theme.muted)
    return figure


def with_schedule(training: TrainingConfig, kind: ScheduleName) -> TrainingConfig:
    """The same peak, warm-up and length with another kind of schedule; its further settings are examples."""
    max_steps = last_step(training)
    settings: dict[str, Any] = {
        "schedule": kind,
        "max_steps": max_steps,
        "warmup_steps": max(training.warmup_steps, 1),
        "batch_sentences": 1,
    }
    if kind != "noam":
        peak = training.learning_rate or DEFAULT_LEARNING_RATES[training.optimizer]
        settings["learning_rate"] = peak
    if kind in ("cosine", "linear", "warmup_stable_decay", "plateau"):
        settings["min_learning_rate"] = training.min_learning_rate
    if kind == "warmup_stable_decay":
        num_steps = training.decay_steps or max(1, max_steps // 5)
        settings["decay_steps"] = min(num_steps, max_steps - settings["warmup_steps"])
    return TrainingConfig.model_validate(settings)


def _rate(step: int, training: TrainingConfig, d_model: int) -> float:
    """The learning rate; plateau gets an example of drops, which depend on the scores of a run."""
    if training.schedule != "plateau":
        return learning_rate(step, training, d_model=d_model)
    first, last = training.warmup_steps, last_step(training)
    share = max(0.0, (step - first) / max(1, last - first))
    return learning_rate(step, training, d_model=d_model, num_drops=min(int(share * (NUM_DROPS + 1)), NUM_DROPS))


def _say_settings(rest: Sequence[Any], config: Config, theme: Theme) -> None:
    training = config.training
    lines = [
        f"warmup_steps: {training.warmup_steps:,}",
        f"max_steps: {last_step(training):,}",
        "peak of all kinds but noam:",
        f"    learning_rate: {rate_in_words(with_schedule(training, 'constant').peak_learning_rate)}",
        "peak of noam: it follows from",
        f"    d_model: {config.model.d_model}, warmup_steps",
        f"plateau: {NUM_DROPS} example drops",
    ]
    for axes in rest:
        axes.set_axis_off()
    rest[0].text(
        0.08,
        0.9,
        "\n".join(lines),
        transform=rest[0].transAxes,
        va="top",
        linespacing=1.45,
        fontsize=SMALL,
        color=theme.ink,
    )
