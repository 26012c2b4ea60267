"""`--to marian` and `tfm import model.npz`: each model is the same on both sides, and damaged files are refused by name."""

import io
import json
import math
import os
import pickle
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from transformer_cli.checkpoint.trained_files import TrainedModel, load_trained
from transformer_cli.config import DecodingConfig, ModelConfig, TokenizerConfig, load_config
from transformer_cli.decoding import Request
from transformer_cli.extensions.exchange.binary_shortlist import BinaryShortlist
from transformer_cli.extensions.exchange.export import (
    FORMATS,
    export_run,
    float32_translator,
    possible_formats,
)
from transformer_cli.extensions.exchange.import_folder import import_folder
from transformer_cli.extensions.exchange.marian import (
    MarianFolder,
    MarianFormat,
    marian_files,
    marian_vocabulary,
    our_rows,
)
from transformer_cli.extensions.exchange.marian_format import (
    SETTINGS,
    marian_parts,
    model_config,
    npz_content,
    read_npz,
    settings_of,
    shape_of,
)
from transformer_cli.extensions.exchange.marian_import import (
    import_marian,
    model_file,
    note_of_shortlist,
    search_of,
    vocabulary_files,
)
from transformer_cli.extensions.exchange.marian_reading import MarianModel
from transformer_cli.extensions.exchange.model_folder import ModelFolder, NamedLanguages, folder_languages
from transformer_cli.process.errors import (
    CannotCreateError,
    ConfigError,
    DataError,
    MissingInputError,
    UsageError,
)
from transformer_cli.text import Tokenizer
from transformer_cli.training import train

from .small_runs import ENGLISH, ITALIAN, random_run

MARIAN = {
    "start_embedding": "zero",
    "positions": "sinusoidal_marian",
    "norm_eps": 1e-6,
    "norm_placement": "post",
}
SPM = TokenizerConfig(kind="sentencepiece", vocab_size=120)
BPE = TokenizerConfig(kind="sentencepiece", vocab_size=130, algorithm="bpe", shared=True)
BYTES = TokenizerConfig(kind="sentencepiece", vocab_size=400, byte_fallback=True, user_symbols=("<x>",), shared=True)
MODELS: dict[str, tuple[dict[str, Any], TokenizerConfig]] = {
    "post-norm, two vocabularies": ({}, SPM),
    "post-norm, one table": ({"tie_embeddings": "all"}, BPE),
    "pre-norm, silu": ({"norm_placement": "pre", "activation": "silu"}, SPM),
    "pre-norm without a last norm": ({"norm_placement": "pre", "final_norm": False}, SPM),
    "untied": ({"tie_embeddings": "none", "encoder_layers": 3, "decoder_layers": 1}, SPM),
    "norms inside the residual": ({"norm_placement": "residual_of_normed"}, SPM),
    "rmsnorm, norms of embeddings": ({"norm": "rmsnorm", "embedding_norm": True}, SPM),
    "post-norm with a last norm": ({"final_norm": True, "embedding_norm": True}, SPM),
    "no biases": (
        {"attention_bias": False, "feed_forward_bias": False, "output_bias": False},
        SPM,
    ),
    "bytes and symbols": ({"tie_embeddings": "all"}, BYTES),
}
if "decoder_layer" in ModelConfig.model_fields:
    MODELS["ssru, post-norm"] = {"decoder_layer": "ssru", "tie_embeddings": "all"}, BPE
    MODELS["ssru, norm before"] = {"decoder_layer": "ssru", "norm_placement": "pre"}, SPM
LINES = [*ENGLISH, "The cat \u0192 <x>.", "a", "", "We see the \ufb01ne dog on the chair"]
LANGUAGES = NamedLanguages("en", ("it",))


def run_of(case: str, folder: Path) -> TrainedModel:
    changes, tokenizer = MODELS[case]
    return random_run(folder, tokenizer=tokenizer, **{**MARIAN, **changes})


