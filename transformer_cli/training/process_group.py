"""Several processes train one model: how they share the work, decide together, sum gradients, and divide a sharded model; rank 0 writes files.

torchrun starts them, and `torch.distributed` connects them. Each process has a rank from 0 on and holds a whole copy
of the model (or a share of it, with runtime.sharding: full). One update, as each process does it:

1.  It takes its share of the micro-batches: number i of the update goes to rank i mod n (data/updates.py).
2.  The counts of target tokens are summed over all processes: the objective is divided by this sum.
3.  It runs its micro-batches forward and backward, without any communication, so a rank whose memory is too small
    cuts its batches in halves alone (training/loop.py).
4.  Gradients and losses are summed over all processes (`GradientSums`). Then all have the same gradient, clip it alike,
    and make the same update.
5.  All agree on whether to save or to stop (`Processes`).

Counts and agreements are small numbers on the CPU, sent by gloo, so no GPU waits for them. Only gradients and losses go
from GPU to GPU (NCCL).
"""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch import distributed as dist

from transformer_cli.acceleration import accelerate
from transformer_cli.model import Transformer
from transformer_cli.process.errors import TryAgainError, is_out_of_memory


class Witness(Protocol):
    """Knows which processes are alive."""

    def lost_ranks(self) -> str:
        """The ranks that do not answer any more, for a message; may wait a few seconds to find out."""


class _NoOne:
    def lost_ranks(self) -> str:
        return "another process"


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of one training, seen from one of them; `Processes()` is a process that trains alone.

    Every method but the properties is called by all processes, in the same order. A process that is alone gets its
    own values back, also with a build of PyTorch that has no `torch.distributed`.
    """

    rank: int = 0
    size: int = 1
    witness: Witness = field(default_factory=_NoOne)

    @property
    def is_alone(self) -> bool:
        """Whether this process trains without others."""
        return self.size == 1

    @property
    def is_main(self) -> bool:
        """Whether this process writes files, holds the lock and talks: rank 0."""
        return self.rank == 0

    def sums(self, *numbers: int) -> list[int]:
        """Each number, summed over all processes."""
        return list(numbers) if self.is_alone else self._reduced(numbers, "SUM")

    def maxima(self, *numbers: int) -> list[int]:
        """Each number, the largest of all processes."""
        return list(numbers) if self.is_alone else self._reduced(numbers, "MAX")

    def any_of(self, *claims: bool) -> list[bool]:
        """For each claim, whether it is true in at least one process."""
        if self.is_alone:
            return list(claims)
        return [bool(number) for number in self.maxima(*map(int, claims))]

    def gathered(self, value: Any) -> list[Any]:
        """The values of all processes, by rank; each must be JSON."""
        if self.is_alone:
            return [value]
        data = json.dumps(value).encode()
        [longest] = self.maxima(len(data))
        padded = torch.frombuffer(bytearray(data.ljust(longest)), dtype=torch.uint8)
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        self.together(lambda: dist.all_gather(parts, padded))
        return [json.loads(part.numpy().tobytes()) for part in parts]

    def from_main(self, work: Callable[[], Any]) -> Any:
        """The result of `work` in rank 0, sent as JSON; the other processes wait for it and do not call `work`."""
        value = work() if self.is_main else None
        return self.gathered(value)[0]

    def begin_sum(self, tensor: Tensor) -> Callable[[], None]:
        """Begin to replace a tensor by its sum over all processes, while this process goes on.

        Args:
            tensor: on the device of the model.

        Returns:
            A function that waits for the sum; on a GPU, its later work waits, and not the CPU.
        """
        works: list[Any] = []
        self.together(lambda: works.append(dist.all_reduce(tensor, async_op=True)))
        return partial(self.together, works[0].wait)

    def together(self, call: Callable[[], Any]) -> None:
        """Call a function of `torch.distributed`.

        Raises:
            TryAgainError: a process has ended or does not answer; the message names its rank.
            RuntimeError: memory is too small.
        """
        try:
            call()
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            raise TryAgainError(
                f"{self.witness.lost_ranks()} has ended or cannot be reached, so all processes end",
                hint="a message of that process, if there is one, is above; the same command goes on from the last checkpoint, or starts again if there is none",
            ) from error

    def _reduced(self, numbers: Sequence[int], operation: str) -> list[int]:
        values = torch.tensor(numbers, dtype=torch.int64)  # on the CPU: gloo
        self.together(lambda: dist.all_reduce(values, getattr(dist.ReduceOp, operation)))
        return values.tolist()


ALONE = Processes()


# Gradients and losses, summed over all processes while the last backward pass still runs.


MOST_BUCKET_BYTES = 25 * 2**20
"""Gradients are sent in buckets of at most this size, except for a parameter that is larger: enough for the full speed of a network."""
LEAST_BUCKET_BYTES = 2**20
NUM_BUCKETS = 8
"""A small model has about so many buckets, so that it, too, can send the first ones before the backward pass has ended."""


class GradientSums:
    """Sums over all processes, update by update; each bucket of gradients is sent as soon as it is complete.

    A backward pass computes the gradients of the last layers first; the buckets of these travel while those of earlier layers are
    computed. All processes send the buckets in the same order, in every update and after a resume, so that sums are
    rounded in the same way (decision 0011).

    Args:
        parameters: in the order in which a backward pass completes their gradients. Frozen ones are left out, and those
            of a sharded model, which FSDP2 adds up.
        processes: those that take part, two or more.
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
        self._send_rest(losses)
        *are_used, is_outdated = self.processes.any_of(
            *(parameter.grad is not None for parameter in self.parameters), self._is_outdated
        )
        if is_outdated:  # a process had to compute the gradients again after it had sent some of them
            for sent in self._sent:
                sent.wait()
            self._sent = []
            self._send_rest(losses)
        sent_buckets, self._sent, self._is_outdated = self._sent, [], False
        used = iter(are_used)
        for bucket, sent in zip(self.buckets, sent_buckets, strict=True):
            parts = sent.wait()
            changed = [
                (_gradient(parameter), part.view_as(parameter))
                for parameter, part in zip(bucket, parts, strict=False)
                if next(used)
            ]
            if changed:  # one kernel of a GPU for all of them
                gradients, sums = map(list, zip(*changed, strict=True))
                torch._foreach_copy_(gradients, sums)
        return [part.clone().view(()) for part in parts[len(bucket) :]]

    def _send_rest(self, losses: Sequence[Tensor]) -> None:
        while len(self._sent) < len(self.buckets) - 1:
            self._send_next()
        self._send_next(losses)

    def _send_next(self, losses: Sequence[Tensor] = ()) -> None:
        bucket = self.buckets[len(self._sent)]
        gradients = [torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in bucket]
        self._sent.append(_Sent([*gradients, *(loss.to(self._dtype) for loss in losses)], self.processes))


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


