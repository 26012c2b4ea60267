"""Compares the training of tfm with that of other programs on the NVIDIA GPU of this machine: target tokens a second.

    python benchmarks/gpu.py corpus PATH
    python benchmarks/gpu_peers.py PATH [--json FILE] [--only NAME]

All train the base Transformer (d_model 512, 8 heads, 6 + 6 layers, d_ff 2,048, norms after each sublayer, one table of
about 37,000 words for both languages and the output, dropout 0.1, label smoothing 0.1, Adam, clipping) in mixed precision:

- tfm: as it is by default, bfloat16, with its own batches, which a thread prepares.
- JoeyNMT 2.3: its own trainer with `fp16: true`, the only 16-bit precision that it has; once with its own batches of so many
  tokens, which it reads and pads itself, and once with the batches of tfm.
- Hugging Face: MarianMTModel with bfloat16 autocast, the attention "sdpa", fused AdamW, and the batches of tfm.
- torch.nn.Transformer: the same loop; then with torch.compile, which takes long to start.
- Both once more without cuDNN's attention, which makes a plan for each new shape (0.1 s), so their first updates say little.

The plain loops get their batches ready made, in pinned memory, so they do no work on data. Each program has a process and a limit
of time; all start together, and measure one after another. What cannot be measured has a line that says why. A row has the
tokens a second of all updates together, the median of the updates, the range of the middle 80 % of them, and how many times as
fast as tfm it is. `--tiny` tries it out on a CPU.
"""

import argparse
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, closing, suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.config import Config, load_config
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.extensions.benchmark.measuring import Stopwatch
from transformer_cli.extensions.benchmark.training import Trainee
from transformer_cli.process.device import let_segments_grow, wait_for

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SIZES = 25_000, 4096
WARM_UP = 15
SMOOTHING, CLIP, BETAS, LEARNING_RATE = 0.1, 1.0, (0.9, 0.98), 1e-4
GO = "go"

Row = dict[str, Any]
Ids = tuple[Tensor, Tensor, Tensor]
"""Of a batch of tfm: source (B, S), decoder input (B, T) and target (B, T), padded."""


