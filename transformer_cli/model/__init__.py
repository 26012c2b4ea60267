"""The Transformer of the paper as plain PyTorch modules; they know tensors only: no text, no files, no device.

What computes the same faster on a machine stands in `acceleration/`.
"""

from transformer_cli.model.loss import LossSums as LossSums
from transformer_cli.model.loss import SmoothedLabels as SmoothedLabels
from transformer_cli.model.loss import sum_loss as sum_loss
from transformer_cli.model.transformer import Transformer as Transformer
