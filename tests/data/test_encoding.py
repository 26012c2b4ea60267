"""The training pairs as ids, made by one process and by several."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import Config
from transformer_cli.data import encoded
from transformer_cli.data.encoded import number_of_workers
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.process.errors import TryAgainError

ROOT = Path(__file__).parents[2]
WORDS = [
    "the",
    "cat",
    "sees",
    "a",
    "small",
    "dog",
    "and",
    "it's",
    "l'acqua",
    "in",
    "the",
    "old-fashioned",
    "house",
    ".",
]
NUM_PAIRS = 400
LONG = 123
CLEANING = {"cleaning": {"max_length_ratio": 1000}}


def sentence(number: int) -> str:
    """Another sentence for each number; one of them is too long for the model."""
    words = [WORDS[number * (place + 3) % len(WORDS)] for place in range(3 + number % 7)]
    return " ".join([str(number), *words]) + (" so on" * 60 if number == LONG else "")


def config_of(folder: Path, workers: int | None, **data: Any) -> Config:
    numbers = {"train": range(NUM_PAIRS), "validation": range(NUM_PAIRS, NUM_PAIRS + 5)}
    for split in numbers:
        rows = [f"{sentence(number)}\t{sentence(number + 9)}\n" for number in numbers[split]]
        (folder / f"{split}.tsv").write_text("".join(rows), encoding="utf-8")
    corpora = [{"split": split, "path": f"{split}.tsv"} for split in numbers]
    return Config.model_validate(
        {
            "name": "a",
            "data": {
                "source": "files",
                "root": str(folder),
                "corpora": corpora,
                **CLEANING,
                **data,
            },
            "tokenizer": {"kind": "bpe", "vocab_size": 300, "shared": True},
            "model": {"d_model": 16, "num_heads": 2, "d_ff": 32, "max_length": 64},
            "training": {"max_steps": 1, "batch_sentences": 4},
            "runtime": {"workers": workers},
        }
    )


@pytest.fixture(autouse=True)
def short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several batches for each process, and a last one that is not full."""
    monkeypatch.setattr("transformer_cli.data.pairs.PAIRS_AT_ONCE", 64)
    monkeypatch.setattr("transformer_cli.data.encoded.PAIRS_AT_ONCE", 64)


def prepared_by(folder: Path, workers: int, **data: Any) -> PreparedData:
    return prepare_data(config_of(folder, workers, **data), folder / f"by-{workers}" / "data")


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize("data", [{}, {"target_tag": True, "target_language": "it"}])
def test_several_processes_write_the_same_bytes_as_one(tmp_path: Path, data: dict[str, Any]) -> None:
    by = {workers: prepared_by(tmp_path, workers, **data) for workers in (1, 2, 3)}
    for workers in (2, 3):
        one, several = (
            {path.name: path.read_bytes() for path in (tmp_path / f"by-{number}/data").iterdir()}
            for number in (1, workers)
        )
        assert several == one
        assert by[workers].report == by[1].report


@pytest.mark.process
def test_the_first_pair_that_is_too_long_is_shown(tmp_path: Path) -> None:
    for workers in (1, 2):
        report = prepared_by(tmp_path, workers).report
        assert report.num_too_long == 2  # LONG is a source once, and a target once
        assert report.longest_example.startswith(f"{LONG - 9} ")


def test_the_number_of_processes_grows_with_the_corpus_up_to_the_cpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {*range(8)}, raising=False)
    config = config_of(tmp_path, None)
    sizes = (5, 499_999, 500_000, 1_300_000, 10**8)
    assert [number_of_workers(config, size) for size in sizes] == [1, 1, 2, 5, 8]
    assert number_of_workers(config_of(tmp_path, 3), 5) == 3


@pytest.mark.process
def test_a_process_that_is_killed_ends_the_preparation_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, encode = os.getpid(), encoded.encode_short_pairs

    def killed(rows: Any, *arguments: Any, **settings: Any) -> Any:
        sources = rows.column("source").to_pylist()
        if os.getpid() != parent and any(source.startswith("300 ") for source in sources):
            os.kill(os.getpid(), signal.SIGKILL)
        return encode(rows, *arguments, **settings)

    monkeypatch.setattr(encoded, "encode_short_pairs", killed)
    with pytest.raises(TryAgainError, match="was killed or not started") as raised:
        prepared_by(tmp_path, 2)
    assert "runtime.workers=1" in str(raised.value.hint)
    assert not (tmp_path / "by-2/data").exists()


ENDLESS = """
import multiprocessing, sys, threading, time
from pathlib import Path
from transformer_cli.data.encoded import encoded_by_workers
from transformer_cli.data.pairs import SentencePair, TrainingText
from transformer_cli.text import train_tokenizer
from transformer_cli.config import TokenizerConfig
from transformer_cli.text.tokenizer import tokenizer_files

text = TrainingText.of([SentencePair("a", "b", 0)] * 2, Path(sys.argv[1]))
tokenizer = train_tokenizer(["a b"], TokenizerConfig(kind="wordlevel"))
files = tokenizer_files((tokenizer, tokenizer))
batches = encoded_by_workers(text, 1, lambda *_: time.sleep(600), files, 2)
threading.Thread(target=lambda: next(batches), daemon=True).start()
while len(multiprocessing.active_children()) < 2:
    time.sleep(0.01)
print(*(child.pid for child in multiprocessing.active_children()), flush=True)
time.sleep(600)
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_process_outlives_the_main_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDLESS, str(tmp_path / "text.arrow")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as main:
        assert main.stdout is not None
        children = main.stdout.readline().split()
        assert len(children) == 2
        main.kill()
    for _ in range(500):
        if not any(map(is_running, children)):
            return
        time.sleep(0.02)
    pytest.fail(f"still running: {list(filter(is_running, children))}")


def is_running(pid: str) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
