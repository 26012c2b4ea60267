"""The work of a batch, and the FLOP that a model needs for it: of its matrix products, as PyTorch counts them.

A product of (m, k) and (k, n) takes 2 m k n FLOP; norms, softmax, dropout and the loss are left out, as in the literature on the
share of a peak.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.flop_counter import FlopCounterMode

from transformer_cli.data.updates import Batch
from transformer_cli.model import Transformer

Work = NDArray[np.int64]
"""What a batch costs: source tokens, target tokens, and pairs of query and key positions in the self-attention of the encoder (S S
for a sentence of S tokens), in the decoder (T (T + 1) / 2, as a position sees itself and those before it), and in cross-attention (T S)."""
FlopOf = Callable[[Work], int]


def work_of_batch(batch: Batch) -> Work:
    """The work that the real tokens of a batch need; padding is left out."""
    source = batch.source_mask.sum(1)  # (B,)
    target = (batch.target_ids != batch.pad_id).sum(1)  # (B,)
    parts = source, target, source * source, target * (target + 1) // 2, source * target
    return np.array([int(one.sum()) for one in parts])


def flop_counter(model: Transformer, *, trains: bool) -> FlopOf:
    """A function that returns the FLOP of some work: of a forward pass, with `trains` of the backward pass too.

    They are a sum over the numbers of `Work`, each times a factor of its own. PyTorch counts the FLOP of five sentences of
    different lengths, without computing anything: five equations, which give the factors.
    """
    source_table = model.source_embedding or model.output
    with torch.device("meta"):  # tensors without numbers
        bare = Transformer(model.config, len(source_table.weight), len(model.output.weight)).eval()
    for name, parameter in model.named_parameters():  # frozen ones need fewer products in the backward pass
        bare.get_parameter(name).requires_grad_(parameter.requires_grad)

    def counted(*lengths: int) -> int:
        source_ids, target_ids = (torch.zeros(1, length, dtype=torch.int64, device="meta") for length in lengths)
        with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(trains):
            logits = bare(source_ids, None, target_ids)
            if trains and logits.requires_grad:
                logits.sum().backward()
        return counter.get_total_flops()

    lengths = ((2, 2), (3, 2), (2, 3), (4, 3), (3, 4))
    # Attention without a fused kernel computes all T T pairs of the decoder.
    works = np.array([(s, t, s * s, t * t, s * t) for s, t in lengths], float)
    factors = np.linalg.solve(works, np.array([counted(*one) for one in lengths], float))
    return lambda work: int(factors.round().astype(np.int64) @ work)
