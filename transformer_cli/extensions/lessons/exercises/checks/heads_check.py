"""Checks a learner's splitting and joining of heads, by hand and inside `torch.nn.MultiheadAttention`."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.extensions.lessons.exercises.answers import Mistake, require_right
from transformer_cli.extensions.lessons.exercises.outcomes import WrongAnswer

NUM_HEADS = (3, 2)


def check_heads(learner: Any) -> None:
    """Check `split_heads` and `join_heads`.

    Raises:
        WrongAnswer: one of them is wrong.
    """
    random = torch.Generator().manual_seed(13)
    inputs = [torch.randn(2, 5, 12, generator=random), torch.randn(1, 4, 6, generator=random)]
    split = [torch.stack(x.chunk(num, -1), 1) for x, num in zip(inputs, NUM_HEADS, strict=True)]
    found = [learner.split_heads(x.clone(), num) for x, num in zip(inputs, NUM_HEADS, strict=True)]
    require_right("split_heads", found, split, _mistakes_of_splitting(inputs))
    found = [learner.join_heads(heads.clone()) for heads in split]
    require_right("join_heads", found, inputs, _mistakes_of_joining(split))
    _check_together(learner, inputs[0], NUM_HEADS[0])


def _check_together(learner: Any, x: Tensor, num_heads: int) -> None:
    """Attention of the learner's heads is multi-head attention, if all projections are the identity."""
    width = x.size(-1)
    multi_head = nn.MultiheadAttention(width, num_heads, bias=False, batch_first=True)
    with torch.no_grad():
        assert multi_head.in_proj_weight is not None
        multi_head.in_proj_weight.copy_(torch.eye(width).repeat(3, 1))
        multi_head.out_proj.weight.copy_(torch.eye(width))
        expected, _ = multi_head(x, x, x, need_weights=False)
    heads = learner.split_heads(x, num_heads)
    found = learner.join_heads(F.scaled_dot_product_attention(heads, heads, heads))
    if not torch.allclose(found, expected, atol=1e-5):
        raise WrongAnswer("heads: attention with these heads is not torch.nn.MultiheadAttention")


def _mistakes_of_splitting(inputs: list[Tensor]) -> list[Mistake]:
    pairs = [(x, num, x.size(-1) // num) for x, num in zip(inputs, NUM_HEADS, strict=True)]
    return [
        Mistake(
            "heads are mixed with positions: one reshape to (B, H, T, K) puts columns of different positions into a row",
            "first cut the last axis only, (B, T, H, K); then exchange the axes T and H with transpose(1, 2)",
            [x.reshape(x.size(0), num, x.size(1), width) for x, num, width in pairs],
        ),
        Mistake(
            "the result is (B, T, H, K): the axis of the heads must stand before that of the positions",
            "end with transpose(1, 2)",
            [x.unflatten(-1, (num, width)) for x, num, width in pairs],
        ),
        Mistake(
            "a head has every H-th column, but it must have K neighbouring ones",
            "cut the last axis into (H, K), not into (K, H)",
            [x.unflatten(-1, (width, num)).permute(0, 3, 1, 2) for x, num, width in pairs],
        ),
    ]


def _mistakes_of_joining(split: list[Tensor]) -> list[Mistake]:
    return [
        Mistake(
            "heads are mixed with positions: one reshape to (B, T, D) joins different positions of one head",
            "first exchange the axes with transpose(1, 2), which gives (B, T, H, K); then join the last two with flatten(2)",
            [x.reshape(x.size(0), x.size(2), -1) for x in split],
        ),
        Mistake(
            "the columns of the heads alternate, but the K columns of one head must be neighbours",
            "join (H, K), not (K, H), into the last axis",
            [x.permute(0, 2, 3, 1).flatten(2) for x in split],
        ),
        Mistake(
            "the heads are added, but they must stand side by side",
            "transpose(1, 2), then flatten(2)",
            [x.sum(1) for x in split],
        ),
    ]
