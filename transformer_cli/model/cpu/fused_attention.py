"""Scaled dot-product attention in one autograd function, with both products as batches of matrices."""

import math
from typing import Any

import torch
from torch import Tensor

from transformer_cli.model.dropout import Dropout
from transformer_cli.model.masks import Mask, added_mask
from transformer_cli.model.precision import at_least_float32


def attend_on_cpu(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Mask | None, dropout: Dropout
) -> Tensor:
    """The same as `attend_explicitly`, for training.

    Each tensor is copied once, to lie as the products read it; the mask is added, not chosen by; and the result,
    (B, H, Q, K), lies in memory as (B, Q, H, K), so that joining the heads costs nothing.
    """
    apply: Any = _Attention.apply
    if mask is not None and mask.bias is None:
        mask = added_mask(mask.visible)
    factors = dropout.factors((*queries.shape[:3], keys.size(2)), values.dtype)
    return apply(queries, keys, values, mask, factors)


class _Attention(torch.autograd.Function):
    """dropout(softmax(Q K^T / sqrt(K) + bias)) V."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Mask | None,
        factors: Tensor | None,
    ) -> Tensor:
        shape = queries.shape[:2]
        q, k, v = (heads.flatten(0, 1) for heads in (queries, keys, values))  # (B H, Q or C, K)
        scores = at_least_float32(q @ k.mT).mul_(1 / math.sqrt(q.size(-1))).unflatten(0, shape)
        if mask is not None and mask.bias is not None:
            scores += mask.bias
        weights = _softmax_(scores)  # (B, H, Q, C)
        if mask is not None and mask.reads_any is not None:
            weights *= mask.reads_any
        kept = weights.to(v.dtype)
        if factors is not None:
            kept = kept * factors
        ctx.save_for_backward(q, k, v, weights, kept, factors)
        return _heads_last(kept.flatten(0, 1) @ v, shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, kept, factors = ctx.saved_tensors
        shape = weights.shape[:2]
        g = gradient.flatten(0, 1)
        of_values = kept.flatten(0, 1).mT @ g
        of_kept = (g @ v.mT).view_as(kept)
        if factors is not None:
            of_kept = of_kept * factors
        of_scores = _gradient_of_softmax(at_least_float32(of_kept), weights)
        of_scores = of_scores.mul_(1 / math.sqrt(q.size(-1))).to(q.dtype).flatten(0, 1)
        found = of_scores @ k, of_scores.mT @ q, of_values
        return *(one.unflatten(0, shape) for one in found), None, None


def _heads_last(heads: Tensor, shape: torch.Size) -> Tensor:
    """(B H, Q, K) to (B, H, Q, K), with all heads of a position side by side in memory."""
    return heads.unflatten(0, shape).transpose(1, 2).contiguous().transpose(1, 2)


def _softmax_(scores: Tensor) -> Tensor:
    """The softmax over the last dimension, in place: PyTorch's takes several times as long if rows are short."""
    if not scores.numel():  # nothing to attend to
        return scores
    exponentials = scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    return exponentials.div_(exponentials.sum(-1, keepdim=True))


def _gradient_of_softmax(gradient: Tensor, weights: Tensor) -> Tensor:
    """The gradient of scores from that of their softmax, `weights`."""
    products = gradient * weights
    return products.sub_(weights * products.sum(-1, keepdim=True))
