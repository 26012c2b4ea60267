"""The memory that a model needs, computed before it is built."""

import torch

from transformer_cli.config import ModelConfig
from transformer_cli.model.transformer import Transformer


def parameter_bytes(config: ModelConfig, source_vocab_size: int, target_vocab_size: int) -> int:
    """The bytes of all parameters; nothing is allocated, and no random number is drawn."""
    with torch.device("meta"):
        model = Transformer(config, source_vocab_size, target_vocab_size)
    return sum(parameter.nbytes for parameter in model.parameters())
