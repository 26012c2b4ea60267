"""Counts the operations of one update on a GPU, without a GPU: most of them start one kernel.

    python benchmarks/operations.py

The CPU needs about 5 microseconds to start a kernel. If the kernels are shorter than that, as with small models and small
batches, a GPU waits for the CPU, and the number of operations decides the speed. They are counted on PyTorch's meta
device, where the code takes the same branches as on a GPU, in float32: bfloat16 adds a conversion of each matrix. Clipping
and fused Adam are left out; both need less than ten kernels.
"""

import argparse
import sys
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_cli.config import ModelConfig
from transformer_cli.model import Transformer
from transformer_cli.model.loss import sum_loss
from transformer_cli.training.optimization.batched_muon import BatchedMuon

META = torch.device("meta")
MICROSECONDS_OF_A_START = 5
PRESETS = ("tiny", "small", "base")


class FusedAttention(torch.autograd.Function):
    """Stands for the fused attention, which the meta device does not have: one kernel, and three backward."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        ctx.save_for_backward(queries, keys, values)
        return torch.empty_like(queries)

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, ...]:
        return tuple(torch.empty_like(one) for one in ctx.saved_tensors)


class Operations(TorchDispatchMode):
    """Counts operations that are no views."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.number += not function.is_view
        return function(*args, **(kwargs or {}))


def main() -> None:
    """Print a row for each preset."""
    fused: Any = FusedAttention
    F.scaled_dot_product_attention = lambda *inputs, **options: fused.apply(*inputs)
    formatter = argparse.RawTextHelpFormatter
    argparse.ArgumentParser(description=__doc__, formatter_class=formatter).parse_args()
    lines = [
        f"{'preset':8}{'forward':>9}{'loss':>7}{'backward':>10}{'together':>17}"
        f"{'our Muon':>17}{'Muon of PyTorch':>17}"
    ]
    for preset in PRESETS:
        forward, loss, backward, ours, theirs = operations_of(preset)
        together = forward + loss + backward
        counts = f"{preset:8}{forward:9,}{loss:7,}{backward:10,}"
        lines.append(counts + "".join(map(_with_duration, (together, ours, theirs))))
    lines.append(
        f"ms: what a CPU needs to start them, at {MICROSECONDS_OF_A_START} microseconds each"
    )
    sys.stdout.write("\n".join(lines) + "\n")


def operations_of(preset: str) -> tuple[int, int, int, int, int]:
    """The operations of one batch: forward, loss, backward; then those of Muon, ours and PyTorch's, for the matrices of all layers."""
    with META:
        config = ModelConfig.model_validate({"preset": preset})
        model = Transformer(config, 8000, 8000).train()
        ids = torch.ones(4, 9, dtype=torch.int64)
        mask = torch.ones(4, 9, dtype=torch.bool)
    with Operations() as forward:
        logits = model(ids, mask, ids)
    with Operations() as loss:
        sums = sum_loss(logits, ids, pad_id=1, label_smoothing=0.1)
    with Operations() as backward:
        sums.objective.backward()
    layers = [*model.encoder.layers.parameters(), *model.decoder.layers.parameters()]
    matrices = [one for one in layers if one.ndim == 2]
    ours = BatchedMuon(matrices, weight_decay=0.01)
    ours.found_inf = torch.zeros((), device=META)
    theirs = torch.optim.Muon(matrices, weight_decay=0.01)
    numbers = []
    for optimizer in (ours, theirs):
        optimizer.step()  # the first update makes the state
        with Operations() as step:
            optimizer.step()
        numbers.append(step.number)
    return forward.number, loss.number, backward.number, numbers[0], numbers[1]


def _with_duration(operations: int) -> str:
    return f"{operations:8,} {operations * MICROSECONDS_OF_A_START / 1000:5.1f} ms"


if __name__ == "__main__":
    main()
