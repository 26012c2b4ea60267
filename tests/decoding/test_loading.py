"""From a run's name, a folder, or a model in memory to a translator."""

import importlib.util
import json
import logging
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch

import transformer_cli
from transformer_cli.checkpoint.checkpoints import Checkpoints, portable_files
from transformer_cli.checkpoint.run_folder import Snapshot
from transformer_cli.config import Config, DecodingConfig, RuntimeConfig, to_yaml
from transformer_cli.decoding import Translation
from transformer_cli.decoding import loading as inference
from transformer_cli.decoding.ensemble import EnsembleEngine
from transformer_cli.decoding.loading import build_translator, load_run, load_translator
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.extensions.exchange.ctranslate2_engine import CTranslate2Engine
from transformer_cli.process.errors import ConfigError, MissingInputError
from transformer_cli.text.tokenizer import Tokenizer

from .small_translators import (
    CPU,
    WORDS,
    config_of,
    random_model,
    tokenizer_of_words,
    translator,
)

SEVERAL = DecodingConfig(beam_size=3, num_best=2, keep_text=False, repair=False)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return tokenizer_of_words()


@pytest.fixture
def run(tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`runs/saved` in the current folder, with one checkpoint."""
    monkeypatch.chdir(tmp_path)
    model = random_model(tokenizer).float()
    config = config_of(model, SEVERAL)
    files = portable_files(config, tokenizer, tokenizer)
    folder = Path("runs/saved")
    folder.mkdir(parents=True)
    Checkpoints(folder).save(Snapshot(1, model.state_dict(), {}, {}, files))
    return folder


def expected(tokenizer: Tokenizer, **decoding: object) -> list[Translation]:
    settings = SEVERAL.model_dump() | decoding
    model = random_model(tokenizer).float()
    built = translator(tokenizer, model=model, **settings)
    assert isinstance(built.engine, PyTorchEngine)
    return list(replace(built, engine=built.engine.prepared()).translate(WORDS))


@pytest.mark.long
def test_a_name_a_run_folder_and_a_copied_checkpoint_translate_alike(
    tokenizer: Tokenizer, run: Path, tmp_path: Path
) -> None:
    wanted = expected(tokenizer)
    for place in ("saved", run, run.absolute(), str(run), run / "checkpoints" / "step-00000001"):
        assert list(load_translator(place).translate(WORDS)) == wanted
    elsewhere = (run / "checkpoints" / "step-00000001").rename(tmp_path / "elsewhere")
    assert list(load_translator(elsewhere, which="last").translate(WORDS)) == wanted


@pytest.mark.long
def test_decoding_and_runtime_can_be_replaced(tokenizer: Tokenizer, run: Path) -> None:
    greedy = load_translator(
        run,
        decoding=DecodingConfig(beam_size=1),
        runtime=RuntimeConfig(device="cpu", precision="bfloat16"),
    )
    assert greedy.decoding == DecodingConfig(beam_size=1)
    assert isinstance(greedy.engine, PyTorchEngine)
    assert str(greedy.engine.machine.precision) == "torch.bfloat16"
    in_float32 = load_translator(run, decoding=DecodingConfig(beam_size=1))
    found = list(in_float32.translate(WORDS))
    assert found == expected(tokenizer, beam_size=1, num_best=1, repair=True)


def test_a_run_that_is_not_there_is_named(run: Path) -> None:
    with pytest.raises(MissingInputError, match="savd: no such run") as refusal:
        load_translator("savd")
    assert refusal.value.hint == "did you mean saved?"


def test_load_translator_is_public() -> None:
    assert transformer_cli.load_translator is load_translator


@pytest.mark.long
@pytest.mark.parametrize("name", ["saved", None])
def test_a_run_is_loaded_with_overrides_and_told(
    tokenizer: Tokenizer, run: Path, name: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="transformer_cli"):
        overrides = ["decoding.beam_size=2", "validation.num_samples=1"]
        loaded = load_run(name, overrides, command="validate")
    assert loaded.trained.step == 1
    assert loaded.config.validation.num_samples == 1
    assert loaded.overridden == {"decoding.beam_size", "validation.num_samples"}
    assert loaded.translator.decoding.beam_size == 2
    assert list(loaded.translator.translate(WORDS)) == expected(tokenizer, beam_size=2)
    [told] = [record.getMessage() for record in caplog.records]
    assert told.startswith("runs/saved/checkpoints/step-00000001, step 1 (PyTorch on CPU, ")


def test_what_a_trained_model_cannot_change_is_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.d_ff"):
        load_run("saved", ["model.d_ff=32"])


@pytest.mark.long
def test_a_command_that_reads_the_corpus_gets_the_data_section_of_the_run_unless_the_checkpoint_is_a_copy(
    run: Path, tmp_path: Path
) -> None:
    trained: Config = load_run("saved", [], command="validate").config
    in_run = trained.model_copy(update={"data": trained.data.model_copy(update={"num_pairs": 77})})
    (run / "config.yaml").write_text(to_yaml(in_run))
    assert load_run("saved", [], command="validate").config.data == in_run.data
    assert load_run("saved", [], command="translate").config.data == trained.data
    elsewhere = (run / "checkpoints" / "step-00000001").rename(tmp_path / "elsewhere")
    assert load_run(str(elsewhere), [], command="validate").config.data == trained.data


def test_a_translator_of_a_live_model_follows_its_weights_and_needs_eval_mode(
    tokenizer: Tokenizer,
) -> None:
    model = random_model(tokenizer)
    live = build_translator(model, tokenizer, tokenizer, config_of(model, SEVERAL), CPU)
    assert live.decoding == SEVERAL
    greedy = build_translator(
        model, tokenizer, tokenizer, config_of(model, SEVERAL), CPU, decoding=DecodingConfig(beam_size=1)
    )
    assert greedy.decoding.beam_size == 1
    before = list(live.translate(WORDS))
    for parameter in model.train().parameters():
        parameter.data.mul_(0.5)
    with pytest.raises(ValueError, match="training mode"):
        list(live.translate(WORDS))
    model.eval()
    assert list(live.translate(WORDS)) != before


@pytest.mark.parametrize("name", ["beam_size", "model.beam_size"])
def test_an_override_that_is_no_setting_is_told_from_one_for_training(run: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="this is not a setting") as refusal:
        load_run("saved", [f"{name}=3"])
    assert refusal.value.hint == "did you mean decoding.beam_size?"
    with pytest.raises(ConfigError, match="this setting cannot be changed for a trained model"):
        load_run("saved", ["model.d_ff=3"])


@pytest.mark.long
def test_a_checkpoint_with_few_of_its_planned_steps_is_warned_of(
    run: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_trained_files = inference.read_trained_files
    trained = load_run("saved", []).trained
    cases = (1500, None, True), (20, None, False), (None, None, False), (1500, "general", False)
    for planned, init_from, is_warned in cases:
        training = trained.config.training.model_copy(
            update={"max_steps": planned, "max_epochs": 9, "init_from": init_from}
        )
        config = trained.config.model_copy(update={"training": training})
        again = replace(read_trained_files(trained.folder), config=config)
        monkeypatch.setattr(inference, "read_trained_files", lambda *_, found=again, **__: found)
        caplog.clear()
        load_run("saved", [])
        assert ("step 1 of 1500 planned steps" in caplog.text) == is_warned


@pytest.mark.long
def test_the_other_engine_translates_alike_and_its_model_is_kept(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("ctranslate2")
    overrides = ["decoding.beam_size=1", "decoding.num_best=1", "decoding.repair=false"]
    expected = list(load_run("saved", overrides).translator.translate(WORDS))
    told = []
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="transformer_cli"):
            loaded = load_run("saved", [*overrides, "decoding.engine=ctranslate2"])
        assert isinstance(loaded.translator.engine, CTranslate2Engine)
        found = list(loaded.translator.translate(WORDS))
        assert [one.text for one in found] == [one.text for one in expected]
        told.append([record.getMessage() for record in caplog.records])
    assert "runs/saved/converted-ctranslate2: the converted model is stored" in "".join(told[0])
    [line] = told[1]
    assert "step 1 (CTranslate2 " in line
    assert line.endswith(" on CPU, float32)")


def test_a_missing_library_is_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="CTranslate2 is not installed") as refusal:
        load_run("saved", ["decoding.engine=ctranslate2"])
    assert "pip install" in str(refusal.value.hint)


def test_a_command_that_needs_pytorch_has_it(run: Path) -> None:
    config = load_run("saved", []).config
    decoding = config.decoding.model_copy(update={"engine": "ctranslate2"})
    (run / "config.yaml").write_text(to_yaml(config.model_copy(update={"decoding": decoding})))
    loaded = load_run("saved", [], command="next")
    assert isinstance(loaded.translator.engine, PyTorchEngine)


@pytest.mark.parametrize(
    ("runs", "further", "problem"),
    [
        (1, [], "needs an NVIDIA GPU, but the device is: CPU"),
        (1, ["decoding.engine=ctranslate2"], "not those of decoding.engine: ctranslate2"),
        (2, [], "not those of an ensemble"),
    ],
)
def test_recorded_steps_that_are_wished_for_and_impossible_are_refused(
    runs: int, further: list[str], problem: str, run: Path
) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_run(runs * [str(run)], ["runtime.cuda_graphs=true", *further])


def test_an_ensemble_with_another_engine_is_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"decoding\.engine: ctranslate2 .* not with an ensemble"):
        load_run(["saved", "saved"], ["decoding.engine=ctranslate2"])


@pytest.mark.long
@pytest.mark.parametrize("opened", ["load_run", "load_translator"])
def test_the_first_run_of_an_ensemble_says_how_all_translate_and_on_which_machine(
    run: Path, tokenizer: Tokenizer, opened: str
) -> None:
    model = random_model(tokenizer).float()
    for number, name in ((1, "one"), (2, "two")):
        decoding, runtime = SEVERAL.model_copy(update={"beam_size": 4 + number}), RuntimeConfig(threads=number)
        config = config_of(model, decoding).model_copy(update={"runtime": runtime})
        folder = Path("runs", name)
        folder.mkdir()
        files = portable_files(config, tokenizer, tokenizer)
        Checkpoints(folder).save(Snapshot(1, model.state_dict(), {}, {}, files))
    before = torch.get_num_threads()
    try:
        for names, number in ((["one", "two"], 1), (["two", "one"], 2)):
            ensemble = load_translator(names) if opened == "load_translator" else load_run(names, []).translator
            assert (torch.get_num_threads(), ensemble.decoding.beam_size) == (number, 4 + number)
    finally:
        torch.set_num_threads(before)


@pytest.mark.long
def test_several_runs_are_an_ensemble(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    wanted = list(load_translator("saved").translate(WORDS))
    checkpoint = run / "checkpoints" / "step-00000001"
    loaded = load_run(["saved", str(checkpoint)], ["decoding.length_penalty=0.6"])
    assert [member.folder for member in loaded.members] == [checkpoint, checkpoint]
    for ensemble in (load_translator(["saved", checkpoint]), loaded.translator):
        assert isinstance(ensemble.engine, EnsembleEngine)
        assert len(ensemble.engine.models) == 2
        found = list(ensemble.translate(WORDS))
        assert [one.text for one in found] == [one.text for one in wanted]
        assert [one.score for one in found] == pytest.approx([one.score for one in wanted], abs=1e-5)
    assert isinstance(load_run([], []).translator.engine, PyTorchEngine)


@pytest.mark.long
@pytest.mark.parametrize("runs", [["saved"], ["saved", "saved"]])
@pytest.mark.parametrize("command", ["translate", "next"])
def test_int8_translates_with_one_model_and_is_told(
    run: Path,
    caplog: pytest.LogCaptureFixture,
    runs: list[str],
    command: Literal["translate", "next"],
) -> None:
    overrides = ["runtime.precision=int8"]
    if command == "next" or len(runs) > 1:
        with pytest.raises(ConfigError, match="int8 is for the translations of one model"):
            load_run(runs, overrides, command=command)
        return
    with caplog.at_level(logging.INFO, logger="transformer_cli"):
        translator = load_run(runs, overrides, command=command).translator
    assert ", int8" in caplog.text
    found = [one.score for one in translator.translate(WORDS)]
    exact = load_run(runs, ["runtime.precision=float32"]).translator
    assert found != [one.score for one in exact.translate(WORDS)]


@pytest.mark.long
def test_without_a_name_the_newest_run_is_loaded_or_the_demonstration_model_with_a_warning(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    newest = load_translator()
    assert [one.text for one in newest.translate(WORDS)] == [one.text for one in load_translator(run).translate(WORDS)]
    assert caplog.text == ""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    [translation] = load_translator().translate(["Where is the station?"])
    assert translation.text == "Où se trouve la gare ?"
    assert "the small demonstration model that comes with tfm answers" in caplog.text


@pytest.mark.long
def test_a_run_whose_training_was_interrupted_is_told_with_the_command_that_continues_it(
    run: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_run("saved", [])
    assert "not finished" not in caplog.text
    monkeypatch.setattr("transformer_cli.checkpoint.runs.interrupted_at", lambda folder: 311)
    load_run("saved", [])
    how = "tfm train --config runs/saved/config.yaml continues it"
    assert f"runs/saved: its training stopped at step 311 of 1 and is not finished: {how}" in caplog.text
    caplog.clear()
    run.rename(run.with_name("other"))
    load_run("other", [])  # by the name in its config, tfm train would begin another run
    assert "runs/other: its training stopped at step 311 of 1 and is not finished" in caplog.text
    assert "continues it" not in caplog.text


@pytest.mark.long
def test_a_damaged_checkpoint_behind_the_one_that_translates_is_named_and_no_stop_of_the_training(
    run: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer_cli.checkpoint.runs.interrupted_at", lambda folder: 1)
    (run / "checkpoints/step-00000009").mkdir()
    load_run("saved", [])
    assert (
        "runs/saved: its checkpoint step-00000009 is damaged, so its training goes on from step 1 of 1" in caplog.text
    )
    assert "tfm train --config runs/saved/config.yaml makes the later steps again" in caplog.text
    assert "stopped" not in caplog.text


@pytest.mark.long
def test_a_run_that_still_trains_is_named_with_the_step_that_translates(
    run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def talk(holder: dict[str, object] | None) -> str:
        caplog.clear()
        if holder is not None:
            (run / ".lock").write_text(json.dumps(holder))
        load_run("saved", [])
        return caplog.text

    assert "still training" not in talk(None)
    here = {"host": socket.gethostname()}
    training = talk({"pid": os.getppid(), **here})
    assert "runs/saved is still training: this is its best checkpoint so far, of step 1" in training
    assert "still training" not in talk({"pid": os.getpid(), **here}), "its own validations"
    assert "still training" not in talk({"pid": 2**22 + 7, **here}), "it has ended"
