from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.config import Config
from transformer_cli.config.loading import check_settings
from transformer_cli.process.errors import ConfigError
from transformer_cli.text import Tokenizer
from transformer_cli.training import train

SETTINGS: dict[str, Any] = {
    "name": "a",
    "data": {"source": "phrasebook", "num_pairs": 200},
    "tokenizer": {"kind": "sentencepiece", "vocab_size": 150, "shared": True},
    "model": {
        "d_model": 8,
        "num_heads": 2,
        "d_ff": 8,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "start_embedding": "zero",
        "tie_embeddings": "all",
        "dropout": 0.1,
    },
    "training": {
        "max_steps": 6,
        "batch_tokens": 300,
        "warmup_steps": 1,
        "learning_rate": 0.01,
        "validate_every": 6,
        "save_every": 3,
        "best_metric": "loss",
    },
    "validation": {"max_sentences": 4, "scores": [], "num_samples": 0},
    "runtime": {"device": "cpu", "threads": 1, "precision": "float32"},
}


def config_with(**changes: dict[str, Any]) -> Config:
    merged = {
        key: value | changes.get(key, {}) if isinstance(value, dict) else value for key, value in SETTINGS.items()
    }
    return check_settings(merged, "test")


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def weights(name: str = "a") -> dict[str, torch.Tensor]:
    return load_file(f"runs/{name}/checkpoints/last/model.safetensors")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("changes", "table"),
    [
        ({}, "output.weight"),
        ({"training": {"optimizer": "adamw", "weight_decay": 0.1}}, "output.weight"),
        ({"training": {"optimizer": "adafactor"}}, "output.weight"),
        ({"training": {"optimizer": "muon", "r_drop": 1.0}}, "output.weight"),
        ({"model": {"tie_embeddings": "none"}}, "target_embedding.weight"),
    ],
)
def test_the_start_stays_zero_and_all_else_learns(changes: dict[str, dict[str, Any]], table: str) -> None:
    train(config_with(**changes))
    state = weights()
    norms = state[table].norm(dim=1)
    assert norms[Tokenizer.sos_id] == 0.0
    assert (norms > 0.0).sum() == len(norms) - 1
    if table != "output.weight":
        assert state["output.weight"][Tokenizer.sos_id].norm() > 0.0


@pytest.mark.heavy
def test_a_learned_start_is_not_zero() -> None:
    train(config_with(model={"start_embedding": "learned"}))
    assert weights()["output.weight"][Tokenizer.sos_id].norm() > 0.0


@pytest.mark.heavy
@pytest.mark.parametrize(("algorithm", "sampling"), [("unigram", "unigram_alpha"), ("bpe", "bpe_dropout")])
def test_a_resumed_run_with_sampled_pieces_equals_the_uninterrupted_one(algorithm: str, sampling: str) -> None:
    changes = {"tokenizer": {"algorithm": algorithm}}
    whole = config_with(**changes, training={sampling: 0.3})
    train(whole)
    expected = weights()
    parts = whole.model_copy(update={"name": "b"})
    half = parts.training.model_copy(update={"max_steps": 3})
    train(parts.model_copy(update={"training": half}))
    train(parts)
    found = weights("b")
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    trained = load_trained(Path("runs/b"))
    assert trained.source_tokenizer is trained.target_tokenizer
    assert Path("runs/b/checkpoints/last/tokenizer.spm").read_bytes() == (trained.source_tokenizer.to_file())


@pytest.mark.heavy
def test_several_processes_encode_the_same_ids() -> None:
    separate = {"shared": False}, {"tie_embeddings": "target-output"}
    train(config_with(tokenizer=separate[0], model=separate[1]))
    data = Path("runs/a/data")
    assert (data / "tokenizer.source.spm").is_file()
    other = config_with(tokenizer=separate[0], model=separate[1], runtime={"workers": 2})
    train(other.model_copy(update={"name": "b", "seed": other.seed}))
    assert (data / "train.arrow").read_bytes() == Path("runs/b/data/train.arrow").read_bytes()


def test_split_rows_are_refused() -> None:
    with pytest.raises(ConfigError, match="start_embedding: zero sets one row of a gradient"):
        config_with(runtime={"sharding": "full"})


def test_the_sampling_of_the_other_algorithm_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"training.bpe_dropout .* but the algorithm is unigram"):
        config_with(training={"bpe_dropout": 0.1})