def written(trained: TrainedModel, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in marian_files(trained).items():
        (folder / name).write_bytes(content)
    return folder


def our_log_probs(trained: TrainedModel, source: list[int], target: list[int]) -> np.ndarray:
    """(T, V) of our ids, where padding and start have no probability, as in Marian."""
    before = torch.tensor([[Tokenizer.sos_id, *target[:-1]]])
    with torch.inference_mode():
        logits = trained.model(torch.tensor([source]), None, before)[0]
        logits[:, [Tokenizer.pad_id, Tokenizer.sos_id]] = -1e9
        return logits.log_softmax(-1).numpy()


@pytest.mark.long
@pytest.mark.parametrize("case", MODELS)
def test_the_files_give_the_log_probabilities_of_the_model(case: str, tmp_path: Path) -> None:
    trained = run_of(case, tmp_path / "run")
    folder = written(trained, tmp_path / "out")
    found = read_npz(folder / "model.npz")
    exact = {name: array.astype(np.float64) for name, array in found.arrays.items()}
    reading = MarianModel(exact, found.settings)
    trained.model.double()
    of_source, of_target = map(our_rows, (trained.source_tokenizer, trained.target_tokenizer))
    rows = marian_vocabulary(trained.target_tokenizer).rows
    sources = [[*trained.source_tokenizer.encode(line), Tokenizer.eos_id] for line in ENGLISH]
    targets = [[*trained.target_tokenizer.encode(line), Tokenizer.eos_id] for line in ITALIAN]
    theirs = reading.log_probs(
        [[of_source[one] for one in ids] for ids in sources],
        [[of_target[one] for one in ids] for ids in targets],
    )
    for source, target, expected in zip(sources, targets, theirs, strict=True):
        ours = our_log_probs(trained, source, target)[:, rows]
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.heavy
@pytest.mark.parametrize("case", MODELS)
def test_a_model_comes_back_as_it_was(case: str, tmp_path: Path) -> None:
    trained = run_of(case, tmp_path / "run")
    folder = written(trained, tmp_path / "out")
    imported, run = import_folder(folder / "model.npz", "back", LANGUAGES, runs_folder=tmp_path / "runs")
    back = load_trained(run.path)
    for side in ("source_tokenizer", "target_tokenizer"):
        assert getattr(back, side).to_file() == getattr(trained, side).to_file()
    state, expected = back.model.state_dict(), trained.model.state_dict()
    lost = [Tokenizer.pad_id, Tokenizer.sos_id]
    for name, tensor in expected.items():
        if name.startswith(("output", "target_embedding", "source_embedding")):
            tensor, state[name] = tensor.clone(), state[name].clone()
            tensor[lost] = state[name][lost] = 0.0
        torch.testing.assert_close(state[name], tensor, rtol=0, atol=0)
    added = state.keys() - expected.keys()
    assert all(state[name][Tokenizer.eos_id :].abs().max() == 0.0 for name in added)
    model, wanted = back.config.model, trained.config.model
    assert model.has_final_norm == wanted.has_final_norm
    for name in ("norm", "norm_placement", "activation", "tie_embeddings", "embedding_norm"):
        assert getattr(model, name) == getattr(wanted, name)
    assert imported.config.data.directions[0].source == "en"


@pytest.mark.long
@pytest.mark.parametrize("case", ["post-norm, one table", "pre-norm, silu", "bytes and symbols"])
def test_the_written_vocabularies_cut_and_join_text_as_ours_do(case: str, tmp_path: Path) -> None:
    trained = run_of(case, tmp_path / "run")
    folder = written(trained, tmp_path / "out")
    engine = MarianFolder(folder)
    for line, one in zip(LINES, engine.decode(LINES, [9] * len(LINES)), strict=True):
        assert one.source_ids == (*trained.source_tokenizer.encode(line), Tokenizer.eos_id)
        if trained.target_tokenizer.has_whole_characters(one.target_ids):
            assert one.text == trained.target_tokenizer.decode(one.target_ids)


def test_the_vocabulary_has_the_ids_that_programs_for_marian_expect(tmp_path: Path) -> None:
    trained = run_of("post-norm, one table", tmp_path / "run")
    library = SentencePieceProcessor(model_file=str(written(trained, tmp_path / "out") / "vocab.spm"))
    assert [library.id_to_piece(index) for index in range(2)] == ["</s>", "<unk>"]
    assert (library.eos_id(), library.unk_id()) == (0, 1)
    assert library.bos_id() == library.pad_id() == -1
    assert library.vocab_size() == trained.target_tokenizer.vocab_size - 2
    config = yaml.safe_load((tmp_path / "out" / "decoder.yml").read_text())
    assert config["vocabs"] == ["vocab.spm", "vocab.spm"]
    assert config["relative-paths"] is True


@pytest.mark.heavy
def test_an_export_is_checked_and_comes_back_with_its_config(tmp_path: Path) -> None:
    trained = run_of("untied", tmp_path / "run")
    exported = export_run(trained, MarianFormat(), tmp_path / "out", lines=ENGLISH)
    [agreement] = exported.agreements
    assert agreement.num_texts >= len(ENGLISH)
    imported, run = import_folder(tmp_path / "out", "back", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert imported.config.training == trained.config.training
    assert "they differ by a share of at most" in run.compared[0]
    assert load_trained(run.path).source_tokenizer.to_file() == trained.source_tokenizer.to_file()


@pytest.mark.long
def test_an_export_of_a_model_without_biases_comes_back_without_them(tmp_path: Path) -> None:
    trained = run_of("no biases", tmp_path / "run")
    export_run(trained, MarianFormat(), tmp_path / "out", lines=ENGLISH)
    _, run = import_folder(tmp_path / "out", "back", NamedLanguages(), runs_folder=tmp_path / "runs")
    state = load_trained(run.path).model.state_dict()
    for name, tensor in trained.model.state_dict().items():
        if name != "output.weight":  # [PAD] and [SOS] have no rows in Marian
            assert torch.equal(state[name], tensor) or name.endswith("embedding.weight")
    assert state.keys() == trained.model.state_dict().keys()
    found = read_npz(tmp_path / "out/model.npz")
    found.arrays["encoder_l1_self_bq"] += 1.0
    (tmp_path / "out/model.npz").write_bytes(npz_content(found.arrays, found.settings))
    with pytest.raises(DataError, match="encoder_l1_self_bq is not zero, but the model was exported without") as caught:
        import_folder(tmp_path / "out", "again", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert "tfm import" in str(caught.value.hint)
    import_folder(tmp_path / "out/model.npz", "file", LANGUAGES, runs_folder=tmp_path / "runs")


@pytest.mark.long
def test_a_wrong_matrix_is_noticed_by_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = run_of("untied", tmp_path / "run")

    def swapped(part: Any) -> Any:
        other = {"decoder_l1_self_Wq": "decoder_l1_self_Wk", "decoder_l1_self_Wk": "decoder_l1_self_Wq"}
        return part._replace(theirs=other.get(part.theirs, part.theirs))

    monkeypatch.setattr(
        "transformer_cli.extensions.exchange.marian.marian_parts",
        lambda config: map(swapped, marian_parts(config)),
    )
    with pytest.raises(DataError, match="the exported model does not agree with this one"):
        export_run(trained, MarianFormat(), tmp_path / "out", lines=ENGLISH)
    assert not (tmp_path / "out").exists()


# What the format cannot say.


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"start_embedding": "learned"}, "model.start_embedding: learned"),
        ({"positions": "sinusoidal"}, "model.positions: sinusoidal"),
        ({"positions": "rotary"}, "model.positions: rotary"),
        ({"norm_eps": 1e-5}, "model.norm_eps: 1e-05"),
        ({"norm": "std_layernorm"}, "model.norm: std_layernorm"),
        ({"activation": "gelu"}, "model.activation: gelu"),
        ({"activation": "swiglu"}, "model.activation: swiglu"),
        ({"num_kv_heads": 1}, "model.num_kv_heads: 1"),
        ({"head_dim": 4}, "model.head_dim: 4"),
        ({"qk_norm": True}, "model.qk_norm: true"),
        ({"scale_embeddings": False}, "model.scale_embeddings: false"),
        ({"norm_placement": "pre"}, "model.norm_placement: pre"),
    ],
)
def test_a_setting_that_marian_lacks_is_named(changes: dict[str, Any], setting: str, tmp_path: Path) -> None:
    trained = random_run(tmp_path / "run", tokenizer=SPM, **{**MARIAN, **changes})
    with pytest.raises(ConfigError) as caught:
        export_run(trained, MarianFormat(), tmp_path / "out")
    assert f"{setting} (" in caught.value.message
    assert not (tmp_path / "out").exists()


