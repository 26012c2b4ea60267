"""Calls of PyTorch's optimizers that do not import `torch._dynamo`, the tracer of `torch.compile`.

The first call of their methods imports it, only to tell it what not to trace: 1.5 seconds of a CPU and 70 MB. Here no
function that is compiled contains an optimizer. If a later version of PyTorch imports it elsewhere, only those are lost.
"""

import inspect

import torch

_MARK = "__dynamo_disable"
"""The attribute in which `torch._disable_dynamo` keeps the form of a method that is not traced."""


def without_tracer() -> None:
    """Declare that `add_param_group`, which builds an optimizer, is not traced: its form for that is itself."""
    method = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    if not hasattr(method, _MARK):
        setattr(method, _MARK, method)


@torch.no_grad()
def step(optimizer: torch.optim.Optimizer) -> None:
    """Update the parameters, and call the hooks of `Optimizer.step`."""
    update = inspect.unwrap(type(optimizer).step)
    optimizer.profile_hook_step(update)(optimizer)
