"""The picture of the files of a run: every file and its size, and a layout that a new run has."""

import os
import shutil
from pathlib import Path

import pytest

from transformer_cli.extensions.lessons.drawing.pictures import draw_picture
from transformer_cli.extensions.lessons.drawing.run_files import (
    described_layout,
    draw_checkpoint,
    entries_of,
)
from transformer_cli.extensions.lessons.drawing.theme import LIGHT
from transformer_cli.process.errors import MissingInputError
from transformer_cli.storage import MANIFEST_NAME
from transformer_cli.storage.filesystem import size_in_words

from ....experiments import TINY, write_tiny
from ....launcher import run_here

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def run(memory_folder: Path) -> Path:
    """The folder of a trained run."""
    folder = memory_folder / "of-drawing"
    folder.mkdir()
    config = TINY.replace("num_samples: 0", "num_samples: 1").replace("validate_every: 4", "validate_every: 13")
    assert run_here(folder, "train", "--config", write_tiny(folder, config)).exit_code == 0
    return folder / "runs" / "tiny"


def test_every_file_of_a_new_run_is_in_the_described_layout(run: Path) -> None:
    described = {entry.name for entry in described_layout()}
    names = {path.name for path in run.rglob("*") if path.is_file() and path.name[0] != "."}
    events = {name for name in names if name.startswith("events.out.")}
    assert events
    assert names - events <= described


def test_every_file_of_the_described_layout_is_in_a_new_run(run: Path) -> None:
    described = {entry.name for entry in described_layout() if "." in entry.name}
    assert described <= {path.name for path in run.rglob("*")}


def test_the_sizes_are_those_of_the_files(run: Path) -> None:
    newest = max((run / "checkpoints").glob("step-*"))
    entries = {(entry.depth, entry.name): entry for entry in entries_of(run)}
    for path in newest.iterdir():
        assert entries[3, path.name].num_bytes == path.stat().st_size
    assert entries[2, newest.name].phrase == "everything to translate and to resume"
    assert entries[2, newest.name].num_bytes == sum(p.stat().st_size for p in newest.iterdir())
    assert entries[1, "config.yaml"].num_bytes == (run / "config.yaml").stat().st_size
    files = [path for path in run.rglob("*") if path.is_file()]
    links = [run / "checkpoints" / name for name in ("best", "last")]
    own = [path for path in files if not any(link in path.parents for link in links)]
    assert entries[0, "runs/tiny"].num_bytes == sum(path.stat().st_size for path in own)


def test_links_say_which_checkpoint_they_lead_to(run: Path) -> None:
    names = [entry.name for entry in entries_of(run)]
    for link in ("best", "last"):
        assert f"{link} → {os.readlink(run / 'checkpoints' / link)}" in names


def test_the_picture_shows_names_sizes_and_phrases(run: Path) -> None:
    texts = {text.get_text() for text in draw_picture("checkpoint", run=run).get_axes()[0].texts}
    for entry in entries_of(run):
        assert {entry.name, entry.phrase} - {""} <= texts
        if entry.num_bytes is not None:
            assert size_in_words(entry.num_bytes) in texts


def test_a_checkpoint_that_was_copied_elsewhere_has_a_picture(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copied"
    shutil.copytree(max((run / "checkpoints").glob("step-*")), copy)
    entries = entries_of(copy)
    assert entries[0].name == "copied"
    monkeypatch.chdir(copy)
    assert entries_of(Path())[0].name == "copied"
    assert {entry.name for entry in entries[1:]} == {path.name for path in copy.iterdir()}
    assert MANIFEST_NAME in {entry.name for entry in entries}


def test_many_checkpoints_are_counted(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "many"
    shutil.copytree(run, copy, symlinks=True)
    newest = max((copy / "checkpoints").glob("step-*"))
    for step in range(100, 108):
        shutil.copytree(newest, newest.parent / f"step-{step:08d}")
    names = [entry.name for entry in entries_of(copy)]
    assert names.count("model.safetensors") == 1
    assert any(name.endswith(" more") for name in names)


def test_a_folder_without_checkpoints_is_refused(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(MissingInputError, match="this run has no checkpoint yet"):
        draw_checkpoint(tmp_path, LIGHT)


@pytest.mark.parametrize(
    ("num_bytes", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.00 kB"),
        (9_996, "10.0 kB"),
        (999_600, "1.00 MB"),
        (252_000_000, "252 MB"),
        (3_150_000_000, "3.15 GB"),
        (4_200_000_000_000, "4200 GB"),
    ],
)
def test_a_size_has_three_digits(num_bytes: int, words: str) -> None:
    assert size_in_words(num_bytes) == words