def test_another_tokenizer_and_tags_are_named(tmp_path: Path) -> None:
    bpe = TokenizerConfig(kind="bpe", vocab_size=300, shared=True)
    trained = random_run(tmp_path / "run", tokenizer=bpe, both_directions=True, **MARIAN)
    found = [one.setting for one in possible_formats(trained.config)["marian"]]
    assert found == ["tokenizer.kind: bpe", "data: a target language that is named by a tag"]
    assert MarianFormat() in FORMATS


# Settings in both directions.


@pytest.mark.parametrize("case", MODELS)
def test_settings_read_back_as_those_that_were_written(case: str) -> None:
    changes, _ = MODELS[case]
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 24, "encoder_layers": 1, "decoder_layers": 2}
    config = ModelConfig.model_validate({**sizes, **MARIAN, **changes})
    found = model_config(settings_of(config, (5, 6)), "model")
    assert settings_of(found, (5, 6)) == settings_of(config, (5, 6))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "s2s"}, "type: 's2s': only Transformers"),
        ({"transformer-decoder-autoreg": "average-attention"}, "transformer-decoder-autoreg: 'average-attention'"),
        (
            {"transformer-decoder-autoreg": "rnn", "dec-cell": "gru"},
            r"transformer-decoder-autoreg: 'rnn': .*dec-cell: gru",
        ),
        ({"transformer-ffn-activation": "gelu"}, "transformer-ffn-activation: 'gelu'"),
        ({"transformer-postprocess": "dahn"}, "transformer-postprocess: 'dahn'"),
        ({"transformer-preprocess": "n", "transformer-postprocess": "dan"}, "transformer-postprocess"),
        ({"transformer-postprocess-top": "an"}, "transformer-postprocess-top"),
        ({"transformer-train-position-embeddings": True}, "transformer-train-position-embeddings: True"),
        ({"transformer-tied-layers": [1, 1]}, "transformer-tied-layers"),
        ({"transformer-decoder-dim-ffn": 99}, "transformer-decoder-dim-ffn: 99"),
        ({"right-left": True}, "right-left: True"),
        ({"input-types": ["sequence", "class"]}, "input-types"),
        ({"dim-emb": "wide"}, "dim-emb: 'wide' is no whole number"),
        ({"transformer-heads": 3}, r"these sizes fit no model of ours: d_model \(\d+\) must be a multiple"),
        ({"transformer-ffn-activation": ["relu"]}, r"transformer-ffn-activation: \['relu'\]: we have"),
        ({"input-types": 5}, "input-types: 5: our models read text"),
    ],
)
def test_a_setting_that_we_lack_is_named(changes: dict[str, Any], message: str) -> None:
    config = ModelConfig.model_validate(
        {"d_model": 16, "num_heads": 2, "d_ff": 24, "encoder_layers": 1, "decoder_layers": 1, **MARIAN}
    )
    with pytest.raises(DataError, match=message):
        model_config({**settings_of(config, (5, 6)), **changes}, "model")


def test_the_search_of_decoder_yml_is_taken_over() -> None:
    found = search_of({"beam-size": 6, "normalize": 0.7, "max-length-factor": 2})
    assert (found.beam_size, found.length_penalty, found.max_length_ratio) == (6, 0.7, 2.0)
    assert found.length_normalization == "average"
    assert not found.allow_unknown
    assert search_of({"beam-size": 100}).beam_size == 64
    assert search_of({}).length_penalty == 0.0
    for normalize in ("x", float("nan")):
        assert search_of({"beam-size": "many", "normalize": normalize}).length_penalty == 0.0


def test_the_candidates_of_a_shortlist_that_do_not_fit_are_counted() -> None:
    def note(*lengths: int) -> str:
        starts = np.cumsum([0, *lengths])
        return note_of_shortlist(BinaryShortlist(50, max(lengths), starts, np.zeros(starts[-1], np.int64)))

    assert "left out" not in note(250, 3)
    assert "; 60 candidates of tokens that have more than 250 are left out" in note(300, 260, 1)
    assert "best: 250" in note(300)


# Files as Marian itself writes them, and files of others.


OF_MARIAN = {"bos_id": -1, "eos_id": 0, "unk_id": 1}


