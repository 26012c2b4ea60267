"""The recipes of examples/ run from beginning to end, on a tiny corpus with a tiny model."""

import os
import subprocess
import sys
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.data.sources.corpus import read_phrasebook
from transformer_cli.decoding.given_pairs import pair_likelihoods
from transformer_cli.decoding.loading import load_translator

from ..experiments import state_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SIZES = {"train": 120, "new": 60, "mono": 40, "dev": 12}
CONFIG = """\
name: base
data:
  source: files
  corpora:
    - {split: train, source_path: train.en, target_path: train.it}
    - {split: validation, source_path: dev.en, target_path: dev.it}
  test_share: 0.0
tokenizer: {kind: bpe, vocab_size: 300}
model: {d_model: 16, num_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1}
training: {max_steps: 8, batch_sentences: 16, warmup_steps: 4, best_metric: loss}
validation: {max_sentences: 4, scores: [], num_samples: 0}
decoding: {max_length: 12, beam_size: 2}
runtime: {device: cpu, precision: float32, threads: 1}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpora, a config, a trained run, and `tfm` in bin/."""
    folder = tmp_path_factory.mktemp("recipes")
    remaining = read_phrasebook("train")
    for name, size in SIZES.items():
        pairs = list(islice(remaining, size))
        for ending, texts in (("en", [p.source for p in pairs]), ("it", [p.target for p in pairs])):
            (folder / f"{name}.{ending}").write_text("".join(f"{text}\n" for text in texts))
    (folder / "mono.en").unlink()
    (folder / "base.yaml").write_text(CONFIG, encoding="utf-8")
    tfm = folder / "bin" / "tfm"
    tfm.parent.mkdir()
    tfm.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m transformer_cli "$@"\n')
    tfm.chmod(0o755)
    run(folder, "tfm", "train", "--config", "base.yaml")
    return folder


def run(folder: Path, *command: str) -> str:
    environment = os.environ | {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    finished = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def recipe(folder: Path, name: str, *arguments: str) -> str:
    return run(folder, "bash", str(ROOT / "examples" / name), *arguments)


def num_lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def test_fine_tuning_without_and_with_a_share_of_the_old_corpus(folder: Path) -> None:
    shown = recipe(
        folder, "fine_tuning.sh", "base", "train", "new", "dev", "en", "it", "--set", "training.learning_rate=1e-4"
    )
    assert [line for line in shown.splitlines() if line.startswith("==")] == ["== base", "== base-new", "== base-mixed"]
    logs = {name: (folder / f"runs/{name}/train.log").read_text() for name in ("base-new", "base-mixed")}
    for name, num_pairs in (("base-new", SIZES["new"]), ("base-mixed", SIZES["new"] + SIZES["train"] // 5)):
        assert state_of(folder / "runs" / name)["init_from"]["run"] == "base"
        assert f"plan: {num_pairs} training pairs" in logs[name]


def test_a_teacher_of_a_student_may_translate_both_ways(folder: Path) -> None:
    both = ("--set", "data.both_directions=true", "--set", "tokenizer.shared=true")
    run(folder, "tfm", "train", "--config", "base.yaml", "--set", "name=both", *both)
    options = ("--config", "base.yaml", "--set", "name=student", "--set", "training.max_steps=4")
    shown = run(folder, "tfm", "student", "--teacher", "both", "--from", "en", "--to", "it", *options)
    assert num_lines(folder / "student-distilled/taught-0.target") == SIZES["train"]
    assert num_lines(folder / "student-distilled/taught-0.alignment") == SIZES["train"]
    assert shown.count("student") >= 2


def test_a_student_may_have_two_teachers_and_noise_beside_its_alignments(folder: Path) -> None:
    """The noise of the config becomes a copy of the changed pairs, which keeps the alignments."""
    run(folder, "tfm", "train", "--config", "base.yaml", "--set", "name=base-2", "--set", "seed=2")
    options = (
        "--config",
        "base.yaml",
        "--set",
        "name=noisy",
        "--set",
        "training.noise={typos: 0.3}",
    )
    teachers = ("--teacher", "base", "--teacher", "base-2")
    run(folder, "tfm", "student", "corpus", "translate", "choose", "align", "train", *teachers, *options)
    config: Any = load_trained(folder / "runs/noisy").config
    assert config.training.noise is None
    assert config.training.guided_alignment == 0.1
    paths = [one.alignment_path for one in config.data.corpora]
    assert paths == ["taught-0.alignment", "noisy-taught-0.alignment", None]
    together = run(
        folder,
        "tfm",
        "translate",
        "--run",
        "base",
        "--run",
        "base-2",
        "--input",
        "noisy-distilled/sources.txt",
        "--n-best",
        "4",
    )
    assert together == (folder / "noisy-distilled/n-best.tsv").read_text(encoding="utf-8")


def test_rescoring_takes_the_best_translation_by_three_models_together(folder: Path) -> None:
    recipe(folder, "rescoring_models.sh", "base.yaml", "train", "dev", "en", "it")
    models = "{run: rescore-channel, kind: channel, weight: 0.5}, {run: rescore-right-to-left, kind: right-to-left, weight: 2.0}"
    options = ["--run", "base", "--input", "dev.en", "--set", "decoding.beam_size=6"]
    options += ["--set", "decoding.repair=false", "--set", "decoding.keep_text=false"]
    options += ["--set", "decoding.split_sentences=false", "--set", "decoding.keep_layout=false"]
    run(folder, "tfm", "translate", *options, "--output", "dev.nbest.it", "--n-best", "6")
    rescore = f"decoding.rescore={{models: [{models}]}}"
    run(folder, "tfm", "translate", *options, "--output", "dev.rescored.it", "--set", rescore)
    rows = [line.split("\t") for line in lines(folder / "dev.nbest.it")]
    chosen, sources = lines(folder / "dev.rescored.it"), lines(folder / "dev.en")
    assert len(chosen) == len(sources) == SIZES["dev"]
    forward, channel, backward = (
        load_translator(folder / "runs" / name) for name in ("base", "rescore-channel", "rescore-right-to-left")
    )
    starts = [number for number, row in enumerate(rows) if row[0] == "1"] + [len(rows)]
    for source, found, (first, last) in zip(sources, chosen, pairwise(starts), strict=True):
        texts = [row[2] for row in rows[first:last]]
        assert 1 < len(texts) <= 6
        scored = (
            pair_likelihoods(forward, [(source, text) for text in texts]),
            pair_likelihoods(channel, [(text, source) for text in texts]),
            pair_likelihoods(backward, [(source, " ".join(text.split()[::-1])) for text in texts]),
        )
        totals = [
            sum(weight * one.log_probability / one.num_tokens for weight, one in zip((1, 0.5, 2), each, strict=True))
            for each in zip(*scored, strict=True)
        ]
        assert totals[texts.index(found)] == pytest.approx(max(totals), abs=1e-4)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def test_a_recipe_without_arguments_says_which_it_needs(folder: Path) -> None:
    for script in sorted((ROOT / "examples").glob("*.sh")):
        finished = subprocess.run(["bash", str(script)], cwd=folder, capture_output=True, text=True, check=False)
        assert finished.returncode == 2
        assert f"bash examples/{script.name}" in finished.stderr
