"""Folders for transformers: it translates as the run does, also a run that was imported before."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from transformer_cli.checkpoint.trained_files import TrainedModel, load_trained
from transformer_cli.config import DecodingConfig, TokenizerConfig
from transformer_cli.extensions.exchange.export import export_run
from transformer_cli.extensions.exchange.export_format import Quantization
from transformer_cli.extensions.exchange.hugging_face import HuggingFaceFormat
from transformer_cli.extensions.exchange.import_folder import import_folder
from transformer_cli.extensions.exchange.model_folder import NamedLanguages
from transformer_cli.extensions.exchange.own_folder import RECORD
from transformer_cli.process.errors import ConfigError, DataError, UsageError

from .marian_folders import write_marian
from .small_runs import ENGLISH, ITALIAN, random_run

BPE = TokenizerConfig(kind="bpe", vocab_size=300)
SHARED_BPE = BPE.model_copy(update={"shared": True})
UNIGRAM = TokenizerConfig(kind="unigram", vocab_size=300)
RUNS: dict[str, dict[str, Any]] = {
    "pre-norm, whole words": {},
    "pre-norm, unigram, learned positions": {"tokenizer": UNIGRAM, "positions": "learned"},
    "post-norm, one table": {
        "norm_placement": "post",
        "decoder_layers": 1,
        "tie_embeddings": "all",
        "tokenizer": SHARED_BPE,
    },
    "post-norm, one vocabulary, two tables": {"norm_placement": "post", "tokenizer": SHARED_BPE},
    "post-norm, two vocabularies, three tables": {
        "norm_placement": "post",
        "tie_embeddings": "none",
        "tokenizer": BPE,
    },
    "norm of embeddings": {"norm_placement": "post", "embedding_norm": True, "tokenizer": BPE},
    "both directions": {"tokenizer": BPE, "both_directions": True},
}


@pytest.mark.heavy
@pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS)
def test_the_folder_translates_as_the_run_does(changes: dict[str, Any], tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run", **changes)
    lines = [*ENGLISH, *ITALIAN]
    exported = export_run(trained, HuggingFaceFormat(), tmp_path / "out", lines=lines)
    [agreement] = exported.agreements
    assert agreement.num_texts >= 10
    assert agreement.num_tokens > 100
    assert agreement.engine.startswith("transformers ")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "tfm",
        "README.md",
        RECORD,
    }


def export(trained: TrainedModel, folder: Path, **options: Any) -> Path:
    return export_run(trained, HuggingFaceFormat(), folder, lines=ENGLISH, **options).path


class OtherWeights(HuggingFaceFormat):
    """Exports the model with one changed weight."""

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        super().write(trained, path, quantization=quantization)
        tensors = load_file(path / "model.safetensors")
        tensors["model.decoder.layers.1.fc2.weight"] *= -1.0
        save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})


class OtherTokens(HuggingFaceFormat):
    """Exports a tokenizer with two exchanged entries."""

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        super().write(trained, path, quantization=quantization)
        content = json.loads((path / "tokenizer.json").read_text())
        vocabulary = content["model"]["vocab"]
        first, second = vocabulary[" The"], vocabulary[" Where"]
        vocabulary |= {" The": second, " Where": first}
        (path / "tokenizer.json").write_text(json.dumps(content))


class OtherText(HuggingFaceFormat):
    """Exports a tokenizer that joins tokens in another way."""

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        super().write(trained, path, quantization=quantization)
        content = json.loads((path / "tokenizer.json").read_text())
        (path / "tokenizer.json").write_text(json.dumps(content | {"decoder": {"type": "Fuse"}}))


@pytest.mark.long
@pytest.mark.parametrize(
    ("format_", "problem"),
    [
        (OtherWeights(), "token [0-9]+ of its translation is another one"),
        (OtherTokens(), "its tokenizer gives other ids"),
        (OtherText(), "it detokenises in another way"),
    ],
)
def test_a_folder_that_translates_otherwise_is_an_error_and_leaves_nothing(
    format_: HuggingFaceFormat, problem: str, tmp_path: Path
) -> None:
    trained = random_run(tmp_path / "run")
    with pytest.raises(DataError, match=problem):
        export_run(trained, format_, tmp_path / "out", lines=ENGLISH)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_settings_in_the_way_are_named_with_the_formats_that_can(tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run", activation="swiglu", norm="rmsnorm")
    with pytest.raises(ConfigError, match=r"model\.norm: rmsnorm .*; model\.activation: swiglu") as refused:
        export(trained, tmp_path / "out")
    assert "ctranslate2" in str(refused.value.hint)
    assert not (tmp_path / "out").exists()


def test_quantised_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--quantize int8: --to hf stores weights in float32 only"):
        export(random_run(tmp_path / "run"), tmp_path / "out", quantization="int8")
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_the_settings_of_decoding_are_those_of_the_run(tmp_path: Path) -> None:
    from transformers import GenerationConfig

    decoding = DecodingConfig(beam_size=3, length_penalty=0.8, length_normalization="average", max_length=33)
    trained = random_run(tmp_path / "run", decoding=decoding)
    found = GenerationConfig.from_pretrained(export(trained, tmp_path / "out"))
    assert (found.num_beams, found.length_penalty, found.max_length) == (3, 0.8, 34)
    assert found.forced_eos_token_id is None
    assert sorted(found.bad_words_ids) == [[0], [1], [2]]


@pytest.mark.long
def test_the_readme_is_code_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = random_run(tmp_path / "run", tokenizer=BPE, both_directions=True)
    folder = export(trained, tmp_path / "out")
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert len(eval(capsys.readouterr().out)) == 1


pytest.importorskip("sentencepiece")

SENTENCES = ["The cat sleeps.", "Where is the station?", "I see 2 red cars!", "She doesn't know."]
UNLISTED = "Zyx qwv; xylophones."
FOLDERS: dict[str, dict[str, Any]] = {
    "one vocabulary": {},
    "two vocabularies": {"separate_vocabs": True},
    "several target languages": {"codes": (">>fra<<", ">>ita<<")},
}


@pytest.mark.heavy
@pytest.mark.parametrize("changes", FOLDERS.values(), ids=FOLDERS)
def test_the_folder_gives_the_logits_of_the_original(changes: dict[str, Any], tmp_path: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    original = write_marian(tmp_path / "opus-mt-en-it", **changes)
    named = NamedLanguages("en", ("fra", "ita")) if "codes" in changes else NamedLanguages("en", ("it",))
    _, run = import_folder(original, "marian", named, runs_folder=tmp_path / "runs")
    trained = load_trained(run.path)
    lines = [*SENTENCES, UNLISTED]
    folder = export_run(trained, HuggingFaceFormat(), tmp_path / "out", lines=lines).path
    source, target = trained.source_tokenizer, trained.target_tokenizer
    old_tokenizer, tokenizer = (AutoTokenizer.from_pretrained(one) for one in (original, folder))
    old_model, model = (AutoModelForSeq2SeqLM.from_pretrained(one).eval() for one in (original, folder))
    tags = (">>ita<< ", "<2ita>") if "codes" in changes else ("", "")
    prefix = [target.sos_id, *range(20, 26)]
    old_entries = old_tokenizer.get_vocab()
    if changes.get("separate_vocabs"):
        old_entries = old_tokenizer.target_encoder
    # Special tokens have other names; these are ordinary ones.
    old_prefix = [
        old_model.config.pad_token_id,
        *(old_entries[target.entries[i]] for i in prefix[1:]),
    ]
    columns = range(20, 60)
    old_columns = [old_entries[target.entries[index]] for index in columns]
    for sentence in lines:
        old_ids = old_tokenizer(tags[0] + sentence, return_tensors="pt")["input_ids"]
        ids = tokenizer(tags[1] + sentence, return_tensors="pt")["input_ids"]
        assert ids.shape == old_ids.shape
        with torch.inference_mode():
            expected = old_model(input_ids=old_ids, decoder_input_ids=torch.tensor([old_prefix]))
            found = model(input_ids=ids, decoder_input_ids=torch.tensor([prefix]))
        difference = found.logits[..., columns] - expected.logits[..., old_columns]
        assert difference.abs().max() < 1e-4
    assert source.parts.layout.is_sentencepiece
