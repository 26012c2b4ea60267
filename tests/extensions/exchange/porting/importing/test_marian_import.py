"""Folders of OPUS-MT models become runs that compute what transformers computes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.checkpoint import load_trained, open_checkpoint
from transformer_cli.checkpoint.runs import overview
from transformer_cli.config import RuntimeConfig, load_config
from transformer_cli.decoding.loading import load_translator
from transformer_cli.extensions.exchange.porting.importing.import_folder import import_folder
from transformer_cli.extensions.exchange.porting.importing.imported_model import Wishes
from transformer_cli.extensions.exchange.porting.importing.imported_run import ImportedRun
from transformer_cli.extensions.exchange.porting.importing.model_folder import PICKLED, WEIGHTS
from transformer_cli.process.errors import (
    CannotCreateError,
    ConfigError,
    DataError,
    MissingInputError,
    UsageError,
)
from transformer_cli.training.run import train

from .marian_folders import CODES, sentences, write_marian

EXACT = RuntimeConfig(device="cpu", precision="float32")


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_marian(tmp_path_factory.mktemp("models") / "opus-mt-en-it")


@pytest.fixture(scope="module")
def of_several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_marian(tmp_path_factory.mktemp("models") / "en-ROMANCE", codes=CODES)


def imported(folder: Path, tmp_path: Path, wishes: Wishes | None = None) -> ImportedRun:
    _, run = import_folder(folder, "mine", wishes or Wishes(), runs_folder=tmp_path / "runs")
    return run


def copy_of(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def change(folder: Path, name: str, **changes: Any) -> None:
    content = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(content | changes))


def in_transformers(folder: Path) -> tuple[Any, Any]:
    from transformers import MarianMTModel, MarianTokenizer

    return MarianTokenizer.from_pretrained(folder), MarianMTModel.from_pretrained(folder).eval()


@pytest.mark.parametrize("separate_vocabs", [False, True])
def test_greedy_translations_are_those_of_transformers(
    separate_vocabs: bool, tmp_path: Path
) -> None:
    folder = write_marian(tmp_path / "en-it", separate_vocabs=separate_vocabs, bias=separate_vocabs)
    run = imported(folder, tmp_path)
    assert "the same ids" in run.compared[0]
    largest = float(run.compared[0].split()[-1])
    assert largest <= 1e-5
    tokenizer, model = in_transformers(folder)
    translator = load_translator(run.path, runtime=EXACT)
    search = translator.decoding.model_copy(update={"beam_size": 1, "max_length": 20})
    for text in [*sentences()[0][:5], "«Lei» says: ☃!"]:
        batch = tokenizer([text], return_tensors="pt")
        [written] = model.generate(**batch, num_beams=1, max_new_tokens=20).tolist()
        expected = tokenizer.decode(written, skip_special_tokens=True, use_source_tokenizer=False)
        [hypotheses] = translator.engine.translate(translator.pipeline.prepare(text).parts, search)
        found = translator.pipeline.target_tokenizer.decode(hypotheses[0].ids)
        assert found.replace(" [UNK]", "").strip() == expected.removeprefix("<pad>").strip()


def test_the_run_is_complete_and_says_what_it_is(marian: Path, tmp_path: Path) -> None:
    run = imported(marian, tmp_path)
    assert overview(run.path).status == "imported"
    assert open_checkpoint(load_trained(run.path).folder).step == 0
    text = (run.path / "config.yaml").read_text()
    assert text.startswith("# This run was imported: MarianMTModel.")
    assert "training.init_from=mine" in text
    trained = load_trained(run.path)
    assert trained.config.tokenizer.kind == "sentencepiece"
    assert trained.config.tokenizer.shared
    assert trained.source_tokenizer is not trained.target_tokenizer
    assert list((tmp_path / "runs").iterdir()) == [run.path]


def test_tags_of_target_languages_are_directions(of_several: Path, tmp_path: Path) -> None:
    run = imported(of_several, tmp_path, Wishes(source_language="en"))
    translator = load_translator(run.path, runtime=EXACT)
    directions = [str(one) for one in load_trained(run.path).config.data.directions]
    assert directions == ["en-fra", "en-ita", "en-pt_BR"]
    tokenizer, model = in_transformers(of_several)
    search = translator.decoding.model_copy(update={"beam_size": 1, "max_length": 8})
    for code in ("fra", "pt_BR"):
        batch = tokenizer([f">>{code}<< Good morning."], return_tensors="pt")
        [written] = model.generate(**batch, num_beams=1, max_new_tokens=8).tolist()
        pipeline = translator.pipeline.towards(code)
        [hypotheses] = translator.engine.translate(pipeline.prepare("Good morning.").parts, search)
        rows = {entry: index for index, entry in enumerate(pipeline.target_tokenizer.entries)}
        theirs = [rows.get(tokenizer.convert_ids_to_tokens(index), 0) for index in written[1:]]
        ours = [index for index in hypotheses[0].ids if index != 3]
        assert ours == theirs[: len(ours)]


def test_one_of_several_languages_keeps_its_tag(of_several: Path, tmp_path: Path) -> None:
    run = imported(of_several, tmp_path, Wishes("en", ("French",)))
    data = load_trained(run.path).config.data
    assert data.target_tag
    assert [str(one) for one in data.directions] == ["en-fra"]
    pipeline = load_translator(run.path, runtime=EXACT).pipeline
    tag = pipeline.source_tokenizer.tag_id("<2fra>")
    assert pipeline.towards(None).prepare("Good morning.").parts[0].ids[0] == tag


def test_an_unknown_target_language_is_refused(of_several: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="--to German: this model translates into: fra, ita, pt_BR"
    ):
        imported(of_several, tmp_path, Wishes("en", ("German",)))


def test_languages_come_from_the_name_of_the_folder(marian: Path, tmp_path: Path) -> None:
    folder = tmp_path / "opus-mt-de-es"
    shutil.copytree(marian, folder)
    (folder / "tokenizer_config.json").unlink()
    run = imported(folder, tmp_path)
    assert [str(one) for one in load_trained(run.path).config.data.directions] == ["de-es"]
    unnamed = folder.rename(tmp_path / "model")
    with pytest.raises(UsageError, match="no file in it says between which languages") as raised:
        import_folder(unnamed, "other", Wishes(), runs_folder=tmp_path / "runs")
    assert "--from" in str(raised.value.hint)


def test_weights_of_torch_save_are_read(marian: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    folder = copy_of(marian, tmp_path)
    torch.save(load_file(folder / WEIGHTS), folder / PICKLED)
    expected = load_trained(imported(folder, tmp_path).path).model.state_dict()
    (folder / WEIGHTS).unlink()
    _, run = import_folder(folder, "pickled", Wishes(), runs_folder=tmp_path / "runs")
    found = load_trained(run.path).model.state_dict()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert "not compared" in run.compared[0]


def test_a_folder_as_old_as_those_of_opus_mt_gives_the_same_run(
    marian: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    folder = copy_of(marian, tmp_path)
    weights = load_file(folder / WEIGHTS)
    table = weights["model.shared.weight"]
    names = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
    positions = {
        f"model.{stack}.embed_positions.weight": sinusoids(64, table.size(1))
        for stack in ("encoder", "decoder")
    }
    torch.save(weights | dict.fromkeys(names, table) | positions, folder / PICKLED)
    expected = load_trained(imported(folder, tmp_path).path).model.state_dict()
    (folder / WEIGHTS).unlink()
    (folder / "tokenizer_config.json").write_text('{"target_lang": "it", "source_lang": "en"}')
    pad = json.loads((folder / "config.json").read_text())["pad_token_id"]
    search = {"num_beams": 6, "max_length": 512, "bad_words_ids": [[pad]], "forced_eos_token_id": 0}
    (folder / "generation_config.json").write_text(json.dumps(search))
    model, run = import_folder(folder, "old", Wishes(), runs_folder=tmp_path / "runs")
    trained = load_trained(run.path)
    assert all(torch.equal(trained.model.state_dict()[name], expected[name]) for name in expected)
    assert trained.config.decoding.beam_size == 6
    assert model.notes == ()


def sinusoids(length: int, width: int) -> torch.Tensor:
    """All sines of a position, then all cosines."""
    angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def test_weights_of_torch_save_in_several_files_are_refused(marian: Path, tmp_path: Path) -> None:
    folder = copy_of(marian, tmp_path)
    (folder / WEIGHTS).unlink()
    (folder / f"{PICKLED}.index.json").write_text("{}")
    with pytest.raises(DataError, match=r"several files.*cannot be read") as raised:
        imported(folder, tmp_path)
    assert "save_pretrained" in str(raised.value.hint)


class _Evil:
    def __reduce__(self) -> Any:
        return print, ("a program in a file of weights",)


def test_a_program_in_a_file_of_weights_does_not_run(
    marian: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = copy_of(marian, tmp_path)
    (folder / WEIGHTS).unlink()
    torch.save({"model.shared.weight": _Evil()}, folder / PICKLED)
    with pytest.raises(DataError, match="not a file of weights that can be read"):
        imported(folder, tmp_path)
    assert "a program" not in capfd.readouterr().out
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "changes", "problem"),
    [
        ("config.json", {"model_type": "t5"}, "model_type is 't5'"),
        ("config.json", {"activation_function": "tanh"}, "activation_function is 'tanh'"),
        ("config.json", {"forced_bos_token_id": 5}, "forced_bos_token_id is 5"),
        ("config.json", {"encoder_ffn_dim": 64}, "encoder_ffn_dim is 64"),
        ("config.json", {"eos_token_id": 10**6}, "eos_token_id is 1000000"),
        ("tokenizer_config.json", {"unk_token": "<nope>"}, "no entry <nope>"),
        ("vocab.json", {"extra": 10**6}, "without gaps"),
        ("vocab.json", {"extra": "x"}, "not a map from pieces to ids"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(
    name: str, changes: dict[str, Any], problem: str, marian: Path, tmp_path: Path
) -> None:
    folder = copy_of(marian, tmp_path)
    change(folder, name, **changes)
    if name == "config.json":
        (folder / "generation_config.json").unlink()
    with pytest.raises(DataError) as raised:
        imported(folder, tmp_path)
    assert problem in raised.value.message
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["source.spm", "vocab.json", "config.json", WEIGHTS])
def test_a_missing_file_is_named(name: str, marian: Path, tmp_path: Path) -> None:
    folder = copy_of(marian, tmp_path)
    (folder / name).unlink()
    with pytest.raises((DataError, MissingInputError), match=name):
        imported(folder, tmp_path)


def test_a_cut_off_file_of_weights_is_refused(marian: Path, tmp_path: Path) -> None:
    folder = copy_of(marian, tmp_path)
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-100])
    with pytest.raises(DataError, match="bytes of data, but the header lists"):
        imported(folder, tmp_path)


def test_an_existing_run_is_never_replaced(marian: Path, tmp_path: Path) -> None:
    (tmp_path / "runs/mine").mkdir(parents=True)
    with pytest.raises(CannotCreateError, match="mine: exists already"):
        imported(marian, tmp_path)
    with pytest.raises(UsageError, match="cannot be the name of a run"):
        import_folder(marian, "../other", Wishes(), runs_folder=tmp_path / "runs")


def test_fine_tuning_lowers_the_loss(
    marian: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, run = import_folder(marian, "mine", Wishes())
    english, italian = sentences()
    lines = [f"{source}\t{target}\n" for source, target in zip(english, italian, strict=True)]
    Path("corpus.tsv").write_text("".join(lines[:600]))
    config = load_config(
        run.path / "config.yaml",
        [
            "name=tuned",
            "training.init_from=mine",
            "training.max_steps=24",
            "training.warmup_steps=2",
            "training.learning_rate=0.003",
            "training.validate_every=8",
            "training.log_every=8",
            "training.save_every=24",
            "training.update_tokens=1000",
            "training.best_metric=loss",
            "validation.scores=[]",
            "validation.num_samples=0",
            "runtime.device=cpu",
        ],
    )
    train(config)
    losses = [
        json.loads(line)["loss"]
        for line in Path("runs/tuned/metrics.jsonl").read_text().splitlines()
        if "loss" in json.loads(line)
    ]
    assert losses[-1] < losses[0] - 0.5
    before, after = load_trained(run.path), load_trained(Path("runs/tuned"))
    assert after.source_tokenizer.to_json() == before.source_tokenizer.to_json()
    assert after.target_tokenizer.to_json() == before.target_tokenizer.to_json()
    with pytest.raises(ConfigError, match="this run was imported, so its training cannot go on"):
        train(load_config(run.path / "config.yaml"))
    with pytest.raises(ConfigError, match="sentencepiece is not learned"):
        train(config.model_copy(update={"name": "new", "training": before.config.training}))
