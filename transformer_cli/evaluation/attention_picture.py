"""Where a translation looks: the cross-attention of one sentence, as numbers and as a picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from transformer_cli.model.attention import MultiHeadAttention, attention_weights, split_heads
from transformer_cli.model.transformer import Transformer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@torch.inference_mode()
def cross_attention(
    model: Transformer, source_ids: Tensor, source_mask: Tensor, decoder_input_ids: Tensor
) -> Tensor:
    """How much each target position takes from each source position, dropout off.

    Args:
        source_ids: (B, S) int64.
        source_mask: (B, S) bool.
        decoder_input_ids: (B, T) int64, begins with BOS.

    Returns:
        (layers, B, H, T, S); sums to 1 over S.
    """
    captured: list[Tensor] = []

    def capture(attention: MultiHeadAttention, inputs: tuple[Any, ...]) -> None:
        x, memory, visible = inputs[:3]
        queries = attention.query_norm(split_heads(attention.query(x), attention.num_heads))
        keys = attention.keys_and_values(memory)[0]
        group_size = attention.num_heads // attention.num_kv_heads
        keys = keys.repeat_interleave(group_size, dim=1)
        captured.append(attention_weights(queries, keys, visible))  # (B, H, T, S)

    was_training = model.training
    model.eval()
    hooks = [
        layer.cross_attention.register_forward_pre_hook(capture) for layer in model.decoder.layers
    ]
    try:
        model(source_ids, source_mask, decoder_input_ids)
    finally:
        for hook in hooks:
            hook.remove()
        model.train(was_training)
    return torch.stack(captured)


def draw_attention(
    weights: Tensor, source_tokens: Sequence[str], target_tokens: Sequence[str]
) -> "Figure":
    """A picture with the source from left to right and the target from top to bottom.

    Args:
        weights: (T, S); row t says where target token t looked when it was predicted.
        source_tokens: S labels.
        target_tokens: T labels.
    """
    from matplotlib.figure import Figure

    width, height = 2.0 + 0.4 * len(source_tokens), 1.6 + 0.32 * len(target_tokens)
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(weights.float().cpu().numpy(), cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(source_tokens)), [_label(token) for token in source_tokens], rotation=60, ha="right")
    axes.set_yticks(range(len(target_tokens)), [_label(token) for token in target_tokens])
    axes.set_xlabel("source")
    axes.set_ylabel("predicted target token")
    figure.colorbar(image, ax=axes, label="attention")
    return figure


def _label(token: str) -> str:
    """A dollar sign would start a formula."""
    return token.strip().replace("$", r"\$") or "␣"
