"""Encoder and decoder layers: sub-layers with residual connections, layer normalisation and dropout."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.config import ModelConfig
from transformer_cli.model.attention import KeysValues, LayerCache, MultiHeadAttention
from transformer_cli.model.embeddings import Rotation
from transformer_cli.model.norms import build_norm
from transformer_cli.model.ssru import SSRU

# Word dropout and layer dropout: training leaves out whole tokens and whole layers; dropout of single numbers is `nn.Dropout`.


class WordDropout(nn.Module):
    """Word dropout: in training, the embedding of each token becomes zero with probability p, else it is divided by 1 - p.

    It is drawn for each position, on the source side and for what the decoder reads. Positions are added
    afterwards, so the model knows that a token is missing there. Special tokens always stay.

    Args:
        probability: p.
        num_special_tokens: the ids below this number are those of special tokens.
        tag_ids: the ids of tags, which stay too.

    Source: Gal and Ghahramani 2016, who drop word types; Sennrich and Zhang 2019, "Revisiting Low-Resource Neural
        Machine Translation", with 0.1 to 0.3: their toolkit, Nematus, drops positions, as here.
    """

    def __init__(
        self, probability: float, num_special_tokens: int, tag_ids: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.probability = probability
        self.num_special_tokens = num_special_tokens
        self.tag_ids = tuple(tag_ids)

    def forward(self, embedded: Tensor, ids: Tensor) -> Tensor:
        """Embeddings (B, S, D) and their ids (B, S) to embeddings of the same shape."""
        if not self.training:
            return embedded
        kept = F.dropout(torch.ones_like(ids, dtype=embedded.dtype), self.probability)  # (B, S)
        stays = ids < self.num_special_tokens
        for tag_id in self.tag_ids:
            stays = stays | (ids == tag_id)
        return embedded * kept.masked_fill(stays, 1.0).unsqueeze(-1)


def applied(layer: nn.Module, x: Tensor, *arguments: Any, share: float, **named: Any) -> Tensor:
    """LayerDrop: the output of a layer; in training, with probability `share`, its input.

    One number decides for the whole batch. It comes from the CPU, on any device, so no step waits for a GPU.

    Args:
        layer: maps x, (B, T, D), to the same shape.
        arguments, named: what else the layer takes.
        share: the probability with which the layer is skipped.

    Source: Fan et al. 2020, "Reducing Transformer Depth on Demand with Structured Dropout", section 3.2.
    """
    if share > 0.0 and layer.training and float(torch.rand((), device="cpu")) < share:
        skipped: Any = _Skipped
        inputs = (one for one in arguments if isinstance(one, Tensor))
        return skipped.apply(x, *layer.parameters(), *inputs)
    return layer(x, *arguments, **named)


class _Skipped(torch.autograd.Function):
    """The identity, which gives each parameter of the skipped layer a gradient of zeros, and its other inputs too.

    Without a gradient the optimizer would leave out these parameters, but a layer that another micro-batch or
    another process did not skip has one: all must make the same update. The output of the encoder is an input of
    each decoder layer; if all of them are skipped, the encoder gets its zeros through it.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, *others: Tensor) -> Tensor:
        ctx.save_for_backward(*others)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        zeros = (torch.zeros_like(one) if one.requires_grad else None for one in ctx.saved_tensors)
        return gradient, *zeros


# Layers.


Function = Callable[[Tensor], Tensor]

_ACTIVATIONS: dict[str, Function] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "reglu": F.relu,
    "geglu": F.gelu,
    "swiglu": F.silu,
}


class FeedForward(nn.Module):
    """down(dropout(activation(up(x)))), or gated: down(dropout(activation(gate(x)) * up(x))).

    Source: Vaswani et al. 2017, section 3.3; gated: Shazeer 2020.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, has_bias = config.d_model, config.feed_forward_bias
        self.up = nn.Linear(width, config.d_ff, bias=has_bias)
        self.gate = nn.Linear(width, config.d_ff, bias=has_bias) if config.is_gated else None
        self.down = nn.Linear(config.d_ff, width, bias=has_bias)
        self.activation = _ACTIVATIONS[config.activation]
        self.dropout = nn.Dropout(config.ff_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to the same shape."""
        if self.gate is None:
            return self.down(self.dropout(self.activation(self.up(x))))
        return self.down(self.dropout(self.activation(self.gate(x)) * self.up(x)))


