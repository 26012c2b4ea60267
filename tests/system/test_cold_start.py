"""Real `tfm` processes, started as users start them; only a few, because each imports PyTorch again."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import transformer_cli
from transformer_cli.cli import COMMANDS

from ..experiments import essence, write_tiny
from ..launcher import ENVIRONMENT, Tfm

OTHER = [sys.executable, "-W", "ignore", str(Path(__file__).parents[1] / "other_systems.py")]
TFM = [sys.executable, "-m", "transformer_cli"]
ENVIRON = os.environ | ENVIRONMENT
LISTING = """\
import sys
from transformer_cli.__main__ import main
for arguments in {arguments}:
    sys.argv = ["tfm", *arguments]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        print("IMPORTED", *sorted(sys.modules), file=sys.stderr)
"""
HEAVY = {"torch", "numpy", "datasets", "pyarrow", "tokenizers", "yaml", "tqdm", "rich"}
NOT_FOR_A_SENTENCE = {
    "torch",
    "numpy",
    "datasets",
    "pyarrow",
    "filelock",
    "transformer_cli.extensions.documents",
    "transformer_cli.data.sources.corpus",
    "transformer_cli.decoding.given_pairs",
    "transformer_cli.commands.prompt",
}
"""What the translation of one sentence by CTranslate2 does without: it would start more slowly."""


AFTER_A_SENTENCE = """\
import gc, json, os, sys
from transformer_cli.__main__ import main
before = sum(one["collections"] for one in gc.get_stats())
sys.argv = ["tfm", "translate", "The dog is big."]
try:
    main()
except SystemExit:
    pass
