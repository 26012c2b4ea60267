"""Multi-head attention: the output of a position is a weighted mean over the positions that its mask allows.

The letters of shape comments, in the whole package:

    B sentences      S source positions    T target positions    V vocabulary
    D model width    H heads               K width of a head     W beam
    R rows of a search: sentences times beam

and in this file, for self-attention and cross-attention alike:

    Q query positions    C context positions (keys and values)    G heads of keys and values

The masks are in masks.py.
"""

import math
from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.config import ModelConfig
from transformer_cli.model.cpu import trains_on_cpu
from transformer_cli.model.cpu.fused_attention import attend_on_cpu
from transformer_cli.model.dropout import Dropout
from transformer_cli.model.masks import Mask, is_fused_on, lowest
from transformer_cli.model.norms import RMSNorm
from transformer_cli.model.positions import Rotation, rotate
from transformer_cli.model.precision import at_least_float32
from transformer_cli.model.projection import Projection, project

KeysValues = tuple[Tensor, Tensor]
Attention = Callable[[Tensor, Tensor, Tensor, Mask | None, Dropout], Tensor]


class MultiHeadAttention(nn.Module):
    """concat(head_1, ..., head_H) W_output, where head_i = attention(x W_query, c W_key, c W_value).

    With `num_kv_heads` below `num_heads` it is grouped-query attention: each of the G heads of keys and values
    serves a group of query heads.

    Source: Vaswani et al. 2017, section 3.2.2; grouped queries: Ainslie et al. 2023; normalised queries
    and keys: Henry et al. 2020.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, has_bias = config.head_width, config.attention_bias
        self.num_heads = config.num_heads
        self.num_kv_heads = config.kv_heads
        self.query = Projection(config.d_model, config.num_heads * width, bias=has_bias)
        self.key = Projection(config.d_model, config.kv_heads * width, bias=has_bias)
        self.value = Projection(config.d_model, config.kv_heads * width, bias=has_bias)
        self.output = Projection(config.num_heads * width, config.d_model, bias=has_bias)
        self.query_norm = RMSNorm(width, config.norm_eps) if config.qk_norm else nn.Identity()
        self.key_norm = RMSNorm(width, config.norm_eps) if config.qk_norm else nn.Identity()
        self.dropout = Dropout(config.attention_dropout)

    def forward(
        self, x: Tensor, context: Tensor, mask: Mask | None, rotation: Rotation | None = None
    ) -> Tensor:
        """(B, Q, D): for each position of `x`, a weighted mean of the values of `context`.

        Args:
            x: (B, Q, D), makes the queries.
            context: (B, C, D), makes the keys and values; in self-attention, `x` itself.
            mask: of shape (B, H, Q, C); None: nothing is masked. A query position whose
                mask is all False gets zeros from every head.
            rotation: turns queries and keys, in self-attention with rotary positions.
        """
        if x is not context:
            return self.attend(x, self.keys_and_values(context, rotation), mask, rotation)
        queries, keys, values = project(x, self.query, self.key, self.value)
        return self._attend(
            self._queries(queries, rotation), self._keys_and_values(keys, values, rotation), mask
        )

    def keys_and_values(self, context: Tensor, rotation: Rotation | None = None) -> KeysValues:
        """(B, C, D) to keys and values, both (B, G, C, K)."""
        keys, values = project(context, self.key, self.value)
        return self._keys_and_values(keys, values, rotation)

    def attend(
        self,
        x: Tensor,
        keys_values: KeysValues,
        mask: Mask | None,
        rotation: Rotation | None = None,
    ) -> Tensor:
        """The same as `forward`, from given keys and values."""
        return self._attend(self._queries(self.query(x), rotation), keys_values, mask)

    def weights(
        self, x: Tensor, context: Tensor, mask: Mask | None, rotation: Rotation | None = None
    ) -> Tensor:
        """(B, H, Q, C): the attention weights of `forward`, before dropout."""
        return self.weights_over(x, self.keys_and_values(context, rotation), mask, rotation)

    def weights_over(
        self,
        x: Tensor,
        keys_values: KeysValues,
        mask: Mask | None,
        rotation: Rotation | None = None,
    ) -> Tensor:
        """(B, H, Q, C): the attention weights of `attend`, before dropout."""
        keys, _ = keys_values
        queries = self._queries(self.query(x), rotation)
        return attention_weights(queries, self._repeat_for_groups(keys), mask)

    def _queries(self, queries: Tensor, rotation: Rotation | None) -> Tensor:
        """(B, Q, H K) to (B, H, Q, K), normalised and rotated if the config says so."""
        return rotate(self.query_norm(_split_heads(queries, self.num_heads)), rotation)

    def _keys_and_values(
        self, keys: Tensor, values: Tensor, rotation: Rotation | None
    ) -> KeysValues:
        """(B, C, G K) both to (B, G, C, K); the keys are normalised and rotated as the queries are."""
        keys = rotate(self.key_norm(_split_heads(keys, self.num_kv_heads)), rotation)
        return keys, _split_heads(values, self.num_kv_heads)

    def _attend(self, queries: Tensor, keys_values: KeysValues, mask: Mask | None) -> Tensor:
        """(B, H, Q, K), and keys and values as of `keys_and_values`, to (B, Q, D)."""
        keys, values = (self._repeat_for_groups(heads) for heads in keys_values)
        heads = attention_for(queries)(queries, keys, values, mask, self.dropout)  # (B, H, Q, K)
        return self.output(heads.transpose(1, 2).flatten(2))  # the heads joined: (B, Q, H K)

    def _repeat_for_groups(self, heads: Tensor) -> Tensor:
        """(B, G, C, K) to (B, H, C, K): each head once for each query head of its group."""
        group_size = self.num_heads // self.num_kv_heads
        return heads if group_size == 1 else heads.repeat_interleave(group_size, dim=1)


def attention_for(queries: Tensor) -> Attention:
    """The fastest form of attention for the device of the queries; all forms compute the same."""
    if is_fused_on(queries.device):
        return attend_fused
    return attend_on_cpu if trains_on_cpu(queries) else attend_explicitly


def attend_explicitly(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Mask | None, dropout: Dropout
) -> Tensor:
    """dropout(softmax(Q K^T / sqrt(K))) V, one operation after the other.

    In bfloat16 on a CPU, this is three times as fast as PyTorch's fused attention.

    Args:
        queries: (B, H, Q, K).
        keys, values: (B, H, C, K).
        mask: of shape (B, H, Q, C); None: nothing is masked. A query whose mask is all False gets zeros.
        dropout: acts on the weights.

    Source: Vaswani et al. 2017, equation 1.
    """
    return dropout(attention_weights(queries, keys, mask)).to(values.dtype) @ values


def attend_fused(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Mask | None, dropout: Dropout
) -> Tensor:
    """The same in one fused kernel, for GPUs. Without a bias, PyTorch can choose its fastest one, the flash kernel."""
    probability = dropout.p if dropout.training else 0.0
    attend, inputs = F.scaled_dot_product_attention, (queries, keys, values)
    if mask is None or mask.is_causal:
        return attend(*inputs, dropout_p=probability, is_causal=mask is not None)
    assert mask.reads_any is not None, "this mask was made for explicit attention"
    gathered = attend(*inputs, attn_mask=mask.bias, dropout_p=probability)
    return gathered.where(mask.reads_any, 0.0)


def attention_weights(queries: Tensor, keys: Tensor, mask: Mask | None) -> Tensor:
    """softmax(Q K^T / sqrt(K)), (B, H, Q, C), in float32 at least; arguments as in `attend_explicitly`.

    A query whose mask is all False has weights of zero.
    """
    scores = (queries / math.sqrt(queries.size(-1))) @ keys.transpose(-2, -1)  # (B, H, Q, C)
    scores = at_least_float32(scores)
    if mask is None:
        return scores.softmax(-1)
    weights = scores.where(mask.visible, lowest(scores.dtype)).softmax(-1)
    return weights.where(mask.visible, 0.0)


def _split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(B, C, H K) to (B, H, C, K)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