def pre(x: Tensor, sublayer: Function, norm: Function, dropout: Function) -> Tensor:
    """x + dropout(sublayer(norm(x))). Source: Xiong et al. 2020."""
    return x + dropout(sublayer(norm(x)))


def post(x: Tensor, sublayer: Function, norm: Function, dropout: Function) -> Tensor:
    """norm(x + dropout(sublayer(x))). Source: Vaswani et al. 2017, section 3.1."""
    return norm(x + dropout(sublayer(x)))


def residual_of_normed(x: Tensor, sublayer: Function, norm: Function, dropout: Function) -> Tensor:
    """x + norm(dropout(sublayer(x))). Source: code of the walk-through Hello Transformer."""
    return x + norm(dropout(sublayer(x)))


_PLACEMENTS = {"pre": pre, "post": post, "residual_of_normed": residual_of_normed}


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.self_attention_norm = build_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = build_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.residual = _PLACEMENTS[config.norm_placement]

    def forward(self, x: Tensor, mask: Tensor | None, rotation: Rotation | None = None) -> Tensor:
        """(B, S, D) to the same shape; the mask is of shape (B, H, S, S)."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attention(x, x, mask, rotation)

        x = self.residual(x, attend, self.self_attention_norm, self.dropout)
        return self.residual(x, self.feed_forward, self.feed_forward_norm, self.dropout)


class DecoderLayer(nn.Module):
    """Masked self-attention or an SSRU, cross-attention to the source, then the feed-forward network."""

    self_attention: MultiHeadAttention | None
    """None if the layer has an SSRU."""
    self_attention_norm: nn.Module | None
    ssru: SSRU | None
    """None if the layer has self-attention."""
    ssru_norm: nn.Module | None

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        has_ssru = config.decoder_layer == "ssru"
        self.self_attention = None if has_ssru else MultiHeadAttention(config)
        self.self_attention_norm = None if has_ssru else build_norm(config)
        self.ssru = SSRU(config) if has_ssru else None
        self.ssru_norm = build_norm(config) if has_ssru else None
        self.cross_attention = MultiHeadAttention(config)
        self.cross_attention_norm = build_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = build_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.residual = _PLACEMENTS[config.norm_placement]

    def forward(
        self,
        x: Tensor,
        memory: Tensor | KeysValues,
        target_mask: Tensor | None,
        source_mask: Tensor | None,
        rotation: Rotation | None = None,
        *,
        cache: LayerCache | None = None,
        observe: Callable[[Tensor], None] | None = None,
    ) -> Tensor:
        """(B, T, D) to the same shape, for all target positions at once, or for the newest one with a cache.

        Args:
            x: (B, T, D).
            memory: (B, S, D), the output of the encoder; or the keys and values of it.
            target_mask: of self-attention, (B, H, T, T); None: each position reads all that there are. An SSRU reads
                earlier positions only, so it needs no mask.
            source_mask: of cross-attention, (B, H, T, S); None: the source has no padding.
            rotation: the T positions, if they are rotary.
            cache: keys and values of earlier target positions, or the cell state after them; x is appended.
            observe: gets the weights of cross-attention before dropout, (B, H, T, S).
        """

        def read_target(x: Tensor) -> Tensor:
            if self.ssru is not None:
                return self.ssru(x) if cache is None else cache.stepped(self.ssru, x)
            attention = self.self_attention
            assert attention is not None
            if cache is None:
                return attention(x, x, target_mask, rotation)
            newest = attention.keys_and_values(x, rotation)
            return attention(x, cache.extend_target(newest), target_mask, rotation)

        def read_source(x: Tensor) -> Tensor:
            if observe is not None:
                observe(self.cross_attention.weights(x, memory, source_mask))
            return self.cross_attention(x, memory, source_mask)

        return self._apply_sublayers(x, read_target, read_source)

    def _apply_sublayers(self, x: Tensor, read_target: Function, read_source: Function) -> Tensor:
        norm = self.ssru_norm or self.self_attention_norm
        assert norm is not None
        x = self.residual(x, read_target, norm, self.dropout)
        x = self.residual(x, read_source, self.cross_attention_norm, self.dropout)
        return self.residual(x, self.feed_forward, self.feed_forward_norm, self.dropout)
