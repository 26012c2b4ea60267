"""How fast a training step is, against torch.nn.Transformer of the same size in the same run.

    OMP_NUM_THREADS=1 python benchmarks/training_step.py

One batch of 64 sentences of 24 tokens, the model `small` (d 256, 3 + 3 layers, d_ff 1,024) with a
vocabulary of 8,192: forward, smoothed loss, backward and one Adam step. The two take turns, so that
whatever else the machine does slows both. What counts is CPU time, which a busy neighbour does not
lengthen as it does the clock's.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.config import ModelConfig
from transformer_cli.model.loss import sum_loss
from transformer_cli.model.transformer import Transformer

NUM_SENTENCES, NUM_POSITIONS, VOCAB_SIZE, PAD_ID = 64, 24, 8192, 1
DROPOUT, LABEL_SMOOTHING = 0.1, 0.1

Step = Callable[[], object]


class NaiveTranslator(nn.Module):
    """What people write first: torch.nn.Transformer between two tables and a projection."""

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
            dropout=DROPOUT,
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
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    config = ModelConfig(preset="small", dropout=DROPOUT, tie_embeddings="none")
    batch = _random_batch()
    num_target_tokens = int((batch[3] != PAD_ID).sum())
    steps = {
        "torch.nn.Transformer, float32, Adam": _naive_step(NaiveTranslator(config), batch),
        "tfm, float32": _own_step(Transformer(config, VOCAB_SIZE, VOCAB_SIZE), batch, False),
        "tfm, bfloat16": _own_step(Transformer(config, VOCAB_SIZE, VOCAB_SIZE), batch, True),
    }
    seconds = _measure_in_turns(steps, arguments.rounds)
    naive = next(iter(seconds.values()))
    lines = [f"{'target tokens per CPU second':38}{'median':>8}{'spread':>16}{'ratio':>8}"]
    for name, values in seconds.items():
        rates = sorted(num_target_tokens / value for value in values)
        # Each round's ratio, so that what slows a whole round cancels.
        ratio = statistics.median(a / b for a, b in zip(naive, values, strict=True))
        spread = f"{rates[0]:,.0f}-{rates[-1]:,.0f}"
        lines.append(f"{name:38}{statistics.median(rates):8,.0f}{spread:>16}{ratio:8.2f}")
    sys.stdout.write("\n".join(lines) + "\n")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The speed of a training step on the CPU.")
    parser.add_argument("--rounds", type=int, default=15, help="steps measured of each")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    return parser.parse_args()


def _random_batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Source ids and mask, decoder input and target ids; the shortest sentences are 20 tokens long."""
    shape = NUM_SENTENCES, NUM_POSITIONS
    source_ids, target_ids = torch.randint(4, VOCAB_SIZE, shape), torch.randint(4, VOCAB_SIZE, shape)
    lengths = torch.linspace(20, NUM_POSITIONS, NUM_SENTENCES).round()
    is_real = torch.arange(NUM_POSITIONS) < lengths[:, None]
    source_ids, target_ids = (ids.where(is_real, PAD_ID) for ids in (source_ids, target_ids))
    return source_ids, is_real, target_ids.roll(1, dims=1), target_ids


def _naive_step(model: nn.Module, batch: tuple[Tensor, ...]) -> Step:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    *inputs, target_ids = batch

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


def _own_step(model: nn.Module, batch: tuple[Tensor, ...], is_bfloat16: bool) -> Step:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    *inputs, target_ids = batch
    num_tokens = int((target_ids != PAD_ID).sum())

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=is_bfloat16):
            logits = model(*inputs)
        sums = sum_loss(logits, target_ids, pad_id=PAD_ID, label_smoothing=LABEL_SMOOTHING)
        (sums.objective / num_tokens).backward()
        optimizer.step()

    return step


def _measure_in_turns(steps: dict[str, Step], num_rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each step in each round, after two rounds of warming up."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for round_number in range(num_rounds + 2):
        for name, step in steps.items():
            started_at = time.process_time()
            step()
            if round_number >= 2:
                seconds[name].append(time.process_time() - started_at)
    return seconds


if __name__ == "__main__":
    main()
