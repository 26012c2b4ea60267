"""`tfm draw`: its list, its files, and what it refuses."""

import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from transformer_cli import cli
from transformer_cli.commands.completion import pictures
from transformer_cli.extensions.lessons.commands.draw import draw_command
from transformer_cli.extensions.lessons.drawing.pictures import PICTURES, bytes_of, draw_picture
from transformer_cli.process.errors import CannotCreateError, ConfigError, TfmError, UsageError


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(names: list[str], output: Path | None, **options: object) -> TfmError:
    """The error that drawing ends with."""
    with pytest.raises(TfmError) as refused:
        draw_command(names, output, **options)  # type: ignore[arg-type]
    return refused.value


def test_the_list_has_one_line_for_each_picture(capsys: pytest.CaptureFixture[str]) -> None:
    draw_command()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*PICTURES]
    assert all(line.endswith(picture.sentence) for line, picture in zip(lines, PICTURES.values(), strict=True))


@pytest.mark.long
def test_a_file_is_the_picture_that_python_draws(tmp_path: Path) -> None:
    overrides = ["model.d_model=256"]
    for ending in (".png", ".svg", ".PDF"):
        path = tmp_path / f"a{ending}"
        draw_command(["schedule"], path, overrides=overrides, theme="dark")
        figure = draw_picture("schedule", overrides=overrides, theme="dark")
        assert path.read_bytes() == bytes_of(figure, ending.lower())


@pytest.mark.long
def test_several_pictures_go_into_a_folder_that_is_made(tmp_path: Path) -> None:
    draw_command(["masks", "residuals", "masks"], tmp_path / "new" / "deep")
    names = sorted(path.name for path in (tmp_path / "new" / "deep").iterdir())
    assert names == ["masks.png", "residuals.png"]


@pytest.mark.long
def test_one_picture_goes_into_a_folder_too(tmp_path: Path) -> None:
    (tmp_path / "v1.0").mkdir()
    draw_command(["masks"], tmp_path / "v1.0")
    assert (tmp_path / "v1.0" / "masks.png").is_file()


def test_all_pictures_follow_a_config_as_far_as_they_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def record(name: str, **options: object) -> object:
        drawn.append((name, options["config"], options["overrides"]))
        return Figure(figsize=(1.0, 1.0))

    monkeypatch.setattr("transformer_cli.extensions.lessons.commands.draw.draw_picture", record)
    draw_command(["all"], tmp_path, config="copy.yaml", overrides=["name=a"])
    assert drawn == [(name, "copy.yaml", ["name=a"]) for name in PICTURES]
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(PICTURES)


@pytest.mark.parametrize(
    ("names", "output", "options", "message", "hint"),
    [
        (["mask"], Path("a.png"), {}, "mask: no picture has this name", "tfm draw, without"),
        (["masks"], None, {}, "give --output", "--output masks.png"),
        (["all"], None, {}, "give --output", "--output pictures"),
        (["masks"], Path("-"), {}, "--output -: tfm draw writes files", "--output masks.png"),
        (["masks"], Path("a.gif"), {}, "not the name of a picture; it ends in .gif", ".svg"),
        (["masks", "rotary"], Path("a.png"), {}, "one file, but 2 pictures", "--output a"),
        (["all"], Path("a.png"), {}, "one file, but 12 pictures", "--output a"),
        (
            ["masks"],
            Path("a.png"),
            {"config": "copy.yaml"},
            "--config has no effect on the picture masks",
            "--config goes with architecture",
        ),
        (
            ["rotary", "checkpoint"],
            Path("a"),
            {"overrides": ["name=a"]},
            "--set has no effect on the picture checkpoint",
            "--set goes with architecture",
        ),
        (
            ["schedule"],
            Path("a.png"),
            {"run": "en-it"},
            "--run has no effect on the picture schedule",
            "--run goes with attention, checkpoint",
        ),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_drawn(
    empty_folder: Path,
    names: list[str],
    output: Path | None,
    options: dict[str, object],
    message: str,
    hint: str,
) -> None:
    error = refusal(names, output, **options)
    assert isinstance(error, UsageError)
    assert message in error.message
    assert hint in str(error.hint)
    assert not list(empty_folder.iterdir())


def test_a_wrong_config_writes_no_file(tmp_path: Path) -> None:
    error = refusal(["schedule"], tmp_path / "a.png", overrides=["training.warmup=1"])
    assert isinstance(error, ConfigError)
    assert not list(tmp_path.iterdir())


def test_a_file_where_the_folder_shall_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    error = refusal(["masks", "rotary"], tmp_path / "file")
    assert isinstance(error, CannotCreateError)


def test_options_without_a_name_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tfm", "draw", "--config", "copy.yaml"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "say which picture: a name, or all" in capsys.readouterr().err


def test_a_shell_offers_the_names_of_the_pictures() -> None:
    assert [name for name, _ in pictures("sch")] == ["schedule", "schedules"]
    assert ("all", "") in pictures("")
