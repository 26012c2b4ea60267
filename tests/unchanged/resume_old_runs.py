"""Whether checkpoints that an older tree wrote in the middle of a run go on in this tree exactly as they would have gone on there.

    python tests/unchanged/resume_old_runs.py write --python /path/to/old/tree/.venv/bin/python --cache FOLDER
    python tests/unchanged/resume_old_runs.py compare --cache FOLDER

`write` trains tiny models with the old tree to the middle of their runs, keeps those run folders in FOLDER, lets the old
tree go on for 50 updates, and records what it got: each line of metrics.jsonl and the SHA-256 of each final tensor of weights
and of the state of the optimizer. `compare` lets this tree (or that of `--python`) go on with copies, and prints, for each run, that all is equal bit
for bit, or the first step and value that differ. It exits with 1 if anything differs.

The runs: float32 and bfloat16, Adam and Muon, a word-level and a BPE tokenizer (and sequences of symbols), one process and two of
torchrun. Each pair of these choices is in at least one run. `write` takes about three minutes of one core, `compare` half of it.
Dropout, label smoothing, accumulated batches, an average of the weights and epochs that end between are in them. The corpora
are built in.

FOLDER does not belong into git: losses depend on the processor, on its number of vector lanes and on the versions of
PyTorch and its libraries, so `write` and `compare` must run on the same machine with the same packages.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

MIDDLE, FURTHER = 30, 50
SPEEDS = ("_per_second", "_seconds", "_minutes")
RECORD = "continued.json"


class Case(NamedTuple):
    """One run: what is chosen, and the number of processes."""

    precision: str
    optimizer: str
    tokenizer: str
    num_processes: int
    more: str = ""  # further settings of training

    @property
    def name(self) -> str:
        return f"{self.precision}-{self.optimizer}-{self.tokenizer}-{self.num_processes}"


# Half of the sixteen combinations, so chosen that each three columns have all eight of theirs; and a run without a tokenizer.
CASES = (
    Case("float32", "adam", "wordlevel", 1, "ema_decay: 0.9"),
    Case("float32", "adam", "bpe", 2, "r_drop: 1.0"),
    Case("float32", "muon", "wordlevel", 2),
    Case("float32", "muon", "bpe", 1, "bpe_dropout: 0.1"),
    Case("bfloat16", "adam", "wordlevel", 2),
    Case("bfloat16", "adam", "bpe", 1, "word_dropout: 0.1"),
    Case("bfloat16", "muon", "wordlevel", 1),
    Case("bfloat16", "muon", "bpe", 2),
    Case("float32", "adam", "symbols", 1, "schedule: cosine"),
)

CONFIG = """\
name: resumed
seed: 1
data: {data}
{tokenizer}model: {{d_model: 32, num_heads: 4, d_ff: 64, encoder_layers: 1, decoder_layers: 2, dropout: 0.1, attention_dropout: 0.1}}
training:
  optimizer: {optimizer}
  max_steps: {last}
  batch_sentences: 8
  accumulate: 2
  learning_rate: 3e-3
  warmup_steps: 20
  log_every: 1
  validate_every: 25
  save_every: {save_every}
  best_metric: loss
  {more}
