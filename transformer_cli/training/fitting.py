"""Training in the available memory: batches are cut in parts, and a model that is too large is refused."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from transformer_cli.config import Config
from transformer_cli.data.batches.batch import Batch
from transformer_cli.errors import TryAgainError, is_out_of_memory
from transformer_cli.memory import require_memory
from transformer_cli.model import Transformer
from transformer_cli.torchrun import read_launch
from transformer_cli.training.optimization.optimizers import Optimizer

Result = TypeVar("Result")

_LOWER = "lower model.d_model, model.d_ff, the number of layers or tokenizer.vocab_size, or use a machine with more memory"
_PARTS = "if a GPU can hold the weights alone, share the training among several: start a process for each with torchrun, and --set runtime.sharding=full"
_MORE_PARTS = "if a GPU can hold the weights alone, start more processes with torchrun, each with a GPU of its own"


@dataclass(slots=True)
class DeviceMemory:
    """The memory of the device on which a session trains.

    An update in parts has the tokens, the losses and the gradient of the whole update, except for rounding,
    because sums are divided by the tokens of all parts. With dropout it is another update: each part draws
    masks of its own.

    The size that fits is remembered for one session and is not saved: a resumed run may have more memory. So a
    run whose memory was too small cannot be repeated bit for bit.
    """

    device: torch.device
    may_cut: bool = True
    """False if the processes exchange weights during an update: then all must run the same number of batches."""
    max_cells: int | None = None
    """The largest batch that fitted after a larger one did not, as `Batch.num_cells`; None: all batches fitted."""

    def in_parts_that_fit(
        self, work: Callable[[Sequence[Batch]], Result], batches: Sequence[Batch]
    ) -> tuple[Result, int]:
        """Do the work; when memory is too small, start again with each batch cut in two halves.

        Batches that are larger than `max_cells` are cut before the first attempt.

        Returns:
            The result of the work, and how often batches were cut in two.

        Raises:
            TryAgainError: memory cannot hold a single sentence.
        """
        batches, num_halvings = self._cut_beforehand(batches)
        has_failed = False
        while True:
            try:
                result = work(batches)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if not self.may_cut:
                    raise _out_of_memory(
                        "and with runtime.sharding: full, batches cannot be cut in halves"
                    ) from error
                batches = _halves_of_all(batches, error)
                num_halvings += 1
                has_failed = True
            else:
                if has_failed:
                    self.max_cells = max(batch.num_cells for batch in batches)
                return result, num_halvings
            # After the `except` block the exception is gone, and with it the last reference to the tensors.
            torch.cuda.empty_cache()

    def _cut_beforehand(self, batches: Sequence[Batch]) -> tuple[Sequence[Batch], int]:
        num_halvings = 0
        while any(self._is_too_large(batch) for batch in batches):
            batches = [
                part
                for batch in batches
                for part in (batch.halves() if self._is_too_large(batch) else [batch])
            ]
            num_halvings += 1
        return batches, num_halvings

    def _is_too_large(self, batch: Batch) -> bool:
        is_one_sentence = len(batch.target_ids) <= 1
        return (
            self.max_cells is not None and batch.num_cells > self.max_cells and not is_one_sentence
        )


def _halves_of_all(batches: Sequence[Batch], error: Exception) -> list[Batch]:
    halves = [half for batch in batches for half in batch.halves()]
    if len(halves) == len(batches):
        raise _out_of_memory("even with a single sentence at a time") from error
    return halves


def _out_of_memory(when: str) -> TryAgainError:
    return TryAgainError(
        f"out of memory, {when}",
        hint="lower training.batch_tokens or model.max_length, or close other programs",
    )


def require_memory_for_training(
    config: Config, vocab_sizes: tuple[int, int], device: torch.device
) -> None:
    """Refuse a model whose training cannot fit into memory: parameters, gradients and the optimizer's state.

    Activations need further memory; how much depends on the batches, which can be cut. With
    `runtime.sharding: full`, each process holds a part of all these, and all weights during a validation. The
    processes of a machine share the memory of its CPU.

    Raises:
        TryAgainError: they do not fit; the message has the numbers, and nothing was allocated.
    """
    with torch.device("meta"):
        model = Transformer(config.model, *vocab_sizes)
    of_parameters = sum(parameter.nbytes for parameter in model.parameters())
    average = 0 if config.training.ema_decay is None else of_parameters
    with_average = " and the moving average" if average else ""
    needed = 2 * of_parameters + state_bytes(Optimizer(model, config.training)) + average
    launch, is_sharded = read_launch(), config.runtime.sharding == "full"
    is_sending = launch.size > 1 and not is_sharded
    needed += of_parameters * is_sending
    built, built_bytes = f"model: {of_parameters // 4:,} parameters", of_parameters
    trained = f"{built} with gradients and the state of {config.training.optimizer}{with_average}"
    trained += ", and the gradients that are sent" * is_sending
    # A recorded pass makes gradients of its own; while it is recorded, those of the update are kept aside.
    needed += 2 * of_parameters * config.runtime.cuda_graphs
    trained += ", and the gradients of a recorded pass" * config.runtime.cuda_graphs
    if is_sharded:
        # The average, too, is made on the CPU, and then cut.
        built, built_bytes = built + with_average, of_parameters + average
        trained += f", cut into {launch.size} parts, and all weights for a validation"
        needed = math.ceil(needed / launch.size) + of_parameters
    # The model is built on the CPU.
    places = (torch.device("cpu"), built_bytes, built), (device, needed, trained)
    for place, num_bytes, what in places:
        hint = _LOWER
        if place.type == "cuda":
            hint = f"{_MORE_PARTS if is_sharded else _PARTS}; or {_LOWER}"
        elif launch.local_size > 1:
            num_bytes *= launch.local_size
            what += f", for all {launch.local_size} processes on this machine"
            hint = f"start fewer processes on this machine; or {_LOWER}"
        require_memory(num_bytes, place, what, hint=hint)


def state_bytes(optimizer: Optimizer) -> int:
    """The bytes of the state that an optimizer will have after its first update."""
    return sum(tensor.nbytes for tensor in optimizer.expected_state().values())
