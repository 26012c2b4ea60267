"""What every section of the config shares: frozen, closed, and bounded numbers."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A part of the config: it cannot change, and a key that it does not know is an error."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        validate_default=True,
        protected_namespaces=(),
    )


# Every size has an upper bound, so that no config from elsewhere can ask for absurd amounts.
Count = Annotated[int, Field(strict=True, ge=1, le=10**10)]
Width = Annotated[int, Field(strict=True, ge=1, le=65_536)]
Depth = Annotated[int, Field(strict=True, ge=1, le=256)]
Probability = Annotated[float, Field(strict=True, ge=0.0, lt=1.0)]
Share = Annotated[float, Field(strict=True, ge=0.0, le=1.0)]
Positive = Annotated[float, Field(strict=True, gt=0.0, le=1e6)]
Switch = Annotated[bool, Field(strict=True)]
