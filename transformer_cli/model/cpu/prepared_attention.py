"""The projections of attention, prepared for translation on a CPU; what is attended to, and how, comes from outside.

Letters of shape comments, besides those of attention.py: g query heads share a group of keys and values.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.cpu.prepared_linear import Linear
from transformer_cli.model.positions import Rotation, rotate

Prepare = Callable[..., Linear]
"""`prepare_quantised`, or `prepare_linear` of a dtype."""


class Heads(NamedTuple):
    """The heads of N positions; queries are divided by sqrt(K)."""

    queries: Tensor  # (N, H, K)
    keys: Tensor  # (N, G, K)
    values: Tensor  # (N, G, K)


class PreparedAttention:
    """Projections of one attention; its heads are G groups of g queries, which share keys and values."""

    def __init__(
        self, attention: MultiHeadAttention, prepare: Prepare, *, reads_itself: bool
    ) -> None:
        self.module = attention
        self.num_groups = attention.num_kv_heads  # G
        self.group_size = attention.num_heads // attention.num_kv_heads  # g
        self.width = attention.query.out_features // attention.num_heads  # K
        # A norm of queries would undo the factor.
        is_normed = not isinstance(attention.query_norm, nn.Identity)
        factor = 1.0 / math.sqrt(self.width)
        self._late_factor = factor if is_normed else None
        in_weights = 1.0 if is_normed else factor
        keys_values = [attention.key, attention.value]
        if reads_itself:
            scales = [in_weights, 1.0, 1.0]
            self._project = prepare([attention.query, *keys_values], scales=scales)
        else:
            self._project = prepare([attention.query], scales=[in_weights])
            self._project_source = prepare(keys_values)
        self.output = prepare([attention.output])

    def heads(self, x: Tensor, rotation: Rotation | None, length: int) -> Heads:
        """Of attention to itself, (N * length, D) with the positions of a sequence side by side."""
        groups = self.num_groups
        sizes = [groups * self.group_size, groups, groups]
        heads = self._project(x).view(-1, sum(sizes), self.width).split(sizes, dim=1)
        turned = _rotated(self.module.key_norm(heads[1]), rotation, length)
        return Heads(self._finished(heads[0], rotation, length), turned, heads[2])

    def queries(self, x: Tensor) -> Tensor:
        """Of attention to a source: (N, D) to (N, H, K)."""
        return self._finished(self._project(x).view(x.size(0), -1, self.width), None, 1)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """(N, D), positions of sources, to keys and values, (N, G, K) each."""
        heads = self._project_source(memory).view(len(memory), 2, self.num_groups, self.width)
        keys, values = heads.unbind(1)
        return self.module.key_norm(keys), values

    def _finished(self, queries: Tensor, rotation: Rotation | None, length: int) -> Tensor:
        """Normalised, rotated, and divided by sqrt(K)."""
        normed = self.module.query_norm(queries)
        if self._late_factor is not None:
            normed = normed * self._late_factor
        return _rotated(normed, rotation, length)


def _rotated(heads: Tensor, rotation: Rotation | None, length: int) -> Tensor:
    """(N * length, H, K) to the same shape."""
    if rotation is None:
        return heads
    of_sequences = heads.unflatten(0, (-1, length)).transpose(1, 2)
    return rotate(of_sequences, rotation).transpose(1, 2).flatten(0, 1)
