"""What happens when a run goes on with another config, other data, or another clock (C6-C9, C11, B11)."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from ..experiments import TINY, essence, metrics_of, newest_checkpoint, write_tiny
from ..launcher import Launcher, Tfm

FILES = """
  source: files
  corpora: [{split: train, path: train.tsv}, {split: validation, path: dev.tsv}]
"""
DIGITS = ["nol", "un", "du", "tri", "kvar", "kvin", "ses", "sep", "ok", "naux"]


def number_lines(numbers: range) -> list[str]:
    """Digits in two languages, as TSV."""
    return [f"{' '.join(f'{n}')}\t{' '.join(DIGITS[int(d)] for d in f'{n}')}\n" for n in numbers]


def write_files_experiment(folder: Path) -> str:
    (folder / "train.tsv").write_text("".join(number_lines(range(1000, 1070))))
    (folder / "dev.tsv").write_text("".join(number_lines(range(2000, 2010))))
    before, _, after = TINY.partition("data: {")
    return write_tiny(folder, before + "data:" + FILES + after.partition("}\n")[2])


@pytest.mark.parametrize(
    ("setting", "old", "new"),
    [
        ("training.learning_rate", "0.005", "0.001"),
        ("training.batch_sentences", "8", "4"),
        ("training.accumulate", "2", "1"),
        ("model.d_model", "16", "32"),
        ("tokenizer.vocab_size", "absent", "12"),
        ("data.num_symbols", "10", "9"),
        ("seed", "3", "4"),
        ("training.best_metric", "loss", "bleu"),
    ],
)
def test_a_harmful_change_is_refused_with_old_and_new_value(
    tfm_with_run: Tfm, setting: str, old: str, new: str
) -> None:
    run = tfm_with_run.folder / "runs/tiny"
    before = essence(run)
    kept = (run / "config.yaml").read_bytes()
    finished = tfm_with_run("train", "--config", "tiny.yaml", "--set", f"{setting}={new}")
    assert finished.exit_code == 78
    assert f"{setting}: was {old}, now {new}" in finished.talk
    assert "--from-scratch" in finished.talk
    assert essence(run) == before
    assert (run / "config.yaml").read_bytes() == kept


def test_a_harmless_change_is_taken_and_told(tfm_with_run: Tfm) -> None:
    run = tfm_with_run.folder / "runs/tiny"
    changes = ["training.log_every=1", "training.max_steps=17", "decoding.beam_size=3"]
    options = [part for change in changes for part in ("--set", change)]
    finished = tfm_with_run("train", "--config", "tiny.yaml", *options)
    assert finished.exit_code == 0
    assert "training.log_every: was 3, now 1" in finished.talk
    reported = [line["step"] for line in metrics_of(run)]
    assert reported[-6:] == [14, 15, 16, 16, 17, 17], "each step, and the validations at 16 and 17"
    settings = (run / "config.yaml").read_text()
    assert "beam_size: 3" in settings, "the run's config says what is in force"


def test_more_steps_after_the_end_follow_the_same_curve(tfm_with_run: Tfm) -> None:
    """C8: weights and moments are those of a run with this number of steps from the start."""
    train = ("train", "--config", "tiny.yaml", "--set", "training.max_steps=18")
    tfm_with_run(*train)
    tfm_with_run(*train, "--set", "name=long")
    extended, long = (newest_checkpoint(tfm_with_run.folder / "runs" / name) for name in ("tiny", "long"))
    assert extended.name == long.name == "step-00000018"
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (extended / name).read_bytes() == (long / name).read_bytes()


def test_a_cosine_run_cannot_be_extended(tfm: Tfm) -> None:
    """Every learning rate since the first step would have been another."""
    config = write_tiny(tfm.folder, TINY.replace("max_steps: 13", "max_steps: 4\n  schedule: cosine"))
    assert tfm("train", "--config", config).exit_code == 0
    finished = tfm("train", "--config", config, "--set", "training.max_steps=8")
    assert finished.exit_code == 78
    assert "training.max_steps: was 4, now 8" in finished.talk


def test_the_same_seed_gives_the_same_run_and_another_seed_another(tfm: Tfm) -> None:
    """C9."""
    config = write_tiny(tfm.folder)
    weights = {}
    for name, seed in (("a", "5"), ("b", "5"), ("c", "6")):
        tfm("train", "--config", config, "--set", f"name={name}", "--set", f"seed={seed}")
        weights[name] = (newest_checkpoint(tfm.folder / "runs" / name) / "model.safetensors").read_bytes()
    assert weights["a"] == weights["b"]
    assert weights["a"] != weights["c"]


@pytest.fixture(scope="module")
def stopped_on_files(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the experiment on files and its run, which was stopped after step 5."""
    folder = tmp_path_factory.mktemp("stopped-on-files")
    stopping = [("at", "step", 5, "signal", "SIGTERM")]
    stopped = Tfm(launcher, folder)("train", "--config", write_files_experiment(folder), faults=stopping)
    assert stopped.exit_code == 143, stopped.talk
    return folder


