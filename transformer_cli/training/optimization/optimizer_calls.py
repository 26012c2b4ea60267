"""Calls of PyTorch's optimizers that do not import `torch._dynamo`, the tracer of `torch.compile`.

The first call of their methods imports it, only to tell it what not to trace. That takes 1.5 seconds of a CPU and 70 MB.
`tfm` compiles layers, and never an optimizer. If a later version of PyTorch imports the tracer at another place, training
works as before, and only this saving is lost.
"""

import inspect

import torch

_MARK = "__dynamo_disable"
"""The attribute of a method in which `torch._disable_dynamo` keeps the function to call instead of it."""


def without_tracer() -> None:
    """Let optimizers be built without the import: `add_param_group` is marked as PyTorch would mark it, and calls itself."""
    method = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    if not hasattr(method, _MARK):
        setattr(method, _MARK, method)


@torch.no_grad()
def step(optimizer: torch.optim.Optimizer) -> None:
    """Update the parameters, and call the hooks of `Optimizer.step`."""
    update = inspect.unwrap(type(optimizer).step)
    optimizer.profile_hook_step(update)(optimizer)
