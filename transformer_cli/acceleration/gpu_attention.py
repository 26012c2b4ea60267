"""Twins for GPUs and other accelerators: attention in one fused kernel."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.acceleration.masks import Mask, fused_mask, product_dtype, visible_of
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.positions import Rotation
from transformer_cli.model.transformer import Transformer


def attend_fused(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | Mask | None, dropout: nn.Dropout
) -> Tensor:
    """The same as `scaled_dot_product_attention` of the model, in one kernel; without a bias, PyTorch can choose its
    fastest one, the flash kernel.
    """
    probability = dropout.p if dropout.training else 0.0
    attend, inputs = F.scaled_dot_product_attention, (queries, keys, values)
    if mask is None or (isinstance(mask, Mask) and mask.is_causal):
        return attend(*inputs, dropout_p=probability, is_causal=mask is not None)
    if not isinstance(mask, Mask):
        mask = fused_mask(mask, queries.dtype)
    assert mask.reads_any is not None, "this mask was made for another kernel"
    gathered = attend(*inputs, attn_mask=mask.bias, dropout_p=probability)
    return gathered.where(mask.reads_any, 0.0)


class FusedAttention(MultiHeadAttention):
    """Attention in one kernel."""

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Any) -> Tensor:
        """See `attend_fused`."""
        return attend_fused(queries, keys, values, mask, self.dropout)

    def weights(
        self, x: Tensor, context: Any, mask: Any, rotation: Rotation | None = None
    ) -> Tensor:
        """See `MultiHeadAttention.weights`; a fused kernel keeps no weights, so the plain form computes them."""
        return super().weights(x, context, visible_of(mask), rotation)


class TransformerOnGpu(Transformer):
    """Makes the masks for `attend_fused`."""

    def source_mask(self, source_mask: Tensor | None, x: Tensor) -> Any:
        """See `Transformer.source_mask`."""
        visible = super().source_mask(source_mask, x)
        return None if visible is None else fused_mask(visible, product_dtype(x))

    def target_mask(self, x: Tensor) -> Any:
        """A flag instead of a bias, so that PyTorch can choose its fastest kernel."""
        visible = super().target_mask(x)
        return None if visible is None else Mask(visible, is_causal=True)
