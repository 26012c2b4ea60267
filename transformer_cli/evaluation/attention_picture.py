"""Where a translation looks: the cross-attention of one sentence, as numbers and as a picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from transformer_cli.data.batches.batch import collate
from transformer_cli.data.batches.encoded import encode_pairs
from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding.translator import Translator
from transformer_cli.model.attention import MultiHeadAttention, attention_weights
from transformer_cli.model.transformer import Transformer
from transformer_cli.text.sequence_format import SequenceFormat

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def attention_picture(translator: Translator, source: str, predicted: str) -> "Figure | None":
    """Where the last decoder layer looked, mean over its heads; nothing for a text without tokens."""
    source_tokenizer, target_tokenizer = translator.source_tokenizer, translator.target_tokenizer
    pairs = encode_pairs(
        [SentencePair(source, predicted)],
        source_tokenizer,
        target_tokenizer,
        SequenceFormat.of(translator.data),
    )
    if not (len(pairs[0].source_ids) and len(pairs[0].target_ids)):
        return None
    batch = collate(
        pairs,
        sos_id=target_tokenizer.sos_id,
        pad_id=target_tokenizer.pad_id,
        sequence_format=SequenceFormat.of(translator.data),
    )
    batch = batch.to(translator.machine.device)
    weights = cross_attention(
        translator.model, batch.source_ids, batch.source_mask, batch.decoder_input_ids
    )
    return draw_attention(
        weights[-1, 0].mean(0),
        source_tokenizer.tokens(pairs[0].source_ids),
        target_tokenizer.tokens(pairs[0].target_ids),
    )


@torch.inference_mode()
def cross_attention(
    model: Transformer, source_ids: Tensor, source_mask: Tensor, decoder_input_ids: Tensor
) -> Tensor:
    """How much each target position takes from each source position, dropout off.

    Args:
        source_ids: (B, S) int64.
        source_mask: (B, S) bool.
        decoder_input_ids: (B, T) int64, begins with [SOS].

    Returns:
        (layers, B, H, T, S); sums to 1 over S.
    """
    captured: list[Tensor] = []

    def capture(attention: MultiHeadAttention, inputs: tuple[Any, ...]) -> None:
        x, memory, visible = inputs[:3]
        queries = attention.query(x).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
        queries = attention.query_norm(queries)  # (B, H, T, K)
        keys = attention.keys_and_values(memory)[0]
        group_size = attention.num_heads // attention.num_kv_heads
        keys = keys.repeat_interleave(group_size, dim=1)
        captured.append(attention_weights(queries, keys, visible))  # (B, H, T, S)

    was_training = model.training
    model.eval()
    hooks = [
        module.register_forward_pre_hook(capture)
        for name, module in model.decoder.named_modules()
        if name.endswith("cross_attention")
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
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(
        weights.float().cpu().numpy(), cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto"
    )
    axes.set_xticks(
        range(len(source_tokens)),
        [_label(token) for token in source_tokens],
        rotation=60,
        ha="right",
    )
    axes.set_yticks(range(len(target_tokens)), [_label(token) for token in target_tokens])
    axes.set_xlabel("source")
    axes.set_ylabel("predicted target token")
    figure.colorbar(image, ax=axes, label="attention")
    return figure


def _label(token: str) -> str:
    """A dollar sign would start a formula."""
    return token.strip().replace("$", r"\$") or "␣"
