"""With TFM_PLAIN the code of model/ is what computes, so that who changes it sees the change everywhere."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_cli import Translator, load_config, load_translator, train
from transformer_cli.acceleration.accelerate import differs_from_plain
from transformer_cli.config import ModelConfig
from transformer_cli.decoding import Translation
from transformer_cli.decoding.loading import load_run
from transformer_cli.evaluation.validation import ValidationReport
from transformer_cli.model import layers
from transformer_cli.model.loss import LossSums, likelihood_loss, sum_loss
from transformer_cli.process import plain_form
from transformer_cli.process.errors import ConfigError
from transformer_cli.training.callbacks import Callback, StepReport
from transformer_cli.training.run import CODE_WAS_CHANGED

RUN = Path(__file__).parents[2] / "docs" / "run"
SETTINGS = [
    *(
        "data.num_pairs=50",
        "training.max_steps=2",
        "model.d_model=16",
        "runtime.threads=1",
        "runtime.precision=float32",
    ),
    *(
        "validation.max_sentences=20",
        "validation.num_samples=0",
        "validation.sequence_lengths=[5]",
        "model.dropout=0.0",
    ),
]
real_weights = layers.attention_weights


def not_scaled(queries: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
    """An edit of a learner: without the division by sqrt(d_k)."""
    return real_weights(queries * queries.size(-1) ** 0.5, keys, mask)


class Losses(Callback):
    def __init__(self) -> None:
        self.of_training: list[float] = []
        self.of_validation: list[float] = []

    def on_step(self, step: int, report: StepReport) -> None:
        self.of_training.append(float(report.negative_log_likelihood))

    def on_validation(self, step: int, report: ValidationReport, translator: Translator) -> None:
        self.of_validation.append(report.loss)


def trained(folder: Path) -> tuple[list[float], list[float]]:
    losses = Losses()
    train(load_config("copy.yaml", SETTINGS), callbacks=[losses], runs_folder=folder)
    return losses.of_training, losses.of_validation


@pytest.mark.heavy
def test_training_and_validation_follow_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_form, "IS_PLAIN", True)
    of_training, of_validation = trained(tmp_path / "plain")
    monkeypatch.setattr(layers, "attention_weights", not_scaled)
    edited = trained(tmp_path / "edited")
    assert edited[0][0] != pytest.approx(of_training[0], rel=1e-4)
    assert edited[1] != pytest.approx(of_validation, rel=1e-4)


@pytest.mark.heavy
def test_the_plain_form_trains_like_the_faster_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faster = trained(tmp_path / "faster")
    monkeypatch.setattr(plain_form, "IS_PLAIN", True)
    plain = trained(tmp_path / "plain")
    assert plain[0] == pytest.approx(faster[0], rel=1e-5)
    assert plain[1] == pytest.approx(faster[1], rel=1e-5)
    log = (tmp_path / "plain" / "copy" / "train.log").read_text()
    assert "the plain form (TFM_PLAIN)" in log


EDITS: dict[str, tuple[object, str, Any]] = {
    "attention": (layers, "attention_weights", not_scaled),
    # A CPU trains with the plain feed-forward network, and translates with a faster one.
    "the feed-forward network": (layers.FeedForward, "forward", lambda self, x: self.down(self.up(x))),
    "the residual connections": (
        layers,
        "_PLACEMENTS",
        dict.fromkeys(layers._PLACEMENTS, lambda x, f, norm, dropout: x + f(x)),
    ),
    "the loss": (
        likelihood_loss,
        "__kwdefaults__",
        {"sum_loss": lambda *arguments: LossSums(*[2 * one for one in sum_loss(*arguments)])},
    ),
}
MODELS: list[dict[str, Any]] = [
    {},
    {"decoder_layer": "ssru", "tie_embeddings": "all", "init": "pytorch"},
    {
        "norm": "rmsnorm",
        "positions": "rotary",
        "activation": "swiglu",
        "num_heads": 16,
        "num_kv_heads": 4,
        "qk_norm": True,
    },
    {"norm": "std_layernorm", "norm_placement": "post", "positions": "learned", "d_model": 56, "num_heads": 7},
    {"norm_placement": "residual_of_normed", "embedding_norm": True, "alignment_head": 3, "alignment_layer": 4},
]


@pytest.mark.long
@pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
@pytest.mark.parametrize("model", MODELS)
def test_the_code_as_it_stands_does_not_differ_from_its_faster_forms(model: dict[str, Any], device: str) -> None:
    drawn = torch.get_rng_state()
    assert not differs_from_plain(ModelConfig(**model), torch.device(device))
    assert torch.equal(torch.get_rng_state(), drawn), "a run would get other random numbers"


@pytest.mark.long
@pytest.mark.parametrize("edit", EDITS)
def test_changed_code_differs_from_its_faster_forms(edit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*EDITS[edit])
    for model in MODELS:
        assert differs_from_plain(ModelConfig(**model), torch.device("cpu"))
    monkeypatch.setattr(plain_form, "IS_PLAIN", True)
    assert not differs_from_plain(ModelConfig(), torch.device("cpu")), "there, all uses the changed code"


accelerate = importlib.import_module(
    "transformer_cli.acceleration.accelerate"
)  # the package has a function of this name


def test_the_digest_is_that_of_the_code_which_the_faster_forms_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only code with another digest is compared with its faster forms before a training.

    If you have changed the code in transformer_cli/model: let the faster forms follow, then write its digest into
    `FOLLOWED_CODE`.
    """
    assert not accelerate.code_was_changed()
    for path in Path(layers.__file__).parent.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(layers, "__file__", str(tmp_path / "layers.py"))
    assert not accelerate.code_was_changed()
    with (tmp_path / "layers.py").open("a") as file:
        file.write("# another line\n")
    assert accelerate.code_was_changed()