@pytest.mark.parametrize("change", ["appended", "edited", "reordered", "validation edited"])
def test_changed_data_is_noticed_and_taken_only_on_demand(tfm: Tfm, stopped_on_files: Path, change: str) -> None:
    """C7."""
    shutil.copytree(stopped_on_files, tfm.folder, symlinks=True, dirs_exist_ok=True)
    config = "tiny.yaml"
    train, dev = tfm.folder / "train.tsv", tfm.folder / "dev.tsv"
    lines = train.read_text().splitlines(keepends=True)
    match change:
        case "appended":
            train.write_text("".join([*lines, *number_lines(range(1070, 1071))]))
        case "edited":
            train.write_text("".join(lines).replace("kvin", "kin"))
        case "reordered":
            train.write_text("".join(reversed(lines)))
        case _:
            dev.write_text("".join(number_lines(range(2001, 2010))))
    checkpoint = newest_checkpoint(tfm.folder / "runs/tiny")
    scored = tfm("validate")
    assert scored.exit_code == 0
    is_told = "the data has changed since the training" in scored.talk
    assert is_told == (change == "validation edited"), "validate reads no other file"
    finished = tfm("train", "--config", config)
    assert finished.exit_code == 65
    assert ("dev.tsv" if change == "validation edited" else "train.tsv") in finished.talk
    assert "--accept-data-change" in finished.talk
    assert newest_checkpoint(tfm.folder / "runs/tiny") == checkpoint
    accepted = tfm("train", "--config", config, "--accept-data-change")
    assert accepted.exit_code == 0, accepted.talk
    assert "resuming runs/tiny at step 5" in accepted.talk


def test_a_finished_run_takes_changed_data_only_with_steps_to_train_on_them(tfm: Tfm) -> None:
    config = write_files_experiment(tfm.folder)
    accepting = ("train", "--config", config, "--accept-data-change")
    assert tfm("train", "--config", config).exit_code == 0
    unchanged = tfm(*accepting)
    assert unchanged.exit_code == 0
    assert "is finished" in unchanged.talk
    with (tfm.folder / "train.tsv").open("a") as file:
        file.writelines(number_lines(range(1070, 1071)))
    before = essence(tfm.folder / "runs/tiny")
    finished = tfm(*accepting)
    assert finished.exit_code == 78
    assert "nothing is trained on the changed data" in finished.talk
    assert "--accept-data-change --set training.max_steps=N" in finished.talk
    assert essence(tfm.folder / "runs/tiny") == before
    assert tfm(*accepting, "--set", "training.max_steps=15").exit_code == 0
    assert "step-00000015" in str(newest_checkpoint(tfm.folder / "runs/tiny"))


