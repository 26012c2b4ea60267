"""Multi-head attention: the output of a position is a weighted mean over the positions that its mask allows.

The letters of shape comments, in the whole package:

    B sentences      S source positions    T target positions    V vocabulary
    D model width    H heads               K width of a head     W beam
    R rows of a search: sentences times beam

and in this file, for self-attention and cross-attention alike:

    Q query positions    C context positions (keys and values)    G heads of keys and values

A mask is a bool tensor that broadcasts to (B, H, Q, C): True means that attention may read the position.
"""

import math

import torch
from torch import Tensor, nn

from transformer_cli.config import ModelConfig
from transformer_cli.model.embeddings import Rotation, rotate
from transformer_cli.model.norms import RMSNorm, at_least_float32
from transformer_cli.model.ssru import SSRU

KeysValues = tuple[Tensor, Tensor]


def scaled_dot_product_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, dropout: nn.Module
) -> Tensor:
    """dropout(softmax(Q K^T / sqrt(K))) V, (B, H, Q, K).

    Args:
        queries: (B, H, Q, K).
        keys, values: (B, H, C, K).
        mask: (B, H, Q, C) bool; None: nothing is masked. A query whose mask is all False gets zeros.
        dropout: acts on the weights.

    Source: Vaswani et al. 2017, equation 1.
    """
    weights = attention_weights(queries, keys, mask)  # (B, H, Q, C)
    return dropout(weights).to(values.dtype) @ values


