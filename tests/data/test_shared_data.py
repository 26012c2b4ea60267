import json
import logging
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import Config
from transformer_cli.data import preparation
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.data.sources import watching
from transformer_cli.process.errors import DataError


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The folder of all runs, beside a corpus of 30 pairs of which 5 have equal sides."""
    lines = [f"w{n} x{n % 7}\tv{n} y{n % 5} {'z ' * (n % 4)}.\n" for n in range(25)]
    (tmp_path / "train.tsv").write_text("".join(lines) + "same\tsame\n" * 5)
    (tmp_path / "held-out.tsv").write_text("w1 x2\tv3 y1 .\n")
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


def config_of(runs: Path, **sections: Any) -> Config:
    corpora = [{"split": "train", "path": "train.tsv"}]
    corpora += [{"split": "validation", "path": "held-out.tsv"}]
    data = {"source": "files", "root": str(runs.parent), "corpora": corpora}
    training = {"batch_tokens": 99, "max_steps": 1} | sections.pop("training", {})
    settings = {"name": "a", "data": data | sections.pop("data", {}), "training": training}
    return Config.model_validate(settings | sections)


def prepare(runs: Path, name: str, **sections: Any) -> PreparedData:
    config, folder = config_of(runs, **sections), runs / name / "data"
    return prepare_data(config, folder, has_begun=False, runs=runs)


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were prepared, and not taken over."""
    found, write_encoded = [], preparation.write_encoded

    def noted(path: Path, *others: Any, **named: Any) -> None:
        found.append(path.parent)
        write_encoded(path, *others, **named)

    monkeypatch.setattr(preparation, "write_encoded", noted)
    return found


def test_a_second_run_takes_over_the_data_and_they_take_no_more_room(runs: Path, builds: list[Path]) -> None:
    prepare(runs, "a")
    prepare(runs, "b")
    assert len(builds) == 1
    assert content(runs / "a/data") == content(runs / "b/data")
    first, second = ((runs / name / "data/train.arrow").stat() for name in "ab")
    assert first.st_ino == second.st_ino


def test_each_run_stays_whole_when_the_other_is_deleted_or_prepared_again(runs: Path, builds: list[Path]) -> None:
    prepare(runs, "a")
    prepare(runs, "b")
    before = content(runs / "b/data")
    with (runs.parent / "train.tsv").open("a") as file:
        file.write("new\tnuovo\n")
    prepare_data(config_of(runs), runs / "a/data", accept_change=True)
    assert content(runs / "b/data") == before
    assert content(runs / "a/data") != before
    shutil.rmtree(runs / "a")
    assert content(runs / "b/data") == before
    assert len(builds) == 2


TAGGED = [
    {"split": "train", "path": "train.tsv", "tag": "<BT>"},
    {"split": "validation", "path": "held-out.tsv"},
]


@pytest.mark.long
@pytest.mark.parametrize(
    "other",
    [
        {"tokenizer": {"min_frequency": 2}},
        {"model": {"max_length": 50}},
        {"data": {"streaming": True}},
        {"data": {"corpora": TAGGED}},
        {"training": {"init_from": "old"}},
    ],
)
def test_data_with_other_settings_are_not_taken_over(runs: Path, builds: list[Path], other: dict[str, Any]) -> None:
    prepare(runs, "a")
    prepare(runs, "b", **other)
    assert len(builds) == 2


@pytest.mark.long
def test_data_encoded_with_other_initial_tokenizers_are_prepared_again(runs: Path, builds: list[Path]) -> None:
    """The run that `training.init_from` names may have been trained anew, with another vocabulary."""
    old = prepare(runs, "old").tokenizers
    newer = prepare(runs, "newer", tokenizer={"min_frequency": 2}).tokenizers
    config = config_of(runs, training={"init_from": "old"})
    for name, given in (("a", old), ("b", old), ("c", newer)):
        folder = runs / name / "data"
        data = prepare_data(config, folder, has_begun=False, tokenizers=given, runs=runs)
        assert data.source_tokenizer.to_json() == given[0].to_json()
    assert len(builds) == 4, "those of old, newer, a and c"


