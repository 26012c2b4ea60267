"""Decoding one token at a time, with the keys and values of earlier positions in a cache."""

from typing import TYPE_CHECKING, cast

from torch import Tensor

from transformer_cli.model.cache import LayerCache
from transformer_cli.model.masks import padding_mask
from transformer_cli.model.precision import at_least_float32

if TYPE_CHECKING:
    from transformer_cli.model.layers import DecoderLayer
    from transformer_cli.model.transformer import Transformer


class DecoderState:
    """R partial targets, one per row. A search uses this as its `Scorer`.

    Keys and values are computed once: those of the source at the start, those of a target position when its
    token is appended.
    """

    def __init__(
        self,
        model: "Transformer",
        memory: Tensor,
        source_mask: Tensor | None,
        *,
        attended_layer: int | None = None,
    ) -> None:
        self._model = model
        self._attended_layer = attended_layer
        self._attention: Tensor | None = None
        self._layers = cast("list[DecoderLayer]", list(model.decoder.layers))
        sources = (layer.cross_attention.keys_and_values(memory) for layer in self._layers)
        self._caches = [LayerCache(source) for source in sources]
        self._source_mask = padding_mask(source_mask, memory)
        self._length = 0

    def advance(self, last_ids: Tensor) -> Tensor:
        """Append one token, (R,) int64, to each row; returns (R, V) log-probabilities of the next token."""
        model = self._model
        x = model.embed_target(last_ids[:, None], self._length)  # (R, 1, D)
        rotation = model.rotation(x, self._length)
        for number, (layer, cache) in enumerate(zip(self._layers, self._caches, strict=True)):
            if number == self._attended_layer:
                x, weights = layer.advance_with_weights(x, cache, self._source_mask, rotation)
                self._attention = weights[:, :, 0].mean(1)
            else:
                x = layer.advance(x, cache, self._source_mask, rotation)
        self._length += 1
        logits = model.output(model.decoder.norm(x[:, 0]))
        return at_least_float32(logits).log_softmax(-1)

    def attention(self) -> Tensor:
        """(R, S): the weights with which the newest position of each row reads the source, as a mean over the heads.

        They are those of the last call of `advance`, in the order of its rows.
        """
        assert self._attention is not None, (
            "start_decoding was not told a layer, or nothing was decoded"
        )
        return self._attention

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """New row i is old row `rows[i]`; `rows` is int64 and may be of any length.

        If `keeps_sources`, each new row has the source sentence of the old row in its place, so the keys and values
        of the source are not copied. The caller must say so: reading `rows` here would make the CPU wait for a GPU.
        """
        for cache in self._caches:
            cache.select_target(rows)
            if not keeps_sources:
                cache.select_source(rows)
        if self._source_mask is not None and not keeps_sources:
            self._source_mask = self._source_mask.select(rows)
