"""Checks a learner's loss against `torch.nn.functional.cross_entropy` with label smoothing."""

import functools
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
    logits: Tensor
    target_ids: Tensor
    pad_id: int
    epsilon: float

    @property
    def is_real(self) -> Tensor:
        return self.target_ids != self.pad_id

    def labels(self, of_truth: float, of_each: float) -> Tensor:
        """(B, T, V): `of_truth` for the true token, `of_each` for the others."""
        is_true = F.one_hot(self.target_ids, self.logits.size(-1)).bool()
        return torch.where(is_true, of_truth, of_each)

    def losses(self, labels: Tensor | None = None) -> Tensor:
        """(B, T): the cross-entropy of every position, padding included."""
        num_tokens = self.logits.size(-1)
        if labels is None:
            share = self.epsilon / num_tokens
            labels = self.labels(1 - self.epsilon + share, share)
        return -(labels * self.logits.log_softmax(-1)).sum(-1)

    def mean(self, labels: Tensor) -> Tensor:
        return self.losses(labels)[self.is_real].mean()


def check_label_smoothing(learner: Any) -> None:
    """Check `smoothed_loss`.

    Raises:
        WrongAnswer: the loss is wrong.
    """
    cases = _cases()
    found = [
        learner.smoothed_loss(case.logits.clone(), case.target_ids.clone(), *case[2:])
        for case in cases
    ]
    expected = [
        F.cross_entropy(
            case.logits.flatten(0, 1), case.target_ids.flatten(),
            ignore_index=case.pad_id, label_smoothing=case.epsilon,
        )
        for case in cases
    ]  # fmt: skip
    require_right(
        "smoothed_loss", found, expected, [*_mistakes_of_labels(cases), *_mistakes_of_mean(cases)]
    )
    first = cases[0]
    require_gradient(
        "smoothed_loss", learner.smoothed_loss(first.logits.requires_grad_(), *first[1:])
    )


def _cases() -> list[_Case]:
    logits = 2 * torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(13))
    first = torch.tensor([[4, 2, 6, 1, 3], [5, 3, 0, 0, 0], [1, 0, 0, 0, 0]])
    second = torch.tensor([[0, 2, 6, 1, 3], [5, 2, 1, 3, 3], [6, 3, 3, 3, 3]])
    return [_Case(logits, first, 0, 0.1), _Case(logits.flip(0), second, 3, 0.3)]


def _results(cases: list[_Case], loss: Callable[[_Case, int], Tensor]) -> list[Tensor]:
    return [loss(case, case.logits.size(-1)) for case in cases]


def _mistakes_of_labels(cases: list[_Case]) -> list[Mistake]:
    results = functools.partial(_results, cases)
    return [
        Mistake(
            "the labels are not smoothed",
            "the true token gets 1 - epsilon + epsilon / V, each other token epsilon / V",
            results(lambda case, num: case.mean(case.labels(1.0, 0.0))),
        ),
        Mistake(
            "the true token has the wrong share, 1 - epsilon: it must also get its part of epsilon, epsilon / V",
            "the shares of a label have the sum 1",
            results(lambda case, num: case.mean(case.labels(1 - case.epsilon, case.epsilon / num))),
        ),
        Mistake(
            "epsilon is spread over the V - 1 other tokens, but here all V tokens get a part, the true one included",
            "the true token gets 1 - epsilon + epsilon / V, each other token epsilon / V",
            results(lambda case, num: case.mean(case.labels(1 - case.epsilon, case.epsilon / (num - 1)))),
        ),
        Mistake(
            "the true token has the wrong share: epsilon and 1 - epsilon are exchanged",
            "the true token gets 1 - epsilon + epsilon / V",
            results(lambda case, num: case.mean(case.labels(case.epsilon + (1 - case.epsilon) / num, (1 - case.epsilon) / num))),
        ),
    ]  # fmt: skip


def _mistakes_of_mean(cases: list[_Case]) -> list[Mistake]:
    results = functools.partial(_results, cases)
    per_token = "divide the sum over all real tokens of the batch by their number, once"
    return [
        Mistake(
            "padding is a part of the loss: the positions with pad_id are added and counted as tokens",
            "is_real = target_ids != pad_id; use losses[is_real]",
            results(lambda case, num: case.losses().mean()),
        ),
        Mistake(
            "padding is counted: the sum is divided by B * T, but it must be divided by the number of real tokens",
            "divide by (target_ids != pad_id).sum()",
            results(lambda case, num: case.losses()[case.is_real].sum() / case.target_ids.numel()),
        ),
        Mistake(
            "padding is added to the sum, although it is not counted",
            "use the losses of real tokens only: losses[target_ids != pad_id]",
            results(lambda case, num: case.losses().sum() / case.is_real.sum()),
        ),
        Mistake(
            "the mean is per sentence, and then over sentences, so a token of a short sentence weighs more",
            per_token,
            results(lambda case, num: ((case.losses() * case.is_real).sum(1) / case.is_real.sum(1)).mean()),
        ),
        Mistake(
            "the mean is per sentence of the batch: the sum is divided by B, but it must be divided by the number of real tokens",
            per_token,
            results(lambda case, num: case.losses()[case.is_real].sum() / len(case.logits)),
        ),
        Mistake(
            "the result is the sum, not the mean",
            per_token,
            results(lambda case, num: case.losses()[case.is_real].sum()),
        ),
        Mistake(
            "the sign is wrong: a loss is minus a log-probability",
            "log-probabilities are negative, so the loss is positive",
            results(lambda case, num: -case.losses()[case.is_real].mean()),
        ),
    ]  # fmt: skip