class Task:
    """What a contestant is to do, and the files for it."""

    def __init__(self, options: Row) -> None:
        self.options = options
        self.root, self.folder = Path(options["root"]), Path(options["folder"])
        self.is_tiny: bool = options["tiny"]
        self.num_updates: int = options["updates"]
        self.seconds: float = options["seconds"]
        self.sizes = tuple(size // 100 for size in SIZES) if self.is_tiny else SIZES
        self.width, self.num_heads, self.num_layers, self.d_ff = (32, 2, 1, 64) if self.is_tiny else (512, 8, 6, 2048)
        self.has_started = False

    def config(self, *more: str) -> Config:
        """The config of tfm."""
        changes = [f"data.root={self.root}", "tokenizer.kind=wordlevel", f"training.clip_norm={CLIP}"]
        if self.is_tiny:
            names = "d_model", "num_heads", "encoder_layers", "decoder_layers", "d_ff"
            values = self.width, self.num_heads, self.num_layers, self.num_layers, self.d_ff
            changes += [f"model.{name}={value}" for name, value in zip(names, values, strict=True)]
        return load_config("wmt14-en-de-base.yaml", [*changes, *more])

    def data(self) -> PreparedData:
        """The prepared data; the first call prepares them."""
        return prepare_data(self.config(), self.folder / "data", has_begun=False)

    def wait_for_turn(self) -> None:
        """Called before anything runs on the GPU."""
        if not self.has_started:
            self.has_started = True
            tell({"ready": True})
            if sys.stdin.readline().strip() != GO:
                raise SystemExit(1)

    def stored(self) -> Row:
        """The batches of tfm for each size, and the numbers of its special words."""
        return cast(Row, torch.load(self.folder / "batches.pt"))


def tell(found: Row) -> None:
    """Send a line to the process that compares; other lines are messages of the programs."""
    sys.stdout.write(f"\n@{json.dumps(found)}\n")
    sys.stdout.flush()


def told(size: int, tokens: list[int], seconds: list[float]) -> None:
    """Send the figures of some updates."""
    each = np.array(tokens) / np.array(seconds)
    low, median, high = (float(one) for one in np.percentile(each, [10, 50, 90]))
    memory = torch.cuda.max_memory_allocated() / 1e9 if DEVICE.type == "cuda" else None
    rates = {"together": sum(tokens) / sum(seconds), "median": median, "p10": low, "p90": high}
    tell({"size": size, "updates": len(tokens), "tokens": sum(tokens) / len(tokens), "memory_gb": memory, **rates})


class Laps:
    """Measures updates until there are enough of them, or until the time is over."""

    def __init__(self, task: Task) -> None:
        self._task, self._tokens = task, list[int]()
        self._stopwatch: Stopwatch | None = None
        self._num_warm, self._ends_at = 0, 0.0
        if DEVICE.type == "cuda":
            torch.cuda.reset_peak_memory_stats()

    def end(self, num_tokens: int) -> bool:
        """An update of so many target tokens has ended; returns whether it was the last one."""
        if self._stopwatch is None:
            self._num_warm += 1
            if self._num_warm >= WARM_UP:
                wait_for(DEVICE)
                self._stopwatch = Stopwatch(DEVICE, phases=False)
                self._ends_at = time.perf_counter() + self._task.seconds
            return False
        self._stopwatch.end_lap("")
        self._tokens.append(num_tokens)
        is_late = len(self._tokens) >= 5 and time.perf_counter() > self._ends_at
        return is_late or len(self._tokens) >= self._task.num_updates

    def tell(self, size: int) -> None:
        """Send the figures."""
        assert self._stopwatch is not None
        timed = [_Timed() for _ in self._tokens]
        self._stopwatch.give_times(cast(Any, timed), [""])
        told(size, self._tokens, [one.seconds for one in timed])


class _Timed:
    seconds = 0.0


# tfm.


def train_tfm(task: Task) -> None:
    """The loop of `tfm train`, as `tfm benchmark` measures it."""
    data = task.data()
    with tempfile.TemporaryDirectory() as folder:
        task.wait_for_turn()
        for size in task.sizes:
            config = task.config(f"training.batch_tokens={size}")
            with closing(Trainee(config, data, Path(folder) / str(size))) as trainee:
                trainee.prepare_shapes()
                trainee.train(0.0, at_least=WARM_UP, at_most=WARM_UP)
                if DEVICE.type == "cuda":
                    torch.cuda.reset_peak_memory_stats()
                timed = trainee.train(task.seconds, at_least=task.num_updates, at_most=task.num_updates)
                told(size, [one.target_tokens for one in timed], [one.seconds for one in timed])


# Plain loops.


def train_plainly(
    task: Task, build: Callable[[Task, Row], Callable[[Ids], Tensor]], *, compiles: bool = False, has_cudnn: bool = True
) -> None:
    """A plain loop in bfloat16 with fused AdamW.

    Args:
        build: makes a module that gives logits (B, T, V) for a batch.
        compiles: with torch.compile.
        has_cudnn: whether cuDNN's attention is allowed, as it is by default; it makes a plan for each new shape.
    """
    torch.backends.cuda.enable_cudnn_sdp(has_cudnn)
    stored = task.stored()
    module = cast(nn.Module, build(task, stored))
    pad = stored["pad"]
    task.wait_for_turn()
    module.to(DEVICE).train()
    fused = DEVICE.type == "cuda"
    optimizer = torch.optim.AdamW(module.parameters(), LEARNING_RATE, BETAS, eps=1e-9, weight_decay=0.0, fused=fused)

    def loss_of(batch: Ids) -> Tensor:
        with torch.autocast(DEVICE.type, torch.bfloat16):
            logits = module(batch)
            flat, targets = logits.flatten(0, 1), batch[2].flatten()
            return F.cross_entropy(flat, targets, ignore_index=pad, label_smoothing=SMOOTHING)

    compute: Any = torch.compile(loss_of, dynamic=True) if compiles else loss_of
    for size in task.sizes:
        batches = [tuple(one.pin_memory() if fused else one for one in batch) for batch in stored["batches"][size]]
        tokens = stored["tokens"][size]
        laps, number, is_last = Laps(task), 0, False
        while not is_last:
            batch = tuple(one.to(DEVICE, non_blocking=True) for one in batches[number % len(batches)])
            compute(batch).backward()
            nn.utils.clip_grad_norm_(module.parameters(), CLIP)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            is_last = laps.end(tokens[number % len(batches)])
            number += 1
        laps.tell(size)


class PlainTransformer(nn.Module):
    """torch.nn.Transformer with one table for both languages and the output, and sinusoids."""

    def __init__(self, task: Task, stored: Row) -> None:
        super().__init__()
        width, layers = task.width, task.num_layers
        self.pad: int = stored["pad"]
        self.table = nn.Embedding(stored["num_words"], width, padding_idx=self.pad)
        nn.init.normal_(self.table.weight, std=width**-0.5)
        self.body = nn.Transformer(width, task.num_heads, layers, layers, task.d_ff, 0.1, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        angles = torch.arange(2048)[:, None] * 10_000 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))

    def forward(self, batch: Ids) -> Tensor:
        """Logits (B, T, V)."""
        source, inputs, _ = batch
        is_pad = source == self.pad
        # The padding of targets is at their ends, where a causal mask hides it.
        later = torch.ones(inputs.size(1), inputs.size(1), dtype=torch.bool, device=inputs.device).triu(1)
        states = self.body(
            self._embedded(source),
            self._embedded(inputs),
            tgt_mask=later,
            tgt_is_causal=True,
            src_key_padding_mask=is_pad,
            memory_key_padding_mask=is_pad,
        )
        return F.linear(states, self.table.weight)

    def _embedded(self, ids: Tensor) -> Tensor:
        table = self.table(ids) * self.table.embedding_dim**0.5
        return cast(Tensor, self.dropout(table + cast(Tensor, self.positions)[: ids.size(1)]))