def foreign_folder(folder: Path, *, is_tied: bool = True, spm: dict[str, int] = OF_MARIAN, **changes: Any) -> Path:
    """A random model with vocabularies as Marian learns them, or with other ids of special tokens, in the files that it writes."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = (("v.spm", [*ENGLISH, *ITALIAN]),) * 2
    if not is_tied:
        sides = (("v.en.spm", ENGLISH), ("v.it.spm", ITALIAN))
    for name, texts in sides:
        learned = io.BytesIO()
        SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=learned,
            vocab_size=70,
            minloglevel=2,
            hard_vocab_limit=False,
            **spm,
        )
        (folder / name).write_bytes(learned.getvalue())
    sizes = [SentencePieceProcessor(model_file=str(folder / name)).vocab_size() for name, _ in sides]
    settings = {"d_model": 16, "num_heads": 2, "d_ff": 24, "encoder_layers": 1, "decoder_layers": 2}
    tied = {"tie_embeddings": "all" if is_tied else "target-output"}
    config = ModelConfig.model_validate({**settings, **MARIAN, **tied})
    numbers = np.random.default_rng(1)
    vocab_sizes = sizes[0], sizes[1]
    arrays = {
        part.theirs: numbers.normal(0, 0.5, shape_of(part, config, vocab_sizes)).astype(np.float32)
        for part in marian_parts(config)
    }
    of_model = {**settings_of(config, vocab_sizes), "version": "v1.12.42 b7be0e964 2025", **changes}
    (folder / "model.npz").write_bytes(npz_content(arrays, of_model))
    names = [name for name, _ in sides]
    search = {
        "relative-paths": False,
        "models": ["/x/model.npz"],
        "vocabs": [f"/x/{one}" for one in names],
        "beam-size": 4,
        "normalize": 1,
        "word-penalty": 0,
    }
    (folder / "model.npz.decoder.yml").write_text(yaml.safe_dump(search))
    return folder


@pytest.mark.long
@pytest.mark.parametrize("is_tied", [True, False])
def test_a_foreign_model_translates_as_its_files_say(is_tied: bool, tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path / "en-it", is_tied=is_tied)
    imported, run = import_folder(folder, "foreign", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert str(imported.config.data.directions[0]) == "en-it"
    trained = load_trained(run.path)
    found = read_npz(folder / "model.npz")
    names = ["v.spm", "v.spm"] if is_tied else ["v.en.spm", "v.it.spm"]
    source, target = (SentencePieceProcessor(model_file=str(folder / name)) for name in names)
    encoded = [[*source.encode(line), 0] for line in LINES]
    expected = MarianModel(found.arrays, found.settings).greedy(
        encoded, [3 * len(ids) for ids in encoded], end=0, banned=[1]
    )
    translator = float32_translator(trained, 1)
    decoding = trained.config.decoding.best_of_beam(1)
    requests = [Request((*trained.source_tokenizer.encode(line), Tokenizer.eos_id)) for line in LINES]
    ours = translator.engine.translate(requests, decoding)
    texts = [trained.target_tokenizer.decode(one[0].ids) for one in ours]
    assert texts == [target.decode([one for one in ids if one]) for ids in expected]


def test_the_text_of_an_imported_run_has_the_pieces_of_its_vocabulary(tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path / "m")
    imported = import_marian(folder / "model.npz", "a", LANGUAGES)
    assert imported.notes == ()
    library = SentencePieceProcessor(model_file=str(folder / "v.spm"))
    for line in LINES:
        ids = imported.tokenizers[0].encode(line)
        pieces = [library.id_to_piece(index) for index in library.encode(line)]
        entries = [imported.tokenizers[0].entries[index] for index in ids]
        assert [one.replace("[UNK]", "<unk>") for one in entries] == pieces


@pytest.mark.heavy
def test_an_imported_run_is_fine_tuned_and_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = foreign_folder(tmp_path / "en-it")
    _, run = import_folder(folder, "foreign", NamedLanguages())
    sides = list(zip(ENGLISH, ITALIAN, strict=True))
    pairs = "".join(f"{a} {n}\t{b} {n}\n" for a, b in sides for n in range(20))
    Path("corpus.tsv").write_text(pairs)
    changes = [
        "name=tuned",
        "training.init_from=foreign",
        "training.max_steps=20",
        "training.max_epochs=null",
        "training.learning_rate=0.01",
        "training.warmup_steps=2",
        "training.batch_tokens=500",
        "training.update_tokens=300",
        "training.validate_every=20",
        "training.save_every=20",
        "training.log_every=1",
        "training.best_metric=loss",
        "data.corpora.0.path=corpus.tsv",
        "data.validation_share=0.2",
        "data.test_share=0.0",
        "training.unigram_alpha=0.3",
        "runtime.device=cpu",
        "validation.scores=[]",
        "validation.num_samples=0",
    ]
    train(load_config(run.path / "config.yaml", changes))
    tuned = load_trained(Path("runs/tuned"))
    rows = [json.loads(line) for line in Path("runs/tuned/metrics.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in rows if "loss" in row]
    assert losses[-1] < losses[0] - 0.5
    assert tuned.model.state_dict()["output.weight"][Tokenizer.sos_id].abs().max() == 0.0
    back = written(tuned, tmp_path / "back")
    again = import_marian(back / "model.npz", "again", LANGUAGES)
    assert again.tokenizers[0].to_file() == tuned.source_tokenizer.to_file()


@pytest.mark.long
@pytest.mark.parametrize("is_tied", [True, False])
def test_a_vocabulary_with_an_entry_for_the_start_is_another_token_than_ours(is_tied: bool, tmp_path: Path) -> None:
    """`spm_train` learns <s> unless it is told not to; its row counts in the output, while a decoder of Marian starts with zeros."""
    folder = foreign_folder(tmp_path / "en-it", is_tied=is_tied, spm={"pad_id": 3})  # and <unk> 0, <s> 1, </s> 2
    imported, run = import_folder(folder, "foreign", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert float(run.compared[0].rsplit(" ", 1)[1]) < 1e-6
    output = read_npz(folder / "model.npz").arrays["Wemb" if is_tied else "decoder_Wemb"]
    ours = load_trained(run.path).model.state_dict()["output.weight"]
    np.testing.assert_array_equal(ours[[0, 1, 3]].numpy(), output[[0, 3, 2]])
    assert ours[Tokenizer.sos_id].abs().max() == 0.0
    assert (ours.numpy() == output[1]).all(1).sum() == 1
    for line in LINES:
        assert Tokenizer.sos_id not in imported.tokenizers[0].encode(line)


@pytest.mark.long
def test_a_vocabulary_in_yaml_may_have_padding(tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path / "en-it", spm={"pad_id": 3})
    library = SentencePieceProcessor(model_file=str(folder / "v.spm"))
    entries = [library.id_to_piece(index) for index in range(library.vocab_size())]
    (folder / "vocab.yml").write_text("".join(f"{json.dumps(one)}: {index}\n" for index, one in enumerate(entries)))
    (folder / "model.npz.decoder.yml").write_text(yaml.safe_dump({"vocabs": ["vocab.yml", "vocab.yml"]}))
    _, run = import_folder(folder, "x", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert float(run.compared[0].rsplit(" ", 1)[1]) < 1e-6


@pytest.mark.long
def test_a_vocabulary_in_yaml_is_taken_with_its_sentencepiece_models(tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path / "en-it")
    library = SentencePieceProcessor(model_file=str(folder / "v.spm"))
    entries = [library.id_to_piece(index) for index in range(library.vocab_size())]
    text = "".join(f"{json.dumps(entry)}: {index}\n" for index, entry in enumerate(entries))
    (folder / "vocab.yml").write_text(text)
    search = {"vocabs": ["vocab.yml", "vocab.yml"], "normalize": 1, "beam-size": 2}
    (folder / "model.npz.decoder.yml").write_text(yaml.safe_dump(search))
    of_one, _ = import_folder(folder, "x", NamedLanguages(), runs_folder=tmp_path / "runs")
    content = (folder / "v.spm").read_bytes()
    (folder / "v.spm").unlink()
    with pytest.raises(DataError, match=r"there is no source\.spm and no target\.spm") as caught:
        import_marian(folder / "model.npz", "a", NamedLanguages())
    assert "SentencePiece" in str(caught.value.hint)
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(content)
    of_yaml, run = import_folder(folder, "y", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert float(run.compared[0].rsplit(" ", 1)[1]) < 1e-6
    for line in ENGLISH:
        ids = of_yaml.tokenizers[0].encode(line)
        expected = [library.id_to_piece(index) for index in library.encode(line)]
        found = [of_yaml.tokenizers[0].entries[index] for index in ids]
        assert [one.replace("[UNK]", "<unk>") for one in found] == expected
        assert of_one.tokenizers[0].encode(line) == ids


def folder_of_words(folder: Path, *words: str) -> Path:
    """A random model as Marian writes it, whose vocabulary is these words and further ones."""
    foreign_folder(folder)
    size = SentencePieceProcessor(model_file=str(folder / "v.spm")).vocab_size()
    (folder / "v.spm").unlink()
    entries = [*words, "</s>", "<unk>", *(f"word{number}" for number in range(size))][:size]
    (folder / "vocab.yml").write_text("".join(f"{json.dumps(one)}: {index}\n" for index, one in enumerate(entries)))
    search = {"vocabs": ["vocab.yml", "vocab.yml"], "normalize": 0, "beam-size": 1}
    (folder / "model.npz.decoder.yml").write_text(yaml.safe_dump(search))
    return folder


def test_a_vocabulary_of_parts_of_words_is_refused_by_its_name(tmp_path: Path) -> None:
    folder = folder_of_words(tmp_path / "en-it", "the", "wor@@", "d")
    with pytest.raises(DataError, match="nothing says how text is cut") as caught:
        import_marian(folder / "model.npz", "a", NamedLanguages())
    assert "subword-nmt" in str(caught.value.hint)


@pytest.mark.long
def test_words_stand_between_spaces_if_the_vocabulary_has_whole_words(tmp_path: Path) -> None:
    folder = folder_of_words(tmp_path / "en-it", "the", "cat", ".", "cat.", "dog\u00a0s", "#1;", "[PAD]")
    found, run = import_folder(folder, "words", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert float(run.compared[0].rsplit(" ", 1)[1]) < 1e-6
    trained = load_trained(tmp_path / "runs" / "words")
    for tokenizer in (found.tokenizers[0], trained.source_tokenizer, trained.target_tokenizer):
        ids = tokenizer.encode("  the cat . cat. the, dog\u00a0s #1; [EOS] </s> [PAD] cat ")
        words = ["the", "cat", ".", "cat.", None, "dog\u00a0s", "#1;", None, None, "[PAD]", "cat"]
        unknown = tokenizer.unk_id
        expected = [unknown if one is None else tokenizer.entries.index(f" {one}") for one in words]
        assert ids == expected
        assert tokenizer.decode([one for one in ids if one != unknown]) == "the cat . cat. dog\u00a0s #1; [PAD] cat"
        assert tokenizer.decode([*ids[:2], unknown, tokenizer.eos_id]) == "the cat [UNK]"
    assert trained.source_tokenizer is trained.target_tokenizer


@pytest.mark.parametrize("entry", ["", "two words"])
def test_an_entry_that_can_be_no_word_is_named(entry: str, tmp_path: Path) -> None:
    folder = folder_of_words(tmp_path / "en-it", "the", entry)
    with pytest.raises(DataError, match="which cannot be a word between spaces") as caught:
        import_marian(folder / "model.npz", "a", NamedLanguages())
    assert repr(entry) in str(caught.value)


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("</s>: 0\n<unk>: 1\nthe: 3\n", "the ids of the vocabulary are not 0, 1, 2"),
        ("</s>: 0\n<unk>: 1\nthe: 1\n", "the ids of the vocabulary are not 0, 1, 2"),
        ("</s>: 0\n<unk>: 1\nthe: two\n", "not a vocabulary"),
        ("- the\n- cat\n", "not a vocabulary"),
        ("the: 0\n\tcat: [", "not a vocabulary"),
        ("<unk>: 0\nthe: 1\n", "there is no entry </s>"),
        ("", "not a vocabulary"),
    ],
)
def test_a_damaged_vocabulary_in_yaml_is_refused(content: str, message: str, tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path / "en-it")
    (folder / "vocab.yml").write_text(content)
    (folder / "model.npz.decoder.yml").write_text(yaml.safe_dump({"vocabs": ["vocab.yml", "vocab.yml"]}))
    with pytest.raises(DataError, match=message) as caught:
        import_marian(folder / "model.npz", "a", NamedLanguages())
    assert "vocab.yml" in str(caught.value)


@pytest.mark.long
def test_older_and_rarer_forms_of_the_output_are_read(tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path / "m", is_tied=False)
    found = read_npz(folder / "model.npz")
    arrays, settings = dict(found.arrays), {**found.settings, "tied-embeddings": False}
    arrays["decoder_ff_logit_out_W"] = (
        np.random.default_rng(2).normal(0, 0.5, arrays["decoder_Wemb"].T.shape).astype(np.float32)
    )
    settings["output-omit-bias"] = True
    del arrays["decoder_ff_logit_out_b"]
    (folder / "model.npz").write_bytes(npz_content(arrays, settings))
    imported, _ = import_folder(folder, "old", LANGUAGES, runs_folder=tmp_path / "runs")
    assert imported.config.model.tie_embeddings == "none"
    assert imported.state["output.bias"][Tokenizer.eos_id :].abs().max() == 0.0


# Damaged files.


def with_arrays(folder: Path, change: Callable[[dict[str, Any]], object], **settings: object) -> None:
    found = read_npz(folder / "model.npz")
    arrays: dict[str, Any] = dict(found.arrays)
    change(arrays)
    (folder / "model.npz").write_bytes(npz_content(arrays, {**found.settings, **settings}))


def compressed_and_changed(folder: Path) -> None:
    old = io.BytesIO((folder / "model.npz").read_bytes())
    path = folder / "model.npz"
    with zipfile.ZipFile(old) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.namelist():
            target.writestr(entry, source.read(entry))
        place = target.getinfo("Wemb.npy").header_offset
    content = bytearray(path.read_bytes())
    content[place + 30 + len("Wemb.npy")] |= 0b110  # a kind of block that does not exist
    path.write_bytes(content)


def twice(folder: Path) -> None:
    with (
        zipfile.ZipFile(folder / "model.npz", "a") as archive,
        pytest.warns(UserWarning, match="Duplicate name"),
    ):
        archive.writestr("decoder_l1_ffn_b1.npy", _head_of((0,)))


def _head_of(shape: tuple[int, ...]) -> bytes:
    head = io.BytesIO()
    form = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, form)
    return head.getvalue()


def shortened(folder: Path) -> None:
    content = (folder / "model.npz").read_bytes()
    (folder / "model.npz").write_bytes(content[: len(content) // 2])


def with_member(folder: Path, name: str, content: bytes) -> None:
    old = io.BytesIO((folder / "model.npz").read_bytes())
    with zipfile.ZipFile(old) as source, zipfile.ZipFile(folder / "model.npz", "w") as target:
        for entry in source.namelist():
            if entry != name:
                target.writestr(entry, source.read(entry))
        target.writestr(name, content)


class _Program:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("pickled",)


def pickled(folder: Path) -> None:
    array = io.BytesIO()
    np.lib.format.write_array(array, np.array([_Program()], dtype=object), allow_pickle=True)
    with_member(folder, "decoder_l1_ffn_b1.npy", array.getvalue())


def other_vocabulary(folder: Path) -> None:
    learned = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(ITALIAN),
        model_writer=learned,
        vocab_size=45,
        minloglevel=2,
        bos_id=-1,
        eos_id=0,
        unk_id=1,
        hard_vocab_limit=False,
    )
    (folder / "v.spm").write_bytes(learned.getvalue())


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a missing tensor": (
        lambda folder: with_arrays(folder, lambda arrays: arrays.pop("decoder_l2_self_Wq")),
        r"model\.npz: there is no tensor decoder_l2_self_Wq, of the shape \[16, 16\]",
    ),
    "a surplus tensor": (
        lambda folder: with_arrays(folder, lambda arrays: arrays.update(decoder_l3_ffn_W1=arrays["Wemb"])),
        r"model\.npz: tensor decoder_l3_ffn_W1 belongs to no part",
    ),
    "another shape": (
        lambda folder: with_arrays(
            folder, lambda arrays: arrays.update(encoder_l1_ffn_W1=arrays["encoder_l1_ffn_W1"].T)
        ),
        r"model\.npz: tensor encoder_l1_ffn_W1 has the shape \[24, 16\]; .* ask for \[16, 24\]",
    ),
    "NaN": (
        lambda folder: with_arrays(folder, lambda arrays: arrays.update(Wemb=arrays["Wemb"] * np.nan)),
        r"model\.npz: Wemb holds NaN or infinity",
    ),
    "whole numbers": (
        lambda folder: with_arrays(folder, lambda arrays: arrays.update(Wemb=arrays["Wemb"].astype(np.int8))),
        r"model\.npz: Wemb holds numbers of the type int8, not float32",
    ),
    "no settings": (
        lambda folder: (folder / "model.npz").write_bytes(_without_settings(folder)),
        "there is no special:model.yml in it",
    ),
    "settings that are no YAML": (
        lambda folder: with_member(folder, f"{SETTINGS}.npy", _array_of(b"a: [1\0")),
        "special:model.yml",
    ),
    "cut off": (shortened, r"model\.npz: not a zip archive, or cut off"),
    "a changed byte in compressed data": (
        compressed_and_changed,
        r"model\.npz: not a zip archive, or cut off: Error -3",
    ),
    "a tensor that stands there twice": (twice, r"model\.npz: decoder_l1_ffn_b1 stands in it twice"),
    "a size that no machine has": (
        lambda folder: with_member(folder, "decoder_l1_ffn_b1.npy", _head_of((10**13,))),
        r"model\.npz: decoder_l1_ffn_b1 is not an array of numbers",
    ),
    "vocabulary sizes that are no numbers": (
        lambda folder: with_arrays(folder, lambda arrays: arrays.pop("decoder_l2_self_Wq"), **{"dim-vocabs": []}),
        "there is no tensor decoder_l2_self_Wq",
    ),
    "a pickle": (pickled, r"model\.npz: decoder_l1_ffn_b1 is not an array of numbers"),
    "another file": (
        lambda folder: (folder / "model.npz").write_bytes(b"not an archive"),
        r"model\.npz: not a zip archive",
    ),
    "another vocabulary": (other_vocabulary, r"model\.npz: its vocabularies have \d+ and \d+ entries \(dim-vocabs\)"),
    "a damaged vocabulary": (
        lambda folder: (folder / "v.spm").write_bytes((folder / "v.spm").read_bytes()[:-9]),
        r"v\.spm: it is no model of SentencePiece, or cut off",
    ),
    "no vocabulary": (lambda folder: (folder / "v.spm").unlink(), r"v\.spm: no such file; decoder\.yml names it"),
}


def _array_of(content: bytes) -> bytes:
    written_array = io.BytesIO()
    np.lib.format.write_array(written_array, np.frombuffer(content, np.int8))
    return written_array.getvalue()


def _without_settings(folder: Path) -> bytes:
    old, new = io.BytesIO((folder / "model.npz").read_bytes()), io.BytesIO()
    with zipfile.ZipFile(old) as source, zipfile.ZipFile(new, "w") as target:
        for entry in source.namelist():
            if not entry.startswith("special"):
                target.writestr(entry, source.read(entry))
    return new.getvalue()


@pytest.mark.long
@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_files_are_refused_and_nothing_is_written(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    change, message = DAMAGE[case]
    folder = foreign_folder(tmp_path / "m")
    change(folder)
    with pytest.raises(Exception, match=message) as caught:
        import_folder(folder / "model.npz", "a", LANGUAGES)
    assert type(caught.value).__name__ in ("DataError", "ConfigError")
    assert not Path("runs").exists()
    assert not Path("pickled").exists()


def test_a_pickle_in_an_archive_would_have_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test above shows that nothing of it runs."""
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(_Program()))
    assert Path("pickled").is_dir()


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"nothing\.npz: no such file"):
        import_folder(tmp_path / "nothing.npz", "a", LANGUAGES)
    folder = foreign_folder(tmp_path / "m")
    (tmp_path / "runs" / "a").mkdir(parents=True)
    with pytest.raises(CannotCreateError, match="exists already"):
        import_folder(folder / "model.npz", "a", LANGUAGES, runs_folder=tmp_path / "runs")