validation: {{max_sentences: 8, scores: [], num_samples: 0}}
decoding: {{max_length: 12, beam_size: 1}}
runtime: {{device: cpu, precision: {precision}, threads: 1}}
"""


def config_of(case: Case) -> str:
    """The config of a run, as YAML."""
    data, tokenizer = "{source: phrasebook, num_pairs: 600}", ""
    if case.tokenizer == "symbols":
        data = "{source: sequences, num_pairs: 600, num_symbols: 10, min_length: 3, max_length: 9}"
    elif case.tokenizer == "bpe":
        tokenizer = "tokenizer: {kind: bpe, vocab_size: 300, shared: true}\n"
    else:
        tokenizer = "tokenizer: {kind: wordlevel, min_frequency: 1}\n"
    # One save in the further part, so that a save between two updates is seen to change nothing.
    return CONFIG.format(
        data=data,
        tokenizer=tokenizer,
        optimizer=case.optimizer,
        more=case.more,
        precision=case.precision,
        last=MIDDLE + FURTHER,
        save_every=MIDDLE + FURTHER // 2,
    )


# What runs in the process of a tree. It uses public names only.


def train_here(config: str, stop_at: int) -> None:
    """Train in the current folder, up to a step, and save there."""
    from transformer_cli import Callback, load_config, train

    class StopAt(Callback):
        def __init__(self) -> None:
            self.step = 0

        def on_start(self, first_step: int, num_steps: int | None) -> None:
            self.step = first_step

        def on_step(self, step: int, report: Any) -> None:
            self.step = step

        def should_stop(self) -> bool:
            return self.step >= stop_at

    run = train(load_config(config), callbacks=StopAt())
    assert run.step == stop_at, run.step


# What runs in the process that a developer starts.


def train_in(python: str, folder: Path, case: Case, stop_at: int) -> None:
    """Train in a folder with the tree of a Python, up to a step."""
    script = [str(Path(__file__).resolve()), "inside", "--stop-at", str(stop_at)]
    command = [python, *script]
    if case.num_processes > 1:
        command = [
            python,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(case.num_processes),
            *script,
        ]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
    ended = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{case.name}: exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}")


def result_of(folder: Path) -> dict[str, Any]:
    """What the further updates gave: the lines of metrics.jsonl without speeds, and a hash of each tensor of the last checkpoint."""
    run = folder / "runs/resumed"
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    reports = [
        {key: value for key, value in line.items() if not key.endswith(SPEEDS)}
        for line in lines
        if line.get("step", 0) > MIDDLE
    ]
    checkpoint = run / "checkpoints" / f"step-{MIDDLE + FURTHER:08}"
    files = sorted(checkpoint.glob("*.safetensors"))
    assert files, f"{checkpoint} has no tensors"
    return {"reports": reports, "tensors": {file.name: dict(hashes_of(file)) for file in files}}


def hashes_of(file: Path) -> Iterator[tuple[str, str]]:
    """Names of the tensors of a safetensors file, sorted, with the SHA-256 of their types, shapes and values."""
    content = file.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    for name, one in sorted(header.items()):
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in one["data_offsets"])
        kind = f"{one['dtype']}{one['shape']}".encode()
        yield name, hashlib.sha256(kind + content[begin:end]).hexdigest()


def first_difference(before: dict[str, Any], now: dict[str, Any]) -> str | None:
    """Where two results differ first: in the reports, by step, then in the tensors."""
    for old, new in zip(before["reports"], now["reports"], strict=False):
        for key in [*old, *(key for key in new if key not in old)]:
            if old.get(key) != new.get(key):
                return f"step {old.get('step')}, {old.get('kind')}: {key} was {old.get(key)}, is {new.get(key)}"
    if len(before["reports"]) != len(now["reports"]):
        return f"{len(before['reports'])} reports before, {len(now['reports'])} now"
    if before["tensors"].keys() != now["tensors"].keys():
        return f"files of tensors: {sorted(before['tensors'])} before, {sorted(now['tensors'])} now"
    for file, tensors in before["tensors"].items():
        found = now["tensors"][file]
        for name in sorted(tensors.keys() | found.keys()):
            if tensors.get(name) != found.get(name):
                what = "differs" if name in tensors and name in found else "is only in one"
                return f"the losses are equal, but the tensor {name} of {file} {what}"
    return None


def write(python: str, cache: Path, cases: list[Case]) -> None:
    for case in cases:
        started_at = time.monotonic()
        folder = cache / case.name
        shutil.rmtree(folder, ignore_errors=True)
        middle = folder / "middle"
        middle.mkdir(parents=True)
        (middle / "run.yaml").write_text(config_of(case), encoding="utf-8")
        train_in(python, middle, case, MIDDLE)
        result = continued(python, folder, case)
        (folder / RECORD).write_text(json.dumps(result, indent=1), encoding="utf-8")
        losses = [line["loss"] for line in result["reports"] if line["kind"] == "train"]
        say(
            f"{case.name}: {len(losses)} further updates, loss {losses[0]:.4f} to {losses[-1]:.4f}, {seconds_since(started_at)}"
        )


def compare(python: str, cache: Path, cases: list[Case]) -> bool:
    are_equal = True
    for case in cases:
        started_at = time.monotonic()
        folder = cache / case.name
        if not (folder / RECORD).is_file():
            raise SystemExit(f"{folder}: no run of the old tree is here; run the action write first")
        before = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        try:
            difference = first_difference(before, continued(python, folder, case))
        except SystemExit as refused:
            difference = f"it does not go on: {refused}"
        are_equal &= difference is None
        say(f"{case.name}: {difference or 'equal, ' + seconds_since(started_at)}")
    return are_equal


def continued(python: str, folder: Path, case: Case) -> dict[str, Any]:
    """Let a tree go on with a copy of the run in the middle."""
    with tempfile.TemporaryDirectory(prefix="tfm-resumed-") as name:
        copy = Path(name) / "copy"
        shutil.copytree(folder / "middle", copy, symlinks=True)
        train_in(python, copy, case, MIDDLE + FURTHER)
        return result_of(copy)


def seconds_since(started_at: float) -> str:
    return f"{time.monotonic() - started_at:.0f} s"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=("write", "compare", "inside"))
    parser.add_argument("--python", default=sys.executable, help="of the tree that trains")
    parser.add_argument("--cache", type=Path, help="a folder outside of the repository")
    parser.add_argument("--cases", nargs="+", choices=[case.name for case in CASES], help="only these runs")
    parser.add_argument("--stop-at", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.action == "inside":
        train_here("run.yaml", options.stop_at)
        return
    if options.cache is None:
        parser.error("--cache is missing: a folder outside of the repository")
    cases = [case for case in CASES if not options.cases or case.name in options.cases]
    if options.action == "write":
        write(options.python, options.cache.resolve(), cases)
    elif not compare(options.python, options.cache.resolve(), cases):
        sys.exit(1)


if __name__ == "__main__":
    main()
