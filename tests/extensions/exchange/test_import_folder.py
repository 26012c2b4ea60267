"""Runs that were exported come back: weights, tokenizers and settings; what transformers has trained further comes back, too."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.checkpoint.trained_files import TrainedModel, load_trained
from transformer_cli.extensions.exchange.argos import ArgosFormat
from transformer_cli.extensions.exchange.ctranslate2 import CTranslate2Format
from transformer_cli.extensions.exchange.export import export_run
from transformer_cli.extensions.exchange.hugging_face import HuggingFaceFormat
from transformer_cli.extensions.exchange.import_folder import import_folder
from transformer_cli.extensions.exchange.model_folder import NamedLanguages
from transformer_cli.process.errors import DataError, MissingInputError

from .small_runs import ENGLISH, random_run
from .test_argos import OF_SENTENCEPIECE
from .test_hugging_face import BPE, RUNS

DOCS_RUN = Path(__file__).parents[3] / "docs" / "run"


def run_with_small_weights(folder: Path, **changes: Any) -> TrainedModel:
    """A random run; with large weights, rounding alone would change its logits."""
    trained = random_run(folder, **changes)
    with torch.no_grad():
        for parameter in trained.model.parameters():
            parameter.mul_(0.25)
    return trained


@pytest.mark.long
@pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS)
def test_an_exported_run_comes_back_bit_for_bit(changes: dict[str, Any], tmp_path: Path) -> None:
    trained = run_with_small_weights(tmp_path / "run", **changes)
    (tmp_path / "out").mkdir()
    HuggingFaceFormat().write(trained, tmp_path / "out", quantization=None)
    _, run = import_folder(tmp_path / "out", "back", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert "logits differ by at most" in run.compared[0]
    back = load_trained(run.path)
    expected, found = trained.model.state_dict(), back.model.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    for side in ("source_tokenizer", "target_tokenizer"):
        assert getattr(back, side).to_json() == getattr(trained, side).to_json()
    for section in ("model", "tokenizer", "data", "decoding"):
        assert getattr(back.config, section) == getattr(trained.config, section)


@pytest.mark.long
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
    _, run = import_folder(folder, "back", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert "logits differ by at most" in run.compared[0]
    found = load_trained(run.path).model.output.weight
    assert not torch.equal(found, trained.model.output.weight)


@pytest.mark.long
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
        import_folder(tmp_path / "out", "back", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.long
def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    for name, d_ff in (("one", 24), ("two", 32)):
        trained = random_run(tmp_path / name, d_ff=d_ff)
        (tmp_path / f"{name}-out").mkdir()
        HuggingFaceFormat().write(trained, tmp_path / f"{name}-out", quantization=None)
    (tmp_path / "two-out/model.safetensors").replace(tmp_path / "one-out/model.safetensors")
    with pytest.raises(DataError, match=r"one-out: the weights: model\.encoder\.layers\.0\.fc1\.weight"):
        import_folder(tmp_path / "one-out", "back", NamedLanguages(), runs_folder=tmp_path / "runs")


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
    _, run = import_folder(export, "back", NamedLanguages(), runs_folder=tmp_path / "runs")
    return load_trained(run.path), run.compared


def assert_same(found: TrainedModel, expected: TrainedModel) -> None:
    states = found.model.state_dict(), expected.model.state_dict()
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[1])
    for side in ("source_tokenizer", "target_tokenizer"):
        assert getattr(found, side).to_json() == getattr(expected, side).to_json()
    for section in ("model", "tokenizer", "data", "decoding"):
        assert getattr(found.config, section) == getattr(expected.config, section)


@pytest.mark.long
@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_an_export_for_ctranslate2_comes_back_bit_for_bit(changes: dict[str, Any], tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run", **changes)
    export = export_run(trained, CTranslate2Format(), tmp_path / "out", lines=ENGLISH).path
    found, compared = back(export, tmp_path)
    assert_same(found, trained)
    assert compared == ["the weights are those of the exported run (their SHA-256 is equal)"]


@pytest.mark.long
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


@pytest.mark.long
def test_the_joined_matrices_of_ctranslate2_are_named_by_rows(export: Path) -> None:
    places = json.loads((export / "tfm/weights.json").read_text())["places"]
    joined = "encoder/layer_0/self_attention/linear_0/weight"
    starts = {"query": 0, "key": 16, "value": 32}
    for name, row in starts.items():
        place = places[f"encoder.layers.0.self_attention.{name}.weight"]
        assert place == [joined, row, False]


@pytest.mark.long
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
def test_a_missing_file_of_another_program_is_named(name: str, export: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(export, tmp_path / "copy")
    (copy / name).unlink()
    with pytest.raises(MissingInputError, match=name):
        back(copy, tmp_path)


@pytest.mark.parametrize(
    "places",
    ["{}", "[]", '{"places": {"output.weight": ["x", -1, false]}, "sha256": ""}', '{"places": {}, "sha256": ""}'],
)
def test_a_description_that_does_not_fit_is_refused(places: str, export: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(export, tmp_path / "copy")
    (copy / "tfm/weights.json").write_text(places)
    with pytest.raises(DataError, match=r"not what tfm export writes|do not have"):
        back(copy, tmp_path)


@pytest.mark.long
def test_rounded_weights_are_not_read_back(tmp_path: Path) -> None:
    # A trained model: what random weights write changes wholly where a processor rounds int8 products in another way.
    trained = load_trained(DOCS_RUN)
    wanted = CTranslate2Format()
    export = export_run(trained, wanted, tmp_path / "out", lines=["Good morning."], quantization="int8").path
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
    (tmp_path / "run" / "shortlist.npz").touch()  # no model of Marian
    for folder in (tmp_path / "run", trained.folder):
        with pytest.raises(DataError, match="this is a run of tfm"):
            back(folder, tmp_path)


def test_the_page_of_a_browser_names_the_form_that_comes_back(tmp_path: Path) -> None:
    record = {"format": "browser", "quantization": "int8"}
    (tmp_path / "tfm-export.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(DataError, match="which is not read back") as refused:
        import_folder(tmp_path, "back", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert "--to bergamot" in str(refused.value.hint)
    assert "--quantize" not in str(refused.value.hint)