@pytest.mark.heavy
@pytest.mark.parametrize("is_edited", [True, False])
def test_a_training_with_changed_code_warns(
    is_edited: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if is_edited:
        monkeypatch.setattr(layers, "attention_weights", not_scaled)
        monkeypatch.setattr(accelerate, "FOLLOWED_CODE", "of other code")
    trained(tmp_path)
    warned = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert [one for one in warned if "TFM_PLAIN=1" in one] == [CODE_WAS_CHANGED] * is_edited


def likely() -> Translation:
    return next(load_translator(RUN).translate(["Where is the station?"]))


@pytest.mark.long
@pytest.mark.parametrize("is_plain", [True, False])
def test_a_translation_follows_an_edit(is_plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_form, "IS_PLAIN", is_plain)
    plain = likely()
    monkeypatch.setattr(layers, "attention_weights", not_scaled)
    edited = likely()
    assert plain.text == "Dov'è la stazione?"
    assert (edited.score != pytest.approx(plain.score, rel=1e-3)) is is_plain


STARTED = f"""
from transformer_cli.decoding.loading import load_run
engine = load_run({str(RUN)!r}, []).translator.engine
print(type(engine).__name__, getattr(engine, "translating", None), engine.describe())
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("switch", "expected"), [("1", "PyTorchEngine None"), ("off", "NumpyEngine None"), ("", "NumpyEngine None")]
)
def test_no_faster_form_is_chosen_for_a_command_that_has_just_started(switch: str, expected: str) -> None:
    """Short texts are translated by NumPy there, as PyTorch takes longer to import than to translate."""
    environment = os.environ | {"TFM_PLAIN": switch}
    program = [sys.executable, "-c", STARTED]
    found = subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout
    assert found.startswith(expected)
    assert ("the plain form (TFM_PLAIN)" in found) is (switch == "1")


@pytest.mark.parametrize("setting", ["runtime.precision=int8", "decoding.shortlist={}"])
def test_what_has_no_plain_form_is_refused(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_form, "IS_PLAIN", True)
    with pytest.raises(ConfigError, match="has no plain form, which the environment variable TFM_PLAIN asks for"):
        load_run(str(RUN), [setting])
