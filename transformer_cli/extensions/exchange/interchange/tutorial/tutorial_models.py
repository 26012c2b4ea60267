"""The model of the tutorial by hkproj, in both of its states: a `ModelConfig`, and the `state_dict` of a `Transformer`.

The number of heads changes no shape of a weight, so no file holds it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.process.errors import DataError

_NAMES = {
    "src_embed.embedding.weight": "source_embedding.weight",
    "tgt_embed.embedding.weight": "target_embedding.weight",
    "projection_layer.proj.weight": "output.weight",
    "projection_layer.proj.bias": "output.bias",
}
_POSITIONS = "src_pos.pe"
_TABLES = (_POSITIONS, "tgt_pos.pe")
"""Sines and cosines, which our model computes."""
_PARTS = {
    "self_attention_block.w_q": "self_attention.query",
    "self_attention_block.w_k": "self_attention.key",
    "self_attention_block.w_v": "self_attention.value",
    "self_attention_block.w_o": "self_attention.output",
    "cross_attention_block.w_q": "cross_attention.query",
    "cross_attention_block.w_k": "cross_attention.key",
    "cross_attention_block.w_v": "cross_attention.value",
    "cross_attention_block.w_o": "cross_attention.output",
    "feed_forward_block.linear_1": "feed_forward.up",
    "feed_forward_block.linear_2": "feed_forward.down",
}
_NORMS = {
    "encoder": ("self_attention_norm", "feed_forward_norm"),
    "decoder": ("self_attention_norm", "cross_attention_norm", "feed_forward_norm"),
}
_IN_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(.+)\.(weight|bias|alpha)")
_NORM = re.compile(r"residual_connections\.(\d)\.norm")


def tutorial_config(tensors: Mapping[str, Tensor], *, num_heads: int) -> ModelConfig:
    """The settings of the model with these weights.

    Raises:
        DataError: a weight is missing, or the number of heads does not fit.
    """
    width = _named(tensors, "src_embed.embedding.weight").size(-1)
    if width % num_heads:
        raise DataError(f"the width of the model, {width}, is no multiple of {num_heads} heads")
    gain = _named(tensors, "encoder.norm.alpha")
    layers = {
        stack: 1 + max((int(name.split(".")[2]) for name in tensors if name.startswith(f"{stack}.layers.")), default=-1)
        for stack in ("encoder", "decoder")
    }  # fmt: skip
    return ModelConfig(
        d_model=width,
        num_heads=num_heads,
        d_ff=_named(tensors, "encoder.layers.0.feed_forward_block.linear_1.weight").size(0),
        encoder_layers=layers["encoder"],
        decoder_layers=layers["decoder"],
        max_length=_named(tensors, _POSITIONS).size(-2),
        dropout=0.1,
        attention_dropout=0.1,
        ff_dropout=0.1,
        norm="scalar_std_layernorm" if gain.numel() == 1 else "std_layernorm",
        norm_eps=1e-6,
        norm_placement="pre",
        attention_bias="encoder.layers.0.self_attention_block.w_q.bias" in tensors,
        tie_embeddings="none",
    )


def tutorial_state(
    config: ModelConfig, tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Our weights.

    Args:
        config: of `tutorial_config`.
        tensors: of the tutorial.
        expected: `state_dict()` of our model, on any device, also meta.

    Raises:
        DataError: a weight is missing, has another shape, or has no place in our model.
    """
    state = {}
    for ours, theirs in _pairs(tensors):
        if ours not in expected:
            raise DataError(f"the weights: {theirs} is no weight of the tutorial's model")
        tensor = tensors[theirs].float()
        wanted = expected[ours].shape
        if tensor.numel() != wanted.numel() or (tensor.shape != wanted and tensor.numel() != 1):
            raise DataError(f"the weights: {theirs} has the shape {list(tensor.shape)}, not {list(wanted)}")  # fmt: skip
        state[ours] = tensor.reshape(wanted).clone()
    for name in sorted(expected.keys() - state.keys()):
        raise DataError(f"the weights: nothing stands for {name}")
    return state


def _pairs(tensors: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Our name and theirs, for each weight."""
    for name in tensors:
        if name not in _TABLES:
            yield _our_name(name), name


def _our_name(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    found = _IN_LAYER.fullmatch(name)
    if found is None:  # encoder.norm and decoder.norm, or a name that the model does not have
        return name.replace(".alpha", ".weight")
    stack, number, part, kind = found.groups()
    norm = _NORM.fullmatch(part)
    if norm is not None and int(norm[1]) < len(_NORMS[stack]):
        ours = _NORMS[stack][int(norm[1])]
    else:
        ours = _PARTS.get(part, part)
    return f"{stack}.layers.{number}.{ours}.{kind.replace('alpha', 'weight')}"


def _named(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in tensors:
        raise DataError(f"the weights have no {name}: not a checkpoint of the tutorial")
    return tensors[name]
