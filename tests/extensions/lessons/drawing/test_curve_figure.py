"""A picture of curves: its lines hold the recorded numbers, and no two runs look the same."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from transformer_cli.checkpoint.recorded_series import read_series
from transformer_cli.evaluation.curve_pictures import drawing_settings
from transformer_cli.extensions.lessons.drawing.curve_figure import (
    LINE_STYLES,
    Look,
    color_of,
    draw_panels,
    end_of,
)
from transformer_cli.extensions.lessons.drawing.curves import PlottedRun, grouped, panels_of
from transformer_cli.extensions.lessons.drawing.pictures import bytes_of
from transformer_cli.extensions.lessons.drawing.theme import DARK, LIGHT

from .recorded_runs import record_run


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def runs() -> list[PlottedRun]:
    folders = [record_run("one"), record_run("two $x$", slope=2.0)]
    return [PlottedRun(one.name, [(one, read_series(one / "metrics.jsonl"))]) for one in folders]


def drawn(plotted: list[PlottedRun], *metrics: str, **changes: Any) -> Any:
    panels = panels_of(plotted, metrics, "step")
    look = Look("step", LIGHT, end_of(panels), **changes)
    with drawing_settings():
        return draw_panels([run.name for run in plotted], panels, look)


def lines(axes: Any) -> dict[str, Any]:
    return {line.get_gid(): line for line in axes.get_lines()}


def test_the_lines_hold_the_recorded_numbers() -> None:
    losses, bleu, cer, _ = drawn(runs(), "loss", "bleu", "cer").axes
    found = lines(losses)
    assert list(found) == [f"curve-loss-{run}-{kind}" for run in (0, 1) for kind in ("training", "validation")]
    assert found["curve-loss-1-training"].get_xydata().tolist() == [[10, 8], [20, 6], [30, 4], [40, 2]]
    assert lines(bleu)["curve-bleu-1-validation"].get_xydata().tolist() == [[20, 40], [40, 80]]
    assert (bleu.get_title(loc="left"), cer.get_title(loc="left")) == ("BLEU", "CER")
    assert bleu.get_xlim() == losses.get_xlim()


@pytest.mark.long
def test_the_note_about_thin_lines_stands_above_the_curves() -> None:
    figure = drawn(runs(), "loss")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    (note,) = [text for text in axes.texts if text.get_text().startswith("thin: ")]
    highest = max(line.get_ydata().max() for line in axes.get_lines())
    assert note.get_window_extent().y0 > axes.transData.transform((0, highest))[1]


def test_runs_differ_in_colour_and_in_line_style_and_the_legend_names_them() -> None:
    figure = drawn(runs(), "bleu")
    one, two = figure.axes[0].get_lines()
    assert one.get_color() != two.get_color()
    assert one.get_linestyle() != two.get_linestyle()
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two $x$"]
    looks = {(color_of(run, DARK.lines), str(LINE_STYLES[run % len(LINE_STYLES)])) for run in range(35)}
    assert len(looks) == 35


def test_a_logarithmic_axis_has_plain_numbers() -> None:
    losses, bleu = drawn(runs(), "loss", "bleu", logarithmic={"loss"}).axes
    assert (losses.get_yscale(), bleu.get_yscale()) == ("log", "linear")
    assert losses.yaxis.get_major_formatter()(0.05, 0) == "0.05"


def test_a_group_is_drawn_with_its_range() -> None:
    folders = [record_run("a"), record_run("b", "seed=2", slope=2.0)]
    plotted = grouped([(one, read_series(one / "metrics.jsonl")) for one in folders])
    [axes] = drawn(plotted, "bleu").axes
    [area] = axes.collections
    corners = {tuple(point) for point in area.get_paths()[0].vertices.tolist()}
    assert corners == {(20.0, 20.0), (20.0, 40.0), (40.0, 40.0), (40.0, 80.0)}


def test_a_value_without_neighbours_is_a_mark() -> None:
    folder = record_run("short")
    lines_of_file = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text(lines_of_file[0])
    [axes] = drawn([PlottedRun("short", [(folder, read_series(folder / "metrics.jsonl"))])], "loss").axes
    [line] = axes.get_lines()
    assert (line.get_marker(), line.get_markevery()) == ("o", [0])


@pytest.mark.long
def test_many_runs_have_a_legend_that_fits_into_the_picture() -> None:
    [run] = runs()[:1]
    many = [PlottedRun(f"a run with a long name, number {number}", run.members) for number in range(12)]
    figure = drawn(many, "loss", "bleu")
    with Image.open(io.BytesIO(bytes_of(figure, ".png"))) as picture:
        width, height = picture.size
    box = figure.legends[0].get_window_extent()
    assert box.x1 <= width
    assert box.y1 <= height
    assert box.y0 >= max(axes.get_window_extent().y1 for axes in figure.axes)
