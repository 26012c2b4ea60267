"""One update of the weights: micro-batches in, report out."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer_cli.data.batches.batch import Batch
from transformer_cli.model import LossSums
from transformer_cli.training.fitting import DeviceMemory
from transformer_cli.training.objectives import Objective
from transformer_cli.training.optimizers import Optimizer


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one update did; the tensors stay on the device, so that no step waits for it."""

    objective: Tensor  # () label-smoothed loss, summed over target tokens, in nats
    negative_log_likelihood: Tensor  # () summed over target tokens, in nats; gives the perplexity
    gradient_norm: Tensor  # () before clipping
    is_finite: Tensor  # () bool; if False, weights and moments stayed as they were
    num_source_tokens: int
    num_target_tokens: int
    num_halvings: int = 0  # how often the batches were cut in two, because memory was too small


def train_step(
    model: nn.Module,
    optimizer: Optimizer,
    objective: Objective,
    micro_batches: Sequence[Batch],
    *,
    memory: DeviceMemory,
    clip_norm: float | None,
) -> StepReport:
    """Sum the gradients of all micro-batches, divide once by their target tokens, update once.

    Target tokens include [EOS], not padding. If the gradient is not finite (NaN or infinity), the
    weights stay as they are. The loop counts such updates, and stops the training after
    `training.max_skipped_in_a_row` of them in a row (loop.py).

    Args:
        model: in training mode, on `device`.
        optimizer: of this model, with the learning rate of this update.
        objective: what is minimised.
        micro_batches: the batches of this update, on the CPU.
        memory: the memory of the model's device; it remembers how large a batch may be.
        clip_norm: largest norm of the gradient over all parameters; None: no clipping.

    Source: Vaswani et al. 2017, section 5.
    """
    num_target_tokens = sum(batch.num_target_tokens for batch in micro_batches)

    def sum_gradients(batches: Sequence[Batch]) -> list[LossSums]:
        sums_of_batches: list[LossSums] = []
        optimizer.zero_grad()
        for batch in batches:
            sums = objective(model, batch.to(memory.device))
            # Divide by the tokens of the whole update: a mean of means would overweight short batches.
            (sums.objective / max(num_target_tokens, 1)).backward()
            sums_of_batches.append(LossSums(*(one.detach() for one in sums)))
        return sums_of_batches

    sums_of_batches, num_halvings = memory.in_parts_that_fit(sum_gradients, micro_batches)
    limit = float("inf") if clip_norm is None else clip_norm
    gradient_norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
    is_finite = torch.isfinite(gradient_norm)
    # Without a target token the gradient is 0, but Adam's moments would still move the weights.
    if num_target_tokens:
        optimizer.step_if(is_finite)
    objectives, likelihoods = zip(*sums_of_batches, strict=True)
    return StepReport(
        objective=torch.stack(objectives).sum(),
        negative_log_likelihood=torch.stack(likelihoods).sum(),
        gradient_norm=gradient_norm,
        is_finite=is_finite,
        num_source_tokens=sum(batch.num_source_tokens for batch in micro_batches),
        num_target_tokens=num_target_tokens,
        num_halvings=num_halvings,
    )
