"""One update of the weights: micro-batches in, report out."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer_cli.data.batches.batch import Batch
from transformer_cli.model import LossSums, Transformer
from transformer_cli.runtime import seed_everything
from transformer_cli.training.objectives import Objective
from transformer_cli.training.optimization.optimizers import Optimizer
from transformer_cli.training.processes.gradients import GradientSums
from transformer_cli.training.processes.sharded_model import whole
from transformer_cli.training.processes.worker import Worker


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one update did, in all processes; the tensors stay on the device, so that no step waits for it."""

    objective: Tensor  # () label-smoothed loss, summed over target tokens, in nats
    negative_log_likelihood: Tensor  # () summed over target tokens, in nats; gives the perplexity
    gradient_norm: Tensor  # () before clipping
    is_finite: Tensor  # () bool; if False, weights and moments stayed as they were
    num_source_tokens: int
    num_target_tokens: int
    num_halvings: int = 0  # how often the batches were cut in two, because memory was too small
    # () bool, in float16 alone: the update was skipped, and a smaller scale of the gradient may help.
    is_scale_too_large: Tensor | None = None


def train_step(
    model: Transformer,
    optimizer: Optimizer,
    objective: Objective,
    micro_batches: Sequence[Batch],
    *,
    worker: Worker,
    clip_norm: float | None,
) -> StepReport:
    """Sum the gradients of all micro-batches, of all processes; divide once by their target tokens; update once.

    Target tokens include [EOS], not padding. If the gradient is not finite (NaN or infinity), the weights stay as
    they are; `training.max_skipped_in_a_row` says after how many such updates the loop stops.

    Args:
        model: in training mode, on the device of `worker`.
        optimizer: of this model, with the learning rate of this update.
        objective: what is minimised.
        micro_batches: the batches of this update that this process computes, on the CPU.
        worker: the memory of the model's device, which remembers how large a batch may be; recorded passes, if they are
            used; and the other processes.
        clip_norm: largest norm of the gradient over all parameters; None: no clipping.

    Source: Vaswani et al. 2017, section 5.
    """
    num_source_tokens, num_target_tokens = worker.processes.sums(*_num_tokens(micro_batches))
    seed_of_update = torch.initial_seed()
    gradients = GradientSums(model.parameters_by_gradient(), worker.processes)
    passes = _Passes(model, optimizer, objective, worker, gradients, num_target_tokens)

    def sum_gradients(batches: Sequence[Batch]) -> list[Tensor]:
        sums_of_batches: list[LossSums] = []
        passes.begin()
        for before, batch in zip([None, *batches], batches, strict=False):
            if before is None or batch.number != before.number:
                _seed_dropout(seed_of_update, batch.number)
            is_last = len(sums_of_batches) == len(batches) - 1
            sums_of_batches.append(passes.add(batch.to(worker.memory.device), is_last=is_last))
        return [torch.stack(parts).sum() for parts in zip(*sums_of_batches, strict=True)]

    own_losses, num_halvings = worker.memory.in_parts_that_fit(sum_gradients, micro_batches)
    losses = LossSums(*gradients.finish(own_losses))
    optimizer.unscale()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    gradient_norm = whole(nn.utils.clip_grad_norm_(parameters, clip_norm or float("inf")))
    is_finite = torch.isfinite(gradient_norm)
    # Without a target token the gradient is 0, but Adam's moments would still move the weights.
    if num_target_tokens:
        optimizer.step_if(is_finite)
    return StepReport(
        *losses,
        gradient_norm=gradient_norm,
        is_finite=is_finite,
        num_source_tokens=num_source_tokens,
        num_target_tokens=num_target_tokens,
        num_halvings=worker.processes.maxima(num_halvings)[0],
        is_scale_too_large=optimizer.scale.adapt(is_finite),
    )


@dataclass(frozen=True, slots=True)
class _Passes:
    """The forward and backward passes of one update, in this process."""

    model: Transformer
    optimizer: Optimizer
    objective: Objective
    worker: Worker
    gradients: GradientSums
    num_target_tokens: int  # of the whole update, in all processes

    def begin(self) -> None:
        """Begin the update, again if memory was too small for the attempt before."""
        if self.worker.recorded is None:
            self.optimizer.zero_grad()
        else:
            self.worker.recorded.begin()
        self.gradients.begin()

    def add(self, batch: Batch, *, is_last: bool) -> LossSums:
        """Add the gradients of a batch on the device; its sums have no gradient."""
        if self.worker.recorded is not None:
            return self.worker.recorded.add_gradients(batch, self._factor())
        sums = self.objective(self.model, batch)
        # Divide by the tokens of the whole update: a mean of means would overweight short batches.
        mean = self.optimizer.scale.scaled(sums.objective / max(self.num_target_tokens, 1))
        self.gradients.backward(mean, is_last=is_last)
        return LossSums(*(one.detach() for one in sums))

    def _factor(self) -> Tensor:
        one = self.optimizer.scale.scaled(torch.ones((), device=self.worker.memory.device))
        return one / max(self.num_target_tokens, 1)


def _num_tokens(batches: Sequence[Batch]) -> tuple[int, int]:
    """Real tokens: of the sources, of the targets."""
    sources = sum(batch.num_source_tokens for batch in batches)
    return sources, sum(batch.num_target_tokens for batch in batches)


def _seed_dropout(seed_of_update: int, number: int) -> None:
    """Seed with (seed of the update, number of the micro-batch), so that the number of processes does not matter."""
    if number == 0:
        torch.manual_seed(seed_of_update)
    else:
        seed_everything(seed_of_update, "micro-batch", number)
