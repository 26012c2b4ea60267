"""The interface of training objectives: a model and a batch in, sums of losses out."""

from typing import Protocol

from torch import nn

from transformer_cli.data.batches.batch import Batch
from transformer_cli.model import LossSums


class Objective(Protocol):
    """What training minimises. It runs the model itself, once or as often as it needs to."""

    def __call__(self, model: nn.Module, batch: Batch) -> LossSums:
        """Sums over the target tokens of a batch that lies on the model's device.

        The sums are not divided: the caller divides by the target tokens of the whole update.
        """
