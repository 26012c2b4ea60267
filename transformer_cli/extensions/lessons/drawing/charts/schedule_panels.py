"""A picture of all kinds of schedules side by side, with the peak, warm-up and length of one config."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from transformer_cli.config import Config, TrainingConfig
from transformer_cli.config.training import DEFAULT_LEARNING_RATES, ScheduleName
from transformer_cli.extensions.lessons.drawing.charts.schedule_curves import (
    in_words,
    last_step,
    set_limits,
    steps_of,
)
from transformer_cli.extensions.lessons.drawing.theme import SMALL, Theme, grid, new_figure, style
from transformer_cli.process.errors import ConfigError
from transformer_cli.training.schedules import learning_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def draw_schedules(config: Config, theme: Theme) -> "Figure":
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
        kind: [_rate(step, training, config.model.d_model) for step in steps]
        for kind, training in trainings.items()
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
    return learning_rate(
        step, training, d_model=d_model, num_drops=min(int(share * (NUM_DROPS + 1)), NUM_DROPS)
    )


def _say_settings(rest: Sequence[Any], config: Config, theme: Theme) -> None:
    training = config.training
    lines = [
        f"warmup_steps: {training.warmup_steps:,}",
        f"max_steps: {last_step(training):,}",
        "peak of all kinds but noam:",
        f"    learning_rate: {in_words(with_schedule(training, 'constant').peak_learning_rate)}",
        "peak of noam: it follows from",
        f"    d_model: {config.model.d_model}, warmup_steps",
        f"plateau: {NUM_DROPS} example drops",
    ]
    for axes in rest:
        axes.set_axis_off()
    rest[0].text(
        0.08, 0.9, "\n".join(lines), transform=rest[0].transAxes, va="top", linespacing=1.45,
        fontsize=SMALL, color=theme.ink,
    )  # fmt: skip
