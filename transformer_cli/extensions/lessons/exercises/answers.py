"""A learner's answers, compared with the right ones and with the results of known mistakes."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_cli.extensions.lessons.exercises.catalogue import WrongAnswer

TOLERANCE = 1e-4


class Mistake(NamedTuple):
    """A known mistake, and the results that it gives."""

    message: str
    hint: str
    results: Sequence[Any]
    """One result for each case of the check."""


def require_right(
    function: str,
    found: Sequence[Any],
    expected: Sequence[Any],
    mistakes: Sequence[Mistake],
    cases: Sequence[tuple[int, ...]] = (),
) -> None:
    """Compare the results of a function in several cases.

    Args:
        function: its name, for the message.
        found: its results: tensors, numbers or lists of ids.
        expected: the right results.
        mistakes: known mistakes. The first one that gives all the found results is named.
        cases: the arguments of each case, if they are short enough for a message.

    Raises:
        WrongAnswer: a result is wrong.
    """
    if all(map(_are_same, found, expected)):
        return
    for mistake in mistakes:
        # A mistake without any effect in these cases cannot be recognised.
        assert not all(map(_are_same, mistake.results, expected)), mistake.message
        if all(map(_are_same, found, mistake.results)):
            raise WrongAnswer(f"{function}: {mistake.message}", mistake.hint)
    for number, (one, wanted) in enumerate(zip(found, expected, strict=True)):
        if not _are_same(one, wanted):
            call = f"{function}{cases[number]}" if cases else function
            raise WrongAnswer(f"{call}: {_difference(one, wanted)}")


def require_gradient(function: str, result: Tensor) -> None:
    """Check that training can go through a result.

    Raises:
        WrongAnswer: the result of a tensor with a gradient has none.
    """
    if not result.requires_grad:
        raise WrongAnswer(
            f"{function}: the result has no gradient, so a model cannot learn through it",
            "leave out .item(), .detach(), .data, float(), torch.tensor(...) and torch.no_grad()",
        )


def _are_same(found: Any, expected: Any) -> bool:
    if isinstance(expected, Tensor):
        if not isinstance(found, Tensor) or found.shape != expected.shape:
            return False
        if (found.dtype == torch.bool) != (expected.dtype == torch.bool):
            return False
        return torch.allclose(
            found.detach().double(),
            expected.double(),
            atol=TOLERANCE,
            rtol=TOLERANCE,
            equal_nan=True,
        )
    if isinstance(expected, float):
        is_number = isinstance(found, int | float) or (isinstance(found, Tensor) and found.numel() == 1)
        return is_number and math.isclose(float(found), expected, rel_tol=TOLERANCE, abs_tol=1e-12)
    return bool(_plain(found) == expected)


def _plain(found: Any) -> Any:
    """Ids in a tensor or a tuple as a list of ints."""
    if isinstance(found, Tensor):
        return found.tolist()
    if isinstance(found, list | tuple):
        return [one.item() if isinstance(one, Tensor) and one.numel() == 1 else one for one in found]
    return found


def _difference(found: Any, expected: Any) -> str:
    if found is None:
        return "the result is None; is there a return at the end?"
    if not isinstance(expected, Tensor):
        return f"the result is {_shortened(_plain(found))}, but it must be {_shortened(expected)}"
    if not isinstance(found, Tensor):
        return f"the result is of type {type(found).__name__}, but it must be a tensor"
    if found.shape != expected.shape:
        return f"the result has the shape {tuple(found.shape)}, but it must be {tuple(expected.shape)}"
    if (found.dtype == torch.bool) != (expected.dtype == torch.bool):
        return f"the result has the dtype {found.dtype}, but it must be {expected.dtype}"
    found = found.detach()
    if found.double().isnan().any():
        return "the result contains NaN (not a number), for example from 0 / 0 or from a softmax over -inf alone"
    if found.dim() == 0:
        return f"the result is {_shortened(found.item())}, but it must be {_shortened(expected.item())}"
    is_wrong = ~torch.isclose(found.double(), expected.double(), atol=TOLERANCE, rtol=TOLERANCE)
    place = tuple(is_wrong.nonzero()[0].tolist())
    num_wrong = int(is_wrong.sum())
    return (
        f"{num_wrong} of {is_wrong.numel()} numbers {'is' if num_wrong == 1 else 'are'} wrong; the first one, at {list(place)}, "
        f"is {_shortened(found[place].item())}, but it must be {_shortened(expected[place].item())}"
    )


def _shortened(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else f"{value!s:.80}"
