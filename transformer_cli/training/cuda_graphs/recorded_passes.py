"""Forward and backward passes that are recorded once for each shape of batch, and then replayed."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_cli.data.batches.batch import Batch
from transformer_cli.model import LossSums, Transformer
from transformer_cli.training.cuda_graphs.rounded_batch import (
    RoundedShape,
    empty_batch,
    fill,
)
from transformer_cli.training.objectives import Objective

Work = Callable[[], None]
Record = Callable[[Work], Work]
"""A function that runs some work, records what the device does for it, and returns a function that repeats this without Python."""

MOST_RECORDINGS = 128
"""Each takes memory. Batches of further shapes run without one, and give the same results."""


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
        record: how a pass is recorded; `capture.py` does it on CUDA devices.

    Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs.
    """

    def __init__(self, model: Transformer, objective: Objective, record: Record) -> None:
        self._model = model
        self._objective = objective
        self._record = record
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

    def begin(self) -> None:
        """Begin an update: all gradients are 0."""
        torch._foreach_zero_(self._gradients)
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient

    def add_gradients(self, batch: Batch, factor: Tensor) -> LossSums:
        """Add the gradients of the objective of a batch, times a factor.

        Args:
            batch: on the device of the model.
            factor: (), of the objective.

        Returns:
            The sums of the batch, without a gradient.
        """
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
            sums = self._objective(self._model, own_batch)
            gradients = torch.autograd.grad(
                sums.objective,
                self._parameters,
                own_factor,
                allow_unused=True,
                materialize_grads=True,
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