def test_a_copy_of_a_run_goes_on_under_its_own_name(tfm: Tfm) -> None:
    config = write_tiny(tfm.folder)
    stopping = [("at", "step", 5, "signal", "SIGTERM")]
    assert tfm("train", "--config", config, faults=stopping).exit_code == 143
    shutil.copytree(tfm.folder / "runs/tiny", tfm.folder / "runs/copy", symlinks=True)
    finished = tfm("train", "--config", config, "--set", "name=copy")
    assert finished.exit_code == 0, finished.talk
    assert "name: was tiny, now copy" in finished.talk
    assert "resuming runs/copy at step 5" in finished.talk
    assert tfm("train", "--config", config).exit_code == 0
    ours, theirs = (newest_checkpoint(tfm.folder / "runs" / name) / "model.safetensors" for name in ("copy", "tiny"))
    assert ours.read_bytes() == theirs.read_bytes()


def test_the_data_may_move_when_its_content_stays(tfm: Tfm, stopped_on_files: Path) -> None:
    shutil.copytree(stopped_on_files, tfm.folder, symlinks=True, dirs_exist_ok=True)
    place = tfm.folder / "another place"
    place.mkdir()
    for name in ("train.tsv", "dev.tsv"):
        (tfm.folder / name).rename(place / name)
    finished = tfm("train", "--config", "tiny.yaml", "--set", "data.root=another place")
    assert finished.exit_code == 0, finished.talk


def test_metrics_and_curves_hold_no_step_twice(tfm: Tfm) -> None:
    """C11: after a kill, new lines replace the lines that were logged after the last save."""
    config = write_tiny(tfm.folder, TINY.replace("log_every: 3", "log_every: 1"))
    run = tfm.folder / "runs/tiny"
    killed = tfm("train", "--config", config, faults=[("at", "step", 8, "signal", "SIGKILL")])
    assert killed.exit_code == -9
    assert [line["step"] for line in metrics_of(run)][-1] == 7, "logged beyond the save at step 4"
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b'{"kind": "train", "step": 8, "lo')  # a line that the kill cut off
    time.sleep(1.1)  # the names of event files begin with the second
    assert tfm("train", "--config", config).exit_code == 0
    for kind, steps in (("train", [*range(1, 14)]), ("validation", [4, 8, 12, 13])):
        assert [line["step"] for line in metrics_of(run) if line["kind"] == kind] == steps
    for part, expected in (
        ("train", {"loss", "training/learning_rate"}),
        ("validation", {"loss", "perplexity", "scores/BLEU"}),
    ):
        curves = EventAccumulator(str(run / "tensorboard" / part)).Reload()
        tags = curves.Tags()["scalars"]
        assert expected <= set(tags)
        for tag in tags:
            steps = [event.step for event in curves.Scalars(tag)]
            assert steps == sorted(set(steps)), f"{tag}: {steps}"
        wanted = [*range(1, 14)] if part == "train" else [4, 8, 12, 13]
        assert [event.step for event in curves.Scalars("loss")] == wanted


def test_a_clock_that_jumps_changes_nothing(tfm: Tfm, finished_tiny: Path, uninterrupted: dict[str, Any]) -> None:
    """B11: the step decides which checkpoint is the newest, not the time."""
    config, day = write_tiny(tfm.folder), 86_400
    shutil.copytree(finished_tiny / "runs/tiny", tfm.folder / "runs/calm", symlinks=True)
    ahead = [("shift_clock", day), ("at", "step", 5, "signal", "SIGTERM")]
    assert tfm("train", "--config", config, faults=ahead).exit_code == 143
    folders = sorted((tfm.folder / "runs/tiny/checkpoints").glob("step-*"))
    for age, folder in enumerate(reversed(folders)):
        os.utime(folder, (10**9 - age * day, 10**9 - age * day))
    late = tfm("train", "--config", config, faults=[("shift_clock", -day)])
    assert late.exit_code == 0
    assert "resuming runs/tiny at step 5" in late.talk
    assert essence(tfm.folder / "runs/tiny") == uninterrupted
    assert tfm("translate", "1 2 3").talk.startswith("runs/tiny"), "the run that saved last"
