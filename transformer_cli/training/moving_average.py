"""The exponential moving average of the weights: validation and translation use it; training uses the raw weights."""

import copy
from typing import Self

import torch
from torch import Tensor

from transformer_cli.checkpoint import Checkpoint
from transformer_cli.checkpoint.stored import RAW
from transformer_cli.config import TrainingConfig
from transformer_cli.model import Transformer
from transformer_cli.training.optimizers import Optimizer
from transformer_cli.training.processes.gradients import own_part, sharded_like


class MovingAverage:
    """A second model, whose weights follow those of the trained one: average += (1 - d) (weights - average).

    The average begins as a copy of the first weights. The decay d of update t is min(`decay`, (1 + t) / (10 + t)), so
    the first weights soon have little influence. d depends on the step only, so only the average itself is saved.

    Args:
        model: the model that is trained, on its device and not compiled yet.
        decay: share of the average that each update keeps, such as 0.999.

    Source: Polyak and Juditsky 1992 (averaging); the warm-up of d is that of TensorFlow's ExponentialMovingAverage
    with `num_updates`.
    """

    def __init__(self, model: Transformer, decay: float) -> None:
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False).eval()
        self._trained = model

    @classmethod
    def of(cls, model: Transformer, training: TrainingConfig) -> Self | None:
        """The average that a config asks for, or None."""
        return None if training.ema_decay is None else cls(model, training.ema_decay)

    @torch.no_grad()
    def update(self, step: int, is_finite: Tensor) -> None:
        """Move the average towards the weights after update `step`; a skipped update does not move it.

        Args:
            step: the number of the update, from 1 on.
            is_finite: () bool, False if the update was skipped; on an accelerator the CPU does not wait for it.
        """
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        weights, averages = (
            [own_part(parameter.detach()) for parameter in model.parameters()]
            for model in (self._trained, self.model)
        )
        if is_finite.device.type != "cpu":
            differences = torch._foreach_sub(weights, averages)
            torch._foreach_mul_(differences, share * is_finite)
            torch._foreach_add_(averages, list(differences))
        elif bool(is_finite):
            torch._foreach_lerp_(averages, weights, share)


def tensors_to_save(
    model: Transformer, optimizer: Optimizer, average: MovingAverage | None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The tensors of model.safetensors, for translation, and those of optimizer.safetensors, for resuming.

    With a moving average, the model's file holds the average, and the raw weights are part of the
    optimizer's state.
    """
    if average is None:
        return model.state_dict(), optimizer.state()
    return average.model.state_dict(), optimizer.state() | _raw(model)


def restore_tensors(
    checkpoint: Checkpoint, model: Transformer, optimizer: Optimizer, average: MovingAverage | None
) -> None:
    """Load the tensors that `tensors_to_save` returned for a checkpoint.

    Raises:
        DataError: the tensors are not those of this model, optimizer and average.
    """
    weights, moments = model.state_dict(), optimizer.expected_state()
    translating = sharded_like(checkpoint.model(weights), weights)
    if average is None:
        model.load_state_dict(translating)
        optimizer.restore(sharded_like(checkpoint.optimizer(moments), moments))
        return
    average.model.load_state_dict(translating)
    expected = moments | _raw(model)
    state = sharded_like(checkpoint.optimizer(expected), expected)
    model.load_state_dict({name: state.pop(name + RAW) for name in model.state_dict()})
    optimizer.restore(state)


def _raw(model: Transformer) -> dict[str, Tensor]:
    return {name + RAW: tensor for name, tensor in model.state_dict().items()}
