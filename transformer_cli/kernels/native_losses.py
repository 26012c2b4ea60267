"""The losses of training by compiled kernels, which pass over the logits of a position once."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_cli.kernels.kernel_library import Kernels
from transformer_cli.kernels.parts import in_parts

_LANES = 16  # as in lanes.h
_WORK_OF_LOGIT = 32  # an exponential and what else a logit costs, in multiplications

Call = Callable[[int, int, Tensor, Tensor | None], None]
"""Computes the rows from one number to another, with a row of a workspace and the gradients of a bias."""


class Labels(NamedTuple):
    """What the model shall learn: the true ids, and the probabilities of `SmoothedLabels`."""

    ids: Tensor  # (N,) int64, contiguous
    pad_id: int
    of_truth: float
    of_each: float
    of_pad: float


def can_read(logits: Tensor) -> bool:
    """Whether the kernels can read these logits, and write gradients in their place."""
    return logits.dtype in (torch.float32, torch.bfloat16) and logits.is_contiguous()


def native_loss(
    kernels: Kernels, logits: Tensor, bias: Tensor | None, of_bias: Tensor | None, labels: Labels
) -> tuple[Tensor, Tensor]:
    """Replace logits (N, V) by the gradients of their losses; the losses and negative log-likelihoods, (N,) each.

    Args:
        kernels: of this processor.
        logits: see `can_read`; those of the labels, and perhaps more rows, which stay as they are.
        bias: (V,), added to the logits.
        of_bias: (V,) float32; the sum of the gradients is added to it.
        labels: of the first rows.
    """
    ids, *probabilities = labels
    offsets = None if bias is None else bias.float().contiguous()
    results = torch.empty(2, len(ids))
    size = logits.element_size() * logits.size(1)

    def compute(first: int, end: int, workspace: Tensor, sums: Tensor | None) -> None:
        kernels.loss(
            logits.data_ptr() + first * size, logits.dtype == torch.bfloat16, end - first, logits.size(1),
            _address(offsets), _address(sums), ids[first:end].data_ptr(), *probabilities,
            workspace.data_ptr(), results[0, first:end].data_ptr(), results[1, first:end].data_ptr(),
        )  # fmt: skip

    _compute_rows(len(ids), logits.size(1), of_bias, compute, num_workspaces=1)
    return results[0], results[1]


def native_twin_loss(
    kernels: Kernels,
    predictions: tuple[Tensor, Tensor],
    bias: Tensor | None,
    of_bias: Tensor | None,
    labels: Labels,
    factor: float,
) -> tuple[Tensor, Tensor]:
    """Replace the logits of two predictions, (N, V) each, by the gradients of the objective of R-Drop.

    Returns:
        For each pair of rows, the objective and the mean of both negative log-likelihoods, (N,) each. The objective is
        the sum of both cross-entropies and of `factor` times both KL divergences.

    Source: Liang et al. 2021, section 2.1.
    """
    one, other = predictions
    ids, *probabilities = labels
    offsets = None if bias is None else bias.float().contiguous()
    results = torch.empty(2, len(ids))
    size = one.element_size() * one.size(1)

    def compute(first: int, end: int, workspace: Tensor, sums: Tensor | None) -> None:
        kernels.twin_loss(
            one.data_ptr() + first * size, other.data_ptr() + first * size, one.dtype == torch.bfloat16,
            end - first, one.size(1), _address(offsets), _address(sums), ids[first:end].data_ptr(), *probabilities,
            factor, workspace.data_ptr(), results[0, first:end].data_ptr(), results[1, first:end].data_ptr(),
        )  # fmt: skip

    _compute_rows(len(ids), one.size(1), of_bias, compute, num_workspaces=4)
    return results[0], results[1]


def _compute_rows(
    num_rows: int, width: int, of_bias: Tensor | None, compute: Call, *, num_workspaces: int
) -> None:
    """Each part of the rows has its own workspace and its own sums, which are then added in the order of the parts."""
    sums_of_parts: dict[int, Tensor] = {}

    def compute_part(first: int, end: int) -> int:
        workspace = torch.empty(num_workspaces, -(-width // _LANES) * _LANES)
        sums = None if of_bias is None else sums_of_parts.setdefault(first, torch.zeros(width))
        compute(first, end, workspace, sums)
        return 0

    in_parts(num_rows, num_workspaces * num_rows * width * _WORK_OF_LOGIT, compute_part)
    for _, sums in sorted(sums_of_parts.items(), key=lambda item: item[0]):
        assert of_bias is not None
        of_bias += sums


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
