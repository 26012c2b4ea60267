"""One update of the weights: micro-batches in, report out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_cli.config import TrainingConfig
from transformer_cli.data.batches.batch import Batch
from transformer_cli.errors import TryAgainError, is_out_of_memory
from transformer_cli.model.loss import LossSums, sum_loss
from transformer_cli.runtime import Machine


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one update did; the tensors stay on the device, so that no step waits for it."""

    objective: Tensor  # () label-smoothed loss, summed over target tokens, in nats
    negative_log_likelihood: Tensor  # () what perplexity is made of, summed, in nats
    gradient_norm: Tensor  # () before clipping
    is_finite: Tensor  # () bool; where it is not, weights and moments stayed as they were
    num_source_tokens: int
    num_target_tokens: int
    num_halvings: int = 0  # how often the batches were cut in two, for want of memory


def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    micro_batches: Sequence[Batch],
    machine: Machine,
    training: TrainingConfig,
) -> StepReport:
    """Sum the gradients of all micro-batches, divide once by their target tokens, update once.

    Source: Vaswani et al. 2017, section 5.
    """
    num_target_tokens = sum(batch.num_target_tokens for batch in micro_batches)

    def sum_gradients(batches: Sequence[Batch]) -> list[LossSums]:
        sums_of_batches: list[LossSums] = []
        optimizer.zero_grad(set_to_none=True)
        for host_batch in batches:
            batch = host_batch.to(machine.device)
            with machine.autocast():
                logits = model(
                    batch.source_ids, batch.source_mask, batch.decoder_input_ids
                )  # (B, T, V)
            sums = sum_loss(
                logits,
                batch.target_ids,
                pad_id=batch.pad_id,
                label_smoothing=training.label_smoothing,
                smoothed_over=training.smoothed_over,
            )
            # Divide by the tokens of the whole update: a mean of means would overweight short batches.
            (sums.objective / max(num_target_tokens, 1)).backward()
            sums_of_batches.append(LossSums(*(one.detach() for one in sums)))
        return sums_of_batches

    sums_of_batches, num_halvings = _in_parts_that_fit(sum_gradients, micro_batches)
    limit = float("inf") if training.clip_norm is None else training.clip_norm
    gradient_norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
    is_finite = torch.isfinite(gradient_norm)
    if num_target_tokens:  # else Adam would still move the weights, by what it remembers
        _update_unless(~is_finite, optimizer)
    return StepReport(
        objective=torch.stack([sums.objective for sums in sums_of_batches]).sum(),
        negative_log_likelihood=torch.stack(
            [sums.negative_log_likelihood for sums in sums_of_batches]
        ).sum(),
        gradient_norm=gradient_norm,
        is_finite=is_finite,
        num_source_tokens=sum(batch.num_source_tokens for batch in micro_batches),
        num_target_tokens=num_target_tokens,
        num_halvings=num_halvings,
    )


def _in_parts_that_fit(
    work: Callable[[Sequence[Batch]], list[LossSums]], batches: Sequence[Batch]
) -> tuple[list[LossSums], int]:
    """Do the work; where memory does not suffice, from the start again with each batch in two halves.

    Sums are divided once, by the tokens of the whole update, so that the update stays the same.
    """
    num_halvings = 0
    while True:
        try:
            return work(batches), num_halvings
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            batches = _halves_of_all(batches, error)
            num_halvings += 1
        torch.cuda.empty_cache()  # only here is the failed attempt, with all its tensors, forgotten


def _halves_of_all(batches: Sequence[Batch], error: Exception) -> list[Batch]:
    halves = [half for batch in batches for half in batch.halves()]
    if len(halves) == len(batches):
        raise TryAgainError(
            "out of memory, even with a single sentence at a time",
            hint="lower training.batch_tokens or model.max_length, or close other programs",
        ) from error
    return halves


def _update_unless(is_bad: Tensor, optimizer: torch.optim.Optimizer) -> None:
    """Fused Adam leaves weights, moments and step counts alone where `found_inf` is 1.

    That is how gradient scalers talk to it; the decision is taken on the device, without a wait.
    """
    fused: Any = optimizer
    fused.grad_scale = None
    fused.found_inf = is_bad.to(torch.float32)
    optimizer.step()
