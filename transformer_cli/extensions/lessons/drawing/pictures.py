"""The pictures that `tfm draw` knows: names, one sentence for each, and the function that draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from transformer_cli.extensions.lessons.drawing.theme import THEMES, ThemeName, drawing_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture."""

    sentence: str
    """What it shows."""
    module: str
    function: str
    """A function of this module of `drawing`; matplotlib and PyTorch are imported with it."""
    follows: Literal["config", "run", "nothing"] = "nothing"
    """What changes the picture."""
    config: str = ""
    """The shipped config that is drawn if the user gives none."""
    overrides: tuple[str, ...] = ()
    """Of that config."""


_PAPER = "wmt14-en-de-base.yaml"
_SHORT = ("training.max_steps=20000",)

PICTURES = {
    "architecture": Picture(
        "the model of a config: figure 1 of the paper with the names of the code",
        "diagrams.architecture",
        "draw_architecture",
        "config",
        _PAPER,
    ),
    "residuals": Picture(
        "the three residual wirings: pre-norm, post-norm, residual of the normed output",
        "diagrams.residual_wirings",
        "draw_residuals",
        "config",
        _PAPER,
    ),
    "masks": Picture(
        "the masks of the three kinds of attention: causal, and padding of the source",
        "charts.attention_masks",
        "draw_masks",
    ),
    "attention": Picture(
        "attention of one query with its numbers: scores, softmax, weights, the sum of the values",
        "charts.attention_steps",
        "draw_attention_steps",
        "run",
    ),
    "shifted-target": Picture(
        "what the decoder reads and what it must predict, shifted by one place",
        "diagrams.shifted_target",
        "draw_shifted_target",
    ),
    "sinusoids": Picture(
        "the sinusoids that are added to embeddings",
        "charts.position_waves",
        "draw_sinusoids",
        "config",
        _PAPER,
        ("model.d_model=128",),
    ),
    "rotary": Picture(
        "rotary positions: angles, turned vectors, and the product of query and key",
        "charts.rotary_angles",
        "draw_rotary",
        "config",
        _PAPER,
    ),
    "schedule": Picture(
        "the learning rate of a config",
        "charts.schedule_curves",
        "draw_schedule",
        "config",
        _PAPER,
        _SHORT,
    ),
    "schedules": Picture(
        "all kinds of learning-rate schedules side by side",
        "charts.schedule_panels",
        "draw_schedules",
        "config",
        _PAPER,
        _SHORT,
    ),
    "label-smoothing": Picture(
        "the probabilities of smoothed labels, for both kinds of smoothed_over",
        "charts.smoothed_targets",
        "draw_label_smoothing",
        "config",
        _PAPER,
    ),
    "batches": Picture(
        "the padding of batches sorted by length, beside batches in random order",
        "charts.sorted_batches",
        "draw_batches",
        "config",
        "en-it.yaml",
        ("data.num_pairs=12000",),
    ),
    "checkpoint": Picture(
        "the files of a run, with their sizes if --run names one",
        "diagrams.run_files",
        "draw_checkpoint",
        "run",
    ),
}


def draw_picture(
    name: str,
    *,
    theme: ThemeName = "light",
    config: str | None = None,
    overrides: Sequence[str] = (),
    run: Path | None = None,
) -> "Figure":
    """Draw a picture.

    Args:
        name: one of `PICTURES`.
        theme: the colours.
        config: a YAML file, or the name of a shipped config; None: the one that suits the picture.
        overrides: settings such as "model.d_model=256".
        run: the folder of a run, for a picture of its files or of its model.

    Raises:
        ConfigError: the config is wrong.
    """
    picture = PICTURES[name]
    function = getattr(
        import_module(f"transformer_cli.extensions.lessons.drawing.{picture.module}"),
        picture.function,
    )
    with drawing_settings():
        return function(*_subject(picture, config, overrides, run), THEMES[theme])


def _subject(
    picture: Picture, config: str | None, overrides: Sequence[str], run: Path | None
) -> tuple[Any, ...]:
    match picture.follows:
        case "config":
            from transformer_cli.config import load_config

            if config is not None:
                return (load_config(config, overrides),)
            return (load_config(picture.config, [*picture.overrides, *overrides]),)
        case "run":
            return (run,)
        case "nothing":
            return ()
