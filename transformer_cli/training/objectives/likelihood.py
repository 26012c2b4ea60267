"""The objective of Vaswani et al. 2017: cross-entropy with smoothed labels."""

from dataclasses import dataclass

from torch import nn

from transformer_cli.config.training import SmoothedOver
from transformer_cli.data.batches.batch import Batch
from transformer_cli.model import LossHead, LossSums
from transformer_cli.runtime import Machine
from transformer_cli.training.objectives.losses import Losses


@dataclass(frozen=True, slots=True)
class LabelSmoothedLikelihood:
    """Cross-entropy with smoothed labels.

    Source: Vaswani et al. 2017, section 5.4.
    """

    label_smoothing: float
    smoothed_over: SmoothedOver
    machine: Machine
    losses: Losses

    def __call__(self, model: nn.Module, batch: Batch) -> LossSums:
        """See `Objective`."""
        head = LossHead(
            batch.target_ids,
            batch.pad_id,
            self.label_smoothing,
            self.smoothed_over,
            self.losses.sum_loss,
        )
        with self.machine.autocast():
            sums: LossSums = model(
                batch.source_ids, batch.padding_mask, batch.decoder_input_ids, head
            )
        return sums
