"""Gradients and losses, summed over all processes."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from transformer_cli.training.processes.process_group import Processes
from transformer_cli.training.processes.sharded_model import is_sharded

BUCKET_BYTES = 2**26
"""Gradients are sent in buckets of about this size: enough for the full speed of a network, and little more memory."""


def add_up_gradients(
    parameters: Sequence[nn.Parameter], losses: Sequence[Tensor], processes: Processes
) -> list[Tensor]:
    """Sum the gradients over all processes, in place; return the sums of the losses.

    A parameter that a process did not use has gradient 0 there; one that no process used keeps no gradient. The
    buckets of an update are the same after a resume, so that sums are rounded in the same way (decision 0011).

    Args:
        parameters: those that are trained.
        losses: of this process, () each; they travel with the last bucket.
        processes: those that take part.
    """
    if processes.is_alone:
        return list(losses)
    sums = [loss.to(parameters[-1].dtype, copy=True) for loss in losses]
    # Those of a sharded model are added up during the backward pass.
    parameters = [parameter for parameter in parameters if not is_sharded(parameter)]
    are_used = processes.any_of(*(parameter.grad is not None for parameter in parameters))
    gradients = [
        _gradient(parameter)
        for parameter, is_used in zip(parameters, are_used, strict=True)
        if is_used
    ]
    for bucket in _buckets([*gradients, *sums]):
        flat = torch.cat([tensor.flatten() for tensor in bucket])
        processes.add_up([flat])
        parts = flat.split([tensor.numel() for tensor in bucket])
        for tensor, part in zip(bucket, parts, strict=True):
            tensor.copy_(part.view_as(tensor))
    return sums


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Neighbours in one list, as many as fit; a larger tensor is a bucket of its own."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and sum(one.nbytes for one in bucket) + tensor.nbytes > BUCKET_BYTES:
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket
