"""A step of PyTorch's optimizers that changes something only if the gradient is finite.

There are three ways, and the CPU waits for a GPU only in the last one:

- `kernel`: the fused kernel changes nothing if `found_inf` is 1, as gradient scalers use it. Adam and AdamW have such a
  kernel, but not on Apple GPUs.
- `undone`: the step is computed, and the device puts the old values back if the gradient is not finite. This takes
  a copy of weights and moments, for the time of the step.
- `read`: the CPU reads whether the gradient is finite. On a CPU this costs nothing. Adafactor reads norms of its weights
  anyway.
"""

from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn

from transformer_cli.training.optimization.optimizer_calls import step
from transformer_cli.training.processes.sharded_model import own_part

Way = Literal["kernel", "undone", "read"]


def way_to_skip(kind: type[torch.optim.Optimizer], device: torch.device) -> Way:
    """The cheapest way for an optimizer of this kind whose parameters lie on this device."""
    if _heeds_found_inf(kind, device):
        return "kernel"
    return "read" if device.type == "cpu" or kind is torch.optim.Adafactor else "undone"


def step_if(optimizer: torch.optim.Optimizer, is_finite: Tensor, way: Way) -> None:
    """Update weights, moments and step counts, or leave all of them as they are.

    Args:
        optimizer: its parameters have gradients. Moments that it does not have yet begin with 0.
        is_finite: () bool, on the device; whether the gradient has neither NaN nor infinity.
        way: that of `way_to_skip`.
    """
    if way == "kernel":
        fused: Any = optimizer
        fused.grad_scale = None
        fused.found_inf = (~is_finite).to(torch.float32)
        step(optimizer)
    elif way == "undone":
        _step_and_undo(optimizer, is_finite)
    elif bool(is_finite):
        step(optimizer)


@torch.no_grad()
def _step_and_undo(optimizer: torch.optim.Optimizer, is_finite: Tensor) -> None:
    before = {key: tensor.clone() for key, tensor in _changed_tensors(optimizer)}
    step(optimizer)
    for key, tensor in _changed_tensors(optimizer):
        old = before.get(key)
        torch.where(is_finite, tensor, torch.zeros_like(tensor) if old is None else old, out=tensor)


def _changed_tensors(
    optimizer: torch.optim.Optimizer,
) -> Iterator[tuple[tuple[int, str], Tensor]]:
    """What a step changes, each with a name: weights, moments and step counts; of sharded ones, this process' part."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                for name, tensor in {"": parameter, **optimizer.state[parameter]}.items():
                    yield (id(parameter), name), own_part(tensor.detach())


def _heeds_found_inf(kind: type[torch.optim.Optimizer], device: torch.device) -> bool:
    """Whether the fused kernel of a device changes nothing if `found_inf` is 1; tested on one number.

    PyTorch's kernel for Apple GPUs accepts `found_inf` and ignores it. Adafactor and Muon have no such kernel.
    """
    if device.type == "meta" or not issubclass(kind, torch.optim.Adam):
        return False
    parameter = nn.Parameter(torch.ones(1, device=device))
    parameter.grad = torch.ones_like(parameter)
    optimizer: Any = kind([parameter], lr=1.0, fused=True)
    step_if(optimizer, torch.zeros((), dtype=torch.bool, device=device), "kernel")
    state = optimizer.state[parameter]
    return parameter.item() == 1.0 and not any(one.any() for one in state.values())
