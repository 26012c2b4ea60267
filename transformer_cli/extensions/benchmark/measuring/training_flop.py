"""The floating-point operations (FLOP) of a training update, computed from the model: frozen parts need fewer.

The backward pass has up to two products for each product of the forward pass: one gives the gradient of the weights, the
other the gradient of the input. Frozen weights need no gradient. An input needs one only if a trained parameter comes
before it in the model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

from transformer_cli.extensions.benchmark.measuring.model_flop import Work, forward_flop
from transformer_cli.model import Transformer
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.layers import DecoderLayer, EncoderLayer, FeedForward


def training_flop(model: Transformer, work: Work, *, num_predictions: int = 1) -> int:
    """The FLOP of the forward and the backward pass.

    Args:
        model: its frozen parameters have `requires_grad` False.
        work: of one batch or of several.
        num_predictions: how often an update predicts each pair: twice with R-Drop, else once.
    """
    forward = forward_flop(model.config, model.output.out_features, work)
    return num_predictions * (forward + backward_flop(model, work))


def backward_flop(model: Transformer, work: Work) -> int:
    """The FLOP of one backward pass; if no parameter is frozen, twice those of the forward pass."""
    # x and memory stand for tensors of the forward pass: True if the tensor needs a gradient.
    tally = _Tally(norm_is_first=model.config.norm_placement == "pre")
    x = _is_trained(model.source_positions, model.source_embedding_norm)
    x = x or (model.source_embedding or model.output).weight.requires_grad
    sizes = _Sizes(work.source_tokens, work.source_tokens, work.source_pairs)
    for layer in model.encoder.layers:
        assert isinstance(layer, EncoderLayer)
        x = tally.encoder_layer(layer, x, sizes)
    memory = x or _is_trained(model.encoder.norm)
    x = _is_trained(model.target_positions, model.target_embedding_norm)
    x = x or (model.target_embedding or model.output).weight.requires_grad
    sizes = _Sizes(work.target_tokens, work.target_tokens, work.target_pairs)
    of_cross = _Sizes(work.target_tokens, work.source_tokens, work.cross_pairs)
    for layer in model.decoder.layers:
        assert isinstance(layer, DecoderLayer)
        x = tally.decoder_layer(layer, x, memory, sizes, of_cross)
    tally.projection(model.output, x or _is_trained(model.decoder.norm), work.target_tokens)
    return tally.flop


class _Sizes(NamedTuple):
    """The numbers that decide the cost of an attention."""

    num_queries: int
    num_contexts: int
    """Positions that have keys and values."""
    num_pairs: int
    """Pairs of a query and a key."""


@dataclass(slots=True)
class _Tally:
    """Adds up products, in the order of the forward pass.

    The methods say by a bool whether a tensor needs a gradient: they take it for their inputs, such as `x`, and return it
    for their output.
    """

    norm_is_first: bool
    flop: int = 0

    def encoder_layer(self, layer: EncoderLayer, x: bool, sizes: _Sizes) -> bool:
        """Self-attention and the feed-forward network."""
        x = self._self_attention(layer, x, sizes)
        return self._feed_forward(layer, x, sizes)

    def decoder_layer(
        self, layer: DecoderLayer, x: bool, memory: bool, sizes: _Sizes, of_cross: _Sizes
    ) -> bool:
        """Self-attention, cross-attention to the `memory`, and the feed-forward network."""

        def attend_to_source(x: bool) -> bool:
            return self._attention(layer.cross_attention, x, memory, of_cross)

        x = self._self_attention(layer, x, sizes)
        x = self._residual(x, attend_to_source, layer.cross_attention_norm)
        return self._feed_forward(layer, x, sizes)

    def projection(self, projection: nn.Linear, x: bool, num_rows: int) -> bool:
        """x W^T + b: a product for the gradient of x, and one for that of W."""
        weight = projection.weight
        self.flop += 2 * num_rows * weight.numel() * (x + weight.requires_grad)
        return x or _is_trained(projection)

    def _self_attention(self, layer: EncoderLayer | DecoderLayer, x: bool, sizes: _Sizes) -> bool:
        def attend(x: bool) -> bool:
            return self._attention(layer.self_attention, x, x, sizes)

        return self._residual(x, attend, layer.self_attention_norm)

    def _feed_forward(self, layer: EncoderLayer | DecoderLayer, x: bool, sizes: _Sizes) -> bool:
        def feed(x: bool) -> bool:
            network: FeedForward = layer.feed_forward
            inner = self.projection(network.up, x, sizes.num_queries)
            if network.gate is not None:
                inner = self.projection(network.gate, x, sizes.num_queries) or inner
            return self.projection(network.down, inner, sizes.num_queries)

        return self._residual(x, feed, layer.feed_forward_norm)

    def _residual(self, x: bool, sublayer: Callable[[bool], bool], norm: nn.Module) -> bool:
        reads = x or (self.norm_is_first and _is_trained(norm))
        return sublayer(reads) or x or _is_trained(norm)

    def _attention(
        self, attention: MultiHeadAttention, x: bool, context: bool, sizes: _Sizes
    ) -> bool:
        queries = self.projection(attention.query, x, sizes.num_queries)
        keys = self.projection(attention.key, context, sizes.num_contexts)
        values = self.projection(attention.value, context, sizes.num_contexts)
        queries = queries or _is_trained(attention.query_norm)
        keys = keys or _is_trained(attention.key_norm)
        weights = queries or keys
        # The products of queries and keys, then of weights and values; each reads two tensors.
        num_gradients = queries + keys + weights + values
        self.flop += 2 * sizes.num_pairs * attention.query.out_features * num_gradients
        return self.projection(attention.output, weights or values, sizes.num_queries)


def _is_trained(*modules: nn.Module) -> bool:
    """Whether any parameter of these modules gets a gradient."""
    return any(one.requires_grad for module in modules for one in module.parameters())
