"""Checks a learner's attention against `torch.nn.functional.scaled_dot_product_attention`."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_cli.extensions.lessons.exercises.answers import (
    Mistake,
    require_gradient,
    require_right,
)


class _Case(NamedTuple):
    queries: Tensor
    keys: Tensor
    values: Tensor
    mask: Tensor


def check_attention(learner: Any) -> None:
    """Check `attention`.

    Raises:
        WrongAnswer: the output is wrong.
    """
    cases = _cases()
    found = [learner.attention(*(tensor.clone() for tensor in case)) for case in cases]
    expected = [
        F.scaled_dot_product_attention(case.queries, case.keys, case.values, attn_mask=case.mask)
        for case in cases
    ]
    require_right(
        "attention", found, expected, [*_mistakes_of_scale(cases), *_mistakes_of_mask(cases)]
    )
    first = cases[0]
    require_gradient("attention", learner.attention(first.queries.requires_grad_(), *first[1:]))


def _cases() -> list[_Case]:
    random = torch.Generator().manual_seed(13)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random)

    # Each query sees a key, and each key is seen by a query.
    mask = torch.tensor([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 0]], dtype=torch.bool)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    return [
        _Case(normal(2, 3, 3, 8), normal(2, 3, 5, 8), normal(2, 3, 5, 8), mask),
        _Case(normal(1, 2, 4, 6), normal(1, 2, 4, 6), normal(1, 2, 4, 6), causal),
    ]


Weights = Callable[[Tensor, _Case], Tensor]


def _with_weights(cases: list[_Case], weights: Weights) -> list[Tensor]:
    return [weights(case.queries @ case.keys.mT, case) @ case.values for case in cases]


def _mistakes_of_scale(cases: list[_Case]) -> list[Mistake]:
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


def _mistakes_of_mask(cases: list[_Case]) -> list[Mistake]:
    def with_weights(weights: Weights) -> list[Tensor]:
        return _with_weights(cases, weights)

    def scaled(scores: Tensor, case: _Case) -> Tensor:
        return scores / math.sqrt(case.queries.size(-1))

    return [
        Mistake(
            "the softmax is over the wrong axis: the weights of one key have the sum 1, but those of one query must",
            "the scores are (B, H, Q, C): the keys are the last axis, so use softmax(-1)",
            with_weights(lambda scores, case: _masked_softmax(scaled(scores, case), case.mask, axis=-2)),
        ),
        Mistake(
            "the mask is inverted: the queries see the keys that the mask hides, and no others",
            "True means 'may be seen', so fill where the mask is False: masked_fill(~mask, -torch.inf)",
            with_weights(lambda scores, case: _masked_softmax(scaled(scores, case), ~case.mask)),
        ),
        Mistake(
            "the mask has no effect: hidden keys get a weight, too",
            "masked_fill returns a new tensor; use its result",
            with_weights(lambda scores, case: scaled(scores, case).softmax(-1)),
        ),
        Mistake(
            "the scores of hidden keys are set to 0, but exp(0) = 1, so the softmax still gives them a weight",
            "set them to -inf, because exp(-inf) = 0",
            with_weights(lambda scores, case: scaled(scores, case).where(case.mask, 0.0).softmax(-1)),
        ),
        Mistake(
            "the mask comes after the softmax, so the weights of a query have a sum below 1",
            "set the scores of hidden keys to -inf before the softmax",
            with_weights(lambda scores, case: scaled(scores, case).softmax(-1).where(case.mask, 0.0)),
        ),
        Mistake(
            "the softmax is missing: the values are multiplied with the scores",
            "weights = scores.softmax(-1)",
            with_weights(lambda scores, case: scaled(scores, case).where(case.mask, 0.0)),
        ),
    ]  # fmt: skip


def _masked_softmax(scores: Tensor, mask: Tensor, axis: int = -1) -> Tensor:
    return scores.masked_fill(~mask, -torch.inf).softmax(axis)
