"""The numbers that parameters start from."""

import math

import torch
from torch import nn

from transformer_cli.config import ModelConfig


@torch.no_grad()
def initialize(model: nn.Module, config: ModelConfig) -> None:
    """Draw the matrices anew as `config.init` says; vectors keep PyTorch's defaults."""
    if config.init == "pytorch":
        return
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            continue
        nn.init.xavier_uniform_(parameter)
        if config.init == "small" and name.endswith(("attention.output.weight", "down.weight")):
            num_layers = (
                config.encoder_layers if name.startswith("encoder") else config.decoder_layers
            )
            parameter /= math.sqrt(2 * num_layers)
