"""The residual wirings, read from the functions of the model: they are called with values that remember each step."""

from dataclasses import dataclass
from typing import Any, get_args

from transformer_cli.config.model import NormPlacement
from transformer_cli.model import layers

WIRINGS: tuple[NormPlacement, ...] = get_args(NormPlacement)


@dataclass(frozen=True, slots=True)
class Traced:
    """A value, and how it was computed."""

    formula: str
    steps: tuple[str, ...] = ()
    """The functions that were applied since x, or since the sum."""
    branch: tuple[str, ...] | None = None
    """The functions between x and the sum; None: there was no sum yet."""

    def __add__(self, other: "Traced") -> "Traced":
        if self.steps or self.branch is not None or other.branch is not None:
            raise ValueError(f"{self.formula} + {other.formula}: not the sum of x and a branch")
        return Traced(f"{self.formula} + {other.formula}", (), other.steps)

    def after(self, function: str) -> "Traced":
        """This value, and then a function of it."""
        return Traced(f"{function}({self.formula})", (*self.steps, function), self.branch)


@dataclass(frozen=True, slots=True)
class Wiring:
    """The order of norm, sub-layer, dropout and sum around one sub-layer."""

    placement: NormPlacement
    formula: str
    branch: tuple[str, ...]
    """The functions between x and the sum, in order."""
    after_sum: tuple[str, ...]
    """The functions after the sum."""


def wiring_of(placement: NormPlacement) -> Wiring:
    """The wiring that a model has with this `model.norm_placement`."""
    function: Any = getattr(layers, placement)
    steps = (lambda value, name=name: value.after(name) for name in ("sublayer", "norm", "dropout"))
    result: Traced = function(Traced("x"), *steps)
    assert result.branch is not None
    return Wiring(placement, result.formula, result.branch, result.steps)
