"""What the decoder remembers while targets grow by one token at a time."""

from typing import TYPE_CHECKING

from torch import Tensor

from transformer_cli.model.layers import LayerCache, TargetCache
from transformer_cli.model.norms import at_least_float32

if TYPE_CHECKING:
    from transformer_cli.model.transformer import Transformer


class DecoderState:
    """Rows of targets that grow together, each with its source.

    Keys and values of earlier target positions, and those of the source, are computed once.
    """

    def __init__(self, model: "Transformer", memory: Tensor, source_mask: Tensor) -> None:
        self._model = model
        self._length = 0
        self._caches = [
            LayerCache(
                target=TargetCache(),
                source=layer.cross_attention.keys_and_values(memory),
                source_visible=source_mask[:, None, None, :],
            )
            for layer in model.decoder.layers
        ]

    def advance(self, last_ids: Tensor) -> Tensor:
        """Append one token to each row.

        Args:
            last_ids: (R,) int64; BOS for all at first.

        Returns:
            (R, V) log-probabilities of the next token, float32 at least.
        """
        model = self._model
        x = model.embed_target(last_ids[:, None], self._length)  # (R, 1, D)
        rotation = model.rotation(x, self._length)
        for layer, cache in zip(model.decoder.layers, self._caches, strict=True):
            x = layer.advance(x, cache, rotation)
        self._length += 1
        logits = model.output(model.decoder.norm(x[:, 0]))
        return at_least_float32(logits).log_softmax(-1)

    def select(self, rows: Tensor) -> None:
        """Row i becomes what row `rows[i]` was: keeps, reorders, repeats and drops rows.

        Args:
            rows: (R2,) int64, for any number of rows.
        """
        for i, cache in enumerate(self._caches):
            cache.target.select(rows)
            keys, values = cache.source
            self._caches[i] = cache._replace(
                source=(keys[rows], values[rows]), source_visible=cache.source_visible[rows]
            )
