"""Checks a learner's learning rate against Adam's warm-up of equation 3, by its two branches."""

import itertools
import math
from collections.abc import Callable
from typing import Any

from transformer_cli.extensions.lessons.exercises.answers import Mistake, require_right
from transformer_cli.extensions.lessons.exercises.outcomes import WrongAnswer

# step, d_model, warmup_steps
CASES = ((1, 512, 4000), (2, 512, 4000), (4000, 512, 4000), (4001, 512, 4000), (16000, 512, 4000),
         (50, 128, 100), (400, 128, 100))  # fmt: skip


def check_warmup(learner: Any) -> None:
    """Check `learning_rate`.

    Raises:
        WrongAnswer: the rate is wrong.
    """
    rates = [learner.learning_rate(step, 512, 4000) for step in range(1, 11)]
    for step, (rate, after) in enumerate(itertools.pairwise(rates), start=1):
        if isinstance(rate, int | float) and rate == after:
            raise WrongAnswer(
                f"learning_rate: the rate of updates {step} and {step + 1} is the same: it must change with every update, "
                "not with every epoch",
                "compute it from `step` itself, without rounding and without a number of epochs",
            )
    found = [learner.learning_rate(*case) for case in CASES]
    require_right("learning_rate", found, _rates(_right), _mistakes(), CASES)


def _right(step: int, d_model: int, warmup_steps: int) -> float:
    peak = 1 / math.sqrt(d_model * warmup_steps)
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * math.sqrt(warmup_steps / step)


def _rates(rate: Callable[[int, int, int], float]) -> list[float]:
    return [float(rate(*case)) for case in CASES]


def _mistakes() -> list[Mistake]:
    return [
        Mistake(
            "the rate never falls: after the warm-up it stays at its peak, but it must fall with step^(-0.5)",
            "min(step**-0.5, step * warmup_steps**-1.5)",
            _rates(lambda step, width, warmup: width**-0.5 * min(warmup**-0.5, step * warmup**-1.5)),
        ),
        Mistake(
            "the rate rises for ever: the part that falls, step^(-0.5), is missing",
            "min(step**-0.5, step * warmup_steps**-1.5)",
            _rates(lambda step, width, warmup: width**-0.5 * step * warmup**-1.5),
        ),
        Mistake(
            "there is no warm-up: the rate falls from the first update on",
            "before warmup_steps, step * warmup_steps**-1.5 is the smaller one of the two",
            _rates(lambda step, width, warmup: width**-0.5 * step**-0.5),
        ),
        Mistake(
            "the larger one of the two curves is taken, but the smaller one is wanted (max instead of min)",
            "before warmup_steps, the curve that rises is the smaller one",
            _rates(lambda step, width, warmup: width**-0.5 * max(step**-0.5, step * warmup**-1.5)),
        ),
        Mistake(
            "the factor d_model^(-0.5) is missing",
            "multiply by d_model**-0.5: a wider model gets a smaller rate",
            _rates(lambda step, width, warmup: min(step**-0.5, step * warmup**-1.5)),
        ),
        Mistake(
            "a wider model gets a larger rate: the factor is d_model^0.5, but d_model^(-0.5) is wanted",
            "multiply by d_model**-0.5",
            _rates(lambda step, width, warmup: width**0.5 * min(step**-0.5, step * warmup**-1.5)),
        ),
        Mistake(
            "the two curves do not meet at warmup_steps: the exponent of warmup_steps is -0.5, but -1.5 is wanted",
            "step * warmup_steps**-1.5",
            _rates(lambda step, width, warmup: width**-0.5 * min(step**-0.5, step * warmup**-0.5)),
        ),
        Mistake(
            "the rate is that of the next update: step counts from 1, so nothing is added to it",
            "use `step`, not step + 1",
            _rates(lambda step, width, warmup: _right(step + 1, width, warmup)),
        ),
    ]  # fmt: skip
