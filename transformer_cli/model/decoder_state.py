"""Decoding one token at a time, with the keys and values of earlier positions in a cache."""

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from transformer_cli.model.cache import LayerCache
from transformer_cli.model.norms import at_least_float32

if TYPE_CHECKING:
    from transformer_cli.model.layers import DecoderLayer
    from transformer_cli.model.transformer import Transformer


class DecoderState:
    """R partial targets, one per row. A search uses this as its `Scorer`.

    Keys and values are computed once: those of the source at the start, those of a target position when its
    token is appended.
    """

    def __init__(self, model: "Transformer", memory: Tensor, source_mask: Tensor) -> None:
        self._model = model
        self._layers = cast("list[DecoderLayer]", list(model.decoder.layers))
        visible = source_mask[:, None, None, :]
        sources = (layer.cross_attention.keys_and_values(memory) for layer in self._layers)
        self._caches = [LayerCache(source, visible) for source in sources]
        # (R,): the sentence that each row belongs to.
        self._sentences = torch.arange(len(memory), device=memory.device)
        self._length = 0

    def advance(self, last_ids: Tensor) -> Tensor:
        """Append one token, (R,) int64, to each row; returns (R, V) log-probabilities of the next token."""
        model = self._model
        x = model.embed_target(last_ids[:, None], self._length)  # (R, 1, D)
        rotation = model.rotation(x, self._length)
        for layer, cache in zip(self._layers, self._caches, strict=True):
            x = layer.advance(x, cache, rotation)
        self._length += 1
        logits = model.output(model.decoder.norm(x[:, 0]))
        return at_least_float32(logits).log_softmax(-1)

    def select(self, rows: Tensor) -> None:
        """New row i is old row `rows[i]`; `rows` is int64 and may be of any length."""
        sentences = self._sentences[rows]
        # A beam search reorders the rows of a sentence at each step. They all have the same source, so its keys
        # and values are copied only when whole sentences are dropped or repeated.
        is_same_source = torch.equal(sentences, self._sentences)
        for cache in self._caches:
            cache.select_target(rows)
            if not is_same_source:
                cache.select_source(rows)
        self._sentences = sentences
