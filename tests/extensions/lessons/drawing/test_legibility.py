"""Pictures can be read: texts are large enough, do not overlap, lie inside the picture and stand out."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from transformer_cli.evaluation.curve_pictures import drawing_settings
from transformer_cli.extensions.lessons.drawing.diagrams import WIRINGS
from transformer_cli.extensions.lessons.drawing.pictures import PICTURES, draw_picture
from transformer_cli.extensions.lessons.drawing.theme import SMALL, THEMES, Theme

SUBJECTS = [
    *((name, ()) for name in PICTURES if name != "batches"),
    ("batches", ("data.num_pairs=1000",)),
    ("architecture", ("model.norm_placement=pre", "model.positions=rotary", "model.qk_norm=true")),
    ("architecture", ("model.num_kv_heads=2", "model.norm_placement=residual_of_normed")),
    ("architecture", ("model.preset=big", "model.activation=swiglu", "model.embedding_norm=true")),
    *((name, (f"name={'x' * 60}",)) for name in ("architecture", "label-smoothing")),
    *(("residuals", (f"name={'x' * 60}", f"model.norm_placement={one}")) for one in WIRINGS),
    ("schedule", ("training.schedule=warmup_stable_decay", "training.decay_steps=3000")),
    ("label-smoothing", ("training.smoothed_over=others",)),
]


def shown_texts(figure: Any) -> list[tuple[str, Any, float]]:
    """Each text that is drawn with its rectangle in pixels and its size in points."""
    drawn: list[Any] = []
    with drawing_settings(), pytest.MonkeyPatch.context() as patched:
        draw = Text.draw

        def record(text: Any, renderer: Any, *rest: Any, **options: Any) -> None:
            drawn.append(text)
            draw(text, renderer, *rest, **options)

        patched.setattr(Text, "draw", record)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        renderer = canvas.get_renderer()
        texts = [text for text in drawn if text.get_visible() and text.get_text()]
        return [
            (text.get_text(), text.get_window_extent(renderer), text.get_fontsize())
            for text in texts
            if text.get_rotation() % 90 == 0  # the rectangle of a slanted text is too large
        ]


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "overrides"), SUBJECTS)
def test_texts_are_large_enough_inside_the_picture_and_apart(name: str, overrides: tuple[str, ...]) -> None:
    figure = draw_picture(name, overrides=overrides)
    texts = shown_texts(figure)
    width, height = figure.bbox.width, figure.bbox.height
    for text, box, size in texts:
        assert size >= SMALL, text
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= width, text
        assert box.y1 <= height, text
    for (text, box, _), (other, second, _) in itertools.combinations(texts, 2):
        both_x = min(box.x1, second.x1) - max(box.x0, second.x0)
        both_y = min(box.y1, second.y1) - max(box.y0, second.y0)
        # Rectangles have room for letters below the line, which a neighbour above or below may share.
        assert both_x < 2 or both_y < 8, f"{text!r} and {other!r} overlap"


REFERENCE = sorted((Path(__file__).parents[4] / "configs" / "reference").glob("*.yaml"))
BOXED = [
    (None, ()),
    (None, ("model.num_kv_heads=2", "model.qk_norm=true", "model.positions=rotary")),
    (
        None,
        (
            "tokenizer.kind=wordlevel",
            "tokenizer.vocab_size=1000000",
            "tokenizer.shared=false",
            "model.tie_embeddings=none",
        ),
    ),
    (None, ("model.norm=scalar_std_layernorm", "model.norm_placement=residual_of_normed")),
    *((str(path), ()) for path in REFERENCE),
]


@pytest.mark.heavy
@pytest.mark.parametrize(("config", "overrides"), BOXED)
def test_no_text_crosses_the_border_of_a_box(config: str | None, overrides: tuple[str, ...]) -> None:
    figure = draw_picture("architecture", config=config, overrides=overrides)
    axes = figure.get_axes()[0]
    boxes = [
        patch.get_window_extent()
        for patch in axes.patches
        if type(patch).__name__ == "FancyBboxPatch" and patch.get_zorder() == 3
    ]
    for text, extent, _ in shown_texts(figure):
        for box in boxes:
            if box.overlaps(extent):
                assert box.x0 + 8 < extent.x0, text
                assert extent.x1 < box.x1 - 8, text
                assert box.y0 - 1 < extent.y0, text
                assert extent.y1 < box.y1 + 1, text


def luminance(color: str) -> float:
    """Relative luminance of a colour. Source: Web Content Accessibility Guidelines 2.2."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(first: str, second: str) -> float:
    """From 1, equal colours, to 21, black on white."""
    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES.values(), ids=[*THEMES])
def test_texts_stand_out_from_what_is_behind_them(theme: Theme) -> None:
    for behind in (theme.background, theme.panel, *theme.boxes.values()):
        assert contrast(theme.ink, behind) >= 7.0
    for behind in (theme.background, theme.panel, theme.hidden):
        assert contrast(theme.muted, behind) >= 4.5
    assert contrast(theme.background, theme.lines[0]) >= 4.5, "numbers on cells that are visible"


@pytest.mark.parametrize("theme", THEMES.values(), ids=[*THEMES])
def test_curves_stand_out_from_the_background(theme: Theme) -> None:
    for color in theme.lines:
        assert contrast(color, theme.background) >= 3.0


@pytest.mark.long
def test_the_name_of_a_config_is_not_read_as_a_formula() -> None:
    [axes] = draw_picture("architecture").get_axes()
    assert not any(text.get_parse_math() for text in axes.texts)