class HuggingFace(nn.Module):
    """MarianMTModel of the same shape."""

    def __init__(self, task: Task, stored: Row) -> None:
        super().__init__()
        from transformers import MarianConfig, MarianMTModel

        self.pad: int = stored["pad"]
        sides: Row = {}
        for side in ("encoder", "decoder"):
            sides |= {f"{side}_layers": task.num_layers, f"{side}_attention_heads": task.num_heads}
            sides[f"{side}_ffn_dim"] = task.d_ff
        config = MarianConfig(
            vocab_size=stored["num_words"],
            decoder_vocab_size=stored["num_words"],
            d_model=task.width,
            max_position_embeddings=2048,
            dropout=0.1,
            attention_dropout=0.1,
            activation_function="relu",
            scale_embedding=True,
            use_cache=False,
            pad_token_id=self.pad,
            eos_token_id=stored["eos"],
            bos_token_id=stored["bos"],
            decoder_start_token_id=stored["bos"],
            forced_eos_token_id=None,
            **sides,
        )
        config._attn_implementation = "sdpa"
        self.model = MarianMTModel(config)

    def forward(self, batch: Ids) -> Tensor:
        """Logits (B, T, V)."""
        source, inputs, _ = batch
        found = self.model(input_ids=source, attention_mask=source != self.pad, decoder_input_ids=inputs)
        return cast(Tensor, found.logits)


# JoeyNMT.


def train_joeynmt(task: Task, *, own_batches: bool) -> None:
    """The trainer of JoeyNMT; it is only stopped after enough updates, and does not save."""
    from joeynmt.training import TrainManager, train

    stored = task.stored()
    original, step = TrainManager.train_and_validate, TrainManager._train_step
    state: Row = {}

    def timed_step(self: Any, batch: Any) -> Any:
        # An update lasts until the next one begins.
        if state["tokens"] and state["laps"].end(state["tokens"]):
            self.stats.is_max_update = True
        state["tokens"] = batch.ntokens
        return step(self, batch)

    def of_each_size(self: Any, train_data: Any, valid_data: Any) -> None:
        for size in task.sizes:
            state.update(laps=Laps(task), tokens=0)
            self.args = self.args._replace(batch_size=size)
            self.stats.is_max_update, self.stats.epochs = False, 1
            if not own_batches:
                made = GivenBatches(stored, size, self.device, self.model)
                train_data.make_iter = lambda made=made, **_: made
            original(self, train_data, valid_data)
            state["laps"].tell(size)

    TrainManager.train_and_validate = of_each_size
    TrainManager._train_step = timed_step
    TrainManager._save_checkpoint = lambda *_: None
    with tempfile.TemporaryDirectory() as folder:
        _read_before_the_turn(task)
        train(rank=0, world_size=None, cfg=joeynmt_config(task, Path(folder), stored), skip_test=True)


def _read_before_the_turn(task: Task) -> None:
    """JoeyNMT reads its data, and waits for its turn before it builds the model."""
    from joeynmt import prediction

    build = prediction.build_model

    def build_in_turn(*inputs: Any, **options: Any) -> Any:
        model = build(*inputs, **options)
        task.wait_for_turn()
        return model

    prediction.build_model = build_in_turn


