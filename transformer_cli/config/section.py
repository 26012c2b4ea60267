"""The base class of all sections, and the types of numbers with their bounds."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A part of the config: immutable, and an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        validate_default=True,
        protected_namespaces=(),
    )


class Contradiction(ValueError):
    """Settings that contradict each other, and a hint that says which of them to change."""

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


# Every size has an upper bound, so that a config with an absurd number is refused.
Count = Annotated[int, Field(strict=True, ge=1, le=10**10)]
Width = Annotated[int, Field(strict=True, ge=1, le=65_536)]
Depth = Annotated[int, Field(strict=True, ge=1, le=256)]
Probability = Annotated[float, Field(strict=True, ge=0.0, lt=1.0)]
Share = Annotated[float, Field(strict=True, ge=0.0, le=1.0)]
Positive = Annotated[float, Field(strict=True, gt=0.0, le=1e6)]
Switch = Annotated[bool, Field(strict=True)]
