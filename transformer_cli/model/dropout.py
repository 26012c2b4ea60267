"""Word dropout and layer dropout: training leaves out whole tokens and whole layers; dropout of single numbers is `nn.Dropout`."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class WordDropout(nn.Module):
    """Word dropout: in training, the embedding of each token becomes zero with probability p, else it is divided by 1 - p.

    It is drawn for each position, on the source side and for what the decoder reads. Positions are added
    afterwards, so the model knows that a token is missing there. Special tokens always stay.

    Args:
        probability: p.
        num_special_tokens: the ids below this number are those of special tokens.
        tag_ids: the ids of tags, which stay too.

    Source: Gal and Ghahramani 2016, who drop word types; Sennrich and Zhang 2019, "Revisiting Low-Resource Neural
        Machine Translation", with 0.1 to 0.3: their toolkit, Nematus, drops positions, as here.
    """

    def __init__(
        self, probability: float, num_special_tokens: int, tag_ids: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.probability = probability
        self.num_special_tokens = num_special_tokens
        self.tag_ids = tuple(tag_ids)

    def forward(self, embedded: Tensor, ids: Tensor) -> Tensor:
        """Embeddings (B, S, D) and their ids (B, S) to embeddings of the same shape."""
        if not self.training:
            return embedded
        kept = F.dropout(torch.ones_like(ids, dtype=embedded.dtype), self.probability)  # (B, S)
        stays = ids < self.num_special_tokens
        for tag_id in self.tag_ids:
            stays = stays | (ids == tag_id)
        return embedded * kept.masked_fill(stays, 1.0).unsqueeze(-1)


def applied(layer: nn.Module, x: Tensor, *arguments: Any, share: float) -> Tensor:
    """LayerDrop: the output of a layer; in training, with probability `share`, its input.

    One number decides for the whole batch. It comes from the CPU, on any device, so no step waits for a GPU.

    Args:
        layer: maps x, (B, T, D), to the same shape.
        arguments: what else the layer takes.
        share: the probability with which the layer is skipped.

    Source: Fan et al. 2020, "Reducing Transformer Depth on Demand with Structured Dropout", section 3.2.
    """
    if share > 0.0 and layer.training and float(torch.rand((), device="cpu")) < share:
        skipped: Any = _Skipped
        inputs = (one for one in arguments if isinstance(one, Tensor))
        return skipped.apply(x, *layer.parameters(), *inputs)
    return layer(x, *arguments)


class _Skipped(torch.autograd.Function):
    """The identity, which gives each parameter of the skipped layer a gradient of zeros, and its other inputs too.

    Without a gradient the optimizer would leave out these parameters, but a layer that another micro-batch or
    another process did not skip has one: all must make the same update. The output of the encoder is an input of
    each decoder layer; if all of them are skipped, the encoder gets its zeros through it.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, *others: Tensor) -> Tensor:
        ctx.save_for_backward(*others)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        zeros = (torch.zeros_like(one) if one.requires_grad else None for one in ctx.saved_tensors)
        return gradient, *zeros
