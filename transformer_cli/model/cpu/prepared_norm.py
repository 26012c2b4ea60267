"""Layer normalisation by a compiled kernel."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from transformer_cli.kernels.kernel_library import Kernels
from transformer_cli.model.norms import LayerNorm

Norm = Callable[[Tensor], Tensor]


def prepare_norm(norm: Any, kernels: Kernels | None) -> Norm:
    """The norm as one call of a kernel; the module itself if it is of another kind, or without kernels."""
    if kernels is None or type(norm) is not LayerNorm:
        return cast(Norm, norm)
    return _NativeNorm(kernels, norm)


class _NativeNorm:
    def __init__(self, kernels: Kernels, norm: LayerNorm) -> None:
        self._kernels, self._epsilon = kernels, norm.eps
        self._gain, self._bias = norm.weight.detach(), norm.bias.detach()
        self._addresses = self._gain.data_ptr(), self._bias.data_ptr()

    def __call__(self, x: Tensor) -> Tensor:
        """(..., D) float32 to the same."""
        rows = x.contiguous()
        found = torch.empty_like(rows)
        self._kernels.layer_norm(
            rows.data_ptr(), rows.numel() // rows.size(-1), rows.size(-1), *self._addresses,
            self._epsilon, found.data_ptr(),
        )  # fmt: skip
        return found
