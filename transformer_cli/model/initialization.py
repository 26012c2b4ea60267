"""Initial values of the parameters."""

import math

import torch
from torch import nn

from transformer_cli.config import ModelConfig


class Embedding(nn.Embedding):
    """A table of embeddings, (V, D).

    A table on the meta device has a shape but no numbers, so nothing is drawn for it. PyTorch would import its compiler for
    that, which takes 1.5 seconds.
    """

    def reset_parameters(self) -> None:
        """Draw the table from N(0, 1)."""
        if not self.weight.is_meta:
            super().reset_parameters()


@torch.no_grad()
def initialize(model: nn.Module, config: ModelConfig) -> None:
    """Initialise all matrices and embeddings by `config.init`; gains and biases keep PyTorch's defaults.

    Source: Glorot and Bengio 2010; for deep stacks Radford et al. 2019, section 2.3.
    """
    if config.init == "pytorch":
        return
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            continue
        nn.init.xavier_uniform_(parameter)
        if config.init == "small" and name.endswith(("attention.output.weight", "down.weight")):
            # The residual connections of a stack add up this many outputs; their sum keeps its variance.
            is_encoder = name.startswith("encoder.")
            num_added = 2 * config.encoder_layers if is_encoder else 3 * config.decoder_layers
            parameter.div_(math.sqrt(num_added))
