"""`tfm data` keeps what it prepares for the training, and disturbs no run."""

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.commands.data import show_data
from transformer_cli.config import load_config
from transformer_cli.data import preparation
from transformer_cli.data.preparation import prepare_data
from transformer_cli.data.sources import corpus
from transformer_cli.process.errors import DataError
from transformer_cli.storage import RunLock
from transformer_cli.text import SequenceFormat

CONFIG = """\
name: mine
data: {source: files, corpora: [{path: a.tsv}], validation_share: 0.1, test_share: 0.1}
training: {max_steps: 1, batch_sentences: 4}
"""
DATA = Path("runs/mine/data")


@pytest.fixture(autouse=True)
def _corpus_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_text("".join(f"one {n}\tuno {n}\n" for n in range(200)))
    Path("mine.yaml").write_text(CONFIG)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the corpora that are read, one for each reading."""
    found: list[int] = []
    read_pair_files = corpus.read_pair_files

    def counted(data: Any, index: int, report: Any) -> Iterator[Any]:
        found.append(index)
        yield from read_pair_files(data, index, report)

    monkeypatch.setattr(corpus, "read_pair_files", counted)
    return found


def shown(capsys: pytest.CaptureFixture[str], split: Any = "train", *overrides: str) -> Any:
    show_data("mine.yaml", overrides, split=split, as_json=True)
    return json.loads(capsys.readouterr().out)


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()}


def test_training_uses_what_the_preview_has_prepared(
    readings: list[int], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="transformer_cli"):
        report = shown(capsys)["report"]
    assert "runs/mine/data" in caplog.text
    assert readings == [0], "the corpus is read once for all splits"
    readings.clear()
    prepared = prepare_data(load_config("mine.yaml"), DATA, has_begun=False)
    assert readings == []
    assert prepared.report.num_pairs == report["num_pairs"]


@pytest.mark.long
@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_a_second_look_reads_nothing_again_and_shows_the_same_pairs(
    split: str, readings: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    first = shown(capsys, split)
    assert len(first["pairs"]) == 10
    assert "examples" not in first["report"]
    readings.clear()
    assert shown(capsys, split) == first
    assert readings == []
    config = load_config("mine.yaml")
    expected = list(corpus.read_pairs(config.data, split, seed=1))[:10]  # type: ignore[arg-type]
    assert [(pair["source"], pair["target"]) for pair in first["pairs"]] == [pair[:2] for pair in expected]


@pytest.mark.long
def test_a_changed_config_or_corpus_is_prepared_anew(capsys: pytest.CaptureFixture[str]) -> None:
    before = shown(capsys)["report"]["num_pairs"]
    Path("a.tsv").write_text(Path("a.tsv").read_text() + "two\tdue\n")
    assert sum(shown(capsys)["report"]["num_pairs"].values()) == sum(before.values()) + 1
    rules = "data.cleaning={max_characters: 6, max_dropped_share: 1.0}"
    fewer = shown(capsys, "train", rules)["report"]["num_pairs"]
    assert fewer["train"] < before["train"]


def test_the_data_of_a_run_that_has_begun_stay_as_they_are(
    readings: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    first = shown(capsys)
    Path("runs/mine/checkpoints/step-00000001").mkdir(parents=True)
    before = contents()
    readings.clear()
    assert shown(capsys) == first
    assert readings == [], "data that fit are only read"
    assert shown(capsys, "train", "data.validation_share=0.2") != first
    assert readings, "other data are prepared elsewhere"
    assert contents() == before


def test_a_run_that_is_being_trained_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with RunLock(Path("runs/mine")):
        before = contents()
        assert len(shown(capsys)["pairs"]) == 10
        assert contents() == before
    assert not DATA.exists()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_to_write_is_no_obstacle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o555)
    assert len(shown(capsys)["pairs"]) == 10


def test_a_place_for_runs_that_cannot_be_made_is_no_obstacle(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("runs").write_text("a file")
    assert len(shown(capsys)["pairs"]) == 10
    assert Path("runs").read_text() == "a file"


def test_a_corpus_that_cannot_be_used_leaves_no_run_folder(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("a.tsv").write_text("one column\n")
    with pytest.raises(DataError):
        shown(capsys)
    assert not Path("runs/mine").exists()


def test_a_split_without_pairs_is_an_error_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match="test"):
        shown(capsys, "test", "data.test_share=0.0")


@pytest.mark.long
def test_data_of_an_earlier_version_are_shown_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {split: shown(capsys, split)["pairs"] for split in ("train", "validation", "test")}
    read_report = preparation.DataReport.from_json

    def without_examples(values: dict[str, Any]) -> Any:
        return read_report({name: value for name, value in values.items() if name != "examples"})

    monkeypatch.setattr(preparation.DataReport, "from_json", staticmethod(without_examples))
    assert {split: shown(capsys, split)["pairs"] for split in first} == first


TWO_WAYS = """\
name: mine
data:
  source: files
  both_directions: true
  corpora:
    - {path: a.tsv, split: train, tag: <BT>}
    - {path: b.tsv, split: validation}
tokenizer: {shared: true}
training: {max_steps: 1, batch_sentences: 4}
"""


def test_the_tags_before_a_source_and_the_direction_of_a_pair_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine.yaml").write_text(TWO_WAYS)
    Path("b.tsv").write_text("one one\tuno uno\n")
    there, back = shown(capsys)["pairs"][:2]
    texts = {"source": "one 0", "target": "uno 0"}
    assert there == texts | {"direction": "en-it", "tags": ["<BT>", "<2it>"]}
    assert back == {"source": "uno 0", "target": "one 0", "direction": "it-en"} | {"tags": ["<BT>", "<2en>"]}
    assert shown(capsys, "validation")["pairs"][0]["tags"] == ["<2it>"]
    show_data("mine.yaml", [], split="train", as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:4] == [
        "  DIRECTION  en-it",
        "  SOURCE  one 0",
        "          <BT> | <2it> | one | 0",
    ]


def test_the_tags_that_are_shown_are_those_that_the_model_reads() -> None:
    Path("mine.yaml").write_text(TWO_WAYS)
    Path("b.tsv").write_text("one one\tuno uno\n")
    data = prepare_data(load_config("mine.yaml"), DATA)
    read = [data.source_tokenizer.tokens(data.train[index].source_ids)[:2] for index in (0, 1)]
    sequence_format = SequenceFormat.of(data.config.data)
    assert read == [sequence_format.tags_of(0, direction) for direction in (0, 1)]


def test_the_preview_names_the_tags_that_the_model_reads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_data("mine.yaml", (), split="train", as_json=False)
    assert "tags" not in capsys.readouterr().out
    both = ("data.both_directions=true", "tokenizer.shared=true", "name=both")
    tagged = ("data.corpora=[{path: a.tsv}, {path: b.tsv, split: train, tag: <BT>}]",)
    Path("b.tsv").write_text("".join(f"many {n}\tmolti {n}\n" for n in range(50)))
    show_data("mine.yaml", both + tagged, split="train", as_json=False)
    shown = capsys.readouterr().out
    assert "  <2it>  to translate into it\n  <2en>  to translate into en\n" in shown
    assert "  <BT>  in the training pairs of data.corpora.1\n" in shown
