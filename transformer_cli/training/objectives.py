"""Training objectives: a model and a batch in, sums of losses out."""

from dataclasses import dataclass
from typing import Protocol

from torch import nn

from transformer_cli.config import TrainingConfig
from transformer_cli.config.training import SmoothedOver
from transformer_cli.data.batches.batch import Batch
from transformer_cli.model import LossSums, sum_loss
from transformer_cli.runtime import Machine


class Objective(Protocol):
    """What training minimises. It runs the model itself, once or as often as it needs to."""

    def __call__(self, model: nn.Module, batch: Batch) -> LossSums:
        """Sums over the target tokens of a batch that lies on the model's device.

        The sums are not divided: the caller divides by the target tokens of the whole update.
        """


@dataclass(frozen=True, slots=True)
class LabelSmoothedLikelihood:
    """Cross-entropy with smoothed labels.

    Source: Vaswani et al. 2017, section 5.4.
    """

    label_smoothing: float
    smoothed_over: SmoothedOver
    machine: Machine

    def __call__(self, model: nn.Module, batch: Batch) -> LossSums:
        """See `Objective`."""
        with self.machine.autocast():
            logits = model(
                batch.source_ids, batch.padding_mask, batch.decoder_input_ids
            )  # (B, T, V)
        return sum_loss(
            logits,
            batch.target_ids,
            pad_id=batch.pad_id,
            label_smoothing=self.label_smoothing,
            smoothed_over=self.smoothed_over,
        )


def build_objective(training: TrainingConfig, machine: Machine) -> Objective:
    """The objective that a config asks for."""
    return LabelSmoothedLikelihood(training.label_smoothing, training.smoothed_over, machine)
