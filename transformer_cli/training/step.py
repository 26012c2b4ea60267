"""One update of the weights: micro-batches in, report out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer_cli.data.updates import Batch
from transformer_cli.model import LossSums, Transformer
from transformer_cli.training.objectives import Objective
from transformer_cli.training.optimizers import Optimizer
from transformer_cli.training.processes.gradients import whole
from transformer_cli.training.worker import Worker


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
        worker: the machine, its memory, and the processes that train together.
        clip_norm: largest norm of the gradient over all parameters; None: no clipping.

    Source: Vaswani et al. 2017, section 5.
    """
    num_source_tokens, num_target_tokens = worker.processes.sums(
        sum(batch.num_source_tokens for batch in micro_batches),
        sum(batch.num_target_tokens for batch in micro_batches),
    )

    def sum_gradients(batches: Iterable[Batch]) -> list[LossSums]:
        optimizer.zero_grad()
        losses = []
        for batch in batches:
            with worker.machine.autocast():
                sums = objective(model, batch)
            # Divide by the tokens of the whole update: a mean of means would overweight short batches.
            loss = optimizer.scale.scaled(sums.objective / max(num_target_tokens, 1))
            loss.backward()
            losses.append(LossSums(*(one.detach() for one in sums)))
        return losses

    losses, num_halvings = worker.summed(sum_gradients, micro_batches, num_target_tokens)
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
        num_halvings=num_halvings,
        is_scale_too_large=optimizer.scale.adapt(is_finite),
    )
