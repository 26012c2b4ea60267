"""The values inside a forward pass as plain arrays: attention weights, masks, positions."""

import torch
from torch import Tensor

from transformer_cli.decoding.engines.pytorch import aligning_layer
from transformer_cli.extensions.lessons.explaining.explanation import (
    AttentionWeights,
    Masks,
    Positions,
)
from transformer_cli.extensions.lessons.explaining.forward_trace import ForwardTrace
from transformer_cli.extensions.lessons.explaining.packed import Numbers
from transformer_cli.model import Transformer

_ENCODER, _DECODER = "encoder.self_attention", "decoder.self_attention"
_CROSS = "decoder.cross_attention"


def attention_of(trace: ForwardTrace, model: Transformer) -> AttentionWeights:
    """The attention weights of all layers and heads."""
    encoder, decoder, cross = (
        Numbers(trace.weights_of(kind).numpy()) for kind in (_ENCODER, _DECODER, _CROSS)
    )
    return AttentionWeights(encoder, decoder, cross, aligning_layer(len(model.decoder.layers)))


def masks_of(trace: ForwardTrace) -> Masks:
    """Which position may read which."""
    encoder, decoder, cross = (
        Numbers(trace.mask_of(kind).float().numpy()) for kind in (_ENCODER, _DECODER, _CROSS)
    )
    return Masks(encoder, decoder, cross)


def positions_of(
    trace: ForwardTrace, model: Transformer, num_source: int, num_target: int
) -> Positions:
    """What tells the model the order of S source and T target tokens."""
    kind = model.config.positions
    if kind == "none":
        return Positions(kind, "none", None, None)
    if kind == "rotary":
        source, target = (
            Numbers(_rotation(model, length).numpy(), -1.0, 1.0)
            for length in (num_source, num_target)
        )
        return Positions(kind, "angles", source, target)
    added = (trace.added_positions[f"{side}_positions"].numpy() for side in ("source", "target"))
    source, target = map(Numbers.of, added)
    return Positions(kind, "added", source, target)


def _rotation(model: Transformer, length: int) -> Tensor:
    """(length, K): the sines, then the cosines, of the angles by which queries and keys are rotated."""
    like = torch.empty(1, length, model.config.d_model, dtype=next(model.parameters()).dtype)
    rotation = model.rotation(like)
    assert rotation is not None
    return torch.cat(list(rotation), dim=-1).float()
