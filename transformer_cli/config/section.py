"""The base class of all sections, the types of numbers with their bounds, and a flat view of a tree of settings."""

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A part of the config: immutable, and an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_default=True,
        protected_namespaces=(),
        # pydantic builds the validator of a section at its first use: a command uses few of them by themselves.
        defer_build=True,
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


def meanings(section: type[BaseModel]) -> dict[str, str]:
    """The sentence below each setting of a section, by the name of the setting.

    It is read from the source of the class when it is asked for. pydantic would read all of them at each start.
    """
    found: dict[str, str] = {}
    for one in reversed(section.__mro__):
        if not issubclass(one, BaseModel) or one.__module__.startswith("pydantic"):
            continue
        definition = _classes_of(one.__module__)[one.__name__]
        for field, sentence in pairwise(definition.body):
            match field, sentence:
                case (ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text)))):
                    found[name] = inspect.cleandoc(text)
    return found


@cache
def _classes_of(module: str) -> dict[str, ast.ClassDef]:
    """The classes of a module by name. `inspect.getsource` of a class would parse the module again for each of them."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}


def flat_settings(values: Any, name: str = "") -> dict[str, Any]:
    """Map the dotted name of each setting to its value; an item of a list is named by its index.

    An empty list or mapping has no entry.

    Args:
        values: mappings, lists and plain values, as `model_dump(mode="json")` returns them.
        name: the dotted name of `values` itself.
    """
    if isinstance(values, list):
        values = dict(enumerate(values))
    if not isinstance(values, dict):
        return {name: values}
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= flat_settings(value, f"{name}.{key}" if name else str(key))
    return flat
