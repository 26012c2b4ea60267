"""Training objectives: a model and a batch in, sums of losses out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from transformer_cli.acceleration import accelerated_loss
from transformer_cli.config import TrainingConfig
from transformer_cli.data.updates import Batch
from transformer_cli.model import LossSums, SmoothedLabels, Transformer
from transformer_cli.model.loss import likelihood_loss, r_drop_loss
from transformer_cli.text import Tokenizer


class Objective(Protocol):
    """What training minimises. It runs the model itself, once or as often as it needs to."""

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """Sums over the target tokens of a batch that lies on the model's device.

        The sums are not divided: the caller divides by the target tokens of the whole update.
        """


def build_objective(
    training: TrainingConfig,
    vocab_size: int,
    device: torch.device,
    *,
    is_compiled: bool = False,
) -> Objective:
    """The objective that a config asks for.

    Args:
        training: names the objective and its settings.
        vocab_size: of the target.
        device: of the model; its fastest form of the loss is used.
        is_compiled: whether torch.compile makes kernels for the losses.
    """
    labels = SmoothedLabels.of(
        vocab_size, Tokenizer.pad_id, training.label_smoothing, training.smoothed_over
    )
    if training.r_drop is not None:
        loss = accelerated_loss(r_drop_loss, device, is_compiled=is_compiled)
        return RDrop(labels, training.r_drop, loss)
    loss = accelerated_loss(likelihood_loss, device, is_compiled=is_compiled)
    return LabelSmoothedLikelihood(labels, loss)


@dataclass(frozen=True, slots=True)
class LabelSmoothedLikelihood:
    """Cross-entropy with smoothed labels.

    Source: Vaswani et al. 2017, section 5.4.
    """

    labels: SmoothedLabels
    loss: Callable[..., LossSums] = likelihood_loss

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """See `Objective`."""
        decoded = model.decoded(batch.source_ids, batch.padding_mask, batch.decoder_input_ids)
        return self.loss(model.output, decoded, batch.target_ids, self.labels)


@dataclass(frozen=True, slots=True)
class RDrop:
    """L(P) + L(Q) + alpha / 2 (KL(P || Q) + KL(Q || P)): a batch runs twice, with different dropout, and gives two predictions P and Q.

    L is the cross-entropy with smoothed labels; the sum is computed by `r_drop_loss` of model/loss.py. Both runs are one
    forward pass over a batch that holds each row twice: dropout draws another mask for the copy. The gradient is about
    twice that of one run; the reported likelihood is the mean of both.

    Source: Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", section 2.1.
    """

    labels: SmoothedLabels
    alpha: float
    loss: Callable[..., LossSums] = r_drop_loss

    def __call__(self, model: Transformer, batch: Batch) -> LossSums:
        """See `Objective`."""
        mask = batch.padding_mask
        decoded = model.decoded(
            _twice(batch.source_ids),
            None if mask is None else _twice(mask),
            _twice(batch.decoder_input_ids),
        )
        return self.loss(model.output, decoded, batch.target_ids, self.labels, self.alpha)


def _twice(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows])
