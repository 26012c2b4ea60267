"""CUDA graphs: forward and backward passes, recorded for up to 128 shapes of batches, then replayed (`runtime.cuda_graphs`)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_cli.config import Config
from transformer_cli.data.updates import Batch
from transformer_cli.model import LossSums, Transformer
from transformer_cli.process.device import Machine
from transformer_cli.process.torchrun import read_launch

Objective = Callable[[Transformer, Batch], LossSums]
Work = Callable[[], None]
Record = Callable[[Work], Work]
"""A function that runs some work, records what the device does for it, and returns a function that repeats this without Python."""

MOST_RECORDINGS = 128
"""Each takes memory. Batches of further shapes run without one, and give the same results."""


MOST_WORK_TO_RECORD = 200_000_000_000
"""Weights of the layers times tokens of a batch, up to which `runtime.cuda_graphs: auto` records a training. A guess on the safe side:
the products take about 3 ms of an H100 and 30 ms of a T4, and the CPU starts the kernels of an update in 40 to 50 ms."""


STEPS_PER_OCTAVE = 4
"""Sizes between a power of two and the next: with 4 of them, rounding up adds less than a quarter to a size."""


class RoundedShape(NamedTuple):
    """The shape of a rounded batch; both sides have the same length, so that there are few shapes."""

    num_pairs: int
    length: int
    sources_have_tokens: bool = True

    @classmethod
    def of(cls, batch: Batch, max_length: int) -> "RoundedShape":
        """The smallest of the few shapes that can hold a batch.

        Args:
            batch: to be copied.
            max_length: positions that the model has; no length is rounded up above it.
        """
        length = max(batch.source_ids.size(1), batch.target_ids.size(1))
        return cls(
            rounded_up(len(batch.target_ids)),
            max(length, min(rounded_up(length), max_length)),
            batch.sources_have_tokens,
        )


def are_recorded(config: Config, device: torch.device) -> bool:
    """Whether a training records its passes on a device (`runtime.cuda_graphs`)."""
    runtime, model, training = config.runtime, config.model, config.training
    if runtime.cuda_graphs != "auto":
        return runtime.cuda_graphs
    size = training.batch_tokens
    if device.type != "cuda" or not isinstance(size, int) or not read_launch().is_alone:
        return False
    if model.layer_dropout or runtime.sharding == "full" or training.guided_alignment is not None:
        return False
    attention, feed_forward = 4 * model.d_model**2, 2 * model.d_model * model.d_ff
    weights = model.encoder_layers * (attention + feed_forward) + model.decoder_layers * (2 * attention + feed_forward)
    return weights * size <= MOST_WORK_TO_RECORD


@dataclass(frozen=True, slots=True)
class _Pass:
    """The tensors that a recorded pass reads and writes, and what repeats it."""

    batch: Batch
    factor: Tensor  # ()
    sums: LossSums
    repeat: Work


class RecordedPasses:
    """The forward and backward passes of a training, as recordings; the CPU starts each of them as a whole.

    The kernels of a small model are so short that a GPU waits for the CPU, which starts them one by one. A replay starts
    all of them with one call. It repeats the same kernels at the same addresses. So batches are padded to few shapes and
    copied into tensors that stay where they are for the whole training; the gradients stay there too. Dropout draws new
    numbers in each replay, from the seed that was set before it.

    Args:
        model: in training mode, on a device, without layer dropout: all its passes consist of the same operations.
        objective: what is minimised.
        machine: the precision of matrix products.
        record: how a pass is recorded; `recorder_on` does it on CUDA devices.
        scaled: multiplies the objective by the scale of float16; None: the objective stays as it is.

    Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs.
    """

    def __init__(
        self,
        model: Transformer,
        objective: Objective,
        machine: Machine,
        record: Record,
        *,
        scaled: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self._model = model
        self._objective = objective
        self._machine = machine
        self._record = record
        self._scaled = scaled
        self._parameters = [one for one in model.parameters() if one.requires_grad]
        self._gradients = [torch.zeros_like(one) for one in self._parameters]
        self._passes: dict[RoundedShape, _Pass] = {}

    @property
    def num_recordings(self) -> int:
        """How many shapes of batches have been recorded."""
        return len(self._passes)

    def shape_of(self, batch: Batch) -> RoundedShape:
        """The shape to which a batch is padded."""
        return RoundedShape.of(batch, self._model.config.max_length)

    def sum_gradients(self, batches: Iterable[Batch], *, num_target_tokens: int) -> list[LossSums]:
        """The twin of the passes of `train_step`: the gradients of all batches, from the beginning.

        Args:
            batches: on the device of the model.
            num_target_tokens: of the whole update; the objective is divided by it.

        Returns:
            The sums of each batch, without a gradient.
        """
        torch._foreach_zero_(self._gradients)
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient
        one = torch.ones((), device=self._machine.device)
        factor = (one if self._scaled is None else self._scaled(one)) / max(num_target_tokens, 1)
        return [self._add_gradients(batch, factor) for batch in batches]

    def _add_gradients(self, batch: Batch, factor: Tensor) -> LossSums:
        """Add the gradients of the objective of a batch, times a factor."""
        shape = self.shape_of(batch)
        found = self._passes.get(shape)
        if found is None:
            found = self._recorded(shape, batch, factor)
            if len(self._passes) < MOST_RECORDINGS:
                self._passes[shape] = found
        else:
            fill(found.batch, batch)
            found.factor.copy_(factor)
        found.repeat()
        return LossSums(*(one.clone() for one in found.sums))

    def _recorded(self, shape: RoundedShape, batch: Batch, factor: Tensor) -> _Pass:
        """A pass for batches of a shape, with the first of them in it."""
        device = batch.target_ids.device
        own_batch, own_factor = empty_batch(shape, batch.pad_id, device), factor.clone()
        fill(own_batch, batch)
        kept = LossSums(torch.zeros_like(factor), torch.zeros_like(factor))

        def add() -> None:
            with self._machine.autocast():
                sums = self._objective(self._model, own_batch)
            gradients = torch.autograd.grad(
                sums.objective, self._parameters, own_factor, allow_unused=True, materialize_grads=True
            )
            torch._foreach_add_(self._gradients, gradients)
            torch._foreach_copy_(list(kept), [one.detach() for one in sums])

        if len(self._passes) == MOST_RECORDINGS:
            return _Pass(own_batch, own_factor, kept, add)
        return _Pass(own_batch, own_factor, kept, self._without_traces(add, device))

    def _without_traces(self, add: Work, device: torch.device) -> Work:
        """Record; gradients and random numbers are then as they were before."""
        before = [gradient.clone() for gradient in self._gradients]
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            repeat = self._record(add)
        torch._foreach_copy_(self._gradients, before)
        return repeat


def recorder_on(device: torch.device) -> Record:
    """A function that records work as a CUDA graph on this device.

    All graphs share their memory, because whatever a replay leaves behind lies in tensors that were made before. They also
    share a stream: for each stream, cuBLAS allocates memory that it never frees.
    """
    memory, stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream(device)

    def record(work: Work) -> Work:
        graph = torch.cuda.CUDAGraph()
        current = torch.cuda.current_stream(device)
        # If an error ends the recording, later work is in the same stream as before, and in order.
        with torch.cuda.device(device), torch.cuda.stream(current):
            stream.wait_stream(current)
            try:
                with torch.cuda.stream(stream):
                    work()  # not recorded: libraries make their handles, and layers are compiled, at their first use
            finally:
                current.wait_stream(stream)
            # "thread_local": meanwhile, another thread pins the memory of the next batches.
            with torch.cuda.graph(graph, pool=memory, stream=stream, capture_error_mode="thread_local"):
                work()
        return graph.replay

    return record


def rounded_up(size: int) -> int:
    """The next of the numbers 1 to 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48 ..."""
    step: int = 1 << max(0, (size - 1).bit_length() - STEPS_PER_OCTAVE.bit_length())
    return -(-size // step) * step


def empty_batch(shape: RoundedShape, pad_id: int, device: torch.device) -> Batch:
    """A batch of padding, for `fill`."""
    size = shape.num_pairs, shape.length
    ids = [torch.full(size, pad_id, device=device) for _ in range(3)]
    return Batch(
        source_ids=ids[0],
        source_mask=torch.zeros(size, dtype=torch.bool, device=device),
        decoder_input_ids=ids[1],
        target_ids=ids[2],
        # Not those of the batches that are copied into it. 0 says that there is padding, so that all have a mask.
        num_source_tokens=0,
        num_target_tokens=0,
        pad_id=pad_id,
        sources_have_tokens=shape.sources_have_tokens,
    )


def fill(larger: Batch, batch: Batch) -> None:
    """Copy a batch into the first rows and columns of a larger one, on the same device; the rest becomes padding."""
    num_pairs = len(batch.target_ids)
    for into, what, rest in (
        (larger.source_ids, batch.source_ids, batch.pad_id),
        (larger.decoder_input_ids, batch.decoder_input_ids, batch.pad_id),
        (larger.target_ids, batch.target_ids, batch.pad_id),
        (larger.source_mask, batch.source_mask, False),
    ):
        into.fill_(rest)
        into[:num_pairs, : what.size(1)].copy_(what)
    # A softmax over no position at all would be NaN, so a row without a sentence reads its first [PAD].
    larger.source_mask[num_pairs:, :1].fill_(True)