def test_vocabularies_are_found_without_decoder_yml(tmp_path: Path) -> None:
    folder, path = ModelFolder(tmp_path), tmp_path / "model.npz"

    def found(*names: str) -> tuple[str, str]:
        for old in tmp_path.glob("*.spm"):
            old.unlink()
        for name in names:
            (tmp_path / name).touch()
        return vocabulary_files(folder, {}, path)

    assert found("v.spm") == ("v.spm", "v.spm")
    assert found("v.src.spm", "v.trg.spm") == ("v.src.spm", "v.trg.spm")
    assert found("source.spm", "target.spm") == ("source.spm", "target.spm")
    with pytest.raises(DataError, match="it is not clear which vocabularies it has"):
        found("a.spm", "b.spm")
    named = {"vocabs": ["C:\\models\\b.spm", "/models/a.spm"]}  # Marian runs on Windows, too
    assert vocabulary_files(folder, named, path) == ("b.spm", "a.spm")


def test_a_folder_may_have_the_name_of_a_file(tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path / "en-it.npz")
    with pytest.raises(UsageError, match="no file in it says"):
        import_folder(folder, "a", NamedLanguages(), runs_folder=tmp_path / "runs")
    (folder / "model.npz").rename(folder / "MODEL.NPZ")
    search = folder / "model.npz.decoder.yml"
    search.rename(folder / "MODEL.NPZ.decoder.yml")
    import_folder(folder / "MODEL.NPZ", "b", LANGUAGES, runs_folder=tmp_path / "runs")


