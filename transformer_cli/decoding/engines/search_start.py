"""The beginning of a search: the encoder has read the sources, and the decoder has read nothing."""

from torch import Tensor

from transformer_cli.decoding.engines.cross_attention import aligning_layer
from transformer_cli.model.transformer import DecoderState, Transformer


def started_search(
    model: Transformer, source_ids: Tensor, source_mask: Tensor | None, *, with_attention: bool
) -> DecoderState:
    """The state of a decoder before its first token, one row for each source.

    Args:
        with_attention: whether the search asks for the attention of the layer that aligns best.
    """
    memory = model.encode(source_ids, source_mask)  # (B, S, D)
    layer = aligning_layer(len(model.decoder.layers)) if with_attention else None
    return model.start_decoding(memory, source_mask, attended_layer=layer)
