"""What stands around an update in one process: its machine and memory, dropout's seeds, and the processes that train together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from transformer_cli.acceleration.recorded_passes import RecordedPasses, recorder_on
from transformer_cli.config import Config
from transformer_cli.data.updates import Batch
from transformer_cli.model import LossSums, Transformer
from transformer_cli.process.device import Machine, seed_everything
from transformer_cli.process.errors import TryAgainError, is_out_of_memory
from transformer_cli.training.objectives import Objective
from transformer_cli.training.optimizers import Optimizer
from transformer_cli.training.processes.gradients import GradientSums
from transformer_cli.training.processes.process_group import ALONE, Processes

SumGradients = Callable[[Iterable[Batch]], list[LossSums]]
"""Computes the gradients of batches from the beginning, and returns the losses of each batch, without a gradient."""


@dataclass(frozen=True, slots=True)
class Worker:
    """The machine of this process and its memory, the processes that train together with it, and its recordings."""

    machine: Machine
    memory: "DeviceMemory"
    gradients: GradientSums
    recorded: RecordedPasses | None = None
    """With `runtime.cuda_graphs`."""

    @classmethod
    def of(
        cls,
        model: Transformer,
        machine: Machine,
        processes: Processes = ALONE,
        *,
        may_cut: bool = True,
        recorded: RecordedPasses | None = None,
    ) -> "Worker":
        """The worker for the training of one model, which lies on the device of the machine already.

        Args:
            model: is trained.
            machine: that of this process.
            processes: those that train together.
            may_cut: see `DeviceMemory`.
            recorded: see `Worker`.
        """
        gradients = GradientSums(model.parameters_by_gradient(), processes)
        return cls(machine, DeviceMemory(may_cut), gradients, recorded)

    @property
    def processes(self) -> Processes:
        """The processes that train together."""
        return self.gradients.processes

    def summed(
        self, sum_gradients: SumGradients, micro_batches: Sequence[Batch], num_target_tokens: int
    ) -> tuple[LossSums, int]:
        """Sum gradients and losses over the micro-batches of all processes.

        Args:
            sum_gradients: of this process; it is called again with halves of the batches if memory is too small, and not
                at all if its passes are recorded: then the recordings are replayed.
            micro_batches: of this process, on the CPU.
            num_target_tokens: of the whole update.

        Returns:
            The sums of the losses, and how often the batches were cut in two.

        Raises:
            TryAgainError: memory cannot hold a single sentence; or a process has ended.
        """
        if self.recorded is not None:
            sum_gradients = partial(
                self.recorded.sum_gradients, num_target_tokens=num_target_tokens
            )
        seed_of_update = torch.initial_seed()

        def attempt(batches: Sequence[Batch]) -> list[LossSums]:
            self.gradients.begin(len(batches))
            seeded = with_seeds_of_dropout(batches, seed_of_update)
            return sum_gradients(batch.to(self.machine.device) for batch in seeded)

        losses, num_halvings = self.memory.in_parts_that_fit(attempt, micro_batches)
        of_process = [torch.stack(parts).sum() for parts in zip(*losses, strict=True)]
        sums = LossSums(*self.gradients.finish(of_process))
        return sums, self.processes.maxima(num_halvings)[0]


def worker_of(
    config: Config,
    model: Transformer,
    optimizer: Optimizer,
    objective: Objective,
    machine: Machine,
    processes: Processes,
) -> Worker:
    """The worker that a config asks for; arguments as in `train_step` and `Worker.of`."""
    recorded = None
    if config.runtime.cuda_graphs:
        record = recorder_on(machine.device)
        recorded = RecordedPasses(model, objective, machine, record, scaled=optimizer.scale.scaled)
    may_cut = config.runtime.sharding == "none"
    return Worker.of(model, machine, processes, may_cut=may_cut, recorded=recorded)


def with_seeds_of_dropout(batches: Iterable[Batch], seed_of_update: int) -> Iterator[Batch]:
    """Each batch; before the first part of a micro-batch, dropout is seeded.

    The seed depends on the update and the number of the micro-batch, so the number of processes does not matter.
    """
    number = None
    for batch in batches:
        if batch.number == number:
            pass  # the second half goes on with the random numbers of the first
        elif batch.number == 0:
            torch.manual_seed(seed_of_update)
        else:
            seed_everything(seed_of_update, "micro-batch", batch.number)
        number = batch.number
        yield batch


@dataclass(slots=True)
class DeviceMemory:
    """The memory of the device on which a session trains.

    An update in parts has the tokens, the losses and the gradient of the whole update, except for rounding,
    because sums are divided by the tokens of all parts. With dropout it is another update: each part draws
    masks of its own.

    The size that fits is remembered for one session and is not saved: a resumed run may have more memory. So a
    run whose memory was too small cannot be repeated bit for bit.
    """

    may_cut: bool = True
    """False if the processes exchange weights during an update: then all must run the same number of batches."""
    max_cells: int | None = None
    """The largest batch that fitted after a larger one did not, as `Batch.num_cells`; None: all batches fitted."""

    def in_parts_that_fit(
        self, work: Callable[[Sequence[Batch]], list[LossSums]], batches: Sequence[Batch]
    ) -> tuple[list[LossSums], int]:
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
