"""Attention by a compiled kernel to listed positions: of sources, and of the hypotheses of a search.

Keys and values of all sentences and hypotheses lie in one buffer. Each row has a list of the positions that it reads, so
hypotheses are repeated and dropped by moving their lists, and a result depends on the numbers of its own row only.

Letters of shape comments, besides those of attention.py: P positions in a buffer, L lists.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_cli.acceleration.native_kernels import Kernels, in_parts
from transformer_cli.acceleration.prepared_layers import Heads, PreparedDecoderLayer, ReadItself

_ROOM = 32  # steps for which new lists have room; full ones double


@dataclass(frozen=True, slots=True)
class Lists:
    """The positions that each row reads."""

    positions: Tensor  # (L, at least the longest) int32
    counts: Tensor  # (L,) int32
    of_rows: Tensor  # (R,) int32: the list of each row


def attend(kernels: Kernels, queries: Tensor, keys: Tensor, values: Tensor, lists: Lists) -> Tensor:
    """What each query gathers.

    Args:
        kernels: of this processor.
        queries: (R, H, K) float32; rows may be apart from each other in memory, heads may not.
        keys, values: (P, G, K), in the same form.
        lists: of the R rows.

    Returns:
        (R, H K).
    """
    num_rows, num_heads, width = queries.shape
    num_groups = keys.size(1)
    of_queries, of_keys, of_values = map(_side_by_side, (queries, keys, values))
    found = torch.empty(num_rows, num_heads * width)
    inputs, stride, results = of_queries.data_ptr(), of_queries.stride(0), found.data_ptr()

    def compute(first: int, end: int) -> int:
        return kernels.attend(
            inputs + first * stride * 4, stride, end - first, num_groups, num_heads // num_groups, width,
            of_keys.data_ptr(), of_keys.stride(0), of_values.data_ptr(), of_values.stride(0),
            lists.positions.data_ptr(), lists.positions.stride(0), lists.of_rows.data_ptr() + first * 4,
            lists.counts.data_ptr(), results + first * num_heads * width * 4,
        )  # fmt: skip

    # The lists may be shorter than the room for them; this only chooses the number of threads.
    in_parts(num_rows, 2 * num_rows * num_heads * width * lists.positions.size(1), compute)
    return found


def _side_by_side(heads: Tensor) -> Tensor:
    """(N, heads, K) with the numbers of a row side by side in memory, as the kernel reads them."""
    is_so = heads.stride(2) == 1 and heads.stride(1) == heads.size(2)
    return heads if is_so else heads.contiguous()


def read_listed_sources(
    kernels: Kernels, shape: Sequence[int], source_mask: Tensor | None
) -> ReadItself:
    """Each position of a source reads the real positions of its source; shape and mask are (B, S)."""
    num_sources, length = shape
    of_rows = torch.arange(num_sources, dtype=torch.int32).repeat_interleave(length)
    lists = Lists(*_of_sources(num_sources, length, source_mask), of_rows)
    return lambda heads: attend(kernels, *heads, lists)


def _of_sources(num_sources: int, length: int, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """For each source its real positions, (B, S) int32, and how many they are, (B,) int32."""
    positions = torch.arange(num_sources * length, dtype=torch.int32).view(num_sources, length)
    if mask is None:
        return positions, torch.full((num_sources,), length, dtype=torch.int32)
    real_first = mask.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    return positions.gather(1, real_first), mask.sum(1, dtype=torch.int32)


class ListedDecoding:
    """What the hypotheses of a search read: their own tokens, and their sources."""

    def __init__(
        self,
        kernels: Kernels,
        layers: Sequence[PreparedDecoderLayer],
        memory: Tensor,
        source_mask: Tensor | None,
    ) -> None:
        """
        Args:
            kernels: of this processor.
            layers: of the decoder.
            memory: (B, S, D).
            source_mask: (B, S), as in `Transformer.encode`.
        """
        num_sources, length, _ = memory.shape
        self._kernels = kernels
        rows = memory.flatten(0, 1)
        self._sources = [layer.cross_attention.keys_and_values(rows) for layer in layers]
        self._of_sources = _of_sources(num_sources, length, source_mask)
        self._source_lists = Lists(*self._of_sources, torch.arange(num_sources, dtype=torch.int32))
        self._targets = [_TargetPositions() for _ in layers]
        self._length = self._num_positions = 0
        self._positions = torch.zeros(num_sources, _ROOM, dtype=torch.int32)  # of each row
        self._target_lists: Lists

    def append(self, num_rows: int) -> None:
        """Each row gets a position; `read_target` stores its keys and values."""
        first, self._num_positions = self._num_positions, self._num_positions + num_rows
        if self._length == self._positions.size(1):
            self._positions = torch.cat([self._positions, self._positions], dim=1)
        self._positions[:, self._length] = torch.arange(first, self._num_positions)
        self._length += 1
        counts = torch.full((num_rows,), self._length, dtype=torch.int32)
        own = torch.arange(num_rows, dtype=torch.int32)
        self._target_lists = Lists(self._positions, counts, own)

    def read_target(self, number: int, heads: Heads) -> Tensor:
        """Of layer `number`: store keys and values, then attend to those of each hypothesis."""
        keys, values = self._targets[number].append(heads.keys, heads.values)
        return attend(self._kernels, heads.queries, keys, values, self._target_lists)

    def read_source(self, number: int, queries: Tensor) -> Tensor:
        """Of layer `number`: attend to the source of each row."""
        return attend(self._kernels, queries, *self._sources[number], self._source_lists)

    def select(self, rows: Tensor, *, keeps_sources: bool) -> None:
        """New row i is old row `rows[i]`; keys and values stay where they are."""
        self._positions = self._positions[rows]
        if not keeps_sources:
            of_rows = self._source_lists.of_rows[rows]
            self._source_lists = Lists(*self._of_sources, of_rows)


class _TargetPositions:
    """The keys and values of one layer of the decoder for all rows and steps, in the order in which they were appended."""

    def __init__(self) -> None:
        self._size = 0
        self._keys: Tensor | None = None  # (room, G, K)
        self._values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append (R, G, K) each; returns all so far, and room behind them."""
        first, self._size = self._size, self._size + keys.size(0)
        self._keys = _stored(self._keys, keys, first)
        self._values = _stored(self._values, values, first)
        return self._keys, self._values


def _stored(buffer: Tensor | None, newest: Tensor, first: int) -> Tensor:
    """The buffer, or a larger one, with the newest rows from `first` on."""
    num_rows = newest.size(0)
    needed = first + num_rows
    if buffer is None or needed > buffer.size(0):
        larger = newest.new_empty(max(_ROOM * num_rows, 2 * needed), *newest.shape[1:])
        if buffer is not None:
            larger[:first] = buffer[:first]
        buffer = larger
    buffer[first:needed] = newest
    return buffer
