"""Fine-tuning from the command line: it starts from another run, and then needs this run no more."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ..experiments import TINY, essence, state_of, write_tiny
from ..launcher import Launcher, Tfm

TUNED = TINY.replace("name: tiny", "name: tuned").replace("seed: 3", "seed: 4") + "\n"
OPTIONS = [
    "training.init_from=tiny",
    "training.frozen=[encoder.layers.0.feed_forward]",
    "training.r_drop=0.7",
    "model.layer_dropout=0.3",
    "data.num_symbols=14",
    "training.add_words=3",
]
OVERRIDES = [part for option in OPTIONS for part in ("--set", option)]


@pytest.fixture(scope="module")
def trained(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run `tiny`, and the config of the run `tuned`."""
    folder = tmp_path_factory.mktemp("trained")
    finished = Tfm(launcher, folder)("train", "--config", write_tiny(folder))
    assert finished.exit_code == 0, finished.talk
    (folder / "tuned.yaml").write_text(TUNED, encoding="utf-8")
    return folder


@pytest.fixture
def tuning(tfm: Tfm, trained: Path) -> Tfm:
    shutil.copytree(trained, tfm.folder, symlinks=True, dirs_exist_ok=True)
    return tfm


def tune(tfm: Tfm, **options: Any) -> Any:
    return tfm("train", "--config", "tuned.yaml", *OVERRIDES, **options)


@pytest.fixture(scope="module")
def expected(launcher: Launcher, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("uninterrupted")
    shutil.copytree(trained, folder, symlinks=True, dirs_exist_ok=True)
    finished = tune(Tfm(launcher, folder))
    assert finished.exit_code == 0, finished.talk
    return essence(folder / "runs/tuned")


@pytest.mark.parametrize(("step", "name", "exit_code"), [(1, "SIGTERM", 143), (6, "SIGTERM", 143), (9, "SIGKILL", -9)])
def test_a_resumed_fine_tuning_equals_the_uninterrupted_one_without_the_old_run(
    tuning: Tfm, expected: Any, step: int, name: str, exit_code: int
) -> None:
    stopped = tune(tuning, faults=[("at", "step", step, "signal", name)])
    assert stopped.exit_code == exit_code, stopped.talk
    shutil.rmtree(tuning.folder / "runs/tiny")
    finished = tune(tuning)
    assert finished.exit_code == 0, finished.talk
    assert essence(tuning.folder / "runs/tuned") == expected


def test_killed_before_its_first_save_it_starts_again_from_the_old_run(tuning: Tfm, expected: Any) -> None:
    assert tune(tuning, faults=[("at", "step", 2, "signal", "SIGKILL")]).exit_code == -9
    assert tune(tuning).exit_code == 0
    assert essence(tuning.folder / "runs/tuned") == expected


def test_the_run_records_where_its_weights_came_from(tuning: Tfm) -> None:
    assert tune(tuning).exit_code == 0
    run = tuning.folder / "runs/tuned"
    origin = state_of(run)["init_from"]
    assert (origin["run"], origin["checkpoint"], origin["step"]) == ("tiny", "step-00000013", 13)
    environment = json.loads((run / "environment.json").read_bytes())
    assert environment["init_from"] == origin
    assert "init_from: tiny" in (run / "config.yaml").read_text(encoding="utf-8")
    info = tuning("info", "--run", "tuned", "--json")
    assert json.loads(info.text)["initial_weights"] == origin
    assert tuning("translate", "--run", "tuned", "s1 s13").exit_code == 0


def test_the_prepared_data_of_tfm_data_have_the_tokens_of_the_old_run(tuning: Tfm) -> None:
    shown = tuning("data", "--config", "tuned.yaml", *OVERRIDES, "--json")
    assert shown.exit_code == 0, shown.talk
    size = json.loads(shown.text)["report"]["source"]["vocab_size"]
    before = (tuning.folder / "runs/tuned/data/train.arrow").stat().st_ino
    finished = tune(tuning)
    assert finished.exit_code == 0, finished.talk
    assert (tuning.folder / "runs/tuned/data/train.arrow").stat().st_ino == before, "used again"
    facts = json.loads(tuning("info", "--run", "tuned", "--json").text)
    old = json.loads(tuning("info", "--run", "tiny", "--json").text)
    assert facts["source_vocabulary"] == size == old["source_vocabulary"] + 3


def test_no_path_of_this_machine_is_in_the_checkpoint(tuning: Tfm) -> None:
    path = tuning.folder / "runs" / "tiny"
    overrides = ["--set", f"training.init_from={path}", "--set", "name=by-path"]
    finished = tuning("train", "--config", "tuned.yaml", *overrides)
    assert finished.exit_code == 0, finished.talk
    for file in (tuning.folder / "runs/by-path/checkpoints/last/").iterdir():
        assert str(tuning.folder).encode() not in file.read_bytes(), file.name


@pytest.mark.parametrize(
    ("options", "exit_code", "message"),
    [
        (["training.init_from=tin"], 66, "did you mean tiny?"),
        (["training.init_from=tiny", "model.d_ff=64"], 78, "model.d_ff: 32 in the run, 64 in the config"),
        (["training.init_from=tiny", "name=tiny"], 78, "this run was started with other settings"),
        (["training.init_from=tiny", "training.frozen=[decoder.layer]"], 78, "did you mean decoder.layers?"),
    ],
)
def test_what_cannot_start_is_refused_with_a_hint(
    tuning: Tfm, options: list[str], exit_code: int, message: str
) -> None:
    overrides = [part for option in options for part in ("--set", option)]
    finished = tuning("train", "--config", "tuned.yaml", *overrides)
    assert finished.exit_code == exit_code, finished.talk
    assert message in finished.talk
