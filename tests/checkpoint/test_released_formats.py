"""Checkpoints of every format that was ever written (A20): read, gone on with, or refused with a reason.

Each folder of `fixtures` was written by `tfm train` of its time: 400 steps of learning to reverse two or
three digits. It stays as it is; a new format gets a folder of its own.
"""

import json
import shutil
from pathlib import Path

import pytest

from transformer_cli.checkpoint.run_folder import open_checkpoint
from transformer_cli.storage.filesystem import FORMAT_VERSION, MANIFEST_NAME

from ..launcher import Finished, Tfm

FIXTURES = Path(__file__).with_name("fixtures")
FORMATS = [f"format-{number}" for number in range(1, FORMAT_VERSION + 1)]
REVERSED = {"1 2 3": "3 2 1", "4 4": "4 4", "2 3 4": "4 3 2", "": "", "3 1": "1 3"}


def translations(tfm: Tfm, run: Path | str) -> Finished:
    return tfm("translate", "--run", str(run), *REVERSED)


def as_run(tfm: Tfm, name: str) -> Path:
    """A run whose only checkpoint is the fixture."""
    run = tfm.folder / "runs" / name
    shutil.copytree(FIXTURES / name, run / "checkpoints/step-00000400")
    return run


def test_every_format_has_a_checkpoint_here() -> None:
    assert sorted(path.name for path in FIXTURES.iterdir()) == sorted(FORMATS)
    for number, name in enumerate(FORMATS, start=1):
        assert open_checkpoint(FIXTURES / name).manifest.format_version == number


@pytest.mark.parametrize("name", FORMATS)
def test_an_old_checkpoint_translates_as_it_did(tfm: Tfm, name: str) -> None:
    open_checkpoint(FIXTURES / name).verify()
    for run in (FIXTURES / name, as_run(tfm, name)):
        finished = translations(tfm, run)
        assert finished.exit_code == 0, finished.talk
        assert dict(zip(REVERSED, finished.lines, strict=True)) == REVERSED


@pytest.mark.parametrize("name", FORMATS)
def test_an_old_run_is_gone_on_with(tfm: Tfm, name: str) -> None:
    run = as_run(tfm, name)
    config = str(run / "checkpoints/step-00000400/config.yaml")
    finished = tfm("train", "--config", config, "--set", "training.max_steps=402")
    assert finished.exit_code == 0, finished.talk
    assert f"resuming runs/{name} at step 400" in finished.talk
    assert dict(zip(REVERSED, translations(tfm, run).lines, strict=True)) == REVERSED


def test_a_format_from_the_future_asks_for_an_upgrade(tfm: Tfm) -> None:
    run = as_run(tfm, FORMATS[-1])
    checkpoint = run / "checkpoints/step-00000400"
    fields = json.loads((checkpoint / MANIFEST_NAME).read_text())
    fields |= {"format_version": FORMAT_VERSION + 1, "something": "new"}
    (checkpoint / MANIFEST_NAME).write_text(json.dumps(fields))
    refused = translations(tfm, checkpoint)
    assert refused.exit_code == 65
    assert f"format version {FORMAT_VERSION + 1} is newer than tfm knows" in refused.talk
    assert refused.talk.endswith("  hint: pip install --upgrade transformer-cli\n")
    config = str(checkpoint / "config.yaml")
    for command in (("translate", "1 2"), ("train", "--config", config)):
        finished = tfm(*command)
        assert finished.exit_code == 74
        assert ": upgrade tfm" in finished.talk
    assert json.loads((checkpoint / MANIFEST_NAME).read_text()) == fields
