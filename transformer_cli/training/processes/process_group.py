"""The processes that train one model: sums, agreements and messages between them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor
from torch import distributed as dist

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
    own values back.
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
        return self._reduced(numbers, "SUM")

    def maxima(self, *numbers: int) -> list[int]:
        """Each number, the largest of all processes."""
        return self._reduced(numbers, "MAX")

    def any_of(self, *claims: bool) -> list[bool]:
        """For each claim, whether it is true in at least one process."""
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
        if self.is_alone:  # perhaps with a build of PyTorch that has no torch.distributed
            return list(numbers)
        values = torch.tensor(numbers, dtype=torch.int64)  # on the CPU: gloo
        self.together(lambda: dist.all_reduce(values, getattr(dist.ReduceOp, operation)))
        return values.tolist()


ALONE = Processes()
