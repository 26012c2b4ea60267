"""Cross-attention weights: how strongly each target position attends to each source position, for each layer."""

from collections.abc import Iterator
from typing import NamedTuple

from torch import Tensor

from transformer_cli.model.layers import DecoderLayer
from transformer_cli.model.transformer import Transformer

# Garg et al. measured decoders of six layers; in shallower ones, the last layer aligned best in our measurements
# (docs/experiments.md).
_DEEP_LAYERS = 6


class Attended(NamedTuple):
    """What one layer of the decoder makes of its input, and the weights of its cross-attention."""

    x: Tensor
    """(B, T, D): the output of the layer."""
    weights: Tensor
    """(B, H, T, S): row t holds the weights with which position t read the source; they sum to 1."""


def attended_layers(
    model: Transformer, decoder_input_ids: Tensor, memory: Tensor, source_mask: Tensor | None
) -> Iterator[Attended]:
    """Run the decoder layer by layer; the model itself is not changed, so several threads may do this.

    Args:
        model: in eval mode, because dropout would change the numbers.
        decoder_input_ids: (B, T) int64, as in `Transformer.forward`.
        memory: (B, S, D), the output of the encoder.
        source_mask: (B, S) bool; None: there is no padding.
    """
    if model.training:
        raise ValueError("the model is in training mode; call model.eval() first")
    x = model.embed_target(decoder_input_ids)
    masks = model.target_mask(x), model.source_mask(source_mask, x)
    rotation = model.rotation(x)
    for layer in model.decoder.layers:
        assert isinstance(layer, DecoderLayer)
        weights: list[Tensor] = []
        x = layer.forward(x, memory, *masks, rotation, observe=weights.append)
        yield Attended(x, weights[0])


def aligning_layer(num_layers: int) -> int:
    """The index of the decoder layer whose cross-attention is closest to an alignment of words.

    It is the penultimate layer of a deep decoder, and the last layer of one with fewer than six layers.

    Source: Garg et al. 2019, "Jointly Learning to Align and Translate with Transformer Models", section 4.2.
    """
    return num_layers - 2 if num_layers >= _DEEP_LAYERS else num_layers - 1