class GivenBatches:
    """The batches of tfm, as JoeyNMT's trainer reads them."""

    def __init__(self, stored: Row, size: int, device: torch.device, model: Any) -> None:
        self.batch_sampler = self
        self._batches, self._device, self._model = stored["batches"][size], device, model
        # Words have other numbers there; which word it is does not matter to the speed.
        special = {stored["pad"]: model.pad_index, stored["bos"]: model.bos_index, stored["eos"]: model.eos_index}
        self._numbers = torch.arange(stored["num_words"]).clamp(min=8, max=len(model.trg_vocab) - 1)
        for ours, theirs in special.items():
            self._numbers[ours] = theirs

    def set_seed(self, seed: int) -> None:
        """The order does not change."""

    def __iter__(self) -> Iterator[Any]:
        from joeynmt.batch import Batch

        for source, inputs, targets in self._batches:
            ids = self._numbers[source]
            begins = self._numbers[inputs[:, :1]]
            yield Batch(
                src=ids,
                src_length=(ids != self._model.pad_index).sum(1),
                src_prompt_mask=None,
                trg=torch.cat([begins, self._numbers[targets]], 1),
                trg_prompt_mask=None,
                indices=torch.arange(len(ids)),
                device=self._device,
                pad_index=self._model.pad_index,
                eos_index=self._model.eos_index,
            )


def joeynmt_config(task: Task, folder: Path, stored: Row) -> Row:
    """JoeyNMT's settings for the same training."""
    from joeynmt.config import load_config as load_joeynmt

    words = folder / "words.txt"
    words.write_text("".join(f"{word}\n" for word in stored["words"]), encoding="utf-8")
    language: Row = {"level": "word", "lowercase": False, "max_length": 2000, "voc_file": str(words)}
    side = {
        "type": "transformer",
        "num_layers": task.num_layers,
        "num_heads": task.num_heads,
        "embeddings": {"embedding_dim": task.width, "scale": True, "dropout": 0.1},
        "hidden_size": task.width,
        "ff_size": task.d_ff,
        "dropout": 0.1,
        "layer_norm": "post",
    }
    (folder / "model").mkdir()
    settings = {
        "name": "peer",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "model"),
        "use_cuda": DEVICE.type == "cuda",
        "fp16": DEVICE.type == "cuda",
        "random_seed": 1,
        "data": {
            "train": str(task.root / "wmt14" / "train"),
            "dev": str(task.root / "wmt14" / "newstest2013"),
            "dataset_type": "plain",
            "src": {"lang": "en", **language},
            "trg": {"lang": "de", **language},
        },
        "testing": {"beam_size": 1, "batch_size": 50},
        "training": {
            "optimizer": "adam",
            "adam_betas": [*BETAS],
            "learning_rate": LEARNING_RATE,
            "learning_rate_warmup": 4000,
            "scheduling": "warmupinversesquareroot",
            "normalization": "tokens",
            "clip_grad_norm": CLIP,
            "label_smoothing": SMOOTHING,
            "batch_size": task.sizes[0],
            "batch_type": "token",
            "epochs": 1000,
            "logging_freq": 1_000_000,
            "validation_freq": 1_000_000,
            "overwrite": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": side,
            "decoder": side,
        },
    }
    path = folder / "joeynmt.yaml"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return cast(Row, load_joeynmt(path))


CONTESTANTS: dict[str, tuple[Callable[[Task], None], float]] = {
    "tfm": (train_tfm, 60),
    "Hugging Face": (lambda task: train_plainly(task, HuggingFace), 40),
    "torch.nn.Transformer": (lambda task: train_plainly(task, PlainTransformer), 40),
    "Hugging Face, no cuDNN": (lambda task: train_plainly(task, HuggingFace, has_cudnn=False), 40),
    "torch.nn, no cuDNN": (lambda task: train_plainly(task, PlainTransformer, has_cudnn=False), 40),
    "JoeyNMT": (lambda task: train_joeynmt(task, own_batches=True), 50),
    "JoeyNMT, batches of tfm": (lambda task: train_joeynmt(task, own_batches=False), 50),
    "torch.nn.Transformer, compiled": (lambda task: train_plainly(task, PlainTransformer, compiles=True), 60),
}
"""Name -> what it does, and the most seconds of its turn."""


# The process that compares.


def store_batches(task: Task) -> None:
    """Write the batches that tfm makes, for the others."""
    data = task.data()
    tokenizer = data.target_tokenizer
    stored: Row = {
        "batches": {},
        "tokens": {},
        "num_words": max(tokenizer.vocab_size, data.source_tokenizer.vocab_size),
    }
    for size in task.sizes:
        config = task.config(f"training.batch_tokens={size}", "runtime.device=cpu")
        with tempfile.TemporaryDirectory() as folder, closing(Trainee(config, data, Path(folder))) as trainee:
            updates = [next(trainee.experiment.updates)[0] for _ in range(WARM_UP + task.num_updates)]
        stored["batches"][size] = [(one.source_ids, one.decoder_input_ids, one.target_ids) for one in updates]
        stored["tokens"][size] = [one.num_target_tokens for one in updates]
        first = updates[0]
        ends = first.target_ids[first.target_ids != first.pad_id]
        stored |= {"pad": first.pad_id, "bos": int(first.decoder_input_ids[0, 0]), "eos": int(ends[-1])}
    words = dict.fromkeys(
        word
        for name in ("en", "de")
        for line in (task.root / "wmt14" / "train").with_suffix(f".{name}").read_text(encoding="utf-8").splitlines()
        for word in line.split()
    )
    stored["words"] = [*words]
    torch.save(stored, task.folder / "batches.pt")