def test_data_of_another_corpus_are_not_taken_over(runs: Path, builds: list[Path]) -> None:
    prepare(runs, "a")
    with (runs.parent / "train.tsv").open("a") as file:
        file.write("new\tnuovo\n")
    prepare(runs, "b")
    assert len(builds) == 2


@pytest.mark.long
@pytest.mark.parametrize("damage", ["changed", "removed", "link"])
def test_damaged_data_are_not_taken_over(runs: Path, builds: list[Path], damage: str) -> None:
    prepare(runs, "a")
    file = runs / "a/data/train.arrow"
    good = file.read_bytes()
    file.unlink()
    if damage == "changed":
        file.write_bytes(good[:-1] + b"?")
    elif damage == "link":
        (runs / "elsewhere").write_bytes(good)
        file.symlink_to(runs / "elsewhere")
    prepare(runs, "b")
    assert len(builds) == 2
    assert (runs / "b/data/train.arrow").read_bytes() == good


def test_damaged_data_beside_damaged_data_are_prepared_again(
    runs: Path, builds: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        prepare(runs, name)
    good = (runs / "a/data/train.arrow").read_bytes()
    for name in "ab":
        (runs / name / "data/train.arrow").unlink()
    caplog.clear()
    with caplog.at_level(logging.INFO):
        prepare(runs, "b")
    assert "its data are used for this run too" not in caplog.text
    assert (runs / "b/data/train.arrow").read_bytes() == good
    assert len(builds) == 2


def test_a_new_run_reads_its_corpus_for_one_fingerprint(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(runs, "a")
    asked, fingerprint = [], preparation.fingerprint
    monkeypatch.setattr(preparation, "fingerprint", lambda config: (asked.append(config), fingerprint(config))[1])
    prepare(runs, "b")
    assert len(asked) == 1


def test_the_padding_is_that_of_the_batches_of_this_run(runs: Path, builds: list[Path]) -> None:
    alone = prepare_data(config_of(runs, training={"batch_tokens": 12}), runs.parent / "alone/data").report
    first = prepare(runs, "a").report
    second = prepare(runs, "b", training={"batch_tokens": 12}).report
    assert second == alone
    assert second.padding_share != first.padding_share
    assert json.loads((runs / "a/data/report.json").read_text()) == json.loads(json.dumps(asdict(first))), (
        "the report of the other run did not change"
    )
    assert len(builds) == 2


def test_a_stricter_limit_of_dropped_pairs_counts_for_taken_over_data_too(runs: Path) -> None:
    prepare(runs, "a")
    with pytest.raises(DataError, match="lost 5 of its 30 pairs"):
        prepare(runs, "b", data={"cleaning": {"max_dropped_share": 0.1}})


def test_without_links_the_files_are_copied(runs: Path, builds: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    prepare(runs, "a")
    monkeypatch.setattr("transformer_cli.data.preparation.os.link", refuse)
    prepare(runs, "b")
    assert len(builds) == 1
    assert content(runs / "a/data") == content(runs / "b/data")
    inodes = {os.stat(runs / name / "data/train.arrow").st_ino for name in "ab"}
    assert len(inodes) == 2


def test_what_is_odd_about_a_corpus_is_told_wherever_its_data_are_used(
    runs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in each process, also where nothing of the corpus is read any more."""
    lines = [f"w{n} does n't x{n % 7} .\tv{n} y{n % 5}\n" for n in range(40)]
    (runs.parent / "train.tsv").write_text("".join(lines))
    for name in "abb":
        watching._log_once.cache_clear()  # as in another process
        caplog.clear()
        found = prepare(runs, name)
        assert caplog.text.count("the source is tokenised in 40 of the first 40 pairs") == 1
        assert [text for text in found.report.warnings if "the source is tokenised" in text]
