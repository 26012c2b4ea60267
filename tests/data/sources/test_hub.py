import errno
import itertools
import os
import socket
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from transformer_cli.config import Config
from transformer_cli.config.data import HubData
from transformer_cli.data.pairs import ReadingReport
from transformer_cli.data.preparation import changed_data_error, changes, prepare_data
from transformer_cli.data.sources.hub import fingerprint_hub, read_hub
from transformer_cli.process.errors import DataError, MissingInputError, TryAgainError

PAIRS = [(f"sentence {number}", f"frase {number}") for number in range(2500)]
BOTH_WAYS = pytest.mark.parametrize("streamed", [False, True])


@pytest.fixture(autouse=True)
def _without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets
    import huggingface_hub

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a test reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_MODULES_CACHE", str(tmp_path / "modules"))


def _data(root: Path, **corpus: Any) -> HubData:
    return HubData.model_validate({"source": "hub", "root": str(root), "corpora": [corpus]})


def _read(root: Path, **corpus: Any) -> list[tuple[str, str]]:
    return list(read_hub(_data(root, **corpus), 0, ReadingReport()))


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """A folder with a data set shaped like opus_books on the hub, and one with plain columns."""
    rows = [{"en": source, "it": target} for source, target in PAIRS]
    parquet.write_table(
        pyarrow.table({"id": list(range(len(rows))), "translation": rows}),
        tmp_path / "books.parquet",
    )
    sources, targets = zip(*PAIRS, strict=True)
    parquet.write_table(pyarrow.table({"a": sources, "b": targets}), tmp_path / "plain.parquet")
    return tmp_path


@BOTH_WAYS
def test_local_parquet_is_read_in_its_order(streamed: bool, books: Path) -> None:
    found = _read(books, dataset="parquet", data_files="books.parquet", streamed=streamed)
    assert found == PAIRS


@pytest.mark.long
@BOTH_WAYS
def test_fields_are_those_of_the_config(streamed: bool, books: Path) -> None:
    corpus = {"dataset": "parquet", "data_files": "*.parquet", "streamed": streamed}
    fields = {"source_field": "translation.it", "target_field": "translation.en"}
    found = _read(books, **{**corpus, "data_files": "books.parquet"}, **fields)
    assert found == [(target, source) for source, target in PAIRS]
    plain = {"source_field": "a", "target_field": "b"}
    assert _read(books, **{**corpus, "data_files": "plain.parquet"}, **plain) == PAIRS


@BOTH_WAYS
def test_no_more_pairs_are_read_than_asked_for(streamed: bool, books: Path) -> None:
    corpus = {"dataset": "parquet", "data_files": "books.parquet", "streamed": streamed}
    assert _read(books, **corpus, max_pairs=1100) == PAIRS[:1100]


def test_a_slice_of_a_split_is_read(books: Path) -> None:
    corpus = {"dataset": "parquet", "data_files": "books.parquet", "dataset_split": "train[:2%]"}
    assert _read(books, **corpus) == PAIRS[:50]


@BOTH_WAYS
def test_a_split_that_does_not_exist_is_an_error_that_names_it(streamed: bool, books: Path) -> None:
    corpus = {"dataset": "parquet", "data_files": "books.parquet", "streamed": streamed}
    with pytest.raises(DataError, match=r"parquet: the datasets library cannot read it: .*split.*test") as caught:
        _read(books, **corpus, dataset_split="test")
    assert "dataset_split (test)" in str(caught.value.hint)


@BOTH_WAYS
def test_a_field_that_does_not_exist_is_an_error_that_names_those_found(streamed: bool, books: Path) -> None:
    corpus = {"dataset": "parquet", "data_files": "books.parquet", "streamed": streamed}
    with pytest.raises(DataError, match="parquet: no column sentence, found id, translation"):
        _read(books, **corpus, source_field="sentence")
    with pytest.raises(DataError, match=r"parquet:1: no field translation\.fr, found en, it"):
        _read(books, **corpus, source_field="translation.fr")
    with pytest.raises(DataError, match="parquet:1: field id holds a number, where text is expected"):
        _read(books, **corpus, source_field="id")


@pytest.mark.long
def test_a_data_set_without_rows_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    empty = datasets.Dataset.from_dict({"translation": []})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: empty)
    with pytest.raises(DataError, match="a/b: its split train has no rows"):
        _read(tmp_path, dataset="a/b")