def test_the_name_of_a_file_of_firefox_says_more_than_that_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new-one"
    folder.mkdir()
    (folder / "model.enit.intgemm.alphas.bin").touch()
    found = folder_languages(ModelFolder(folder), NamedLanguages(), codes=[])
    assert (found.source, found.targets) == ("en", ("it",))
    (folder / "model.enit.intgemm.alphas.bin").rename(folder / "model.tiny.bin")
    found = folder_languages(ModelFolder(folder), NamedLanguages(source="en", targets=["it"]), codes=[])
    assert (found.source, found.targets) == ("en", ("it",))
    (folder / "model.tiny.bin").rename(tmp_path / "model.tiny.bin")
    with pytest.raises(UsageError, match="no file in it says"):
        folder_languages(ModelFolder(tmp_path), NamedLanguages(), codes=[])


def test_the_model_of_a_folder_is_not_its_optimizer(tmp_path: Path) -> None:
    for name in ("m.npz", "m.npz.optimizer.npz", "m.npz.best-chrf.npz"):
        (tmp_path / name).touch()
    assert model_file(tmp_path) == tmp_path / "m.npz"
    (tmp_path / "n.npz").touch()
    with pytest.raises(DataError, match=r"several models: m\.npz, n\.npz") as caught:
        model_file(tmp_path)
    assert "m.npz" in str(caught.value.hint)
    (tmp_path / "model.npz").touch()
    assert model_file(tmp_path) == tmp_path / "model.npz"


