"""Measures the speed of a training step, and compares it with torch.nn.Transformer of the same size.

    OMP_NUM_THREADS=1 python benchmarks/training_step.py
    OMP_NUM_THREADS=1 python benchmarks/training_step.py --against FOLDER
    OMP_NUM_THREADS=1 python benchmarks/training_step.py --against FOLDER --task tiny --r-drop 5

FOLDER is another checkout of this repository, whose code takes its turns too (`git worktree add FOLDER COMMIT`).
`--task tiny` is the model and the size of a batch of multi30k-en-de-tiny.yaml, `--task multi30k` that of multi30k-en-de.yaml; without
it, it is this:
One batch of 64 sentences of at most 24 tokens, the preset `small` (d 256, 3 + 3 layers, d_ff 1,024),
a vocabulary of 8,192: forward, loss with label smoothing, backward and one Adam step. Each contestant
has its own process, and they take turns, so that other work on the machine slows all of them alike.
CPU time is measured: other processes lengthen it less than wall-clock time.
"""

import argparse
import functools
import multiprocessing
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.config import ModelConfig

NUM_POSITIONS, VOCAB_SIZE, PAD_ID = 24, 8192, 1
LABEL_SMOOTHING = 0.1


class Task(NamedTuple):
    """What is trained, and on a batch of which size."""

    model: Mapping[str, Any]
    vocab_size: int = VOCAB_SIZE
    num_sentences: int = 64


SMALL = Task({"preset": "small", "tie_embeddings": "none"})
TINY = Task({"preset": "tiny", "tie_embeddings": "all", "dropout": 0.3}, 10_000, 170)
MULTI30K = Task({"preset": "small", "d_ff": 512, "tie_embeddings": "all", "dropout": 0.2}, 6000, 80)
TASKS = {"small": SMALL, "tiny": TINY, "multi30k": MULTI30K}
CONFIG = ModelConfig(**SMALL.model)

Step = Callable[[], object]
Precision = Literal["float32", "bfloat16"]


class NaiveTranslator(nn.Module):
    """The usual first implementation: two embeddings, torch.nn.Transformer and an output layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(VOCAB_SIZE, config.d_model)
        self.target_embedding = nn.Embedding(VOCAB_SIZE, config.d_model)
        self.transformer = nn.Transformer(
            d_model=config.d_model,
            nhead=config.num_heads,
            num_encoder_layers=config.encoder_layers,
            num_decoder_layers=config.decoder_layers,
            dim_feedforward=config.d_ff,
            dropout=config.dropout,
            batch_first=True,
            norm_first=True,
        )
        self.output = nn.Linear(config.d_model, VOCAB_SIZE)

    def forward(self, source_ids: Tensor, source_mask: Tensor, decoder_input_ids: Tensor) -> Tensor:
        num_positions = decoder_input_ids.size(1)
        decoded = self.transformer(
            self.source_embedding(source_ids),
            self.target_embedding(decoder_input_ids),
            src_key_padding_mask=~source_mask,
            memory_key_padding_mask=~source_mask,
            tgt_mask=torch.ones(num_positions, num_positions, dtype=torch.bool).triu(1),
            tgt_is_causal=True,
        )
        return self.output(decoded)


def main() -> None:
    arguments = _parse_arguments()
    contestants, reference = dict(CONTESTANTS), "torch.nn.Transformer, float32"
    if arguments.against is not None:
        reference = "the other checkout, bfloat16"
        step = functools.partial(_own_step, "bfloat16", task=TASKS[arguments.task], r_drop=arguments.r_drop)
        other = functools.partial(step, checkout=arguments.against.resolve())
        contestants = {reference: other, "tfm, bfloat16": step}
    elif arguments.task != "small" or arguments.r_drop:
        sys.exit("--task and --r-drop compare two checkouts: name one by --against FOLDER")
    seconds = measure_in_turns(contestants, arguments.rounds, arguments.threads)
    num_tokens = num_target_tokens(TASKS[arguments.task])
    lines = table("target tokens per CPU second", num_tokens, seconds, reference)
    sys.stdout.write("\n".join(lines) + "\n")


def num_target_tokens(task: Task = SMALL) -> int:
    """The target tokens of the batch."""
    return int((random_batch(task)[3] != PAD_ID).sum())


def table(what: str, num_tokens: int, seconds: Mapping[str, Sequence[float]], reference: str) -> list[str]:
    """The tokens per CPU second of each contestant, and how many times as fast as the reference it is."""
    lines = [f"{what:44}{'median':>8}{'spread':>16}{'ratio':>8}{'spread':>14}"]
    for name, values in seconds.items():
        rates = sorted(num_tokens / value for value in values)
        # The ratio is taken per round, so that a slow round does not change it.
        ratios = sorted(a / b for a, b in zip(seconds[reference], values, strict=True))
        spread = f"{rates[0]:,.0f}-{rates[-1]:,.0f}"
        of_ratios = f"{ratios[0]:.2f}-{ratios[-1]:.2f}"
        median, ratio = statistics.median(rates), statistics.median(ratios)
        lines.append(f"{name:44}{median:8,.0f}{spread:>16}{ratio:8.2f}{of_ratios:>14}")
    return lines


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The speed of a training step on the CPU.")
    parser.add_argument("--rounds", type=int, default=15, help="measured steps per contestant")
    parser.add_argument("--against", type=Path, help="another checkout, which takes its turns too")
    parser.add_argument("--task", choices=list(TASKS), default="small", help="model and batch")
    parser.add_argument("--r-drop", type=float, default=0.0, help="alpha of R-Drop")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    return parser.parse_args()


def random_batch(task: Task = SMALL) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Source ids and mask, decoder input and target ids; the shortest sentences are 20 tokens long."""
    shape = task.num_sentences, NUM_POSITIONS
    source_ids, target_ids = (
        torch.randint(4, task.vocab_size, shape),
        torch.randint(4, task.vocab_size, shape),
    )
    lengths = torch.linspace(20, NUM_POSITIONS, task.num_sentences).round()
    is_real = torch.arange(NUM_POSITIONS) < lengths[:, None]
    source_ids, target_ids = (ids.where(is_real, PAD_ID) for ids in (source_ids, target_ids))
    return source_ids, is_real, target_ids.roll(1, dims=1), target_ids


