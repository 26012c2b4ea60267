"""Which run a command takes (B11 among runs)."""

import os
import shutil
import time
from pathlib import Path

import pytest

from transformer_cli.checkpoint import trained_files
from transformer_cli.checkpoint.runs import folder_size, list_runs
from transformer_cli.checkpoint.trained_files import demonstration_run, find_run
from transformer_cli.process.errors import MissingInputError, StorageError
from transformer_cli.storage.writing import RunLock

from .snapshots import saved


def test_the_run_that_saved_last_is_taken(tmp_path: Path) -> None:
    saved(tmp_path / "b", 500)
    saved(tmp_path / "a", 10)
    assert find_run(None, tmp_path) == tmp_path / "a"
    saved(tmp_path / "b", 510)
    assert find_run(None, tmp_path) == tmp_path / "b"


def test_the_order_of_saving_survives_a_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, day = time.time(), 24 * 3600
    for name, at in (("a", now + day), ("b", now), ("c", now - day)):
        monkeypatch.setattr(time, "time", lambda at=at: at)
        saved(tmp_path / name, 10)
        assert find_run(None, tmp_path) == tmp_path / name


def test_times_of_files_do_not_matter(tmp_path: Path) -> None:
    saved(tmp_path / "a", 10)
    saved(tmp_path / "b", 10)
    for path in [tmp_path / "b", *(tmp_path / "b").rglob("*")]:
        os.utime(path, (0, 0))
    assert find_run(None, tmp_path) == tmp_path / "b"


def test_a_run_without_a_whole_checkpoint_is_passed_over(tmp_path: Path) -> None:
    saved(tmp_path / "a", 10)
    (broken,) = saved(tmp_path / "b", 10)
    (broken / "MANIFEST.json").unlink()
    (tmp_path / "c" / "checkpoints").mkdir(parents=True)
    (tmp_path / "README.md").write_text("")
    (tmp_path / "d").mkdir()
    assert find_run(None, tmp_path) == tmp_path / "a"


def test_a_checkpoint_that_was_put_aside_is_no_candidate(tmp_path: Path) -> None:
    saved(tmp_path / "a", 10)
    saved(tmp_path / "b", 10)
    (tmp_path / "b" / "checkpoints").rename(tmp_path / "b" / "checkpoints-old-1")
    assert find_run(None, tmp_path) == tmp_path / "a"