def test_the_copy_at_the_best_validation_is_the_model_where_no_other_is(tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path / "en-it")
    best = folder / "opus.model1.npz.best-perplexity.npz"
    (folder / "model.npz").rename(best)
    (folder / "model.npz.decoder.yml").rename(folder / "decoder.yml")
    (folder / "opus.model1.npz.optimizer.npz").touch()
    assert model_file(folder) == best
    assert model_file(tmp_path) is None
    imported, _ = import_folder(folder, "a", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert imported.config.decoding.length_penalty == 1.0


# Marian itself: https://pypi.org/project/pymarian, in an environment of its own.


PYMARIAN = os.environ.get("TFM_PYMARIAN")
_TRANSLATE = """
import json, os, sys
from pymarian import Translator
asked = json.load(sys.stdin)
os.chdir(asked["folder"])
translator = Translator(models="model.npz", vocabs=asked["vocabs"], beam_size=1, normalize=0, cpu_threads=1, quiet=True,
    mini_batch=1, maxi_batch=1, workspace=200, n_best=True, max_length_factor=3)
lines = [line.split(" ||| ") for line in translator.translate(asked["lines"])]
json.dump([[parts[1].strip(), float(parts[2].split("=")[1])] for parts in lines], open(asked["output"], "w"))
"""


def by_marian(folder: Path, vocabs: list[str], lines: list[str]) -> list[tuple[str, float]]:
    """The greedy translation of each line and its log-probability."""
    if PYMARIAN is None:
        pytest.skip("pymarian: TFM_PYMARIAN must name a Python in which it is installed")
    output = folder.parent / "marian.json"
    asked = {"folder": str(folder), "vocabs": vocabs, "lines": lines, "output": str(output)}
    subprocess.run([PYMARIAN, "-c", _TRANSLATE], input=json.dumps(asked), text=True, check=True, capture_output=True)
    return json.loads(output.read_text())


@pytest.mark.heavy
@pytest.mark.parametrize("case", [case for case in MODELS if not case.startswith("pre-norm")])
def test_marian_itself_translates_the_same(case: str, tmp_path: Path) -> None:
    trained = run_of(case, tmp_path / "run")
    with torch.no_grad():  # both compute in float32: with small weights, rounding decides nothing
        for parameter in trained.model.parameters():
            parameter.mul_(0.25)
        if trained.model.output.bias is not None:  # longer translations
            trained.model.output.bias[Tokenizer.eos_id] -= 1.0
    folder = written(trained, tmp_path / "out")
    vocabs: list[str] = yaml.safe_load((folder / "decoder.yml").read_text())["vocabs"]
    lines = [line for line in LINES if line]
    theirs = by_marian(folder, vocabs, lines)
    tokenizer = trained.source_tokenizer
    requests = [Request((*tokenizer.encode(line), Tokenizer.eos_id)) for line in lines]
    with torch.no_grad():  # Marian does not have these entries, so they have no probability
        if trained.model.output.bias is not None:
            trained.model.output.bias[[Tokenizer.pad_id, Tokenizer.sos_id]] = -1e9
    engine = float32_translator(trained, 1).engine
    search = DecodingConfig(beam_size=1, allow_unknown=False, max_length_ratio=3.0)
    found = engine.translate(requests, search)
    assert hasattr(engine, "explain")
    ids = [one[0].ids for one in found]
    explained = engine.explain(requests, ids, batch_tokens=4096, num_best=1)
    for (text, score), one, of_tokens in zip(theirs, ids, explained, strict=True):
        ours = trained.target_tokenizer.decode(one).strip()
        assert ours == text or not trained.target_tokenizer.has_whole_characters(one)
        if trained.config.model.output_bias:
            total = math.fsum(map(float, of_tokens.token_log_probs))
            assert abs(score - total) < 1e-4 * max(1, len(one))


@pytest.mark.heavy
def test_marian_itself_translates_whole_words_the_same(tmp_path: Path) -> None:
    folder = folder_of_words(tmp_path / "en-it", *["the", "cat", "dog", "house", ".", ",", "is", "il", "gatto"])
    with_arrays(
        folder,
        lambda arrays: arrays.update(
            {  # with small weights, rounding decides nothing
                name: numbers / 4 for name, numbers in arrays.items() if numbers.dtype == np.float32
            }
        ),
    )
    found, _ = import_folder(folder, "words", NamedLanguages(), runs_folder=tmp_path / "runs")
    lines = ["the cat is , the dog .", "house", "il gatto unknown . word3 word4"]
    theirs = by_marian(folder, ["vocab.yml", "vocab.yml"], lines)
    tokenizer = found.tokenizers[0]
    requests = [Request((*tokenizer.encode(line), Tokenizer.eos_id)) for line in lines]
    engine = float32_translator(load_trained(tmp_path / "runs" / "words"), 1).engine
    search = DecodingConfig(beam_size=1, allow_unknown=False, max_length_ratio=3.0)
    ids = [one[0].ids for one in engine.translate(requests, search)]
    assert hasattr(engine, "explain")
    explained = engine.explain(requests, ids, batch_tokens=4096, num_best=1)
    assert len({text for text, _ in theirs}) > 1
    for (text, score), one, of_tokens in zip(theirs, ids, explained, strict=True):
        assert tokenizer.decode(one) == text
        total = math.fsum(map(float, of_tokens.token_log_probs))
        assert abs(score - total) < 1e-4 * max(1, len(one))


def test_settings_are_a_mapping(tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path / "m")
    found: Mapping[str, Any] = read_npz(folder / "model.npz").settings
    assert found["type"] == "transformer"
