"""The keys and values of a search, to which positions are appended and which are never reordered.

The rows of a search are b sentences with s hypotheses each. Each step appends s slots to each sentence: the keys and values of
its s newest tokens. A hypothesis reads only the slots of its own tokens, so it has a bias for each slot: 0, or a large
negative number. When hypotheses are repeated or dropped, only these biases move, not the keys and values.

Letters of shape comments, besides those of attention.py: b sentences still searched, s hypotheses of each, Z slots.
"""

import torch
from torch import Tensor

from transformer_cli.model.masks import lowest

_ROOM = 64  # slots for which a new cache has room; a full one doubles


class HypothesisSlots:
    """Which slots each hypothesis reads, for all layers."""

    def __init__(self, num_sentences: int) -> None:
        self.num_sentences = num_sentences
        self.num_hypotheses = 1  # of each sentence
        self.num_slots = 0
        # (b * s, room): None while every hypothesis reads all slots of its sentence, as in greedy search.
        self._bias: Tensor | None = None

    def append(self) -> None:
        """Each sentence gets one slot for each of its hypotheses, which no other hypothesis reads."""
        first, self.num_slots = self.num_slots, self.num_slots + self.num_hypotheses
        if self._bias is None:
            return
        if self.num_slots > self._bias.size(1):
            self._bias = torch.cat([self._bias, torch.empty_like(self._bias)], dim=1)
            assert self.num_slots <= self._bias.size(1)
        newest = self._bias[:, first : self.num_slots]
        newest.fill_(lowest(newest.dtype))
        newest.unflatten(0, (-1, self.num_hypotheses)).diagonal(dim1=1, dim2=2).zero_()

    def bias(self) -> Tensor | None:
        """(b, 1, s, 1, Z), added to the scores of attention; None if nothing is hidden."""
        if self._bias is None:
            return None
        rows = self._bias[:, : self.num_slots].unflatten(0, (-1, self.num_hypotheses))
        return rows[:, None, :, None]

    def select(self, rows: Tensor, *, keeps_sources: bool) -> Tensor | None:
        """New row i is old row `rows[i]`.

        Returns:
            For each new sentence, the old one whose keys and values it reads; None if they stay as they are.
        """
        sources = None if keeps_sources else self._regrouped(rows // self.num_hypotheses)
        if self._bias is not None:
            self._bias = self._bias[rows]
        elif self.num_hypotheses > 1:
            room = max(_ROOM * self.num_hypotheses, 2 * self.num_slots)
            self._bias = torch.zeros(len(rows), room)
        return sources

    def _regrouped(self, sentences: Tensor) -> Tensor | None:
        """The new sentences; if they have different numbers of hypotheses, each row is a sentence of its own."""
        found, counts = torch.unique_consecutive(sentences, return_counts=True)
        is_regular = bool((counts == counts[0]).all()) and len(found.unique()) == len(found)
        sources = found if is_regular else sentences
        is_unchanged = torch.equal(sources, torch.arange(self.num_sentences))
        self.num_sentences = len(sources)
        self.num_hypotheses = len(sentences) // len(sources)
        return None if is_unchanged else sources


class AppendOnlyCache:
    """The keys and values of one layer of the decoder, (b, G, Z, K) each."""

    def __init__(self, num_sentences: int, num_heads: int, width: int, dtype: torch.dtype) -> None:
        self._keys = torch.empty(num_sentences, num_heads, _ROOM, width, dtype=dtype)
        self._values = torch.empty_like(self._keys)

    def append(self, keys: Tensor, values: Tensor, slots: HypothesisSlots) -> tuple[Tensor, Tensor]:
        """Store the newest keys and values, (b, s, G, K) each, in the slots that were appended last.

        Returns:
            Keys (b, G, K, Z) and values (b, G, Z, K) of all slots.
        """
        end = slots.num_slots
        newest = slice(end - slots.num_hypotheses, end)
        while end > self._keys.size(2):
            self._keys = torch.cat([self._keys, torch.empty_like(self._keys)], dim=2)
            self._values = torch.cat([self._values, torch.empty_like(self._values)], dim=2)
        self._keys[:, :, newest] = keys.transpose(1, 2)
        self._values[:, :, newest] = values.transpose(1, 2)
        return self._keys[:, :, :end].transpose(2, 3), self._values[:, :, :end]

    def select(self, sources: Tensor) -> None:
        """New sentence i is old sentence `sources[i]`."""
        self._keys, self._values = self._keys[sources], self._values[sources]
