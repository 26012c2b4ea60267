"""Checks of a learner's functions of the model: the causal mask, attention, heads and sinusoids, each against an independent result."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.extensions.lessons.exercises.answers import (
    Mistake,
    require_gradient,
    require_right,
)
from transformer_cli.extensions.lessons.exercises.catalogue import WrongAnswer

MASK_SIZES = (5, 1)


def check_causal_mask(learner: Any) -> None:
    """Check `causal_mask`.

    Raises:
        WrongAnswer: the mask is wrong.
    """
    found = [learner.causal_mask(size) for size in MASK_SIZES]
    require_right("causal_mask", found, [_masks(size, 0) for size in MASK_SIZES], _mistakes_of_causal_mask())


def _masks(size: int, num_visible_after: int) -> Tensor:
    """(T, T): True where j <= i + num_visible_after."""
    visible = [[j <= i + num_visible_after for j in range(size)] for i in range(size)]
    return torch.tensor(visible, dtype=torch.bool)


def _mistakes_of_causal_mask() -> list[Mistake]:
    right = [_masks(size, 0) for size in MASK_SIZES]
    return [
        Mistake(
            "the mask is off by one: a position may not see itself, because the diagonal is False",
            "the decoder's input is shifted: position i reads token i - 1 and predicts token i, so it may see itself; "
            "use j <= i, not j < i",
            [_masks(size, -1) for size in MASK_SIZES],
        ),
        Mistake(
            "the mask is off by one: position i may see position i + 1, which holds the token that it must predict",
            "use j <= i; torch.tril has a second argument, diagonal, which is 0 here",
            [_masks(size, 1) for size in MASK_SIZES],
        ),
        Mistake(
            "the mask is inverted: True must mean 'may be seen', but here it means 'is hidden'",
            "exchange True and False (~mask)",
            [~mask for mask in right],
        ),
        Mistake(
            "rows and columns are exchanged: each position sees the later positions instead of the earlier ones",
            "row i is the position that attends; take the lower triangle (tril), not the upper one (triu)",
            [mask.T for mask in right],
        ),
        Mistake(
            "every position may see all positions, also the later ones",
            "keep True only where j <= i",
            [torch.ones_like(mask) for mask in right],
        ),
        Mistake(
            "the mask holds 0 and -inf, which are added to scores, but True and False are wanted",
            "return a tensor of dtype torch.bool",
            [torch.zeros(mask.shape).masked_fill(~mask, -torch.inf) for mask in right],
        ),
        Mistake(
            "the mask holds numbers 1 and 0, but True and False are wanted",
            "end with .bool(), or make the tensor with dtype=torch.bool",
            [mask.float() for mask in right],
        ),
    ]


class _AttentionCase(NamedTuple):
    queries: Tensor
    keys: Tensor
    values: Tensor
    mask: Tensor


def check_attention(learner: Any) -> None:
    """Check `attention`.

    Raises:
        WrongAnswer: the output is wrong.
    """
    cases = _attention_cases()
    found = [learner.attention(*(tensor.clone() for tensor in case)) for case in cases]
    expected = [
        F.scaled_dot_product_attention(case.queries, case.keys, case.values, attn_mask=case.mask) for case in cases
    ]
    require_right("attention", found, expected, [*_mistakes_of_scale(cases), *_mistakes_of_mask(cases)])
    first = cases[0]
    require_gradient("attention", learner.attention(first.queries.requires_grad_(), *first[1:]))


def _attention_cases() -> list[_AttentionCase]:
    random = torch.Generator().manual_seed(13)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random)

    # Each query sees a key, and each key is seen by a query.
    mask = torch.tensor([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 0]], dtype=torch.bool)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    return [
        _AttentionCase(normal(2, 3, 3, 8), normal(2, 3, 5, 8), normal(2, 3, 5, 8), mask),
        _AttentionCase(normal(1, 2, 4, 6), normal(1, 2, 4, 6), normal(1, 2, 4, 6), causal),
    ]


Weights = Callable[[Tensor, _AttentionCase], Tensor]


def _with_weights(cases: list[_AttentionCase], weights: Weights) -> list[Tensor]:
    return [weights(case.queries @ case.keys.mT, case) @ case.values for case in cases]


def _mistakes_of_scale(cases: list[_AttentionCase]) -> list[Mistake]:
    def with_divisor(divisor: Callable[[Tensor], float]) -> list[Tensor]:
        return _with_weights(
            cases,
            lambda scores, case: _masked_softmax(scores / divisor(case.queries), case.mask),
        )

    return [
        Mistake(
            "the scores are not divided by sqrt(d_k): the weights are softmax(Q K^T), so they become extreme in "
            "wide heads, and the gradients small",
            "divide by math.sqrt(queries.size(-1)) before the softmax",
            with_divisor(lambda queries: 1.0),
        ),
        Mistake(
            "the scores are divided by d_k, but sqrt(d_k) is wanted",
            "the product of two random vectors of width d_k has the standard deviation sqrt(d_k)",
            with_divisor(lambda queries: queries.size(-1)),
        ),
        Mistake(
            "the scores are divided by the square root of the model width, but d_k is the width of one head",
            "d_k is queries.size(-1)",
            with_divisor(lambda queries: math.sqrt(queries.size(-1) * queries.size(1))),
        ),
        Mistake(
            "the scores are multiplied by sqrt(d_k), but they must be divided by it",
            "scores / math.sqrt(queries.size(-1))",
            with_divisor(lambda queries: 1 / math.sqrt(queries.size(-1))),
        ),
    ]


def _mistakes_of_mask(cases: list[_AttentionCase]) -> list[Mistake]:
    def scaled(scores: Tensor, case: _AttentionCase) -> Tensor:
        return scores / math.sqrt(case.queries.size(-1))

    def inverted(hidden: float) -> Mistake:
        return Mistake(
            "the mask is inverted: the queries see the keys that the mask hides, and no others",
            "True means 'may be seen', so fill where the mask is False: masked_fill(~mask, -torch.inf)",
            _with_weights(cases, lambda scores, case: _masked_softmax(scaled(scores, case), ~case.mask, hidden)),
        )

    return [
        Mistake(
            "the softmax is over the wrong axis: the weights of one key have the sum 1, but those of one query must",
            "the scores are (B, H, Q, C): the keys are the last axis, so use softmax(-1)",
            _with_weights(cases, lambda scores, case: _masked_softmax(scaled(scores, case), case.mask, axis=-2)),
        ),
        # A query for which all keys are hidden gets NaN with -inf, and the same weight for each key with a large number.
        inverted(-torch.inf),
        inverted(-1e9),
        Mistake(
            "the mask has no effect: hidden keys get a weight, too",
            "masked_fill returns a new tensor; use its result",
            _with_weights(cases, lambda scores, case: scaled(scores, case).softmax(-1)),
        ),
        Mistake(
            "the scores of hidden keys are set to 0, but exp(0) = 1, so the softmax still gives them a weight",
            "set them to -inf, because exp(-inf) = 0",
            _with_weights(cases, lambda scores, case: scaled(scores, case).where(case.mask, 0.0).softmax(-1)),
        ),
        Mistake(
            "the mask comes after the softmax, so the weights of a query have a sum below 1",
            "set the scores of hidden keys to -inf before the softmax",
            _with_weights(cases, lambda scores, case: scaled(scores, case).softmax(-1).where(case.mask, 0.0)),
        ),
        Mistake(
            "the softmax is missing: the values are multiplied with the scores",
            "weights = scores.softmax(-1)",
            _with_weights(cases, lambda scores, case: scaled(scores, case).where(case.mask, 0.0)),
        ),
    ]


def _masked_softmax(scores: Tensor, mask: Tensor, hidden: float = -torch.inf, *, axis: int = -1) -> Tensor:
    return scores.masked_fill(~mask, hidden).softmax(axis)


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


TABLE_SIZES = ((7, 8), (30, 6))


def check_sinusoids(learner: Any) -> None:
    """Check `sinusoids`.

    Raises:
        WrongAnswer: the table is wrong.
    """
    found = [learner.sinusoids(*size) for size in TABLE_SIZES]
    require_right("sinusoids", found, _tables(_sinusoid), _mistakes_of_sinusoids(), TABLE_SIZES)


def _sinusoid(position: int, column: int, width: int) -> float:
    return _wave(position / 10000 ** ((column - column % 2) / width), column)


def _wave(angle: float, column: int) -> float:
    return math.cos(angle) if column % 2 else math.sin(angle)


def _tables(value: Callable[[int, int, int], float]) -> list[Tensor]:
    return [
        torch.tensor([[value(p, c, width) for c in range(width)] for p in range(num_positions)])
        for num_positions, width in TABLE_SIZES
    ]


def _mistakes_of_sinusoids() -> list[Mistake]:
    def halves(p: int, c: int, width: int) -> float:
        pair = 2 * (c % (width // 2))
        return _sinusoid(p, pair + (c >= width // 2), width)

    return [
        Mistake(
            "the frequency is wrong: sine and cosine of a pair have different ones, because the exponent uses the column",
            "columns 2i and 2i + 1 both have the exponent 2i / D",
            _tables(lambda p, c, width: _wave(p / 10000 ** (c / width), c)),
        ),
        Mistake(
            "the frequency is wrong: the exponent is i / D, but 2i / D is wanted, where i is the number of the pair",
            "use torch.arange(0, d_model, 2) / d_model for the exponents",
            _tables(lambda p, c, width: _wave(p / 10000 ** (c // 2 / width), c)),
        ),
        Mistake(
            "the frequency is wrong: the exponent is 4i / D, because i already steps by 2",
            "torch.arange(0, d_model, 2) gives the numbers 2i; do not double them again",
            _tables(lambda p, c, width: _wave(p / 10000 ** (4 * (c // 2) / width), c)),
        ),
        Mistake(
            "all sines come first and all cosines after them; the formula of the paper puts them in turns",
            "table[:, 0::2] are the sines, table[:, 1::2] the cosines",
            _tables(halves),
        ),
        Mistake(
            "sine and cosine are exchanged: even columns are sines, odd columns cosines",
            "position 0 begins with sin(0) = 0, then cos(0) = 1",
            _tables(lambda p, c, width: _sinusoid(p, c + 1 - 2 * (c % 2), width)),
        ),
        Mistake(
            "the positions count from 1, but the first position is 0",
            "torch.arange(num_positions) begins with 0",
            _tables(lambda p, c, width: _sinusoid(p + 1, c, width)),
        ),
        Mistake(
            "the position is multiplied by 10000^(2i / D), but it must be divided by it",
            "a negative exponent, or a division",
            _tables(lambda p, c, width: _wave(p * 10000 ** ((c - c % 2) / width), c)),
        ),
        Mistake(
            "the base is 1000, but 10000 is wanted",
            "10000 has four zeros",
            _tables(lambda p, c, width: _wave(p / 1000 ** ((c - c % 2) / width), c)),
        ),
        Mistake(
            "all columns are sines",
            "the odd columns are cosines",
            _tables(lambda p, c, width: math.sin(p / 10000 ** ((c - c % 2) / width))),
        ),
    ]