# A model that is sharded: each process holds a part of every weight, gradient and moment (FSDP2).
#
# Weights are put together for one layer at a time, just before it is used, and gradients are added up and cut in parts
# during the backward pass. A tensor of which each process holds a part is a `DTensor`. Its modules take two seconds to
# import, so only the functions that need them import them.
#
# Source: Zhao et al. 2023, "PyTorch FSDP"; `torch.distributed.fsdp.fully_shard`.


def shard(
    model: Transformer, device: torch.device, processes: Processes, precision: torch.dtype = torch.float32
) -> None:
    """Divide the parameters of a model among all processes, layer by layer; the model is changed in place.

    Each layer is moved to the device and cut there, before the next one is moved. So the device holds the parts
    of this process and one layer. The embeddings and the output belong to no layer and count as one.

    Args:
        model: on the CPU; the same weights in each process.
        device: the device that gets the parts of this process.
        processes: all of them take a part.
        precision: of matrix products. On a GPU, weights are sent and kept in it while they are whole, because autocast would
            keep a copy of all of them until the backward pass; gradients are added up in float32.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method

    # The logits are such a view. The warning is about changes in place, and no objective changes logits in place.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view", UserWarning)
    mesh = init_device_mesh(device.type, (processes.size,))
    is_plain = device.type == "cpu" or precision == torch.float32
    policy = MixedPrecisionPolicy(
        param_dtype=None if is_plain else precision, reduce_dtype=None if is_plain else torch.float32
    )
    for part in (*model.encoder.layers, *model.decoder.layers, model):
        fully_shard(part, mesh=mesh, mp_policy=policy)
    register_fsdp_forward_method(model, "decoder_output")  # what objectives call
    for module in model.modules():
        if isinstance(module, FSDPModule):
            # A sum: the objective is divided already.
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


def sharded_like(tensors: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """This process' part of whole tensors; each is divided as the tensor of the same name in `like`.

    Args:
        tensors: the same in each process.
        like: tensors of a model or optimizer, sharded or not; one that is not sharded stays whole.
    """
    return {name: _sharded_like(tensor, like.get(name)) for name, tensor in tensors.items()}


def _sharded_like(tensor: Tensor, like: Tensor | None) -> Tensor:
    if like is None or not is_sharded(like):
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    on_device = tensor.to(like.device)
    return distribute_tensor(on_device, like.device_mesh, like.placements, src_data_rank=None)


def is_sharded(tensor: Tensor) -> bool:
    """Whether each process holds a part of the tensor (a `DTensor`)."""
    return hasattr(tensor, "full_tensor")


def own_part(tensor: Tensor) -> Tensor:
    """The part of a tensor that this process holds: all of it, unless it is sharded."""
    parts: Any = tensor
    return parts.to_local() if is_sharded(tensor) else tensor


def whole(tensor: Tensor) -> Tensor:
    """The tensor put together from the parts of all processes; all of them call this."""
    parts: Any = tensor
    return parts.full_tensor() if is_sharded(tensor) else tensor


def gathered(tensors: Mapping[str, Tensor], processes: Processes) -> dict[str, Tensor]:
    """The whole tensors on the CPU of rank 0, one after the other; tensors that are not sharded stay where they are.

    The other processes get names with empty tensors.
    """
    return {name: _gathered(tensor, processes) for name, tensor in tensors.items()}


def _gathered(tensor: Tensor, processes: Processes) -> Tensor:
    if not is_sharded(tensor):
        return tensor
    together = whole(tensor)
    return together.cpu() if processes.is_main else together.new_empty(0)


def whole_copy(model: Transformer, device: torch.device) -> Transformer:
    """A model with all weights in each process, in eval mode, for a validation.

    The device holds all weights once, beside the parts: they are put together one after the other.
    """
    output = model.output.weight.size(0)
    source = model.source_embedding.num_embeddings if model.source_embedding else output
    with torch.device("meta"):  # nothing is drawn: all weights are copied
        copy = Transformer(model.config, source, output)
    copy.to_empty(device=device)
    if device.type != "cpu":  # in a validation, the twins for a CPU are the plain modules
        accelerate(copy, device)
    weights = copy.state_dict()
    for name, tensor in model.state_dict().items():
        weights[name].copy_(whole(tensor))
    return copy.eval()
