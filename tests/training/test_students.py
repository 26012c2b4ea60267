"""Students, small models whose decoder has SSRUs: they train, resume, translate and are explained by the same commands."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from ..experiments import newest_checkpoint, write_tiny
from ..launcher import TfmHere

pytestmark = pytest.mark.long

SSRU = ("--set", "model.decoder_layer=ssru")


def weights_of(run: Path) -> dict[str, str]:
    checkpoint = newest_checkpoint(run)
    return {
        name: hashlib.sha256((checkpoint / f"{name}.safetensors").read_bytes()).hexdigest()
        for name in ("model", "optimizer")
    }


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> TfmHere:
    """A folder with one trained run of the tiny experiment."""
    here = TfmHere(tmp_path_factory.mktemp("student"))
    finished = here("train", "--config", write_tiny(here.folder), *SSRU)
    assert finished.exit_code == 0, finished.talk
    return here


def test_a_resumed_student_equals_the_uninterrupted_one(student: TfmHere, tmp_path: Path) -> None:
    here = TfmHere(tmp_path)
    train = ("train", "--config", write_tiny(tmp_path), *SSRU)
    for limit in ("training.max_steps=3", "training.max_steps=8", "training.max_steps=13"):
        finished = here(*train, "--set", limit)
        assert finished.exit_code == 0, finished.talk
    assert weights_of(tmp_path / "runs/tiny") == weights_of(student.folder / "runs/tiny")


def test_a_student_is_not_resumed_with_self_attention(student: TfmHere) -> None:
    finished = student("train", "--config", "tiny.yaml")
    assert finished.exit_code != 0
    assert "model.decoder_layer" in finished.talk


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_a_student_translates_in_every_precision(student: TfmHere, precision: str) -> None:
    (student.folder / "in.txt").write_text("1 2 3\n4\n\n")
    finished = student(
        "translate",
        "--run",
        "runs/tiny",
        "--set",
        f"runtime.precision={precision}",
        "--set",
        "decoding.beam_size=3",
        "--input",
        "in.txt",
    )
    assert finished.exit_code == 0, finished.talk
    assert len(finished.lines) == 3
    assert precision in finished.talk


def test_ensembles_explanations_and_facts_know_the_student(student: TfmHere) -> None:
    ensemble = student("translate", "--run", "runs/tiny", "--run", "runs/tiny", "1 2")
    assert ensemble.exit_code == 0, ensemble.talk
    explained = student("explain", "--run", "runs/tiny", "1 2", "--json")
    assert explained.exit_code == 0, explained.talk
    [sentence] = json.loads(explained.text)["sentences"]
    assert sentence["attention"]["decoder"] is None
    assert sentence["masks"]["decoder"] is None
    assert sentence["attention"]["cross"]["shape"][:2] == [1, 2]
    lines = student("explain", "--run", "runs/tiny", "1 2").text
    assert lines.count("decoder: an SSRU in place of self-attention") == 2
    facts = student("info", "--run", "runs/tiny")
    assert facts.exit_code == 0, facts.talk
    assert facts.text.count("model.decoder_layer: ssru") == 4  # argos, ctranslate2, hf, onnx


@pytest.fixture(scope="module")
def with_shortlist(student: TfmHere) -> TfmHere:
    """The same folder, after `tfm shortlist`."""
    without = student("translate", "--run", "runs/tiny", "--set", "decoding.shortlist={}", "1 2")
    assert without.exit_code == 66, without.talk
    assert "tfm shortlist makes this file" in without.talk
    made = student("shortlist", "--run", "runs/tiny", "--json")
    assert made.exit_code == 0, made.talk
    facts = json.loads(made.text)
    assert facts["training_pairs"] == 70
    assert 0 < facts["candidates_per_sentence"] <= facts["target_vocabulary"]
    assert facts["reference_tokens_covered"] == 1.0  # all symbols are among the 100 most frequent
    assert facts["validation_sentences"] > 0
    assert facts["translated_otherwise"] == 0
    return student


def test_a_shortlist_is_learned_and_used(with_shortlist: TfmHere) -> None:
    (with_shortlist.folder / "in.txt").write_text("1 2 3\n4 5\n")
    for precision in ("float32", "int8"):
        outputs = [
            with_shortlist(
                "translate",
                "--run",
                "runs/tiny",
                "--input",
                "in.txt",
                "--set",
                f"decoding.shortlist={value}",
                "--set",
                f"runtime.precision={precision}",
            )
            for value in ("null", "{}", "{best: 1, frequent: 1}")
        ]
        assert [one.exit_code for one in outputs] == [0, 0, 0]
        assert outputs[0].lines == outputs[1].lines
    scored = with_shortlist("validate", "--run", "runs/tiny", "--set", "decoding.shortlist={best: 5}", "--json")
    assert scored.exit_code == 0, scored.talk


def test_an_ensemble_has_no_shortlist(with_shortlist: TfmHere) -> None:
    runs = ("--run", "runs/tiny", "--run", "runs/tiny")
    refused = with_shortlist("translate", *runs, "--set", "decoding.shortlist={}", "1 2")
    assert refused.exit_code == 78, refused.talk
    assert "decoding.shortlist is for the translations of one model" in refused.talk


def test_a_copied_checkpoint_names_the_file_beside_it(with_shortlist: TfmHere, tmp_path: Path) -> None:
    checkpoint = tmp_path / "copy"
    shutil.copytree(newest_checkpoint(with_shortlist.folder / "runs/tiny"), checkpoint)
    use = ("translate", "--run", str(checkpoint), "--set", "decoding.shortlist={}", "1 2")
    missing = with_shortlist(*use)
    assert missing.exit_code == 66
    assert "copy.shortlist.npz" in missing.talk
    made = with_shortlist.folder / "runs/tiny/shortlist.npz"
    shutil.copy(made, tmp_path / "copy.shortlist.npz")
    assert with_shortlist(*use).exit_code == 0
    assert with_shortlist("shortlist", "--run", str(checkpoint)).exit_code == 2
