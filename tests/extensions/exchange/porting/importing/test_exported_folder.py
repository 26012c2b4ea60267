"""Runs that were exported to transformers come back: the same weights, tokenizers and settings."""

from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.checkpoint import TrainedModel, load_trained
from transformer_cli.extensions.exchange.porting.exporting.hugging_face_format import (
    HuggingFaceFormat,
)
from transformer_cli.extensions.exchange.porting.importing.import_folder import import_folder
from transformer_cli.extensions.exchange.porting.importing.imported_model import Wishes
from transformer_cli.process.errors import DataError, MissingInputError

from ..exporting.test_hugging_face_export import BPE, RUNS
from ..small_runs import ENGLISH, random_run


def run_with_small_weights(folder: Path, **changes: Any) -> TrainedModel:
    """A random run; with large weights, rounding alone would change its logits."""
    trained = random_run(folder, **changes)
    with torch.no_grad():
        for parameter in trained.model.parameters():
            parameter.mul_(0.25)
    return trained


@pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS)
def test_an_exported_run_comes_back_bit_for_bit(changes: dict[str, Any], tmp_path: Path) -> None:
    trained = run_with_small_weights(tmp_path / "run", **changes)
    (tmp_path / "out").mkdir()
    HuggingFaceFormat().write(trained, tmp_path / "out", quantization=None)
    _, run = import_folder(tmp_path / "out", "back", Wishes(), runs_folder=tmp_path / "runs")
    assert "logits differ by at most" in run.compared[0]
    back = load_trained(run.path)
    expected, found = trained.model.state_dict(), back.model.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    for side in ("source_tokenizer", "target_tokenizer"):
        assert getattr(back, side).to_json() == getattr(trained, side).to_json()
    for section in ("model", "tokenizer", "data", "decoding"):
        assert getattr(back.config, section) == getattr(trained.config, section)


def test_what_transformers_has_trained_further_comes_back(tmp_path: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    trained = run_with_small_weights(tmp_path / "run", tokenizer=BPE, dropout=0.0)
    folder = tmp_path / "out"
    folder.mkdir()
    HuggingFaceFormat().write(trained, folder, quantization=None)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = tokenizer(ENGLISH[:2], padding=True, return_tensors="pt")
    labels = torch.tensor([[5, 6, 3], [7, 8, 3]])
    model(**batch, labels=labels).loss.backward()
    optimizer.step()
    model.save_pretrained(folder)
    _, run = import_folder(folder, "back", Wishes(), runs_folder=tmp_path / "runs")
    assert "logits differ by at most" in run.compared[0]
    found = load_trained(run.path).model.output.weight
    assert not torch.equal(found, trained.model.output.weight)


@pytest.mark.parametrize(
    ("name", "error"),
    [("tfm/tokenizer.source.json", MissingInputError), ("model.safetensors", MissingInputError)],
)
def test_a_missing_file_is_named(name: str, error: type[Exception], tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run")
    (tmp_path / "out").mkdir()
    HuggingFaceFormat().write(trained, tmp_path / "out", quantization=None)
    (tmp_path / "out" / name).unlink()
    with pytest.raises(error, match=name):
        import_folder(tmp_path / "out", "back", Wishes(), runs_folder=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    for name, d_ff in (("one", 24), ("two", 32)):
        trained = random_run(tmp_path / name, d_ff=d_ff)
        (tmp_path / f"{name}-out").mkdir()
        HuggingFaceFormat().write(trained, tmp_path / f"{name}-out", quantization=None)
    (tmp_path / "two-out/model.safetensors").replace(tmp_path / "one-out/model.safetensors")
    with pytest.raises(DataError, match=r"feed_forward\.up\.weight"):
        import_folder(tmp_path / "one-out", "back", Wishes(), runs_folder=tmp_path / "runs")
