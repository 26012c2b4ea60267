"""How many positions an exported model has; other programs read them from a table."""

from typing import TYPE_CHECKING

from transformer_cli.config import ModelConfig

if TYPE_CHECKING:
    from torch import Tensor, nn

MIN_POSITIONS = 1026
"""CTranslate2 reads 1,024 tokens by default and writes 256, as transformers.js does; beyond the table they stop with an error."""


def num_positions(config: ModelConfig) -> int:
    """The length of the longest source or target for which a model is meant.

    It is enough for the default limit of translations, `2 * source + 20`, and [SOS].
    """
    return config.max_length if config.positions == "learned" else 2 * config.max_length + 32


def position_table(config: ModelConfig, positions: "nn.Module", length: int) -> "Tensor":
    """(length, D): what is added to the embedding at each position.

    If positions are learned, each one after the last has the vector of the last: translations that long are poor, but
    no error.

    Args:
        config: of the model.
        positions: the module that adds them.
        length: at least `num_positions`.
    """
    import torch

    known = num_positions(config) if config.positions == "learned" else length
    vectors: Tensor = positions(torch.zeros(1, known, config.d_model))[0]
    return torch.cat([vectors, vectors[-1:].expand(length - known, -1)])
