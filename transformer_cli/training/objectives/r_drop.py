"""R-Drop: each batch runs twice with different dropout, and the loss also contains how far both predictions differ."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer_cli.config.training import SmoothedOver
from transformer_cli.data.batches.batch import Batch
from transformer_cli.model import LossSums
from transformer_cli.model.cpu import trains_on_cpu
from transformer_cli.model.cpu.fused_twins import sum_twin_loss_on_cpu
from transformer_cli.model.loss import SmoothedLabels
from transformer_cli.model.prediction import logits
from transformer_cli.runtime import Machine
from transformer_cli.training.objectives.losses import PLAIN, Losses


@dataclass(frozen=True, slots=True)
class RDrop:
    """The smoothed cross-entropy of two runs of a batch, plus alpha / 2 times their symmetric KL divergence.

    Both runs are one forward pass over a batch that holds each row twice: dropout draws another mask for the copy.
    The objective is the sum of both cross-entropies, as in the paper, so its gradient is about twice
    that of one run; the reported likelihood is the mean of both.

    Source: Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", section 2.1.
    """

    alpha: float
    label_smoothing: float
    smoothed_over: SmoothedOver
    machine: Machine
    losses: Losses

    def __call__(self, model: nn.Module, batch: Batch) -> LossSums:
        """See `Objective`."""
        mask = batch.padding_mask
        head = TwinLossHead(
            batch.target_ids,
            batch.pad_id,
            self.label_smoothing,
            self.smoothed_over,
            self.alpha,
            self.losses,
        )
        with self.machine.autocast():
            sums: LossSums = model(
                _twice(batch.source_ids),
                None if mask is None else _twice(mask),
                _twice(batch.decoder_input_ids),
                head,
            )
        return sums


@dataclass(frozen=True, slots=True)
class TwinLossHead:
    """The objective of R-Drop; where a CPU trains, logits of padding are never computed."""

    target_ids: Tensor  # (B, T) int64
    pad_id: int
    label_smoothing: float
    smoothed_over: SmoothedOver
    alpha: float
    losses: Losses = PLAIN

    def __call__(self, output: nn.Linear, x: Tensor) -> LossSums:
        """See `Head`; x is (2 B, T, D), the rows of the first prediction before those of the second."""
        if trains_on_cpu(x):
            labels = SmoothedLabels.of(
                output.out_features, self.pad_id, self.label_smoothing, self.smoothed_over
            )
            return sum_twin_loss_on_cpu(output, x, self.target_ids, labels, self.alpha)
        scores = logits(output, x)  # (2 B, T, V)
        sums = self.losses.sum_loss(
            scores,
            _twice(self.target_ids),
            pad_id=self.pad_id,
            label_smoothing=self.label_smoothing,
            smoothed_over=self.smoothed_over,
        )
        first, second = scores.chunk(2)
        divergence = self.losses.symmetric_divergence(first, second, self.target_ids != self.pad_id)
        return LossSums(
            sums.objective + 0.5 * self.alpha * divergence, 0.5 * sums.negative_log_likelihood
        )


def _twice(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows])