def test_where_there_is_no_run_training_is_the_hint(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(MissingInputError, match="no run under") as caught:
            find_run(None, folder)
        assert caught.value.hint is not None
        assert caught.value.hint.startswith("train one first: tfm train --config en-it.yaml; or")
        assert caught.value.hint.endswith("--run demonstration")
    (tmp_path / "a" / "checkpoints").mkdir(parents=True)
    with pytest.raises(MissingInputError, match="/: the run a has no checkpoint yet"):
        find_run(None, tmp_path)
    (tmp_path / "b" / "checkpoints").mkdir(parents=True)
    with pytest.raises(MissingInputError, match="/: the runs a, b have no checkpoint yet"):
        find_run(None, tmp_path)


def test_a_training_without_a_checkpoint_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training makes its folder of checkpoints with the first one."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "train.log").write_text("reading the corpus\n")
    for or_demonstration in (False, True):
        with pytest.raises(MissingInputError, match="/: the run a has no checkpoint yet") as caught:
            find_run(None, tmp_path, or_demonstration=or_demonstration)
        assert caught.value.hint == (
            "start its training again with the same command; tfm train saves at the end, and on Ctrl-C"
        )
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.yaml").write_text("")
    monkeypatch.setattr(trained_files, "is_running", lambda folder: folder.name == "b")
    with pytest.raises(MissingInputError, match="the runs a, b have no checkpoint yet") as caught:
        find_run(None, tmp_path)
    assert caught.value.hint == "wait for its first checkpoint; Ctrl-C in its training saves one, too"
    saved(tmp_path / "c", 10)
    assert find_run(None, tmp_path) == tmp_path / "c"


def test_where_there_is_no_run_the_demonstration_model_answers_what_a_person_types(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        found = find_run(None, folder, or_demonstration=True)
        assert found == demonstration_run() == find_run("demonstration", folder)
        assert (found / "checkpoints").is_dir()
    assert "no run under" in caplog.text
    assert "the small demonstration model" in caplog.text


def test_a_run_of_ones_own_goes_before_the_demonstration_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    saved(tmp_path / "a", 10)
    assert find_run(None, tmp_path, or_demonstration=True) == tmp_path / "a"
    assert find_run("a", tmp_path, or_demonstration=True) == tmp_path / "a"
    saved(tmp_path / "demonstration", 10)
    assert find_run("demonstration", tmp_path) == tmp_path / "demonstration"
    assert caplog.text == ""


def test_the_demonstration_model_does_not_hide_a_run_without_a_usable_checkpoint(
    tmp_path: Path,
) -> None:
    (tmp_path / "a" / "checkpoints").mkdir(parents=True)
    with pytest.raises(MissingInputError, match="/: the run a has no checkpoint yet"):
        find_run(None, tmp_path, or_demonstration=True)
    with pytest.raises(MissingInputError, match="b: no such run"):
        find_run("b", tmp_path, or_demonstration=True)


def test_checkpoints_of_which_none_is_whole_are_no_missing_input(tmp_path: Path) -> None:
    """A12: the message names the damaged checkpoints, what is wrong with each, and what to do."""
    (first,), (second,) = saved(tmp_path / "a", 10), saved(tmp_path / "b", 20)
    (first / "MANIFEST.json").unlink()
    os.truncate(second / "model.safetensors", 5)
    (tmp_path / "c" / "checkpoints").mkdir(parents=True)
    with pytest.raises(StorageError, match="no checkpoint is valid:") as caught:
        find_run(None, tmp_path)
    assert caught.value.exit_code == 74
    assert f"\n    {first}/MANIFEST.json: missing\n" in caught.value.message
    assert f"\n    {second}/model.safetensors: 5 bytes instead of" in caught.value.message
    assert "--from-scratch" in str(caught.value.hint)
    saved(tmp_path / "c", 5)
    assert find_run(None, tmp_path) == tmp_path / "c"


def test_a_folder_of_checkpoints_that_is_no_run_is_refused_with_one_of_them(tmp_path: Path) -> None:
    saved(tmp_path / "a", 10, 20)
    old = (tmp_path / "a/checkpoints").rename(tmp_path / "a/checkpoints-old-1")
    with pytest.raises(MissingInputError, match="a folder of checkpoints") as caught:
        find_run(str(old), tmp_path)
    assert caught.value.hint == f"give one of them, such as {old}/step-00000020"
    assert find_run(str(old / "step-00000020"), tmp_path) == old / "step-00000020"


def test_many_damaged_checkpoints_are_not_all_listed(tmp_path: Path) -> None:
    for number in range(10):
        (folder,) = saved(tmp_path / f"run-{number}", 10)
        (folder / "state.json").unlink()
    with pytest.raises(StorageError) as caught:
        find_run(None, tmp_path)
    assert caught.value.message.count("\n") == 9
    assert caught.value.message.endswith("\n    and 2 more")


def test_a_run_is_given_by_name_by_path_or_by_one_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder,) = saved(tmp_path / "runs" / "en-it", 10)
    shutil.copytree(folder, tmp_path / "copied")
    monkeypatch.chdir(tmp_path)
    assert find_run("en-it") == Path("runs/en-it")
    assert find_run("runs/en-it") == Path("runs/en-it")
    assert find_run(str(tmp_path / "runs" / "en-it")) == tmp_path / "runs" / "en-it"
    assert find_run("copied") == Path("copied")
    assert find_run("runs/en-it/checkpoints/last") == Path("runs/en-it/checkpoints/last")


def test_a_name_that_is_nearly_right_is_suggested(tmp_path: Path) -> None:
    saved(tmp_path / "en-it", 10)
    with pytest.raises(MissingInputError, match="en-ti: no such run") as caught:
        find_run("en-ti", tmp_path)
    assert caught.value.hint == "did you mean en-it?"


def test_the_small_model_that_comes_along_is_suggested_too(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(MissingInputError, match="demonstation: no such run") as caught:
            find_run("demonstation", tmp_path)
        assert caught.value.hint == "did you mean demonstration?"
        saved(tmp_path / "en-it", 10)
    saved(tmp_path / "demonstrations", 10)
    with pytest.raises(MissingInputError) as caught:
        find_run("demonstation", tmp_path)
    assert caught.value.hint == "did you mean demonstrations?"


def test_where_there_is_no_run_the_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingInputError, match="phrases: no such run") as caught:
        find_run("phrases")
    hint = str(caught.value.hint)
    assert hint.startswith("runs are looked for in the folder where you are, which has none: change to the folder")
    assert hint.endswith("--run demonstration")
    with pytest.raises(MissingInputError) as caught:
        find_run("phrases", tmp_path / "all")
    assert f"runs are looked for in {tmp_path / 'all'}, which has none" in str(caught.value.hint)


def test_a_name_that_is_like_none_is_told_those_that_there_are(tmp_path: Path) -> None:
    saved(tmp_path / "en-it", 10)
    saved(tmp_path / "spoken", 10)
    with pytest.raises(MissingInputError) as caught:
        find_run("nope", tmp_path)
    assert caught.value.hint == "existing runs: en-it, spoken"
    for number in range(10):
        (tmp_path / f"more-{number}" / "checkpoints").mkdir(parents=True)
    with pytest.raises(MissingInputError) as caught:
        find_run("zzz", tmp_path)
    assert str(caught.value.hint).endswith(" and 4 more")


def test_a_run_that_has_not_saved_yet_is_told_from_none(tmp_path: Path) -> None:
    (tmp_path / "en-it").mkdir()
    (tmp_path / "en-it/train.log").touch()
    with pytest.raises(MissingInputError, match="en-it: this run has no checkpoint yet") as caught:
        find_run("en-it", tmp_path)
    assert "start its training again" in str(caught.value.hint)
    with (
        RunLock(tmp_path / "en-it"),
        pytest.raises(MissingInputError, match="no checkpoint yet") as caught,
    ):
        find_run("en-it", tmp_path)
    assert "wait for its first checkpoint" in str(caught.value.hint)


def test_a_folder_that_is_no_run_is_called_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path / "runs" / "en-it", 10)
    (tmp_path / "documents").mkdir()
    monkeypatch.chdir(tmp_path)
    for given in ("documents", ".", str(tmp_path)):
        with pytest.raises(MissingInputError, match="not a run: this folder has no checkpoints/") as no:
            find_run(given)
        assert "yet" not in no.value.message
        assert no.value.hint == "existing runs: en-it"


