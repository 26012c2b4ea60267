"""A corpus that another program changes while data is prepared from it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import Config
from transformer_cli.data import preparation
from transformer_cli.data.preparation import prepare_data
from transformer_cli.data.sources.corpus import KeptPairs
from transformer_cli.process.errors import TryAgainError

from ..experiments import write_tiny
from ..launcher import Tfm

A = "".join(f"w{n} w{n % 7}\tp{n} p{n % 7}\n" for n in range(200))
B = A.replace("w", "x").replace("p", "y")


def config_of(folder: Path, **data: Any) -> Config:
    (folder / "a.tsv").write_text(A, encoding="utf-8")
    corpora = [{"path": "a.tsv"}]
    files = {"source": "files", "root": str(folder), "corpora": corpora, "validation_share": 0.2}
    training = {"max_steps": 1, "batch_sentences": 2}
    return Config.model_validate({"name": "a", "data": files | data, "training": training})


def replaced(corpus: Path, text: str) -> None:
    """Put another file in its place, as a download does."""
    new = corpus.with_name("new")
    new.write_text(text, encoding="utf-8")
    new.rename(corpus)


CHANGES: dict[str, Callable[[Path], None]] = {
    "replaced": lambda corpus: replaced(corpus, B),
    "replaced by one without pairs for training": lambda corpus: replaced(corpus, "x\tx\n"),
    "written again": lambda corpus: corpus.write_text(B, encoding="utf-8") and None,
    "removed": lambda corpus: corpus.unlink(),
}


def between_splits(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], *, keeps: bool = False) -> None:
    """Do something after the held-out pairs were read, and before the training pairs are.

    Args:
        keeps: whether the training pairs of the first reading are kept, as those of a small corpus are.
    """
    original = preparation.all_held_out_pairs

    def read(config: Config, *kept: Any) -> Any:
        found = original(config, *(kept if keeps else (KeptPairs(0),)))
        act()
        return found

    monkeypatch.setattr(preparation, "all_held_out_pairs", read)


@pytest.mark.long
@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("how", CHANGES)
def test_a_corpus_that_changes_between_two_splits_is_noticed(
    how: str, keeps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(tmp_path)
    between_splits(monkeypatch, lambda: CHANGES[how](tmp_path / "a.tsv"), keeps=keeps)
    with pytest.raises(TryAgainError, match=r"a\.tsv: .* was read|corpus changed .*a\.tsv") as caught:
        prepare_data(config, tmp_path / "run" / "data")
    assert "run the command again" in str(caught.value.hint)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_file_that_is_added_to_a_folder_meanwhile_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_of(tmp_path, corpora=[{"path": "*.tsv"}])
    between_splits(monkeypatch, lambda: replaced(tmp_path / "b.tsv", B))
    with pytest.raises(TryAgainError, match=r"b\.tsv: changed while the corpus was read"):
        prepare_data(config, tmp_path / "run" / "data")


@pytest.mark.long
@pytest.mark.parametrize("how", ["copied anew", "touched"])
def test_a_corpus_whose_content_stays_may_be_written_meanwhile(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, corpus = config_of(tmp_path), tmp_path / "a.tsv"
    act = {"copied anew": lambda: replaced(corpus, A), "touched": lambda: os.utime(corpus, (1, 1))}
    between_splits(monkeypatch, act[how])
    assert len(prepare_data(config, tmp_path / "run" / "data").train)


def test_an_unchanged_corpus_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformer_cli.data.sources import local_files

    hashed: list[Path] = []
    original = local_files.file_digest
    monkeypatch.setattr(local_files, "file_digest", lambda path: (hashed.append(path), original(path))[1])
    prepare_data(config_of(tmp_path), tmp_path / "run" / "data")
    assert hashed == [tmp_path / "a.tsv"]


def test_a_training_that_prepares_its_data_notices_it_too(tfm: Tfm) -> None:
    write_tiny(tfm.folder)
    (tfm.folder / "a.tsv").write_text(A, encoding="utf-8")
    (tfm.folder / "b.tsv").write_text(B, encoding="utf-8")
    data = "{source: files, corpora: [{path: a.tsv}], validation_share: 0.2}"
    swap = ("at", "encoding", 1, "move", str(tfm.folder / "b.tsv"), str(tfm.folder / "a.tsv"))
    train = ("train", "--config", "tiny.yaml", "--set", f"data={data}")
    stopped = tfm(*train, faults=[swap])
    assert stopped.exit_code == 75, stopped.talk
    assert "a.tsv: changed while the corpus was read" in stopped.talk
    assert not (tfm.folder / "runs/tiny/data").exists()


def test_a_corpus_without_files_is_prepared_without_a_watch_over_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "WatchedFiles", None)  # a call would fail
    symbols = {"source": "sequences", "num_pairs": 40, "num_symbols": 4, "min_length": 2, "max_length": 4}
    training = {"max_steps": 1, "batch_sentences": 2}
    config = Config.model_validate({"name": "a", "data": symbols, "training": training})
    assert len(prepare_data(config, tmp_path / "data").train) == 40
