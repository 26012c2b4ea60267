"""Preparing data while another process prepares the same data, and with huge lines (E7, E8, E15)."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import Config, to_yaml
from transformer_cli.data import preparation
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.process.errors import DataError

from ..experiments import TINY, essence, newest_checkpoint, write_tiny
from ..launcher import Tfm

ROWS = [(f"w{n} w{n % 7}", f"p{n} p{n % 7}") for n in range(40)]


def write(path: Path, rows: list[tuple[str, str]]) -> None:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")


def config_of(folder: Path, rows: list[tuple[str, str]] = ROWS, **sections: Any) -> Config:
    write(folder / "train.tsv", rows)
    write(folder / "val.tsv", [("w1", "p1")])
    corpora = [
        {"path": "train.tsv", "split": "train"},
        {"path": "val.tsv", "split": "validation"},
    ]
    data = {"source": "files", "root": str(folder), "corpora": corpora} | sections.pop("data", {})
    training = {"max_steps": 1, "batch_sentences": 2}
    settings = {"name": "a", "data": data, "training": training} | sections
    return Config.model_validate(settings)


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def ids_of(data: PreparedData) -> list[list[int]]:
    return [data.train[index].source_ids.tolist() for index in range(len(data.train))]  # type: ignore[union-attr]


# --- another process that does the same (E15) ---


ANOTHER = """
import resource, sys
from pathlib import Path
from transformer_cli.config import load_config
from transformer_cli.data.preparation import prepare_data

def prepare(name, folder):
    return prepare_data(load_config(name), Path(folder), accept_change=True)

def use_no_more_memory_than(more_bytes):
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + more_bytes, in_use + more_bytes))
"""


def run_elsewhere(folder: Path, configs: list[Config], program: str) -> str:
    """The output of another process that has `configs` as files in its folder."""
    for config in configs:
        (folder / f"{config.name}.yaml").write_text(to_yaml(config), encoding="utf-8")
    command = [sys.executable, "-c", ANOTHER + program]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.process
def test_two_processes_that_make_the_same_data_leave_one_valid_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process starts and ends while this one works, and replaces the files that this one reads."""
    config, folder = config_of(tmp_path), tmp_path / "run" / "data"
    alone = prepare_data(config, tmp_path / "alone" / "data")
    tokenizer_files = preparation.tokenizer_files

    def let_the_other_go_first(tokenizers: Any) -> Any:
        run_elsewhere(tmp_path, [config], "prepare('a.yaml', 'run/data')")
        assert folder.is_dir(), "the other one has put its folder in place"
        return tokenizer_files(tokenizers)

    monkeypatch.setattr(preparation, "tokenizer_files", let_the_other_go_first)
    data = prepare_data(config, folder)
    assert [path.name for path in folder.parent.iterdir()] == ["data"]
    assert content(folder) == content(tmp_path / "alone" / "data")
    assert ids_of(data) == ids_of(alone)
    monkeypatch.setattr(preparation, "tokenizer_files", tokenizer_files)
    prepare_data(config_of(tmp_path, ROWS[:20]), folder, accept_change=True)
    assert ids_of(data) == ids_of(alone), "what was open stays what it was"


def test_of_two_runs_of_one_name_at_once_one_makes_the_data_and_the_other_is_refused(
    tfm: Tfm,
) -> None:
    write_tiny(tfm.folder)
    pause = tfm.folder / "pause"
    first = tfm.start("train", "--config", "tiny.yaml", faults=[("at", "encoding", 1, "pause", str(pause))])
    first.wait_until(pause.exists)
    second = tfm("train", "--config", "tiny.yaml")
    assert second.exit_code == 75, second.talk
    pause.unlink()
    assert first.wait().exit_code == 0
    assert not list((tfm.folder / "runs/tiny").glob(".tmp-*"))


