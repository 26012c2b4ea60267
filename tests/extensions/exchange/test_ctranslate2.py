"""`--to ctranslate2`: the folder translates as the run does, and a folder that would not never appears."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import TokenizerConfig
from transformer_cli.extensions.exchange.ctranslate2 import CTranslate2Format
from transformer_cli.extensions.exchange.export import export_run
from transformer_cli.extensions.exchange.export_format import Decoded, OtherEngine, Quantization
from transformer_cli.extensions.exchange.own_folder import RECORD
from transformer_cli.process.errors import CannotCreateError, ConfigError, DataError

from .small_runs import ENGLISH, random_run

pytest.importorskip("ctranslate2")

RUNS: dict[str, dict[str, Any]] = {
    "whole words": {},
    "post-norm, one table": {
        "norm_placement": "post",
        "tie_embeddings": "all",
        "tokenizer": TokenizerConfig(kind="bpe", vocab_size=300, shared=True),
    },
    "unigram, rotary and gated": {
        "tokenizer": TokenizerConfig(kind="unigram", vocab_size=300),
        "positions": "rotary",
        "activation": "swiglu",
        "norm": "rmsnorm",
    },
    "two SentencePiece models, one table": {
        "tokenizer": TokenizerConfig(kind="sentencepiece", shared=True),
        "tie_embeddings": "all",
        "norm_placement": "post",
    },
    "pieces that stand for bytes": {
        "tokenizer": TokenizerConfig(kind="sentencepiece", vocab_size=400, byte_fallback=True, shared=True),
        "tie_embeddings": "all",
    },
    "both directions, learned positions": {
        "tokenizer": TokenizerConfig(kind="bpe", vocab_size=300),
        "both_directions": True,
        "positions": "learned",
    },
}


@pytest.mark.long
@pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS)
def test_the_folder_translates_as_the_run_does(changes: dict[str, Any], tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run", **changes)
    exported = export_run(trained, CTranslate2Format(), tmp_path / "out", lines=ENGLISH)
    [agreement] = exported.agreements
    assert agreement.num_texts >= len(ENGLISH)
    assert agreement.num_tokens > 50
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {
        "model.bin",
        "README.md",
        RECORD,
    }


@pytest.mark.long
def test_without_any_text_random_words_are_compared(tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run")
    [agreement] = export_run(trained, CTranslate2Format(), tmp_path / "out").agreements
    assert agreement.origin == "texts of random words"
    assert agreement.num_texts == 200


class OtherWeights(CTranslate2Format):
    """Exports the model with one changed weight."""

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        weight = trained.model.decoder.layers[1].feed_forward.down.weight
        kept = weight.detach().clone()
        weight.data.mul_(-1.0)
        super().write(trained, path, quantization=quantization)
        weight.data.copy_(kept)


class OtherTokens(CTranslate2Format):
    """Exports a tokenizer that does not append [EOS]."""

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        super().write(trained, path, quantization=quantization)
        file = path / "source.tokenizer.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"post_processor": None}))


class OtherText(CTranslate2Format):
    """Its program joins tokens in another way."""

    def open(self, path: Path) -> OtherEngine:
        engine = super().open(path)
        decode = engine.decode

        def other(sources: Any, limits: Any) -> list[Decoded]:
            return [one._replace(text=one.text + " ") for one in decode(sources, limits)]

        engine.decode = other  # type: ignore[method-assign]
        return engine


@pytest.mark.long
@pytest.mark.parametrize(
    ("format_", "problem"),
    [
        (OtherWeights(), "token [0-9]+ of its translation is another one"),
        (OtherTokens(), "its tokenizer gives other ids"),
        (OtherText(), "it detokenises in another way"),
    ],
)
@pytest.mark.parametrize("quantization", [None, "int8"])
def test_a_model_that_translates_otherwise_is_an_error_and_leaves_nothing(
    format_: CTranslate2Format, problem: str, quantization: Quantization | None, tmp_path: Path
) -> None:
    trained = random_run(tmp_path / "run")
    with pytest.raises(DataError, match=problem):
        export_run(trained, format_, tmp_path / "out", lines=ENGLISH, quantization=quantization)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_settings_in_the_way_are_named(tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run", qk_norm=True)
    with pytest.raises(ConfigError, match=r"model\.qk_norm: true \(CTranslate2 has no such layer\)"):
        export_run(trained, CTranslate2Format(), tmp_path / "out")


@pytest.mark.long
def test_an_earlier_export_is_replaced_which_is_said_and_no_other_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="transformer_cli")
    trained, out = random_run(tmp_path / "run"), tmp_path / "out"
    export_run(trained, CTranslate2Format(), out, lines=ENGLISH)
    assert "replaced" not in caplog.text
    (out / "config.json").unlink()
    export_run(trained, CTranslate2Format(), out, lines=ENGLISH)
    assert f"{out}: replaced what was exported there before" in caplog.text
    assert (out / "config.json").is_file()
    (out / RECORD).unlink()
    with pytest.raises(CannotCreateError, match="not an earlier export"):
        export_run(trained, CTranslate2Format(), out, lines=ENGLISH)


def test_quantising_makes_the_model_smaller_and_leaves_the_run_as_it_is(tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run", d_model=32, d_ff=64)
    before = {name: value.clone() for name, value in trained.model.state_dict().items()}
    form = CTranslate2Format()
    sizes = {}
    both: tuple[Quantization | None, ...] = (None, "int8")
    for quantization in both:
        folder = tmp_path / str(quantization)
        folder.mkdir()
        form.write(trained, folder, quantization=quantization)
        sizes[quantization] = (folder / "model.bin").stat().st_size
    num_in_matrices = sum(value.numel() for value in before.values() if value.dim() == 2)
    assert sizes[None] - sizes["int8"] > 2.5 * num_in_matrices, "almost 3 of 4 bytes"
    for name, value in trained.model.state_dict().items():
        assert value.equal(before[name]), name
