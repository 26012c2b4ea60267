"""The floating-point operations (FLOP) of a model's matrix products: PyTorch counts them, without computing anything.

A product of (m, k) and (k, n) takes m k n multiplications and as many additions, so 2 m k n FLOP. Everything else
(norms, softmax, dropout, the loss) is left out, as in the literature on the share of a peak that a training reaches.
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from transformer_cli.data.updates import Batch
from transformer_cli.model import Transformer


@dataclass(frozen=True, slots=True)
class Work:
    """The numbers that decide the cost of a batch: its tokens, and its pairs of query and key positions."""

    source_tokens: int = 0
    target_tokens: int = 0
    source_pairs: int = 0
    """Pairs of a query and a key in the self-attention of the encoder: S S for a sentence of S tokens."""
    target_pairs: int = 0
    """The same in the decoder: T (T + 1) / 2, as a position sees itself and those before it."""
    cross_pairs: int = 0
    """The same in cross-attention: T S."""

    def __add__(self, other: "Work") -> "Work":
        return Work(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


def work_of_batch(batch: Batch) -> Work:
    """The work that the real tokens of a batch need; padding is left out."""
    source_lengths = batch.source_mask.sum(1)  # (B,)
    target_lengths = (batch.target_ids != batch.pad_id).sum(1)  # (B,)
    return Work(
        int(source_lengths.sum()),
        int(target_lengths.sum()),
        int((source_lengths * source_lengths).sum()),
        int((target_lengths * (target_lengths + 1) // 2).sum()),
        int((source_lengths * target_lengths).sum()),
    )


def flop_counter(model: Transformer, *, trains: bool) -> Callable[[Work], int]:
    """A function that returns the FLOP of some work: of a forward pass, with `trains` of the backward pass too.

    The FLOP are a sum over the numbers of `Work`, each times a factor of its own. So they are counted for five sentences
    of different lengths, and these five equations give the factors. The backward pass has fewer products where
    parameters are frozen.
    """
    source_table = model.source_embedding or model.output
    with torch.device("meta"):  # tensors without numbers
        bare = Transformer(model.config, len(source_table.weight), len(model.output.weight)).eval()
    is_trained = {name: one.requires_grad for name, one in model.named_parameters()}
    for name, parameter in bare.named_parameters():
        parameter.requires_grad_(is_trained[name])
    lengths = ((2, 2), (3, 2), (2, 3), (4, 3), (3, 4))
    counted = [_counted(bare, source, target, trains=trains) for source, target in lengths]
    # Attention without a fused kernel computes all T T pairs of the decoder.
    works = [(s, t, s * s, t * t, s * t) for s, t in lengths]
    factors = np.linalg.solve(np.array(works, float), np.array(counted, float)).round().astype(int)
    return lambda work: sum(
        int(factor) * size for factor, size in zip(factors, astuple(work), strict=True)
    )


def _counted(model: Transformer, source_length: int, target_length: int, *, trains: bool) -> int:
    source_ids = torch.zeros(1, source_length, dtype=torch.int64, device="meta")
    target_ids = torch.zeros(1, target_length, dtype=torch.int64, device="meta")
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(trains):
        logits = model(source_ids, None, target_ids)
        if trains and logits.requires_grad:
            logits.sum().backward()
    return counter.get_total_flops()
