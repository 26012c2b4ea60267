"""What becomes of the decoder's output: logits, or at once the loss of a batch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from transformer_cli.config.training import SmoothedOver
from transformer_cli.model.cpu import trains_on_cpu
from transformer_cli.model.cpu.fused_prediction import sum_loss_on_cpu
from transformer_cli.model.loss import LossSums, SmoothedLabels, sum_loss

Head = Callable[[nn.Linear, Tensor], Any]
"""A function of the output layer and of what it reads, (B, T, D)."""


def logits(output: nn.Linear, x: Tensor) -> Tensor:
    """(B, T, D) to (B, T, V)."""
    made: Tensor = output(x)
    return made


@dataclass(frozen=True, slots=True)
class LossHead:
    """The loss of the logits, as of `sum_loss`; where a CPU trains, logits of padding are never computed."""

    target_ids: Tensor  # (B, T) int64
    pad_id: int
    label_smoothing: float
    smoothed_over: SmoothedOver = "vocabulary"
    of_logits: Callable[..., LossSums] = sum_loss
    """`sum_loss`, or another function that computes the same; kernels for CPUs do not use it."""

    def __call__(self, output: nn.Linear, x: Tensor) -> LossSums:
        """See `Head`."""
        if trains_on_cpu(x):
            labels = SmoothedLabels.of(
                output.out_features, self.pad_id, self.label_smoothing, self.smoothed_over
            )
            return sum_loss_on_cpu(output, x, self.target_ids, labels)
        return self.of_logits(
            logits(output, x),
            self.target_ids,
            pad_id=self.pad_id,
            label_smoothing=self.label_smoothing,
            smoothed_over=self.smoothed_over,
        )
