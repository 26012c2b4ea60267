"""Tags of corpora: one token before each source of the corpus, in training only."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transformer_cli.config import Config
from transformer_cli.config.loading import check_settings
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.process.errors import ConfigError, DataError

TRAINING = {"max_steps": 1, "batch_sentences": 2, "best_metric": "loss"}


def write(path: Path, pairs: list[tuple[str, str]]) -> None:
    path.write_text("".join(f"{one}\t{other}\n" for one, other in pairs), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "real.tsv", [("the cat", "il gatto"), ("a dog sleeps", "un cane dorme")])
    write(tmp_path / "back.tsv", [("the cat", "il gatto"), ("<BT> a dog", "un cane")])
    write(tmp_path / "dev.tsv", [("the dog", "il cane")])
    return tmp_path


def config(folder: Path, tag: str | None = "<BT>", **changed: Any) -> Config:
    corpora = [
        {"path": "real.tsv", "split": "train"},
        {"path": "back.tsv", "split": "train", **({"tag": tag} if tag else {})},
        {"path": "dev.tsv", "split": "validation"},
    ]
    data = {"source": "files", "root": str(folder), "corpora": corpora, "test_share": 0.0}
    data["cleaning"] = {"drop_duplicates": False}
    return check_settings({"name": "a", "data": data, "training": TRAINING, **changed}, "test")


def sources(data: PreparedData) -> list[list[int]]:
    return [[*data.train[index].source_ids] for index in range(len(data.train))]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["wordlevel", "bpe", "unigram"])
@pytest.mark.parametrize("shared", [False, True])
def test_the_tag_is_one_token_before_the_ids_of_the_text(folder: Path, kind: str, shared: bool) -> None:
    tokenizer: dict[str, Any] = {"kind": kind, "shared": shared}
    if kind != "wordlevel":
        tokenizer["vocab_size"] = 280
    data = prepare_data(config(folder, tokenizer=tokenizer), folder / "data")
    source, end = data.source_tokenizer, data.source_tokenizer.eos_id
    tag = source.id_of("<BT>")
    assert tag == source.vocab_size - 1
    assert sources(data) == [
        [*source.encode("the cat"), end],
        [*source.encode("a dog sleeps"), end],
        [tag, *source.encode("the cat"), end],
        [tag, *source.encode("<BT> a dog"), end],
    ]
    assert tag not in source.encode("<BT> a dog")
    lengths, _ = data.train.lengths(np.arange(4))
    assert lengths.tolist() == [len(ids) for ids in sources(data)]


def test_without_a_tag_the_ids_are_the_same_but_for_it(folder: Path) -> None:
    tagged = prepare_data(config(folder), folder / "data")
    plain = prepare_data(config(folder, tag=None), folder / "other")
    assert sources(tagged)[:2] == sources(plain)[:2]
    assert [ids[1:] for ids in sources(tagged)[2:]] == sources(plain)[2:]


def test_the_tag_counts_for_the_largest_length(folder: Path) -> None:
    model = {"max_length": 4}  # a dog sleeps [EOS] fits, a tag before it would not
    write(folder / "back.tsv", [("the cat", "il gatto"), ("a dog sleeps", "un cane")])
    data = prepare_data(config(folder, model=model), folder / "data")
    assert data.report.num_too_long == 1
    assert max(map(len, sources(data))) == 4


@pytest.mark.parametrize("split", ["validation", "test", None])
def test_a_tag_outside_the_training_split_is_refused(folder: Path, split: str | None) -> None:
    corpus = {"path": "a.tsv", "tag": "<BT>"} | ({"split": split} if split else {})
    values = {"name": "a", "data": {"source": "files", "corpora": [corpus]}, "training": TRAINING}
    with pytest.raises(ConfigError, match="tag needs split: train"):
        check_settings(values, "test")


# <2it> would mean "into Italian", and <0x41> is the byte of the letter A.
@pytest.mark.parametrize("tag", ["BT", "<>", "<a b>", "<BT", "[EOS]", "<<BT>>", "<2it>", "<0x41>"])
def test_a_tag_that_means_something_else_is_refused(folder: Path, tag: str) -> None:
    with pytest.raises(ConfigError, match=r"data.corpora.1.tag"):
        config(folder, tag=tag)


def test_a_run_that_has_begun_takes_no_further_tag(folder: Path) -> None:
    """Its model has no row for a further entry."""
    plain = prepare_data(config(folder, tag=None), folder / "data")
    tokenizers = plain.source_tokenizer, plain.target_tokenizer
    with pytest.raises(DataError, match="no entry for the tag <BT>"):
        prepare_data(config(folder), folder / "data", accept_change=True, tokenizers=tokenizers)
    again = prepare_data(config(folder), folder / "new", has_begun=False, tokenizers=tokenizers)
    assert again.source_tokenizer.entries == [*plain.source_tokenizer.entries, "<BT>"]
    assert again.target_tokenizer.to_json() == plain.target_tokenizer.to_json()
