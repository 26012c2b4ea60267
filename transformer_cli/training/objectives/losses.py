"""The functions of logits that objectives add up, in two forms that compute the same."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from transformer_cli.model import LossSums, sum_loss
from transformer_cli.model.gpu.compiled_divergence import compiled_symmetric_divergence
from transformer_cli.model.gpu.compiled_loss import compiled_sum_loss
from transformer_cli.training.objectives.divergence import symmetric_divergence


class Losses(NamedTuple):
    """Functions of logits."""

    sum_loss: Callable[..., LossSums]
    symmetric_divergence: Callable[[Tensor, Tensor, Tensor], Tensor]


PLAIN = Losses(sum_loss, symmetric_divergence)
COMPILED = Losses(compiled_sum_loss, compiled_symmetric_divergence)