searches = sum(one["collections"] for one in gc.get_stats()) - before
threads = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1
print(json.dumps([searches, threads, sorted(sys.modules)]))
"""
NOT_FOR_THE_SMALL_MODEL = {
    "torch",
    "tqdm",
    "multiprocessing",
    "transformer_cli.data.pairs",
    "transformer_cli.data.sources.tables",
    "transformer_cli.decoding.checks.line_repairs",
    "transformer_cli.decoding.checks.signs_in_place",
    "transformer_cli.decoding.glossary_files",
    "transformer_cli.decoding.memory",
    "transformer_cli.decoding.terms_in_place",
}


def run(command: list[str], folder: Path, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd=folder, env=ENVIRON, check=False, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(
    ("arguments", "unneeded"), [(["--help"], {*HEAVY, "pydantic"}), (["train", "--help"], {*HEAVY} - {"yaml"})]
)
def test_help_imports_nothing_heavy(tmp_path: Path, arguments: list[str], unneeded: set[str]) -> None:
    """The help of a command imports what each of its uses needs, such as the config, but no large library."""
    script = LISTING.format(arguments=[arguments])
    finished = run([sys.executable, "-c", script], tmp_path, capture_output=True)
    assert finished.returncode == 0
    imported = set(finished.stderr.decode().partition("IMPORTED")[2].split())
    assert "typer" in imported
    assert not unneeded & imported


def test_a_sentence_of_the_small_model_starts_without_what_it_does_not_need(tmp_path: Path) -> None:
    """No look for garbage while modules are imported (50 ms), no threads that wait for each other (40 ms), no bar (15 ms)."""
    environment = {name: value for name, value in ENVIRON.items() if not name.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", AFTER_A_SENTENCE]
    finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    translation, listed = finished.stdout.splitlines()
    searches, num_threads, modules = json.loads(listed)
    assert translation.startswith("Le chien")
    assert (searches, num_threads) == (0, 1)
    assert "numpy" in modules
    assert not NOT_FOR_THE_SMALL_MODEL & {*modules}


def test_training_and_translating_import_no_tracer(tmp_path: Path) -> None:
    """`torch._dynamo`, which only `torch.compile` needs, takes 1.5 seconds and 70 MB; a run on one CPU does without."""
    train = ["train", "--config", str(write_tiny(tmp_path)), "--set", "model.tie_embeddings=none"]
    commands = [
        [*train, "--set", "training.optimizer=adam"],
        ["translate", "--set", "decoding.engine=torch", "1 2 3"],
        [*train, "--set", "training.optimizer=muon", "--set", "name=other"],
    ]
    script = LISTING.format(arguments=commands)
    finished = run([sys.executable, "-c", script], tmp_path, capture_output=True)
    talk = finished.stderr.decode()
    assert finished.returncode == 0, talk
    after_each = [set(line.split()) for line in talk.split("IMPORTED")[1:]]
    assert len(after_each) == len(commands)
    for imported in after_each:
        assert "torch" in imported
        assert not {"torch._dynamo", "sympy"} & imported


@pytest.mark.parametrize("command", COMMANDS)
def test_each_help_has_an_example(tfm: Tfm, command: str) -> None:
    shown = tfm(command, "--help").text
    assert tfm(command, "-h").text == shown
    assert f"Example: {'cat in.txt | ' if command == 'translate' else ''}tfm {command}" in shown
    assert "--debug" in shown


def test_a_reader_that_leaves_early_gets_no_complaint(tfm_with_run: Tfm) -> None:
    """B12: `tfm translate | head -1`, and a reader that reads nothing; `tfm` ends as `cat` does."""
    (tfm_with_run.folder / "many.txt").write_text("1 2 3\n4 5 6\n" * 20_000)
    for arguments, reader in (("translate -b 1 --input many.txt", "head -1"), ("info", "true")):
        piped = f"{' '.join(TFM)} {arguments} | {reader}; exit ${{PIPESTATUS[0]}}"
        finished = run(["bash", "-c", piped], tfm_with_run.folder, capture_output=True)
        assert finished.returncode == 128 + signal.SIGPIPE
        talk = finished.stderr.decode().splitlines()
        assert [line for line in talk if not line.startswith("runs/tiny")] == []
        assert len(finished.stdout.splitlines()) == (reader == "head -1")
        assert list(tfm_with_run.folder.rglob(".tmp-*")) == []


def test_closed_standard_streams_are_no_error(tfm_with_run: Tfm) -> None:
    """B12."""
    command = f"{' '.join(TFM)} translate --output out.txt <&- >&- 2>&-"
    assert run(["bash", "-c", command], tfm_with_run.folder).returncode == 0
    assert (tfm_with_run.folder / "out.txt").read_bytes() == b"", "no input, no output"


def test_a_cold_resume_equals_a_warm_run(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """Every new process has other hash seeds and addresses; the signal comes from outside, at any time."""
    config = write_tiny(tfm.folder)
    metrics = tfm.folder / "runs/tiny/metrics.jsonl"
    command = [*TFM, "train", "--config", config]
    with subprocess.Popen(command, cwd=tfm.folder, env=ENVIRON, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not metrics.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
    assert process.returncode in (143, 0)
    assert run(command, tfm.folder, stderr=subprocess.DEVNULL).returncode == 0
    assert essence(tfm.folder / "runs/tiny") == uninterrupted


def test_a_full_disk_behind_standard_output_is_told_and_may_be_tried_again(tfm: Tfm) -> None:
    command = f"{' '.join(TFM)} info --config copy.yaml > /dev/full"
    finished = run(["bash", "-c", command], tfm.folder, stderr=subprocess.PIPE)
    assert finished.returncode == 75
    talk = finished.stderr.decode()
    assert talk.startswith("tfm: standard output: No space left on device\n  hint: make room")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_is_cut_off_in_the_middle_is_told(tfm: Tfm, unbuffered: str) -> None:
    """The system writes the first 1,024 bytes and no more, as on a disk that becomes full."""
    command = f"ulimit -f 1; PYTHONUNBUFFERED={unbuffered} PYTHONDONTWRITEBYTECODE=1 {' '.join(TFM)} --help > help.txt"
    finished = run(["bash", "-c", command], tfm.folder, stderr=subprocess.PIPE)
    assert (tfm.folder / "help.txt").stat().st_size == 1024
    assert finished.returncode == 74
    assert finished.stderr.decode().startswith("tfm: standard output: File too large\n")


def test_every_module_is_imported_without_what_windows_lacks(tmp_path: Path) -> None:
    finished = run([*OTHER, "import_all"], tmp_path, capture_output=True)
    assert finished.returncode == 0, finished.stderr.decode()
    package = Path(transformer_cli.__file__).parent
    files = [path for path in package.rglob("*.py") if path != package / "__init__.py"]
    assert len(json.loads(finished.stdout)) == len(files)


def test_training_validating_and_translating_need_nothing_that_windows_lacks(
    tmp_path: Path, uninterrupted: dict[str, Any]
) -> None:
    """Without `fcntl`, folders as files, links, and names for files that are open."""
    train = ["train", "--config", write_tiny(tmp_path)]
    (tmp_path / "in.txt").write_bytes(b"1 2 3\n\n2 1\n")
    translate = ["translate", "--input", "in.txt", "--output", "out.txt"]
    listed = [
        [*train, "--set", "training.max_steps=5"],
        train,
        [*train, "--from-scratch"],
        translate,
        translate,
        ["translate", "1 2"],
        ["validate"],
        ["info"],
        ["data", "--config", "tiny.yaml"],
        ["next", "1"],
    ]
    finished = run([*OTHER, "commands", json.dumps(listed)], tmp_path, capture_output=True)
    talk = finished.stderr.decode()
    assert finished.returncode == 0, talk
    assert finished.stdout.decode().endswith(f"EXIT CODES {[0] * len(listed)}\n"), talk
    assert b"\r" not in finished.stdout
    assert (tmp_path / "out.txt").read_bytes().count(b"\n") == 3
    assert talk.count("a symbolic link could not be made") == 1
    assert "resuming runs" in talk
    for weights in (tmp_path / "runs/tiny").glob("checkpoints*/step-00000013/model.safetensors"):
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()
        assert digest == uninterrupted["model.safetensors"]
    assert len(list((tmp_path / "runs/tiny").glob("checkpoints*/step-00000013"))) == 2


def test_a_reader_that_leaves_early_gets_no_complaint_without_sigpipe(tfm_with_run: Tfm) -> None:
    translate = [*OTHER, "commands", json.dumps([["translate", "1 2"]])]
    with subprocess.Popen(
        translate, cwd=tfm_with_run.folder, env=ENVIRON, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        talk = process.stderr.read().decode()
    assert process.returncode == 141
    assert "Traceback" not in talk


def test_output_into_a_closed_standard_output_is_an_error(tfm: Tfm) -> None:
    """It would be lost in silence; training writes nothing there, and is not disturbed."""
    train = f"{' '.join(TFM)} train --config {write_tiny(tfm.folder)} >&-"
    assert run(["bash", "-c", train], tfm.folder, stderr=subprocess.DEVNULL).returncode == 0
    for arguments in ("translate '1 2 3'", "--version"):
        command = f"{' '.join(TFM)} {arguments} >&-"
        finished = run(["bash", "-c", command], tfm.folder, stderr=subprocess.PIPE)
        assert finished.returncode == 74, arguments
        assert finished.stderr.decode().endswith(
            "tfm: standard output is closed, so the output is lost\n"
            "  hint: send it to a file or a program: > out.txt, or | less\n"
        )


def test_a_sentence_for_the_other_engine_imports_neither_pytorch_nor_numpy(tfm: Tfm) -> None:
    """Its import takes longer than a translation; at the first use, PyTorch converts the model."""
    pytest.importorskip("ctranslate2")
    lines = [f"{number}\t{number} {number}\n" for number in range(200)]
    (tfm.folder / "pairs.tsv").write_text("".join(lines))
    config = tfm.folder / "files.yaml"
    config.write_text(
        "name: tiny\ndata: {source: files, source_language: en, target_language: it, corpora: [{path: pairs.tsv}]}\n"
        "model: {d_model: 16, num_heads: 2, d_ff: 16, encoder_layers: 1, decoder_layers: 1}\n"
        "training: {max_steps: 2, batch_sentences: 8}\ndecoding: {engine: ctranslate2}\n"
        "validation: {scores: [chrf]}\nruntime: {threads: 1, device: cpu}\n"
    )
    assert tfm("train", "--config", str(config), "--set", "training.best_metric=loss").exit_code == 0
    script = LISTING.format(arguments=[["translate", "--run", "tiny", "7 8"]])
    for is_first in (True, False):
        finished = run([sys.executable, "-c", script], tfm.folder, capture_output=True)
        talk, _, imported = finished.stderr.decode().partition("IMPORTED")
        assert finished.returncode == 0, talk
        assert "(CTranslate2 " in talk
        assert ("torch" in imported.split()) == is_first
    assert (NOT_FOR_A_SENTENCE & {*imported.split()}) == set()


def test_the_first_sentences_of_the_model_that_comes_along_import_no_pytorch(
    tmp_path: Path,
) -> None:
    """Its import takes four times as long as all else."""
    for options, is_imported in (
        ([], False),
        (["--beam-size", "2"], False),
        (["--alignment"], False),
        (["--set", "runtime.threads=1"], True),
    ):
        script = LISTING.format(arguments=[["translate", "Where is the station?", *options]])
        finished = run([sys.executable, "-c", script], tmp_path, capture_output=True)
        talk, _, imported = finished.stderr.decode().partition("IMPORTED")
        assert finished.returncode == 0, talk
        assert finished.stdout.decode().startswith("Où se trouve la gare ?")
        assert ("torch" in imported.split()) == is_imported, options
