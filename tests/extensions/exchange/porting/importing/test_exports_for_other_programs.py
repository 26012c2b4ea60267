"""Runs that were exported for CTranslate2, onnxruntime and Argos Translate come back: weights, tokenizers and settings."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.checkpoint import TrainedModel, load_trained
from transformer_cli.extensions.exchange.porting.exporting.argos_format import ArgosFormat
from transformer_cli.extensions.exchange.porting.exporting.ctranslate2_format import (
    CTranslate2Format,
)
from transformer_cli.extensions.exchange.porting.exporting.export_format import ExportFormat
from transformer_cli.extensions.exchange.porting.exporting.export_run import export_run
from transformer_cli.extensions.exchange.porting.exporting.onnx_format import OnnxFormat
from transformer_cli.extensions.exchange.porting.importing.import_folder import import_folder
from transformer_cli.extensions.exchange.porting.importing.imported_model import Wishes
from transformer_cli.process.errors import DataError, MissingInputError

from ..exporting.test_argos_export import OF_SENTENCEPIECE
from ..exporting.test_hugging_face_export import BPE
from ..small_runs import ENGLISH, random_run

SHAPES: dict[str, dict[str, Any]] = {
    "pre-norm, tied target": {},
    "post-norm, one table for all": {
        "tokenizer": BPE.model_copy(update={"shared": True}),
        "norm_placement": "post",
        "tie_embeddings": "all",
    },
    "gated, rms, rotary, no biases": {
        "activation": "swiglu",
        "norm": "rmsnorm",
        "positions": "rotary",
        "attention_bias": False,
        "feed_forward_bias": False,
        "output_bias": False,
    },
    "learned positions": {"positions": "learned", "max_length": 40},
}


def back(export: Path, tmp_path: Path) -> tuple[TrainedModel, list[str]]:
    _, run = import_folder(export, "back", Wishes(), runs_folder=tmp_path / "runs")
    return load_trained(run.path), run.compared


def assert_same(found: TrainedModel, expected: TrainedModel) -> None:
    states = found.model.state_dict(), expected.model.state_dict()
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[1])
    for side in ("source_tokenizer", "target_tokenizer"):
        assert getattr(found, side).to_json() == getattr(expected, side).to_json()
    for section in ("model", "tokenizer", "data", "decoding"):
        assert getattr(found.config, section) == getattr(expected.config, section)


@pytest.mark.parametrize("wanted", [CTranslate2Format(), OnnxFormat()], ids=lambda one: one.name)
@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_an_exported_run_comes_back_bit_for_bit(
    changes: dict[str, Any], wanted: ExportFormat, tmp_path: Path
) -> None:
    trained = random_run(tmp_path / "run", **changes)
    export = export_run(trained, wanted, tmp_path / "out", lines=ENGLISH).path
    found, compared = back(export, tmp_path)
    assert_same(found, trained)
    assert compared == ["the weights are those of the exported run (their SHA-256 is equal)"]


def test_an_argos_package_comes_back_with_the_bias_that_the_package_does_not_have(
    tmp_path: Path,
) -> None:
    trained = random_run(tmp_path / "run", tokenizer=OF_SENTENCEPIECE)
    export = export_run(trained, ArgosFormat(), tmp_path / "out.argosmodel", lines=ENGLISH).path
    assert_same(back(export, tmp_path)[0], trained)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    trained = random_run(folder / "run")
    return export_run(trained, CTranslate2Format(), folder / "out", lines=ENGLISH).path


def test_the_joined_matrices_of_ctranslate2_are_named_by_rows(export: Path) -> None:
    places = json.loads((export / "tfm/weights.json").read_text())["places"]
    joined = "encoder/layer_0/self_attention/linear_0/weight"
    starts = {"query": 0, "key": 16, "value": 32}
    for name, row in starts.items():
        place = places[f"encoder.layers.0.self_attention.{name}.weight"]
        assert place == [joined, row, False]


def test_changed_weights_are_refused(export: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(export, tmp_path / "copy")
    weights = bytearray((copy / "model.bin").read_bytes())
    position = 300  # in the table of the target
    weights[position] ^= 1
    (copy / "model.bin").write_bytes(weights)
    with pytest.raises(DataError, match="SHA-256 differs"):
        back(copy, tmp_path)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_weights_that_are_cut_off_are_refused(share: float, export: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(export, tmp_path / "copy")
    weights = (copy / "model.bin").read_bytes()
    (copy / "model.bin").write_bytes(weights[: int(share * len(weights))])
    with pytest.raises(DataError, match=r"model\.bin: not a whole model\.bin"):
        back(copy, tmp_path)


@pytest.mark.parametrize("name", ["model.bin", "tfm/weights.json", "tfm/tokenizer.source.json"])
def test_a_missing_file_is_named(name: str, export: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(export, tmp_path / "copy")
    (copy / name).unlink()
    with pytest.raises(MissingInputError, match=name):
        back(copy, tmp_path)


@pytest.mark.parametrize(
    "places",
    ["{}", "[]", '{"places": {"output.weight": ["x", -1, false]}, "sha256": ""}', '{"places": {}, "sha256": ""}'],
)  # fmt: skip
def test_a_description_that_does_not_fit_is_refused(
    places: str, export: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(export, tmp_path / "copy")
    (copy / "tfm/weights.json").write_text(places)
    with pytest.raises(DataError, match=r"not what tfm export writes|do not have"):
        back(copy, tmp_path)


def test_rounded_weights_are_not_read_back(tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run")
    wanted = CTranslate2Format()
    export = export_run(trained, wanted, tmp_path / "out", lines=ENGLISH, quantization="int8").path
    assert not (export / "tfm").exists()
    with pytest.raises(DataError, match="rounded to int8"):
        back(export, tmp_path)


def test_a_package_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.argosmodel"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("translate-en_it/metadata.json", "{}")
    with pytest.raises(DataError, match="not a package that tfm export has made"):
        back(path, tmp_path)
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match="not a whole package"):
        back(path, tmp_path)


def test_a_run_needs_no_import(tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run")
    for folder in (tmp_path / "run", trained.folder):
        with pytest.raises(DataError, match="this is a run of tfm"):
            back(folder, tmp_path)
