"""The cross-attention weights of one translation: as a tensor and as a picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.updates import collate
from transformer_cli.decoding import Translator
from transformer_cli.decoding.pytorch_engine import PyTorchEngine, attended_layers
from transformer_cli.evaluation.picture_fonts import readable_labels
from transformer_cli.model import Transformer
from transformer_cli.process.messages import on_one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LABEL = 24
"""The most characters of a label."""
MAX_TOKENS = 40
"""The most tokens of a side in a picture. A model that is hardly trained writes hundreds, and their picture would take more memory than
the training."""


def attention_picture(translator: Translator, source: str, predicted: str) -> "Figure | None":
    """A picture of the cross-attention of the last decoder layer, averaged over its heads; of the first `MAX_TOKENS` of each side.

    Returns:
        None for a text without tokens, and for an engine other than the PyTorch engine.
    """
    pipeline, engine = translator.pipeline, translator.engine
    source_ids = pipeline.source_ids(pipeline.normalize_source(source))
    target_ids = pipeline.target_ids(predicted)
    if not (source_ids and target_ids and isinstance(engine, PyTorchEngine)):
        return None
    # The weights of a target token do not depend on the tokens after it; those of a source token depend on the whole source.
    first_ids = target_ids[:MAX_TOKENS]
    batch = collate(
        [TokenPair(source_ids, first_ids)],
        sos_id=engine.special_ids.sos_id,
        pad_id=engine.special_ids.pad_id,
        sequence_format=engine.sequence_format,
    ).to(engine.machine.device)
    inputs = batch.source_ids, batch.source_mask, batch.decoder_input_ids
    weights = cross_attention(engine.model, *inputs)[-1, 0].mean(0)[:, :MAX_TOKENS]
    source_tokens = pipeline.source_tokenizer.tokens(source_ids[:MAX_TOKENS])
    figure = draw_attention(weights, source_tokens, pipeline.target_tokenizer.tokens(first_ids))
    sides = {"source": len(source_ids), "target": len(target_ids)}
    cut = [
        f"{MAX_TOKENS} of {num} {side} tokens" for side, num in sides.items() if num > MAX_TOKENS
    ]
    if cut:
        figure.suptitle(f"the first {' and '.join(cut)}")
    return figure


@torch.inference_mode()
def cross_attention(
    model: Transformer, source_ids: Tensor, source_mask: Tensor, decoder_input_ids: Tensor
) -> Tensor:
    """The cross-attention weights of all decoder layers.

    Args:
        model: in eval mode, because dropout would change the numbers.
        source_ids: (B, S) int64.
        source_mask: (B, S) bool.
        decoder_input_ids: (B, T) int64, begins with [SOS].

    Returns:
        (layers, B, H, T, S): the weight that each target position gives to each source position; the sum
        over S is 1.
    """
    memory = model.encode(source_ids, source_mask)
    layers = attended_layers(model, decoder_input_ids, memory, source_mask)
    return torch.stack([layer.weights for layer in layers])


def draw_attention(
    weights: Tensor, source_tokens: Sequence[str], target_tokens: Sequence[str]
) -> "Figure":
    """Draw attention weights: the source from left to right, the target from top to bottom.

    Args:
        weights: (T, S); row t holds the weights with which target token t was predicted.
        source_tokens: S labels.
        target_tokens: T labels.
    """
    from matplotlib.figure import Figure

    num_source = len(source_tokens)
    labels, families = readable_labels(_labels([*source_tokens, *target_tokens]))
    of_source, of_target = labels[:num_source], labels[num_source:]
    width = 2.0 + 0.4 * num_source + _room_for(of_target)
    height = 1.6 + 0.32 * len(target_tokens) + _room_for(of_source)
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    shown = weights.float().cpu().numpy()
    image = axes.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(num_source), of_source, rotation=60, ha="right")
    axes.set_yticks(range(len(target_tokens)), of_target)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_fontfamily(families)
    axes.set_xlabel("source")
    axes.set_ylabel("predicted target token")
    figure.colorbar(image, ax=axes, label="attention")
    return figure


def _labels(tokens: Sequence[str]) -> list[str]:
    """The tokens for matplotlib, where a dollar sign without a backslash would begin a formula."""
    shown = (on_one_line(token.strip(), MAX_LABEL) for token in tokens)
    return [text.replace("$", r"\$") or "␣" for text in shown]


def _room_for(labels: Sequence[str]) -> float:
    """Inches for the part of the longest label beyond 8 characters; else labels would fill the picture."""
    return 0.11 * max(0, max(map(len, labels)) - 8)
