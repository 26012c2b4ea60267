"""Functions that torch.compile turns into few kernels when they are first called."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

Function = Callable[..., Any]


@cache
def compiled(function: Function) -> Function:
    """The same function, compiled once for any number N of rows.

    Args:
        function: its tensors have N as their first size, or no size at all.
    """
    made = torch.compile(function)

    def call(*arguments: Any) -> Any:
        for one in arguments:
            if isinstance(one, Tensor) and one.ndim:
                torch._dynamo.maybe_mark_dynamic(one, 0)
        return made(*arguments)

    return call
