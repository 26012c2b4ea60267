"""A linear layer of 8-bit integers as one call of a compiled kernel."""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_cli.kernels.kernel_library import Kernels
from transformer_cli.kernels.parts import in_parts

_PANEL, _SIDE_BY_SIDE = 64, 4  # as in linear.c
_ROWS_OF_PARTS = 64  # from which on threads share the rows; else they share the outputs


class NativeLinear:
    """(N, D) float32 to (N, outputs) float32; see `prepare_quantised`, which gives the same bits without a kernel."""

    def __init__(
        self, kernels: Kernels, integers: Tensor, scales: Tensor, bias: Tensor, *, has_relu: bool
    ) -> None:
        """
        Args:
            kernels: of this processor.
            integers: (outputs, D) int8, from -127 to 127: the weights.
            scales: (outputs,) of the weights.
            bias: (outputs,).
            has_relu: whether negative results become zero.
        """
        self._kernels = kernels
        self._num_outputs, self._width = integers.shape
        missing = -self._num_outputs % _PANEL
        self._weights = pack_weights(integers, kernels.weight_offset)
        self._scales, self._bias = (F.pad(one, (0, missing)).contiguous() for one in (scales, bias))
        self._has_relu = has_relu
        self._num_panels = len(self._weights)
        tensors = self._weights, self._scales, self._bias
        self._addresses = [one.data_ptr() for one in tensors]

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply and scale the rows of x; a row of the result depends on its own row only."""
        rows = x.float().contiguous()
        num_rows, width = rows.shape
        assert width == self._width
        found = torch.empty(num_rows, self._num_outputs)
        inputs, results = rows.data_ptr(), found.data_ptr()

        def compute(first_row: int, end_row: int, first_panel: int, end_panel: int) -> int:
            return self._kernels.linear(
                inputs + first_row * width * 4, end_row - first_row, width, *self._addresses, self._num_outputs,
                first_panel, end_panel, self._has_relu, results + first_row * self._num_outputs * 4,
            )  # fmt: skip

        work = num_rows * self._num_outputs * width
        if num_rows >= _ROWS_OF_PARTS:
            in_parts(num_rows, work, lambda first, end: compute(first, end, 0, self._num_panels))
        else:
            in_parts(self._num_panels, work, lambda first, end: compute(0, num_rows, first, end))
        return found


def pack_weights(integers: Tensor, offset: int) -> Tensor:
    """(outputs, D) int8 to the bytes that linear.c reads: (panels, D / 4, 64, 4) uint8, with zeros added to both sizes."""
    num_outputs, width = integers.shape
    room = (0, -width % _SIDE_BY_SIDE, 0, -num_outputs % _PANEL)
    padded = F.pad(integers, room).to(torch.int16) + offset
    panels = padded.remainder_(256).to(torch.uint8).view(-1, _PANEL, padded.size(1) // 4, 4)
    return panels.transpose(1, 2).contiguous()
