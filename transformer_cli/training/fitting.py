"""Training in the available memory: batches are cut in parts, and a model that is too large is refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from transformer_cli.config import ModelConfig
from transformer_cli.data.batches.batch import Batch
from transformer_cli.errors import TryAgainError, is_out_of_memory
from transformer_cli.memory import require_memory
from transformer_cli.model.size import parameter_bytes

Result = TypeVar("Result")


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
        raise TryAgainError(
            "out of memory, even with a single sentence at a time",
            hint="lower training.batch_tokens or model.max_length, or close other programs",
        ) from error
    return halves


def require_memory_for_training(
    config: ModelConfig, vocab_sizes: tuple[int, int], device: torch.device
) -> None:
    """Refuse a model whose training cannot fit into memory: parameters, gradients and Adam's two moments.

    Activations need further memory; how much depends on the batches, which can be cut.

    Raises:
        TryAgainError: they do not fit; the message has the numbers, and nothing was allocated.
    """
    of_parameters = parameter_bytes(config, *vocab_sizes)
    for place, copies in ((torch.device("cpu"), 1), (device, 4)):  # the model is built on the CPU
        require_memory(
            copies * of_parameters,
            place,
            f"model: {of_parameters // 4:,} parameters with gradients and the two moments of Adam"
            if copies > 1
            else f"model: {of_parameters // 4:,} parameters",
            hint="lower model.d_model, model.d_ff, the number of layers or tokenizer.vocab_size, or use a machine with more memory",
        )