@BOTH_WAYS
def test_a_damaged_file_is_an_error(streamed: bool, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"parquet: the datasets library cannot read it: Parquet"):
        _read(tmp_path, dataset="parquet", data_files="a.parquet", streamed=streamed)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["while written", "before", "without a number"])
def test_a_full_disk_under_the_cache_is_named_as_such(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    def fail(*_: Any, **__: Any) -> None:
        if kind == "without a number":
            raise OSError("Not enough disk space. Needed: 5 GB (download: 1 GB, generated: 4 GB, post-processed: 0)")
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            if kind == "before":
                raise
            raise datasets.exceptions.DatasetGenerationError("An error occurred") from error

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(TryAgainError, match=r"a/b: the disk is full .* in .*cache: .*(space)") as refused:
        _read(tmp_path, dataset="a/b")
    assert "HF_HOME" in str(refused.value.hint)


@BOTH_WAYS
def test_a_missing_local_file_exits_with_66(streamed: bool, tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"a\.parquet: no such file"):
        _read(tmp_path, dataset="parquet", data_files="a.parquet", streamed=streamed)


@BOTH_WAYS
def test_without_a_hub_the_message_names_the_built_in_and_the_local_way(streamed: bool, tmp_path: Path) -> None:
    with pytest.raises(
        MissingInputError,
        match=r"^Helsinki-NLP/opus_books en-it: the Hugging Face hub cannot be reached",
    ) as caught:
        _read(tmp_path, dataset="Helsinki-NLP/opus_books", config="en-it", streamed=streamed)
    assert caught.value.exit_code == 66
    assert "--config en-it.yaml" in str(caught.value.hint)
    assert "data.source: files" in str(caught.value.hint)


@pytest.mark.long
@BOTH_WAYS
def test_the_library_is_called_with_the_settings_of_the_config(
    streamed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    asked: list[tuple[Any, ...]] = []

    def load_dataset(*names: Any, **options: Any) -> Any:
        asked.append((*names, options))
        return datasets.Dataset.from_dict({"translation": [{"en": "sea", "it": "mare"}]})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    corpus = {"dataset": "a/b", "config": "en-it", "revision": "abc", "dataset_split": "validation"}
    assert _read(tmp_path, **corpus, streamed=streamed) == [("sea", "mare")]
    options = {"split": "validation", "revision": "abc", "streaming": streamed, "data_files": None}
    assert asked == [("a/b", "en-it", options)]


def test_a_data_set_that_does_not_exist_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def load_dataset(*_: Any, **__: Any) -> None:
        raise datasets.exceptions.DatasetNotFoundError("Dataset 'a/b' doesn't exist on the Hub")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(MissingInputError, match="no such data set, or restricts access"):
        _read(tmp_path, dataset="a/b")


@BOTH_WAYS
def test_a_data_set_that_is_a_program_is_not_run(streamed: bool, tmp_path: Path) -> None:
    program = tmp_path / "books" / "books.py"
    program.parent.mkdir()
    program.write_text(f"open({str(tmp_path / 'canary')!r}, 'w')\n", encoding="utf-8")
    for name in (program, program.parent):
        with pytest.raises((DataError, MissingInputError)):
            _read(tmp_path, dataset=str(name), streamed=streamed)
    assert not (tmp_path / "canary").exists()


@BOTH_WAYS
def test_a_streamed_data_set_is_read_no_further_than_needed(streamed: bool, books: Path) -> None:
    data = _data(books, dataset="parquet", data_files="books.parquet", streamed=streamed)
    report = ReadingReport()
    assert list(itertools.islice(read_hub(data, 0, report), 3)) == PAIRS[:3]
    assert report.num_rows == 3


def test_the_fingerprint_follows_what_is_asked_for_and_the_content_of_local_files(
    books: Path,
) -> None:
    corpora: list[dict[str, Any]] = [
        {"dataset": "a/b"},
        {"dataset": "a/b", "config": "en-it"},
        {"dataset": "a/b", "revision": "abc"},
        {"dataset": "a/b", "dataset_split": "test"},
        {"dataset": "a/b", "max_pairs": 7},
        {"dataset": "parquet", "data_files": "books.parquet"},
    ]
    fingerprints = [fingerprint_hub(_data(books, **corpus), 0) for corpus in corpora]
    digests = [tuple(each.values()) for each in fingerprints]
    assert len(set(digests)) == len(digests)
    assert "books.parquet" in fingerprints[-1]
    (books / "books.parquet").write_bytes(b"other")
    assert fingerprint_hub(_data(books, **corpora[-1]), 0) != fingerprints[-1]


def test_there_is_no_progress_bar_without_a_terminal(books: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _read(books, dataset="parquet", data_files="books.parquet")
    assert capfd.readouterr() == ("", "")


SHA = "0123456789" * 4


def fake_hub(monkeypatch: pytest.MonkeyPatch, sha: str | None) -> list[tuple[str, str | None]]:
    """A hub that answers with this commit, or that cannot be reached; returns what it was asked for."""
    import huggingface_hub

    asked = []

    def dataset_info(_: Any, name: str, *, revision: str | None = None, **__: Any) -> Any:
        asked.append((name, revision))
        if sha is None:
            raise ConnectionError("no network")
        return types.SimpleNamespace(sha=sha)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", dataset_info)
    return asked


def commits(root: Path, **corpus: Any) -> list[str]:
    found = fingerprint_hub(_data(root, **corpus), 0)
    return [value for name, value in found.items() if name.startswith("commit of ")]


def test_the_fingerprint_has_the_commit_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_hub(monkeypatch, SHA)
    assert commits(tmp_path, dataset="a/b", revision="v1") == [SHA]
    assert asked == [("a/b", "v1")]
    assert commits(tmp_path, dataset="a/b", revision="f" * 40) == ["f" * 40]
    assert commits(tmp_path, dataset="parquet", data_files="https://a.b/c.parquet") == []
    assert asked == [("a/b", "v1")], "a commit and a format need no answer"


def test_without_a_hub_the_commit_is_that_of_the_copy_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    fake_hub(monkeypatch, None)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    assert commits(tmp_path, dataset="a/b") == []
    copy = tmp_path / "datasets--a--b"
    (copy / "snapshots" / SHA).mkdir(parents=True)
    assert commits(tmp_path, dataset="a/b") == [SHA]
    assert commits(tmp_path, dataset="a/b", revision="v1") == []
    (copy / "refs").mkdir()
    (copy / "refs" / "v1").write_text("e" * 40)
    assert commits(tmp_path, dataset="a/b", revision="v1") == ["e" * 40]


def test_another_commit_is_a_change_and_an_unknown_one_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fingerprint_at(sha: str | None) -> dict[str, str]:
        fake_hub(monkeypatch, sha)
        return fingerprint_hub(_data(tmp_path, dataset="a/b"), 0)

    before, after, offline = (fingerprint_at(sha) for sha in (SHA, "f" * 40, None))
    assert changes(before, after) == [f"commit of a/b: was {SHA}, now {'f' * 40}"]
    assert changes(before, offline) == changes(offline, before) == []
    message = str(changed_data_error(Path("runs/a/data"), before, after))
    assert "data.corpora.N.revision" in message
    assert "--accept-data-change" in message


@pytest.mark.long
@pytest.mark.parametrize("max_pairs", [None, 900])
def test_a_streamed_data_set_is_downloaded_once_and_prepared_like_any_other(
    max_pairs: int | None, books: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    load_dataset = datasets.load_dataset
    loaded = []

    def counted(*names: Any, **options: Any) -> Any:
        loaded.append(options["streaming"])
        return load_dataset(*names, **options)

    monkeypatch.setattr(datasets, "load_dataset", counted)
    prepared = {}
    for streamed in (False, True):
        corpus = {"dataset": "parquet", "data_files": "books.parquet", "streamed": streamed}
        data = _data(books, **corpus, max_pairs=max_pairs)
        config = Config.model_validate({"name": "a", "data": data, "training": {"max_steps": 1, "batch_sentences": 2}})
        folder = books / f"runs/{streamed}/data"
        prepare_data(config, folder)
        prepared[streamed] = {
            file.name: file.read_bytes() for file in folder.iterdir() if file.name != "fingerprint.json"
        }
    assert loaded.count(True) == 1
    assert prepared[True] == prepared[False]


def test_a_stream_that_breaks_leaves_no_data(books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def break_off() -> Iterator[dict[str, str]]:
        yield {"en": "sea", "it": "mare"}
        raise ConnectionResetError("reset")

    stream = datasets.IterableDataset.from_generator(break_off)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: stream)
    data = _data(books, dataset="a/b", streamed=True)
    config = Config.model_validate({"name": "a", "data": data, "training": {"max_steps": 1, "batch_sentences": 2}})
    with pytest.raises((MissingInputError, DataError), match="reset"):
        prepare_data(config, books / "run" / "data")
    assert list((books / "run").iterdir()) == []
