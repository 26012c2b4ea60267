"""The weights of a layer under both names: ours, and those of transformers.

The vector that all layers read and write (D columns) may have its columns in another order in transformers: `sinusoidal` positions
interleave sines and cosines, and a class of transformers has first all sines, then all cosines. The same order for the rows and columns
of all weights gives exactly the same logits.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.extensions.exchange.interchange.hugging_face.model_classes import ModelClass

Kind = Literal["reader", "writer", "norm"]
"""reader: a matrix whose columns belong to the D columns of its input; writer: one whose rows belong to the D columns of its output;
norm: a gain and a bias of D numbers."""

_SELF_ATTENTION = {"self_attention": "self_attn"}
_CROSS_ATTENTION = {"cross_attention": "encoder_attn"}
_PROJECTIONS: dict[str, tuple[str, Kind]] = {
    "query": ("q_proj", "reader"),
    "key": ("k_proj", "reader"),
    "value": ("v_proj", "reader"),
    "output": ("out_proj", "writer"),
}


class Part(NamedTuple):
    """A projection or a norm; its parameters are `weight` and `bias`."""

    ours: str
    theirs: str
    kind: Kind
    has_bias: bool
    """Whether our part has a bias; theirs always has one."""


def parts(config: ModelConfig, model_class: ModelClass) -> Iterator[Part]:
    """All projections and norms of encoder and decoder."""
    sides = (("encoder", "source", config.encoder_layers), ("decoder", "target", config.decoder_layers))  # fmt: skip
    for stack, side, num_layers in sides:
        attentions = _SELF_ATTENTION | (_CROSS_ATTENTION if stack == "decoder" else {})
        for number in range(num_layers):
            layer = f"{stack}.layers.{number}."
            for attention, their_attention in attentions.items():
                for ours, (theirs, kind) in _PROJECTIONS.items():
                    names = f"{layer}{attention}.{ours}", f"model.{layer}{their_attention}.{theirs}"
                    yield Part(*names, kind, config.attention_bias)
                norms = f"{layer}{attention}_norm", f"model.{layer}{their_attention}_layer_norm"
                yield Part(*norms, "norm", True)
            has_bias = config.feed_forward_bias
            yield Part(f"{layer}feed_forward.up", f"model.{layer}fc1", "reader", has_bias)
            yield Part(f"{layer}feed_forward.down", f"model.{layer}fc2", "writer", has_bias)
            norms = f"{layer}feed_forward_norm", f"model.{layer}final_layer_norm"
            yield Part(*norms, "norm", True)
        if model_class.embedding_norm:
            norms = f"{side}_embedding_norm", f"model.{stack}.layernorm_embedding"
            yield Part(*norms, "norm", True)
        if model_class.final_norm:
            yield Part(f"{stack}.norm", f"model.{stack}.layer_norm", "norm", True)


def column_order(config: ModelConfig, model_class: ModelClass) -> Tensor:
    """(D,): column i of transformers is our column `order[i]`."""
    columns = torch.arange(config.d_model)
    if config.positions == "sinusoidal" and model_class.has_own_sinusoids:
        return torch.cat([columns[0::2], columns[1::2]])
    return columns


def in_order(weight: Tensor, kind: Kind, order: Tensor) -> Tensor:
    """The weight of a part with its columns, or rows, or numbers, in another order."""
    return weight[:, order] if kind == "reader" else weight[order]


def bias_in_order(bias: Tensor, kind: Kind, order: Tensor) -> Tensor:
    """The same for the bias of a part; the output of a reader keeps its order."""
    return bias if kind == "reader" else bias[order]
