"""Checks a learner's causal mask against the lower triangle, element by element."""

from typing import Any

import torch
from torch import Tensor

from transformer_cli.extensions.lessons.exercises.answers import Mistake, require_right

SIZES = (5, 1)


def check_causal_mask(learner: Any) -> None:
    """Check `causal_mask`.

    Raises:
        WrongAnswer: the mask is wrong.
    """
    found = [learner.causal_mask(size) for size in SIZES]
    require_right("causal_mask", found, [_masks(size, 0) for size in SIZES], _mistakes())


def _masks(size: int, num_visible_after: int) -> Tensor:
    """(T, T): True where j <= i + num_visible_after."""
    visible = [[j <= i + num_visible_after for j in range(size)] for i in range(size)]
    return torch.tensor(visible, dtype=torch.bool)


def _mistakes() -> list[Mistake]:
    right = [_masks(size, 0) for size in SIZES]
    return [
        Mistake(
            "the mask is off by one: a position may not see itself, because the diagonal is False",
            "the decoder's input is shifted: position i reads token i - 1 and predicts token i, so it may see itself; "
            "use j <= i, not j < i",
            [_masks(size, -1) for size in SIZES],
        ),
        Mistake(
            "the mask is off by one: position i may see position i + 1, which holds the token that it must predict",
            "use j <= i; torch.tril has a second argument, diagonal, which is 0 here",
            [_masks(size, 1) for size in SIZES],
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
