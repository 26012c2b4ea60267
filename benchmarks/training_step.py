"""Measures the speed of a training step, and compares it with torch.nn.Transformer of the same size.

    OMP_NUM_THREADS=1 python benchmarks/training_step.py

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
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.config import ModelConfig, RuntimeConfig
from transformer_cli.model.loss import sum_loss
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import prepare_machine

NUM_SENTENCES, NUM_POSITIONS, VOCAB_SIZE, PAD_ID = 64, 24, 8192, 1
LABEL_SMOOTHING = 0.1
CONFIG = ModelConfig(preset="small", tie_embeddings="none")

Step = Callable[[], object]


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
    seconds = _measure_in_turns(arguments.rounds, arguments.threads)
    num_target_tokens = int((_random_batch()[3] != PAD_ID).sum())
    naive = seconds["torch.nn.Transformer, float32"]
    lines = [f"{'target tokens per CPU second':32}{'median':>8}{'spread':>16}{'ratio':>8}"]
    for name, values in seconds.items():
        rates = sorted(num_target_tokens / value for value in values)
        # The ratio is taken per round, so that a slow round does not change it.
        ratio = statistics.median(a / b for a, b in zip(naive, values, strict=True))
        spread = f"{rates[0]:,.0f}-{rates[-1]:,.0f}"
        lines.append(f"{name:32}{statistics.median(rates):8,.0f}{spread:>16}{ratio:8.2f}")
    sys.stdout.write("\n".join(lines) + "\n")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The speed of a training step on the CPU.")
    parser.add_argument("--rounds", type=int, default=15, help="measured steps per contestant")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    return parser.parse_args()


def _random_batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Source ids and mask, decoder input and target ids; the shortest sentences are 20 tokens long."""
    shape = NUM_SENTENCES, NUM_POSITIONS
    source_ids, target_ids = (
        torch.randint(4, VOCAB_SIZE, shape),
        torch.randint(4, VOCAB_SIZE, shape),
    )
    lengths = torch.linspace(20, NUM_POSITIONS, NUM_SENTENCES).round()
    is_real = torch.arange(NUM_POSITIONS) < lengths[:, None]
    source_ids, target_ids = (ids.where(is_real, PAD_ID) for ids in (source_ids, target_ids))
    return source_ids, is_real, target_ids.roll(1, dims=1), target_ids


def _naive_step() -> Step:
    model = NaiveTranslator(CONFIG)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    *inputs, target_ids = _random_batch()

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


def _own_step(precision: Literal["float32", "bfloat16"]) -> Step:
    machine = prepare_machine(RuntimeConfig(device="cpu", precision=precision))
    model = Transformer(CONFIG, VOCAB_SIZE, VOCAB_SIZE)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    *inputs, target_ids = _random_batch()
    num_tokens = int((target_ids != PAD_ID).sum())

    def step() -> None:
        optimizer.zero_grad()
        with machine.autocast():
            logits = model(*inputs)
            sums = sum_loss(logits, target_ids, pad_id=PAD_ID, label_smoothing=LABEL_SMOOTHING)
        (sums.objective / num_tokens).backward()
        optimizer.step()

    return step


CONTESTANTS: dict[str, Callable[[], Step]] = {
    "torch.nn.Transformer, float32": _naive_step,
    "tfm, float32": functools.partial(_own_step, "float32"),
    "tfm, bfloat16": functools.partial(_own_step, "bfloat16"),
}


def _measure_in_turns(num_rounds: int, num_threads: int) -> dict[str, list[float]]:
    """CPU seconds of each contestant's step in each round, after two warm-up rounds."""
    context = multiprocessing.get_context("spawn")
    pipes = {}
    for name in CONTESTANTS:
        here, there = context.Pipe()
        context.Process(target=_serve, args=(name, num_threads, there), daemon=True).start()
        pipes[name] = here
    seconds: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for round_number in range(num_rounds + 2):
        for name, pipe in pipes.items():
            pipe.send("go")
            step_seconds = pipe.recv()
            if round_number >= 2:
                seconds[name].append(step_seconds)
    for pipe in pipes.values():
        pipe.send(None)
    return seconds


def _serve(name: str, num_threads: int, pipe: Connection) -> None:
    """Do one step for each message and answer with its CPU seconds."""
    warnings.simplefilter("ignore")  # torch.nn.Transformer warns about its own defaults
    torch.set_num_threads(num_threads)
    torch.manual_seed(1)
    step = CONTESTANTS[name]()
    while pipe.recv():
        started_at = time.process_time()
        step()
        pipe.send(time.process_time() - started_at)


if __name__ == "__main__":
    main()
