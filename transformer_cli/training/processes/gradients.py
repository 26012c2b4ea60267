"""Gradients and losses, summed over all processes while the last backward pass still runs."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from transformer_cli.training.processes.process_group import Processes
from transformer_cli.training.processes.sharded_model import is_sharded

MOST_BUCKET_BYTES = 25 * 2**20
"""Gradients are sent in buckets of at most this size, except for a parameter that is larger: enough for the full speed of a network."""
LEAST_BUCKET_BYTES = 2**20
NUM_BUCKETS = 8
"""A small model has about so many buckets, so that it, too, can send the first ones before the backward pass has ended."""


class GradientSums:
    """Sums over all processes, update by update; each bucket of gradients is sent as soon as it is complete.

    A backward pass computes the gradients of the last layers first; the buckets of these travel while those of earlier layers are
    computed. All processes send the buckets in the same order, in every update and after a resume, so that sums are
    rounded in the same way (decision 0011). A process that trains alone sends nothing.

    Args:
        parameters: in the order in which a backward pass completes their gradients. Frozen ones are left out, and those
            of a sharded model, which FSDP2 adds up.
        processes: those that take part.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], processes: Processes) -> None:
        self.processes = processes
        self.parameters = [one for one in parameters if one.requires_grad and not is_sharded(one)]
        self.buckets = list(_buckets(self.parameters)) or [[]]
        self._dtype = parameters[-1].dtype
        self._sent: list[_Sent] = []
        self._is_outdated = False
        # How many gradients of each bucket the backward passes of this update will still change.
        self._num_missing = [0 for _ in self.buckets]
        if not processes.is_alone:
            for number, bucket in enumerate(self.buckets):
                for parameter in bucket:
                    parameter.register_post_accumulate_grad_hook(partial(self._note, number))

    def begin(self, num_batches: int) -> None:
        """Begin to compute the gradients; again if memory was too small for the attempt before.

        Args:
            num_batches: the backward passes to come; that of the last one completes the gradients.
        """
        self._is_outdated |= bool(self._sent)
        self._num_missing = [num_batches * len(bucket) for bucket in self.buckets]

    def _note(self, number: int, _: Tensor) -> None:
        """A backward pass has added to the gradient of a parameter of bucket `number`."""
        self._num_missing[number] -= 1
        if self._is_outdated:
            return
        # The last bucket waits for the losses.
        while len(self._sent) < len(self.buckets) - 1 and not self._num_missing[len(self._sent)]:
            self._send_next()

    def finish(self, losses: Sequence[Tensor]) -> list[Tensor]:
        """Replace each gradient by its sum, and return the sums of the losses.

        A parameter that a process did not use has gradient 0 there; one that no process used keeps no gradient.

        Args:
            losses: of this process, () each; they travel with the last bucket.
        """
        if self.processes.is_alone:
            return list(losses)
        self._send_rest(losses)
        *are_used, is_outdated = self.processes.any_of(
            *(parameter.grad is not None for parameter in self.parameters), self._is_outdated
        )
        if (
            is_outdated
        ):  # a process had to compute the gradients again after it had sent some of them
            for sent in self._sent:
                sent.wait()
            self._sent = []
            self._send_rest(losses)
        sent_buckets, self._sent, self._is_outdated = self._sent, [], False
        used = iter(are_used)
        for bucket, sent in zip(self.buckets, sent_buckets, strict=True):
            parts = sent.wait()
            for parameter, part in zip(bucket, parts, strict=False):
                if next(used):
                    _gradient(parameter).copy_(part.view_as(parameter))
        return [part.clone().view(()) for part in parts[len(bucket) :]]

    def _send_rest(self, losses: Sequence[Tensor]) -> None:
        while len(self._sent) < len(self.buckets) - 1:
            self._send_next()
        self._send_next(losses)

    def _send_next(self, losses: Sequence[Tensor] = ()) -> None:
        bucket = self.buckets[len(self._sent)]
        gradients = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            for parameter in bucket
        ]
        self._sent.append(
            _Sent([*gradients, *(loss.to(self._dtype) for loss in losses)], self.processes)
        )


class _Sent:
    """Tensors that are on their way to become sums; they themselves stay as they are."""

    def __init__(self, tensors: Sequence[Tensor], processes: Processes) -> None:
        self._sizes = [tensor.numel() for tensor in tensors]
        self._flat = torch.cat([tensor.flatten() for tensor in tensors])
        self._wait: Callable[[], None] = processes.begin_sum(self._flat)

    def wait(self) -> Sequence[Tensor]:
        """The sums, each with one dimension."""
        self._wait()
        sums: Sequence[Tensor] = self._flat.split(self._sizes)
        return sums


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Neighbours in one list, as many as fit; a larger parameter is a bucket of its own."""
    total = sum(parameter.nbytes for parameter in parameters)
    most_bytes = min(MOST_BUCKET_BYTES, max(LEAST_BUCKET_BYTES, total // NUM_BUCKETS))
    bucket: list[nn.Parameter] = []
    for parameter in parameters:
        if bucket and sum(one.nbytes for one in bucket) + parameter.nbytes > most_bytes:
            yield bucket
            bucket = []
        bucket.append(parameter)
    if bucket:
        yield bucket
