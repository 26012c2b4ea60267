"""Checks a learner's sinusoidal positions against the formula, computed number by number."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from transformer_cli.extensions.lessons.exercises.answers import Mistake, require_right

SIZES = ((7, 8), (30, 6))


def check_sinusoids(learner: Any) -> None:
    """Check `sinusoids`.

    Raises:
        WrongAnswer: the table is wrong.
    """
    found = [learner.sinusoids(*size) for size in SIZES]
    require_right("sinusoids", found, _tables(_right), _mistakes(), SIZES)


def _right(position: int, column: int, width: int) -> float:
    angle = position / 10000 ** ((column - column % 2) / width)
    return math.cos(angle) if column % 2 else math.sin(angle)


def _tables(value: Callable[[int, int, int], float]) -> list[Tensor]:
    return [
        torch.tensor([[value(p, c, width) for c in range(width)] for p in range(num_positions)])
        for num_positions, width in SIZES
    ]


def _wave(angle: float, column: int) -> float:
    return math.cos(angle) if column % 2 else math.sin(angle)


def _mistakes() -> list[Mistake]:
    def halves(p: int, c: int, width: int) -> float:
        pair = 2 * (c % (width // 2))
        return _right(p, pair + (c >= width // 2), width)

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
            _tables(lambda p, c, width: _right(p, c + 1 - 2 * (c % 2), width)),
        ),
        Mistake(
            "the positions count from 1, but the first position is 0",
            "torch.arange(num_positions) begins with 0",
            _tables(lambda p, c, width: _right(p + 1, c, width)),
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
    ]  # fmt: skip
