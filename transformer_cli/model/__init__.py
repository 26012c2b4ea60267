"""The Transformer as PyTorch modules; they know tensors only, no text and no files."""

from transformer_cli.model.loss import LossSums as LossSums
from transformer_cli.model.loss import sum_loss as sum_loss
from transformer_cli.model.prediction import LossHead as LossHead
from transformer_cli.model.transformer import Transformer as Transformer