@pytest.mark.heavy
def test_data_whose_making_was_killed_are_made_again_and_nothing_is_left_over(tfm: Tfm) -> None:
    config = write_tiny(tfm.folder)
    killed = tfm("train", "--config", config, faults=[("at", "encoding", 1, "signal", "SIGKILL")])
    assert killed.exit_code == -signal.SIGKILL
    run = tfm.folder / "runs/tiny"
    assert len(list(run.glob(".tmp-data-*"))) == 1
    assert not (run / "data").exists()
    assert tfm("train", "--config", config).exit_code == 0
    assert not list(run.glob(".tmp-*"))
    healthy = tfm("train", "--config", config, "--set", "name=healthy")
    assert healthy.exit_code == 0
    ends = [essence(run), essence(tfm.folder / "runs/healthy")]
    for end in ends:
        del end["config.yaml"]  # the names differ
    assert ends[0] == ends[1]


# --- lines beyond all measure (E7) ---

HUGE = [
    "x" * 1_000_000,
    "x" * 1_100_000,
    "w1 " * 100_000,
    "w1" + " " * 1_000_000,
    "e" + "\u0301" * 500_000,
]


@pytest.mark.heavy
@pytest.mark.process
@pytest.mark.parametrize("kind", ["bpe", pytest.param("wordlevel", marks=pytest.mark.slow)])
def test_huge_lines_are_prepared_in_bounded_memory_and_time(kind: str, tmp_path: Path) -> None:
    """All limits of cleaning are off; only the limits of the reader and of the model apply."""
    rules = {"max_words": None, "max_characters": None, "max_length_ratio": None, "join_white_space": False}
    sides = [(text, "p1") if index % 2 else ("w1", text) for index, text in enumerate(HUGE)]
    rows = [*ROWS, *sides]
    config = config_of(
        tmp_path,
        rows,
        data={"cleaning": rules},
        tokenizer={"kind": kind, "vocab_size": 400},
        model={"max_length": 64},
    )
    program = """
import json, time
import pyarrow, tokenizers
use_no_more_memory_than(1 << 29)
started_at = time.process_time()
data = prepare("a.yaml", "data")
seconds = time.process_time() - started_at
skipped = sum(n for what, n, _ in data.report.reading if what.startswith("skipped"))
print(json.dumps([len(data.train), skipped, data.report.num_too_long, seconds]))
"""
    figures = json.loads(run_elsewhere(tmp_path, [config], program))
    num_kept, num_skipped, num_too_long, seconds = figures
    assert num_kept + num_skipped + num_too_long == len(rows), "every pair is accounted for"
    assert num_kept >= len(ROWS)
    assert num_skipped == 1, "what is longer than a megabyte is not even read"
    assert seconds < 20, "a few, where the machine is not busy"


# --- corpora of hardly anything (E8) ---


@pytest.mark.parametrize("num_lines", [1, 2, 3])
def test_a_corpus_smaller_than_a_batch_trains(tfm: Tfm, num_lines: int) -> None:
    write(tfm.folder / "train.tsv", ROWS[:num_lines])
    write(tfm.folder / "val.tsv", ROWS[5:6])
    corpora = "[{split: train, path: train.tsv}, {split: validation, path: val.tsv}]"
    before, _, after = TINY.partition("data: {")
    settings = f"data: {{source: files, corpora: {corpora}}}\n"
    write_tiny(tfm.folder, before + settings + after.partition("}\n")[2])
    finished = tfm("train", "--config", "tiny.yaml", "--set", "training.max_steps=5")
    assert finished.exit_code == 0, finished.talk
    assert newest_checkpoint(tfm.folder / "runs/tiny").name == "step-00000005"


def test_one_sentence_again_and_again_is_refused_unless_that_is_wanted(tmp_path: Path) -> None:
    rows = [ROWS[0]] * 100 + ROWS[1:3]
    with pytest.raises(DataError, match=r"(?s)lost 99 of its 102 pairs.*drop_duplicates +99"):
        prepare_data(config_of(tmp_path, rows), tmp_path / "data")
    wanted = {"cleaning": {"drop_duplicates": False}}
    data = prepare_data(config_of(tmp_path, rows, data=wanted), tmp_path / "data")
    assert len(data.train) == 102


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_as_a_corpus_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """E11."""
    config = config_of(tmp_path)
    (tmp_path / "train.tsv").unlink()
    os.mkfifo(tmp_path / "train.tsv")
    with pytest.raises(DataError, match=r"train\.tsv: a pipe or device"):
        prepare_data(config, tmp_path / "data")