@pytest.mark.parametrize("name", ["x" * 300, "a" * 300 + "/b", "nul\0byte"])
def test_a_name_that_no_folder_can_have_is_no_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingInputError, match="no such run"):
        find_run(name, tmp_path)


def test_a_file_of_a_run_or_checkpoint_stands_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder,) = saved(tmp_path / "runs" / "en-it", 10)
    (tmp_path / "runs/en-it/config.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert find_run(str(folder / "model.safetensors")) == folder
    assert find_run("runs/en-it/checkpoints") == Path("runs/en-it")
    assert find_run("runs/en-it/checkpoints/") == Path("runs/en-it")
    assert find_run("runs/en-it/config.yaml") == Path("runs/en-it")
    monkeypatch.chdir(tmp_path / "runs/en-it")
    assert find_run("checkpoints") == Path()


def test_a_run_may_have_the_name_of_the_folder_of_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path / "runs" / "checkpoints", 10)
    monkeypatch.chdir(tmp_path)
    assert find_run("checkpoints") == Path("runs/checkpoints")


def test_another_file_is_no_run_and_an_empty_name_is_none(tmp_path: Path) -> None:
    saved(tmp_path / "en-it", 10)
    (tmp_path / "en-it.yaml").write_text("")
    with pytest.raises(MissingInputError, match=r"en-it\.yaml: a file, where a run") as caught:
        find_run("en-it.yaml", tmp_path)
    assert str(caught.value.hint).endswith("; did you mean en-it?")
    for name in ("", " "):
        with pytest.raises(MissingInputError, match="the name of the run is empty") as caught:
            find_run(name, tmp_path)
        assert caught.value.hint == "existing runs: en-it"


@pytest.mark.parametrize("given", ["de.yaml", "de.yml", "elsewhere/runs/de"])
def test_the_name_of_a_config_or_a_wrong_path_leads_to_the_run(tmp_path: Path, given: str) -> None:
    saved(tmp_path / "de", 10)
    with pytest.raises(MissingInputError) as caught:
        find_run(given, tmp_path)
    assert caught.value.hint == "did you mean de?"


def test_the_size_of_a_folder_is_that_of_the_files_that_can_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    for name, size in [("one", 3), ("two", 50), ("sub/three", 700)]:
        (tmp_path / name).write_bytes(bytes(size))
    assert folder_size(tmp_path) == 753
    lstat = os.lstat

    def vanished(path: str) -> os.stat_result:
        if path.endswith("two"):
            raise FileNotFoundError(path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", vanished)
    assert folder_size(tmp_path) == 703


def test_a_run_that_has_only_an_average_is_found_as_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(demonstration_run(), tmp_path / "runs/small")
    monkeypatch.chdir(tmp_path)
    assert find_run() == Path("runs/small")
    assert find_run(or_demonstration=True) == Path("runs/small")


def test_the_folder_of_a_synthetic_corpus_is_no_run_that_waits_for_its_training(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "small-distilled"
    folder.mkdir()
    for name in ("config.yaml", "steps.jsonl"):
        (folder / name).touch()
    with pytest.raises(MissingInputError, match="not a run, but the text that tfm student") as no:
        find_run(str(folder), tmp_path)
    assert "training again" not in str(no.value.hint)
    assert list_runs(tmp_path) == []
