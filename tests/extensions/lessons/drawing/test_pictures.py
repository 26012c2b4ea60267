"""Every picture: it is drawn on both themes, its description is stable, and each kind of file can be written."""

import pytest

from transformer_cli.extensions.lessons.drawing.description import describe_figure, figure_digest
from transformer_cli.extensions.lessons.drawing.pictures import (
    FORMATS,
    PICTURES,
    bytes_of,
    draw_picture,
)
from transformer_cli.extensions.lessons.drawing.theme import WIDTH
from transformer_cli.process.errors import ConfigError

BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
QUICK = [name for name in PICTURES if name != "batches"]


@pytest.mark.heavy
@pytest.mark.parametrize("name", QUICK)
def test_the_same_picture_has_the_same_description_and_a_picture_on_dark_another(name: str) -> None:
    first, again, dark = draw_picture(name), draw_picture(name), draw_picture(name, theme="dark")
    assert first.get_figwidth() == dark.get_figwidth() == WIDTH
    assert describe_figure(first) == describe_figure(again)
    assert figure_digest(first) == figure_digest(again) != figure_digest(dark)


@pytest.mark.heavy
@pytest.mark.parametrize("name", QUICK)
def test_saving_a_picture_does_not_change_its_description_and_gives_a_small_file(name: str) -> None:
    figure = draw_picture(name)
    before = describe_figure(figure)
    assert len(bytes_of(figure, ".png")) < 120_000
    assert describe_figure(figure) == before


@pytest.mark.long
@pytest.mark.parametrize("ending", FORMATS)
def test_equal_pictures_give_equal_files(ending: str) -> None:
    contents = [bytes_of(draw_picture("schedule"), ending) for _ in range(2)]
    assert contents[0].startswith(BEGINNINGS[ending])
    assert contents[0] == contents[1]


@pytest.mark.heavy
def test_the_settings_of_the_user_for_matplotlib_do_not_change_a_picture() -> None:
    import matplotlib

    expected = bytes_of(draw_picture("masks"), ".png")
    with matplotlib.rc_context({"font.size": 22, "font.family": ["serif"], "axes.grid": True}):
        assert bytes_of(draw_picture("masks"), ".png") == expected


def test_a_picture_follows_the_config_that_is_given() -> None:
    ordinary = draw_picture("schedule")
    assert figure_digest(draw_picture("schedule", overrides=["model.d_model=256"])) != figure_digest(ordinary)
    assert "cosine" in describe_figure(draw_picture("schedule", config="en-it.yaml"))


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("rotary", ("model.d_model=15", "model.num_heads=5"), "an even head width, not 3"),
        ("sinusoids", ("model.d_model=15", "model.num_heads=5"), "an even d_model, not 15"),
        ("schedules", ("training.max_steps=5",), r"max_steps \(5\) is not above warmup_steps"),
    ],
)
def test_a_config_that_a_picture_cannot_show_is_refused(name: str, overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        draw_picture(name, config="copy.yaml", overrides=["model.positions=none", *overrides])


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("rotary", ("model.d_model=4", "model.num_heads=2")),
        ("sinusoids", ("model.d_model=2", "model.num_heads=1")),
        ("schedule", ("training.max_steps=1",)),
        ("schedules", ("training.warmup_steps=0", "training.max_steps=2")),
        ("label-smoothing", ("training.label_smoothing=0.0",)),
    ],
)
def test_the_smallest_settings_have_a_picture(name: str, overrides: tuple[str, ...]) -> None:
    assert bytes_of(draw_picture(name, config="copy.yaml", overrides=overrides), ".png")
