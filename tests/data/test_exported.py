"""`tfm data --output`: what the library datasets opens is what the model is trained on, and nothing is missing."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from pyarrow import parquet

from transformer_cli import Config, load_config
from transformer_cli.config import TokenizerConfig
from transformer_cli.data.exported import export_prepared, save_tokenizers
from transformer_cli.data.preparation import prepare_data
from transformer_cli.process.errors import CannotCreateError, ConfigError
from transformer_cli.text import Tokenizer, train_tokenizer

from ..launcher import TfmHere

ROWS = [
    ("Good morning", "Buongiorno"),
    ("Good morning", "Buongiorno"),
    ("same", "same"),
    ("", "vuoto"),
    ("one " * 40, "uno " * 40),
    ("a\u200bb", "c"),
    *((f"the cat {i} sleeps", f"il gatto {i} dorme") for i in range(40)),
]
SETTINGS: dict[str, Any] = {
    "name": "mine",
    "data": {
        "source": "files",
        "validation_share": 0.1,
        "corpora": [{"path": "all.tsv"}, {"source_path": "x.en", "target_path": "x.it", "split": "train"}],
    },
    "tokenizer": {"kind": "bpe", "vocab_size": 300},
    "model": {"preset": "tiny", "max_length": 32},
    "training": {"max_steps": 1, "batch_tokens": 500},
}


def read_data_set(folder: Path) -> Any:
    from datasets import load_from_disk  # takes half a second

    return load_from_disk(str(folder))


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.chdir(tmp_path)
    Path("all.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in ROWS))
    Path("x.en").write_text("A house\nNUL \0 here\nA tree\n")
    Path("x.it").write_text("Una casa\nqui\nUn albero\n")
    return Config.model_validate(SETTINGS)


@pytest.mark.long
def test_the_training_split_has_the_ids_of_the_training_and_the_place_of_each_pair(
    config: Config, tmp_path: Path
) -> None:
    prepared = prepare_data(config, tmp_path / "data", has_begun=False)
    counts = export_prepared(prepared, tmp_path / "out")
    opened = read_data_set(tmp_path / "out")
    assert {name: len(rows) for name, rows in opened.items()} == counts
    train = opened["train"]
    assert len(train) == len(prepared.train)
    for row, pair in zip(train, (prepared.train[i] for i in range(len(train))), strict=True):
        assert (row["source_ids"], row["target_ids"]) == tuple(ids.tolist() for ids in pair)
    texts = Path("all.tsv").read_text().splitlines()
    for split in ("train", "validation", "test"):
        for row in opened[split]:
            if row["corpus"] == "all.tsv":
                read = texts[row["row"] - 1].replace("\u200b", "")
                assert f"{row['source']}\t{row['target']}" == read
    of_two_files = [(one["source"], one["row"]) for one in train if one["corpus"] == "x.en x.it"]
    assert of_two_files == [("A house", 1), ("A tree", 3)]
    held_out = [(one["source"], one["target"]) for one in opened["validation"]]
    assert held_out == [(one.source, one.target) for one in prepared.validation]


@pytest.mark.long
def test_what_was_exported_is_a_corpus_again(config: Config, tmp_path: Path) -> None:
    export_prepared(prepare_data(config, tmp_path / "data", has_begun=False), tmp_path / "out")
    again = SETTINGS | {
        "data": {
            "source": "files",
            "corpora": [
                {"path": f"out/{split}", "split": split, "source_field": "source", "target_field": "target"}
                for split in ("train", "validation")
            ],
        }
    }
    prepared = prepare_data(Config.model_validate(again), tmp_path / "again", has_begun=False)
    saved = read_data_set(tmp_path / "out")
    texts = [(one["source"], one["target"]) for one in saved["validation"]]
    assert [(one.source, one.target) for one in prepared.validation] == texts
    assert len(prepared.train) == len(saved["train"])


@pytest.mark.long
def test_each_dropped_pair_has_its_reason_and_no_pair_is_lost(config: Config, tmp_path: Path) -> None:
    prepared = prepare_data(config, tmp_path / "data", has_begun=False)
    export_prepared(prepared, tmp_path / "out")
    opened = read_data_set(tmp_path / "out")
    reasons = {one["row"]: one["reason"] for one in opened["dropped"] if one["corpus"] == "all.tsv"}
    assert reasons == {
        2: "drop_duplicates",
        3: "drop_equal",
        4: "drop_empty",
        5: "model.max_length",
    }
    rows = [one["row"] for split in opened.values() for one in split if one["corpus"] == "all.tsv"]
    assert sorted(rows) == [*range(1, len(ROWS) + 1)]
    counted = {what: count for what, count, _ in prepared.report.cleaning}
    assert counted["dropped: drop_duplicates"] == 1
    for name, split in opened.items():
        table = parquet.read_table(tmp_path / "out/parquet" / f"{name}.parquet")
        assert table.to_pylist() == list(split)


@pytest.mark.long
def test_both_tokenizers_open_in_the_libraries_tokenizers_and_transformers(config: Config, tmp_path: Path) -> None:
    prepared = prepare_data(config, tmp_path / "data", has_begun=False)
    export_prepared(prepared, tmp_path / "out")
    for side, own in (("source", prepared.source_tokenizer), ("target", prepared.target_tokenizer)):
        folder = tmp_path / "out" / f"tokenizer.{side}"
        opened = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        text = "the cat 7 sleeps, il gatto dorme"
        assert opened.encode(text).ids == own.encode(text)
        transformers = pytest.importorskip("transformers")
        auto = transformers.AutoTokenizer.from_pretrained(folder)
        assert auto(text).input_ids == own.encode(text)
        assert (auto.pad_token_id, auto.eos_token_id) == (own.pad_id, own.eos_id)


@pytest.mark.parametrize("kind", [{"algorithm": "bpe"}, {"byte_fallback": True}, {"user_symbols": ["<x>"]}])
def test_a_sentencepiece_model_without_a_tokenizer_json_is_saved_as_its_own_file(
    tmp_path: Path, kind: dict[str, Any]
) -> None:
    pytest.importorskip("sentencepiece")
    settings = TokenizerConfig.model_validate({"kind": "sentencepiece", "vocab_size": 320} | kind)
    tokenizer = train_tokenizer(["A house", "Una casa", "the tree of the garden"] * 20, settings)
    save_tokenizers(tmp_path, (tokenizer, tokenizer))
    saved = (tmp_path / "tokenizer/tokenizer.spm").read_bytes()
    again = Tokenizer.from_file("tokenizer.spm", saved)
    assert again.encode("the garden of Una") == tokenizer.encode("the garden of Una")


def test_a_folder_that_exists_and_a_stream_are_refused_before_the_work(tfm_here: TfmHere) -> None:
    (tfm_here.folder / "out").mkdir()
    refused = tfm_here("data", "--config", "en-it.yaml", "--output", "out")
    assert refused.exit_code == CannotCreateError.exit_code
    assert "out: exists already" in refused.talk
    (tfm_here.folder / "a.tsv").write_text("a\tb\n")
    streamed = {
        "name": "s",
        "data": {
            "source": "files",
            "streaming": True,
            "corpora": [{"path": "a.tsv", "split": "train"}, {"path": "a.tsv", "split": "validation"}],
        },
        "training": {"max_steps": 1, "batch_tokens": 100},
    }
    (tfm_here.folder / "s.yaml").write_text(json.dumps(streamed))
    refused = tfm_here("data", "--config", "s.yaml", "--output", "new")
    assert refused.exit_code == ConfigError.exit_code
    assert "data.streaming" in refused.talk
    assert not (tfm_here.folder / "runs").exists()


@pytest.mark.long
def test_the_built_in_corpus_opens_too_and_a_split_without_pairs_is_left_out(
    tmp_path: Path,
) -> None:
    config = load_config("en-it.yaml", ["data.num_pairs=300", "tokenizer.vocab_size=300"])
    prepared = prepare_data(config, tmp_path / "data", has_begun=False)
    counts = export_prepared(prepared, tmp_path / "out")
    opened = read_data_set(tmp_path / "out")
    assert counts["dropped"] == 0
    assert opened.keys() == {"train", "validation", "test"}
    assert parquet.read_metadata(tmp_path / "out/parquet/dropped.parquet").num_rows == 0
    assert opened["train"][0]["corpus"] == "phrasebook"
    assert [one["row"] for one in opened["train"]][:3] == [1, 2, 3]