class Child:
    """A contestant in its process."""

    def __init__(self, name: str, task: Task) -> None:
        command = [sys.executable, __file__, str(task.root), "--inside", name, json.dumps(task.options)]
        self.log = task.folder / f"{name}.log"
        pipe = subprocess.PIPE
        with self.log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True)
        self._lines: queue.Queue[Row | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("@"):
                self._lines.put(json.loads(line[1:]))
        self._lines.put(None)

    def go(self) -> None:
        """Its turn begins."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(f"{GO}\n")
            self._process.stdin.flush()

    def found(self, ends_at: float) -> Iterator[Row]:
        """What it sends until it ends; then perhaps one row with "error"."""
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, ends_at - time.monotonic()))
            except queue.Empty:
                yield {"error": "took too long"}
                return
            if line is None:
                if self._process.wait():
                    last = [one for one in self.log.read_text().splitlines() if one.strip()][-1:]
                    yield {"error": (last or ["no message"])[0][:300]}
                return
            yield line

    def stop(self) -> None:
        """End the process, if it still runs."""
        self._process.kill()
        self._process.wait()
        self._reader.join(timeout=5.0)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def compare(task: Task, names: list[str], limit: float) -> Iterator[Row]:
    """The rows of all contestants, as they become known; all end within a limit of seconds."""
    started_at = time.monotonic()
    store_batches(task)
    yield {"preparation_s": time.monotonic() - started_at}
    children = {name: Child(name, task) for name in names}
    of_tfm: dict[int, float] = {}
    try:
        for name, child in children.items():
            began = time.monotonic()
            child.go()
            for found in child.found(min(began + CONTESTANTS[name][1], started_at + limit)):
                if "ready" in found:
                    continue
                row = {"name": name, **found}
                if "size" in row:
                    if name == "tfm":
                        of_tfm[row["size"]] = row["together"]
                    row["ratio"] = row["together"] / of_tfm[row["size"]] if row["size"] in of_tfm else None
                yield row
            child.stop()
            yield {"name": name, "turn_s": time.monotonic() - began}
    finally:
        for child in children.values():
            child.stop()


def line_of(row: Row) -> str:
    """One row as text."""
    if "size" in row:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:6.2f} x tfm"
        memory = "" if row["memory_gb"] is None else f", {row['memory_gb']:.1f} GB"
        rates = f"{row['together']:10,.0f} tokens/s; median {row['median']:,.0f} ({row['p10']:,.0f}-{row['p90']:,.0f})"
        return f"{row['name']:32}{row['size']:7,} {rates} {ratio}; {row['updates']} updates of {row['tokens']:,.0f}{memory}"
    name = row.get("name", "all")
    if "error" in row:
        return f"{name:32}failed: {row['error']}"
    return f"  {name}: " + ", ".join(f"{key} {value:.1f}" for key, value in row.items() if key != "name")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, metavar="PATH", help="the folder that `gpu.py corpus` filled")
    parser.add_argument("--only", choices=CONTESTANTS, action="append", help="measure only this")
    parser.add_argument("--updates", type=int, default=60, help="to measure of each size")
    parser.add_argument("--seconds", type=float, default=5.0, help="at most so many for the updates of a size")
    parser.add_argument("--limit", type=float, default=115.0, help="the most seconds of the whole comparison")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--tiny", action="store_true", help="small models, to try it out on a CPU")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        name, options = arguments.inside
        let_segments_grow()
        CONTESTANTS[name][0](Task(json.loads(options)))
        return
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tfm-gpu-peers-") as folder, chdir(folder):
        options = {name: getattr(arguments, name) for name in ("tiny", "updates", "seconds")}
        task = Task({**options, "root": str(arguments.root.absolute()), "folder": folder})
        for row in compare(task, arguments.only or [*CONTESTANTS], arguments.limit):
            rows.append(row)
            sys.stdout.write(f"{line_of(row)}\n")
            sys.stdout.flush()
            if arguments.json is not None:
                arguments.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
