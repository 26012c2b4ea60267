"""Muon for several matrices at once, and optimizers without the import of a tracer.

PyTorch's Muon starts about 23 kernels for each matrix; `BatchedMuon` computes the matrices of one shape together.
"""

import functools
import inspect
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from transformer_cli.process.device import has_fast_bfloat16, has_tensor_cores

MOMENTUM = "momentum_buffer"
"""The state of one matrix, in PyTorch's name."""


class BatchedMuon(torch.optim.Muon):
    """`torch.optim.Muon` with the same state and the same results, but for rounding.

    As PyTorch's fused optimizers do, it changes nothing if `found_inf` is 1, and the CPU does not wait for a GPU to learn it.

    Args:
        parameters: whole matrices on one device; the config refuses Muon for sharded ones.
        weight_decay: multiplied by the learning rate; decoupled, as in AdamW.

    Source: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon. The updates are as large as those of AdamW, so
    one learning rate serves both: Liu et al. 2025, section 2.2.
    """

    def __init__(self, parameters: Iterable[Tensor], *, weight_decay: float) -> None:
        super().__init__(parameters, lr=0.0, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
        self.found_inf: Tensor | None = None  # () float32: 1 if the gradient is not finite

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all matrices that have a gradient."""
        matrices = [one for group in self.param_groups for one in group["params"]]
        is_bad = self.found_inf
        if is_bad is not None and matrices[0].device.type == "cpu":
            if is_bad:
                return
            is_bad = None
        for group in self.param_groups:
            for some in _batches(one for one in group["params"] if one.grad is not None):
                self._update(some, group, is_bad)

    def _update(self, matrices: list[Tensor], group: dict[str, Any], is_bad: Tensor | None) -> None:
        """Update matrices of one shape, but not if `is_bad` is 1."""
        gradients = [one.grad for one in matrices if one.grad is not None]
        momenta = [self._momentum(one) for one in matrices]
        momentum, rate = group["momentum"], group["lr"]
        size = rate * 0.2 * math.sqrt(max(matrices[0].shape))
        shrink: float | Tensor = rate * group["weight_decay"]
        if is_bad is not None:
            # The mean of the momentum with itself is the momentum.
            kept = torch.stack(gradients).where(is_bad == 0, torch.stack(momenta))
            gradients = list(kept.unbind())
            shrink = shrink * (1 - is_bad)
        torch._foreach_lerp_(momenta, gradients, 1 - momentum)
        directions = torch._foreach_lerp(gradients, momenta, momentum)  # Nesterov's
        updates = orthogonalised(torch.stack(directions), group)
        if is_bad is not None:
            # Of one type, so that one kernel adds them to all matrices.
            updates = updates.to(matrices[0].dtype) * (1 - is_bad)
        torch._foreach_mul_(matrices, 1 - shrink)
        torch._foreach_add_(matrices, updates.unbind(), alpha=-size)

    def _momentum(self, matrix: Tensor) -> Tensor:
        state = self.state[matrix]
        if MOMENTUM not in state:
            state[MOMENTUM] = torch.zeros_like(matrix)
        momentum: Tensor = state[MOMENTUM]
        return momentum


@functools.cache
def precision_of_muon(device: torch.device) -> torch.dtype:
    """That of the products: bfloat16, but not on a CPU that is slow at it, or an NVIDIA GPU that only imitates it (Turing and older).

    On a CPU without AVX-512, PyTorch multiplies bfloat16 fifty times as slowly as float32. On such a GPU it is float16, whose range
    is enough for matrices of norm 1, or float32 if the card is slow at that too.
    """
    if device.type not in ("cpu", "cuda") or has_fast_bfloat16(device):
        return torch.bfloat16
    is_fast = device.type == "cuda" and has_tensor_cores()
    return torch.float16 if is_fast else torch.float32


def orthogonalised(matrices: Tensor, group: dict[str, Any]) -> Tensor:
    """Matrices with nearly the same singular vectors and singular values near 1: (N, R, C) to the same, in the precision of Muon.

    Source: Jordan et al. 2024, a Newton-Schulz iteration of five steps.

    Args:
        matrices: (N, R, C).
        group: the settings of the optimizer: `ns_coefficients`, `ns_steps`, `eps`.
    """
    a, b, c = group["ns_coefficients"]
    is_tall = matrices.size(1) > matrices.size(2)
    # On a CPU, the product of two matrices is faster than that of a batch of one.
    x = matrices.squeeze(0) if len(matrices) == 1 else matrices
    dtype = precision_of_muon(matrices.device)
    if dtype == torch.bfloat16:
        x = x.bfloat16()
    plus_product = torch.addmm if x.ndim == 2 else torch.baddbmm
    x = x.mT if is_tall else x
    x = x / torch.linalg.vector_norm(x, dim=(-2, -1), keepdim=True).clamp(min=group["eps"])
    x = x.to(dtype)  # float16 has no room for numbers that are not normalised yet
    for _ in range(group["ns_steps"]):
        square = x @ x.mT
        x = plus_product(x, plus_product(square, square, square, beta=b, alpha=c), x, beta=a)
    return (x.mT if is_tall else x).reshape(matrices.shape)


def _batches(matrices: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Matrices of one shape in lists that are not too long."""
    by_shape = defaultdict(list)
    for one in matrices:
        by_shape[one.shape].append(one)
    for alike in by_shape.values():
        # More numbers would not fit into the cache of a CPU; on a GPU, they would take much memory.
        together = 1 << 20 if alike[0].device.type == "cpu" else 1 << 26
        length = max(1, together // alike[0].numel())
        for start in range(0, len(alike), length):
            yield alike[start : start + length]


# Calls of PyTorch's optimizers that do not import the tracer of `torch.compile`.
#
# The first call of one of their methods imports `torch._dynamo`, only to tell it what not to trace. That takes 1.5 seconds
# of a CPU and 70 MB. `tfm` compiles layers, and never an optimizer. If a later version of PyTorch imports the tracer at
# another place, training works as before, and only this saving is lost.


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
