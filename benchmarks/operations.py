"""Counts the operations of one update on a GPU, without a GPU: most of them start one kernel.

    python benchmarks/operations.py

The CPU needs about 5 microseconds to start a kernel. If the kernels are shorter than that, as with small models and small
batches, a GPU waits for the CPU, and the number of operations decides the speed. They are counted on PyTorch's meta
device, where the code takes the same branches as on a GPU, in float32: bfloat16 adds a conversion of each matrix. Clipping
and fused Adam are left out; both need less than ten kernels. "recorded" is what remains of forward pass, loss and backward
pass with `runtime.cuda_graphs`, with the start of the graph as one operation.
"""

import argparse
import sys
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_cli.acceleration import accelerate
from transformer_cli.acceleration.losses import sum_loss_in_parts
from transformer_cli.acceleration.optimizers import BatchedMuon
from transformer_cli.acceleration.recorded_passes import RecordedPasses, Work
from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.data.updates import Batch
from transformer_cli.model import SmoothedLabels, Transformer
from transformer_cli.process.device import Machine
from transformer_cli.training.step import build_objective

META = torch.device("meta")
MICROSECONDS_OF_A_START = 5
PRESETS = ("tiny", "small", "base")
SIZE = 4, 9


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
        f"{'recorded':>17}{'our Muon':>17}{'Muon of PyTorch':>17}"
    ]
    for preset in PRESETS:
        forward, loss, backward = operations_of_passes(preset)
        together, recorded = forward + loss + backward, operations_of_recorded_passes(preset)
        ours, theirs = operations_of_muon(preset)
        counts = f"{preset:8}{forward:9,}{loss:7,}{backward:10,}"
        lines.append(counts + "".join(map(_with_duration, (together, recorded, ours, theirs))))
    lines.append(
        f"ms: what a CPU needs to start them, at {MICROSECONDS_OF_A_START} microseconds each"
    )
    sys.stdout.write("\n".join(lines) + "\n")


def operations_of_passes(preset: str) -> tuple[int, int, int]:
    """The operations of one batch: forward, loss, backward."""
    model, ids, mask = _model(preset), _ids(), torch.ones(SIZE, dtype=torch.bool, device=META)
    with Operations() as forward:
        logits = model(ids, mask, ids)
    with Operations() as loss:
        sums = sum_loss_in_parts(logits, ids, SmoothedLabels.of(8000, 1, 0.1, "vocabulary"))
    with Operations() as backward:
        sums.objective.backward()
    return forward.number, loss.number, backward.number


def operations_of_recorded_passes(preset: str) -> int:
    """The operations that the CPU starts for one batch if its shape is recorded already, the gradients' zeros included."""
    training = TrainingConfig(max_steps=1, batch_sentences=4)
    machine = Machine(META, torch.float32)
    objective = build_objective(training, 8000, META)
    model = _model(preset)
    passes = RecordedPasses(model, objective, machine, _recorded, scaled=lambda one: one)
    ids = [_ids() for _ in range(3)]
    mask = torch.ones(SIZE, dtype=torch.bool, device=META)
    batch = Batch(ids[0], mask, ids[1], ids[2], 30, 30, pad_id=1)
    for _ in range(2):  # the first one is recorded
        with Operations() as replay:
            passes.sum_gradients([batch], num_target_tokens=30)
    return replay.number + 1


def operations_of_muon(preset: str) -> tuple[int, int]:
    """The operations of an update of the matrices of all layers by our Muon, and by that of PyTorch."""
    model = _model(preset)
    layers = [*model.encoder.layers.parameters(), *model.decoder.layers.parameters()]
    matrices = [one for one in layers if one.ndim == 2]
    for matrix in matrices:
        matrix.grad = torch.empty_like(matrix)
    ours = BatchedMuon(matrices, weight_decay=0.01)
    ours.found_inf = torch.zeros((), device=META)
    theirs = torch.optim.Muon(matrices, weight_decay=0.01)
    numbers = []
    for optimizer in (ours, theirs):
        optimizer.step()  # the first update makes the state
        with Operations() as step:
            optimizer.step()
        numbers.append(step.number)
    return numbers[0], numbers[1]


def _model(preset: str) -> Transformer:
    with META:
        config = ModelConfig.model_validate({"preset": preset})
        return accelerate(Transformer(config, 8000, 8000), META).train()


def _ids() -> Tensor:
    return torch.ones(SIZE, dtype=torch.int64, device=META)


def _recorded(work: Work) -> Work:
    work()
    return lambda: None


def _with_duration(operations: int) -> str:
    return f"{operations:8,} {operations * MICROSECONDS_OF_A_START / 1000:5.1f} ms"


if __name__ == "__main__":
    main()
