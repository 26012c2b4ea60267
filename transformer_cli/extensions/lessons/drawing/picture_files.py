"""A drawing as the bytes of a PNG, SVG or PDF file; equal drawings give equal bytes."""

import io
from typing import TYPE_CHECKING, Any

from transformer_cli.extensions.lessons.drawing.theme import drawing_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
