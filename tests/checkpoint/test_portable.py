"""The config in a checkpoint contains no path of the machine (A17, H10)."""

from typing import Any

import pytest

from transformer_cli.checkpoint.checkpoints import portable_config, portable_files
from transformer_cli.config import Config, TokenizerConfig, to_yaml
from transformer_cli.config.loading import check_settings, parse_yaml
from transformer_cli.text.tokenizer import train_tokenizer

TRAINING = {"max_steps": 1, "batch_tokens": 100, "best_metric": "loss"}
FILES = {
    "source": "files",
    "root": "/home/canary/corpora",
    "corpora": [
        {
            "source_path": "/home/canary/train.en",
            "target_path": "../canary/train.it",
            "split": "train",
        },
        {"path": "~canary/dev.tsv", "split": "validation", "source_field": 0, "target_field": 1},
        {"path": "/home/canary/", "split": "test"},
    ],
}
HUB = {
    "source": "hub",
    "root": "/home/canary",
    "corpora": [
        {"dataset": "Helsinki-NLP/opus_books", "config": "en-it", "revision": "main"},
        {"dataset": "parquet", "data_files": "/home/canary/a.parquet"},
        {"dataset": "/home/canary/set"},
        {"dataset": "./canary/set"},
        {"dataset": "canary/corpora/set"},
    ],
}


def config(data: dict[str, Any], **tokenizer: Any) -> Config:
    fields = {"name": "a", "data": data, "training": TRAINING, "tokenizer": tokenizer}
    return check_settings(fields, "test")


@pytest.mark.parametrize("data", [FILES, HUB], ids=["files", "hub"])
def test_no_path_is_left_and_the_rest_is_a_valid_config(data: dict[str, Any]) -> None:
    before = config(data)
    text = to_yaml(portable_config(before))
    assert "canary/" not in text
    assert "/home" not in text
    assert "canary" not in text.replace("canary\n", "")
    after = check_settings(parse_yaml(text, "m"), "m")
    assert after.model == before.model
    assert after.training == before.training
    assert to_yaml(before).count("canary") > 2


def test_names_on_the_hub_stay() -> None:
    data = portable_config(config(HUB)).data
    assert [corpus.dataset for corpus in data.corpora] == [
        "Helsinki-NLP/opus_books",
        "parquet",
        "set",
        "set",
        "set",
    ]  # type: ignore[union-attr]
    assert data.corpora[1].data_files == "a.parquet"  # type: ignore[union-attr]


@pytest.mark.parametrize("path", ["C:\\canary\\dev.tsv", "..\\canary\\dev.tsv", "C:/canary/dev.tsv"])
def test_a_path_of_windows_is_cut_too(path: str) -> None:
    files = portable_config(config({"source": "files", "corpora": [{"path": path}]})).data
    assert files.corpora[0].path == "dev.tsv"  # type: ignore[union-attr]
    sets = portable_config(config({"source": "hub", "corpora": [{"dataset": path}]})).data
    assert sets.corpora[0].dataset == "dev.tsv"  # type: ignore[union-attr]


@pytest.mark.parametrize("source", ["phrasebook", "sequences"])
def test_a_corpus_without_files_stays_as_it_is(source: str) -> None:
    before = config({"source": source})
    assert portable_config(before) == before


def test_one_tokenizer_is_stored_once_and_two_are_stored_twice() -> None:
    tokenizer, other = (train_tokenizer(["a b c"], TokenizerConfig()) for _ in range(2))
    data = config({"source": "phrasebook"})
    assert portable_files(data, tokenizer, tokenizer).keys() == {"config.yaml", "tokenizer.json"}
    names = {"config.yaml", "tokenizer.source.json", "tokenizer.target.json"}
    assert portable_files(data, tokenizer, other).keys() == names