def _naive_step() -> Step:
    model = NaiveTranslator(CONFIG)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    *inputs, target_ids = random_batch()

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(
            model(*inputs).flatten(0, 1),
            target_ids.flatten(),
            ignore_index=PAD_ID,
            label_smoothing=LABEL_SMOOTHING,
        ).backward()
        optimizer.step()

    return step


def _own_step(precision: Precision, checkout: Path | None = None, task: Task = SMALL, r_drop: float = 0.0) -> Step:
    """The step of this package, or of the one in another checkout."""
    if checkout is not None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "transformer_cli"]:
            del sys.modules[name]
        sys.path.insert(0, str(checkout))
    # Names that all commits since 71c0aba have.
    from transformer_cli.config import ModelConfig, RuntimeConfig
    from transformer_cli.model.transformer import Transformer

    try:
        from transformer_cli.process.device import prepare_machine
    except ImportError:  # its place before the rooms were merged
        prepare_machine = import_module("transformer_cli.runtime").prepare_machine

    machine = prepare_machine(RuntimeConfig(device="cpu", precision=precision))
    model = Transformer(ModelConfig(**task.model), task.vocab_size, task.vocab_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    *inputs, target_ids = random_batch(task)
    num_tokens = int((target_ids != PAD_ID).sum())
    objective = _objective(model, target_ids, task.vocab_size, r_drop)

    def step() -> None:
        optimizer.zero_grad()
        with machine.autocast():
            summed = objective(model, inputs)
        (summed / num_tokens).backward()
        optimizer.step()

    return step


def _objective(
    model: Any, target_ids: Tensor, vocab_size: int, r_drop: float
) -> Callable[[nn.Module, list[Tensor]], Tensor]:
    """The smoothed loss of a model's output, or the objective of R-Drop, as the imported checkout computes it in training."""
    try:
        from transformer_cli.acceleration import accelerate, accelerated_loss
    except ImportError:  # before this package, the model chose the kernels itself
        return _objective_of_heads(target_ids, r_drop)
    from transformer_cli.model.loss import SmoothedLabels, likelihood_loss, r_drop_loss

    accelerate(model, torch.device("cpu"))
    labels = SmoothedLabels.of(vocab_size, PAD_ID, LABEL_SMOOTHING, "vocabulary")
    loss = accelerated_loss(r_drop_loss if r_drop else likelihood_loss, torch.device("cpu"))
    further = [r_drop] if r_drop else []

    def objective(model: Any, inputs: list[Tensor]) -> Tensor:
        chosen = [torch.cat([one, one]) for one in inputs] if r_drop else inputs
        decode = getattr(model, "decoder_output", None) or model.decoded  # its name before
        decoded = decode(*chosen)
        return loss(model.output, decoded, target_ids, labels, *further).objective

    return objective


def _objective_of_heads(target_ids: Tensor, r_drop: float) -> Callable[[nn.Module, list[Tensor]], Tensor]:
    if r_drop:
        twin_loss_head = import_module("transformer_cli.training.objectives.r_drop").TwinLossHead
        head = twin_loss_head(target_ids, PAD_ID, LABEL_SMOOTHING, "vocabulary", r_drop)
        return lambda model, inputs: model(*(torch.cat([one, one]) for one in inputs), head).objective
    plain = import_module("transformer_cli.model").LossHead(target_ids, PAD_ID, LABEL_SMOOTHING)
    return lambda model, inputs: model(*inputs, plain).objective


CONTESTANTS: dict[str, Callable[[], Step]] = {
    "torch.nn.Transformer, float32": _naive_step,
    "tfm, float32": functools.partial(_own_step, "float32"),
    "tfm, bfloat16": functools.partial(_own_step, "bfloat16"),
}


def measure_in_turns(
    contestants: Mapping[str, Callable[[], Step]], num_rounds: int, num_threads: int
) -> dict[str, list[float]]:
    """CPU seconds of each contestant's step in each round, after two warm-up rounds.

    Args:
        contestants: name -> a function that a process of its own calls once; it returns the step.
        num_rounds: how often each takes its turn.
        num_threads: CPU threads of each process.
    """
    context = multiprocessing.get_context("spawn")
    pipes = {}
    for name, prepare in contestants.items():
        here, there = context.Pipe()
        context.Process(target=_serve, args=(prepare, num_threads, there), daemon=True).start()
        pipes[name] = here
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for round_number in range(num_rounds + 2):
        for name, pipe in pipes.items():
            pipe.send("go")
            step_seconds = pipe.recv()
            if round_number >= 2:
                seconds[name].append(step_seconds)
    for pipe in pipes.values():
        pipe.send(None)
    return seconds


def _serve(prepare: Callable[[], Step], num_threads: int, pipe: Connection) -> None:
    """Do one step for each message and answer with its CPU seconds."""
    warnings.simplefilter("ignore")  # torch.nn.Transformer warns about its own defaults
    torch.set_num_threads(num_threads)
    torch.manual_seed(1)
    step = prepare()
    while pipe.recv():
        started_at = time.process_time()
        step()
        pipe.send(time.process_time() - started_at)


if __name__ == "__main__":
    main()
