"""The pictures that `tfm draw` knows: names, one sentence for each, the function that draws it; and the bytes of a file.

A shell completes these names, so matplotlib and PyTorch are imported only when a picture is drawn.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ThemeName = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture."""

    sentence: str
    """What it shows."""
    place: str
    """The function that draws it, as `module:name`; the module is one of `drawing`."""
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
        "architecture:draw_architecture",
        "config",
        _PAPER,
    ),
    "residuals": Picture(
        "the three residual wirings: pre-norm, post-norm, residual of the normed output",
        "architecture:draw_residuals",
        "config",
        _PAPER,
    ),
    "masks": Picture(
        "the masks of the three kinds of attention: causal, and padding of the source",
        "attention:draw_masks",
    ),
    "attention": Picture(
        "attention of one query with its numbers: scores, softmax, weights, the sum of the values",
        "attention:draw_attention_steps",
        "run",
    ),
    "shifted-target": Picture(
        "what the decoder reads and what it must predict, shifted by one place",
        "attention:draw_shifted_target",
    ),
    "sinusoids": Picture(
        "the sinusoids that are added to embeddings",
        "positions:draw_sinusoids",
        "config",
        _PAPER,
        ("model.d_model=128",),
    ),
    "rotary": Picture(
        "rotary positions: angles, turned vectors, and the product of query and key",
        "positions:draw_rotary",
        "config",
        _PAPER,
    ),
    "schedule": Picture(
        "the learning rate of a config",
        "schedules:draw_schedule",
        "config",
        _PAPER,
        _SHORT,
    ),
    "schedules": Picture(
        "all kinds of learning-rate schedules side by side",
        "schedules:draw_schedules",
        "config",
        _PAPER,
        _SHORT,
    ),
    "label-smoothing": Picture(
        "the probabilities of smoothed labels, for both kinds of smoothed_over",
        "smoothed_targets:draw_label_smoothing",
        "config",
        _PAPER,
    ),
    "batches": Picture(
        "the padding of batches sorted by length, beside batches in random order",
        "sorted_batches:draw_batches",
        "config",
        "en-it.yaml",
        ("data.num_pairs=12000",),
    ),
    "checkpoint": Picture(
        "the files of a run, with their sizes if --run names one",
        "run_files:draw_checkpoint",
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
    from transformer_cli.evaluation.curve_pictures import drawing_settings
    from transformer_cli.extensions.lessons.drawing.theme import THEMES

    picture = PICTURES[name]
    draw = resolve_name(f"transformer_cli.extensions.lessons.drawing.{picture.place}")
    with drawing_settings():
        return draw(*_subject(picture, config, overrides, run), THEMES[theme])


def _subject(picture: Picture, config: str | None, overrides: Sequence[str], run: Path | None) -> tuple[Any, ...]:
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


# Without versions and dates: they would change the bytes.
_FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
FORMATS = tuple(_FORMATS)
"""The endings of the names of files that a drawing can be saved to."""


def bytes_of(figure: "Figure", ending: str) -> bytes:
    """The content of a file.

    Args:
        ending: one of `FORMATS`.
    """
    from transformer_cli.evaluation.curve_pictures import drawing_settings

    buffer = io.BytesIO()
    with drawing_settings():
        figure.savefig(buffer, format=ending.removeprefix("."), metadata=_FORMATS[ending])
    return _with_palette(buffer) if ending == ".png" else buffer.getvalue()


def _with_palette(png: io.BytesIO) -> bytes:
    """The same PNG file with a palette of 256 colours, which takes a third of the bytes."""
    from PIL import Image

    small = io.BytesIO()
    with Image.open(png) as image:
        resolution = image.info["dpi"]
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
            small, format="png", optimize=True, dpi=resolution
        )
    return small.getvalue()