def attention_weights(queries: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(Q K^T / sqrt(K)), (B, H, Q, C), in float32 at least; arguments as in `scaled_dot_product_attention`.

    A query whose mask is all False has weights of zero.
    """
    scores = (queries / math.sqrt(queries.size(-1))) @ keys.transpose(-2, -1)  # (B, H, Q, C)
    scores = at_least_float32(scores)
    if mask is None:
        return scores.softmax(-1)
    return scores.where(mask, lowest(scores.dtype)).softmax(-1).where(mask, 0.0)


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
        self.query = nn.Linear(config.d_model, config.num_heads * width, bias=has_bias)
        self.key = nn.Linear(config.d_model, config.kv_heads * width, bias=has_bias)
        self.value = nn.Linear(config.d_model, config.kv_heads * width, bias=has_bias)
        self.output = nn.Linear(config.num_heads * width, config.d_model, bias=has_bias)
        self.query_norm = RMSNorm(width, config.norm_eps) if config.qk_norm else nn.Identity()
        self.key_norm = RMSNorm(width, config.norm_eps) if config.qk_norm else nn.Identity()
        self.dropout = nn.Dropout(config.attention_dropout)

    def forward(
        self,
        x: Tensor,
        context: Tensor | KeysValues,
        mask: Tensor | None,
        rotation: Rotation | None = None,
    ) -> Tensor:
        """(B, Q, D): for each position of `x`, a weighted mean of the values of `context`.

        Args:
            x: (B, Q, D), makes the queries.
            context: (B, C, D), makes the keys and values; in self-attention, `x` itself. Or keys and values that
                `keys_and_values` has made before.
            mask: (B, H, Q, C) bool; None: nothing is masked. A query position whose mask is all False gets zeros
                from every head.
            rotation: turns queries and keys, in self-attention with rotary positions.
        """
        queries = self._queries(self.query(x), rotation)  # (B, H, Q, K)
        if isinstance(context, Tensor):
            context = self.keys_and_values(context, rotation)
        keys, values = (self._repeat_for_groups(heads) for heads in context)  # (B, H, C, K)
        heads = self.attend(queries, keys, values, mask)  # (B, H, Q, K)
        return self.output(heads.transpose(1, 2).flatten(2))  # the heads joined: (B, Q, H K)

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """See `scaled_dot_product_attention`."""
        return scaled_dot_product_attention(queries, keys, values, mask, self.dropout)

    def keys_and_values(self, context: Tensor, rotation: Rotation | None = None) -> KeysValues:
        """(B, C, D) to keys and values, both (B, G, C, K)."""
        return self._keys_and_values(self.key(context), self.value(context), rotation)

    def weights(
        self,
        x: Tensor,
        context: Tensor | KeysValues,
        mask: Tensor | None,
        rotation: Rotation | None = None,
    ) -> Tensor:
        """(B, H, Q, C): the attention weights of `forward`, before dropout."""
        queries = self._queries(self.query(x), rotation)
        if isinstance(context, Tensor):
            context = self.keys_and_values(context, rotation)
        return attention_weights(queries, self._repeat_for_groups(context[0]), mask)

    def _queries(self, queries: Tensor, rotation: Rotation | None) -> Tensor:
        """(B, Q, H K) to (B, H, Q, K), normalised and rotated if the config says so."""
        return rotate(self.query_norm(_split_heads(queries, self.num_heads)), rotation)

    def _keys_and_values(
        self, keys: Tensor, values: Tensor, rotation: Rotation | None
    ) -> KeysValues:
        """(B, C, G K) both to (B, G, C, K); the keys are normalised and rotated as the queries are."""
        keys = rotate(self.key_norm(_split_heads(keys, self.num_kv_heads)), rotation)
        return keys, _split_heads(values, self.num_kv_heads)

    def _repeat_for_groups(self, heads: Tensor) -> Tensor:
        """(B, G, C, K) to (B, H, C, K): each head once for each query head of its group."""
        group_size = self.num_heads // self.num_kv_heads
        return heads if group_size == 1 else heads.repeat_interleave(group_size, dim=1)


def aligning_weights(weights: Tensor, config: ModelConfig) -> Tensor:
    """(B, H, T, S) weights of cross-attention to those that align words, (B, T, S): of the head that the config names, or their mean."""
    head = config.alignment_head
    return weights[:, head] if isinstance(head, int) else weights.mean(1)


def _split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(B, C, H K) to (B, H, C, K)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def causal_mask(num_positions: int, device: torch.device | None = None) -> Tensor:
    """(T, T) bool: each position reads itself and earlier positions."""
    return torch.ones(num_positions, num_positions, dtype=torch.bool, device=device).tril()


def padding_mask(source_mask: Tensor | None) -> Tensor | None:
    """(B, S) bool, True where there is a token, to the mask of attention to the source, (B, 1, 1, S); None: no padding."""
    return None if source_mask is None else source_mask[:, None, None, :]


def lowest(dtype: torch.dtype) -> float:
    """The score of hidden positions; half of the dtype's minimum, so that a sum with it stays finite."""
    return torch.finfo(dtype).min / 2


_ROOM = 16  # target positions by which a full buffer grows


class LayerCache:
    """What one decoder layer keeps for R rows: keys and values of the source, and those of the target so far or its cell state."""

    def __init__(self, source: KeysValues) -> None:
        # Contiguous, because attention reads them at each step.
        self.source = source[0].contiguous(), source[1].contiguous()  # both (R, G, S, K)
        self._keys = self._values = source[0][:, :, :0]  # buffers, filled up to _length
        self._length = 0
        self._state: Tensor | None = None  # (R, D), the cell state of an SSRU

    def stepped(self, ssru: SSRU, x: Tensor) -> Tensor:
        """The output of an SSRU for the newest position, (R, 1, D) to the same; the cell state moves on."""
        found, self._state = ssru.step(x, self._state)
        return found

    def extend_target(self, newest: KeysValues) -> KeysValues:
        """Append the keys and values of the newest position, (R, G, 1, K); returns all so far, (R, G, T, K)."""
        if self._length == self._keys.size(2):
            room = self._keys.new_empty(*self._keys.shape[:2], _ROOM, self._keys.size(3))
            self._keys = torch.cat([self._keys, room], dim=2)
            self._values = torch.cat([self._values, room], dim=2)
        self._keys[:, :, self._length] = newest[0][:, :, 0]
        self._values[:, :, self._length] = newest[1][:, :, 0]
        self._length += 1
        return self._keys[:, :, : self._length], self._values[:, :, : self._length]

    def select_target(self, rows: Tensor) -> None:
        """New row i is old row `rows[i]`, for what is kept of the target."""
        self._keys, self._values = self._keys[rows], self._values[rows]
        self._state = None if self._state is None else self._state[rows]

    def select_source(self, rows: Tensor) -> None:
        """New row i is old row `rows[i]`, for the keys and values of the source."""
        self.source = self.source[0][rows], self.source[1][rows]
