"""The model of a config as block diagrams: figure 1 of the paper with the names of the code, and the residual wirings."""

from typing import Any, Literal

import torch
from matplotlib.figure import Figure
from torch import nn

from transformer_cli.config import Config, ModelConfig, SequencesData
from transformer_cli.config.schema import NormPlacement
from transformer_cli.extensions.lessons.drawing.diagrams import (
    BOX_WIDTH,
    MARGIN,
    WIRINGS,
    Diagram,
    Point,
    Stack,
    SubLayer,
    Wiring,
    wiring_of,
)
from transformer_cli.extensions.lessons.drawing.theme import MAX_NAME, SMALL, TIMES, TITLE, Theme
from transformer_cli.model import Transformer
from transformer_cli.process.messages import on_one_line

TextSide = Literal["source", "target"]

_X: dict[TextSide, float] = {"source": 2.0, "target": 5.72}
_TEXTS: dict[TextSide, str] = {
    "source": "source sentences",
    "target": "target sentences, in training",
}
_IDS: dict[TextSide, str] = {
    "source": "source_ids  (B, S)",
    "target": "decoder_input_ids  (B, T)",
}
_TOKENIZERS = 0.52, 0.48
"""Bottom and height of the boxes of the tokenizers."""


def draw_architecture(config: Config, theme: Theme) -> Figure:
    """Encoder and decoder, from the tokenizers at the bottom to the logits at the top.

    The drawing follows a model that is built from the config, on a device that stores no numbers.
    """
    vocab_size = config.tokenizer.vocab_size
    with torch.device("meta"):
        model = Transformer(config.model, vocab_size or 8, vocab_size or 8)
    diagram = Diagram(10.0, theme)
    wiring = wiring_of(config.model.norm_placement)
    encoder = Stack(diagram, _X["source"], sum(_TOKENIZERS), "left")
    decoder = Stack(diagram, _X["target"], sum(_TOKENIZERS), "right")
    _draw_tokenizers(diagram, config)
    embedded = [
        _draw_embedding(encoder, model, "source"),
        _draw_embedding(decoder, model, "target"),
    ]
    _draw_layers(encoder, model, "encoder", wiring)
    reader = _draw_layers(decoder, model, "decoder", wiring)
    _draw_memory(encoder, reader)
    width = config.model.d_model
    output = decoder.add(("output", f"Projection: {width} → vocabulary"), "output")
    diagram.arrow((decoder.x, decoder.y), (decoder.x, decoder.y + 0.26))
    diagram.text((decoder.x, decoder.y + 0.38), "logits  (B, T, V)", size=SMALL)
    _draw_ties(diagram, config.model, embedded, output)
    _say_settings(diagram, config, model, decoder.y + 0.3)
    diagram.fit(decoder.y + 0.56)
    return diagram.figure


def _draw_tokenizers(diagram: Diagram, config: Config) -> None:
    """One box for each tokenizer: two, or one where the vocabulary is shared."""
    y, height = _TOKENIZERS
    size, kind = config.tokenizer.vocab_size, config.tokenizer.kind
    for side, x in _X.items():
        diagram.text((x, 0.18), _TEXTS[side], size=SMALL)
        diagram.arrow((x, 0.28), (x, y))
    text = f"{kind}, {size:,} tokens" if size else kind
    if isinstance(config.data, SequencesData):
        text = f"symbols of the task {config.data.task}"
    if config.tokenizer.shared:
        left = _X["source"] - BOX_WIDTH / 2
        width = _X["target"] + BOX_WIDTH / 2 - left
        diagram.box((left, y), (width, height), ("one tokenizer for both", text))
        return
    for side, x in _X.items():
        corner = x - BOX_WIDTH / 2, y
        diagram.box(corner, (BOX_WIDTH, height), (f"{side} tokenizer", text))


def _draw_embedding(stack: Stack, model: Transformer, side: TextSide) -> Point:
    """Embedding, positions, and a norm if there is one; returns the middle of the embedding."""
    config = model.config
    own = getattr(model, f"{side}_embedding")
    scale = f", times sqrt({config.d_model})" if config.scale_embeddings else ""
    table = "Embedding" if own is not None else "the table of output"
    stack.diagram.text(
        (stack.x + 0.12, stack.y + 0.17),
        _IDS[side],
        size=SMALL,
        ha="left",
        color=stack.diagram.theme.muted,
    )
    middle = stack.add((f"{side}_embedding", f"{table}{scale}"), "embedding", gap=0.34)
    positions = type(getattr(model, f"{side}_positions")).__name__
    if positions != "NoPositions":
        stack.add((f"{side}_positions", f"adds {positions}"), "embedding")
    if not isinstance(getattr(model, f"{side}_embedding_norm"), nn.Identity):
        stack.add((f"{side}_embedding_norm",), "norm")
    return middle


def _draw_layers(stack: Stack, model: Transformer, name: str, wiring: Wiring) -> Point:
    """The layers as one group, and the final norm; returns the middle of the last attention."""
    bottom = stack.y + 0.12
    stack.diagram.line((stack.x, stack.y), (stack.x, bottom))
    stack.y = bottom
    middle = stack.x, stack.y
    part: Any = getattr(model, name)
    layer = part.layers[0]
    for sublayer in _sublayers(layer, name, model.config):
        place = stack.add_sublayer(sublayer, wiring)
        middle = place if sublayer.name.endswith("attention") else middle
    stack.frame(bottom, f"{len(part.layers)} {TIMES} {type(layer).__name__}")
    if not isinstance(part.norm, nn.Identity):
        stack.add((f"{name}.norm",), "norm")
    return middle


def _sublayers(layer: nn.Module, name: str, config: ModelConfig) -> list[SubLayer]:
    """The sub-layers of a layer of the encoder or decoder, in order."""
    masks = {"self_attention": "causal_mask" if name == "decoder" else "padding_mask"}
    masks["cross_attention"] = "padding_mask"
    found = []
    for child, module in layer.named_children():
        if child.endswith("attention"):
            is_turned = config.positions == "rotary" and child == "self_attention"
            rotary = "rotary positions" if is_turned else None
            lines = _attention_lines(module, masks[child], rotary)
            found.append(SubLayer(child, lines, "attention"))
        elif child == "ssru":
            lines = (
                type(module).__name__,
                "f: forget gate, c: state",
                "c = f c + (1 - f) W x; ReLU(c)",
            )
            found.append(SubLayer(child, lines, "recurrence"))
        elif child == "feed_forward":
            lines = _feed_forward_lines(module, config.activation)
            found.append(SubLayer(child, lines, "feed_forward"))
    return found


def _attention_lines(attention: Any, mask: str, rotary: str | None) -> tuple[str, ...]:
    heads, groups = attention.num_heads, attention.num_kv_heads
    width = attention.query.out_features // heads
    shared = f"; {groups} heads of keys" if groups != heads else ""
    lines = [f"{type(attention).__name__}, {mask}", f"{heads} heads of {width}{shared}"]
    if rotary is not None:
        lines.append(rotary)
    if not isinstance(attention.query_norm, nn.Identity):
        lines.append("query_norm, key_norm")
    return tuple(lines)


def _feed_forward_lines(feed_forward: Any, activation: str) -> tuple[str, ...]:
    outer, inner = feed_forward.up.in_features, feed_forward.up.out_features
    return type(feed_forward).__name__, f"{outer} → {inner} → {outer}, {activation}"


def _draw_memory(encoder: Stack, reader: Point) -> None:
    """The output of the encoder, on its way to the keys and values of the cross-attention of each decoder layer."""
    diagram, top = encoder.diagram, encoder.y + 0.24
    between = (_X["source"] + _X["target"]) / 2
    edge = reader[0] - BOX_WIDTH / 2
    diagram.line((encoder.x, encoder.y), (encoder.x, top), (between, top), (between, reader[1] - 0.13))
    for name, y in (("K", reader[1] + 0.13), ("V", reader[1] - 0.13)):
        diagram.arrow((between, y), (edge, y))
        diagram.text((edge - 0.2, y + 0.11), name, size=SMALL)
    diagram.text((encoder.x + 0.1, top + 0.14), "memory  (B, S, D)", size=SMALL, ha="left")


def _draw_ties(diagram: Diagram, config: ModelConfig, embedded: list[Point], output: Point) -> None:
    """Dashed lines between boxes that use one table."""
    if config.tie_embeddings == "none":
        return
    color = diagram.theme.lines[3]
    source, target = embedded
    right, side = BOX_WIDTH / 2, BOX_WIDTH / 2 + MARGIN + 0.16
    diagram.line(
        (target[0] + right, target[1]),
        (target[0] + side, target[1]),
        (target[0] + side, output[1]),
        (output[0] + right, output[1]),
        dashed=True,
        color=color,
    )
    text = f"one table    tie_embeddings: {config.tie_embeddings}"
    middle = (target[1] + output[1]) / 2
    diagram.text((target[0] + side + 0.15, middle), text, size=SMALL, color=color, rotation=90)
    if config.tie_embeddings == "all":
        diagram.line((source[0] + right, source[1]), (target[0] - right, target[1]), dashed=True, color=color)
        place = (source[0] + target[0]) / 2, source[1] + 0.14
        diagram.text(place, "one table", size=SMALL, color=color)


def _say_settings(diagram: Diagram, config: Config, model: Transformer, top: float) -> None:
    """The name of the config and the settings that the boxes do not show, in the free corner."""
    left = _X["source"] - BOX_WIDTH / 2 - MARGIN
    diagram.text((left, top), on_one_line(config.name, MAX_NAME), size=TITLE, weight="bold", ha="left")
    settings = config.model
    lines = [
        f"d_model: {settings.d_model}",
        f"norm: {settings.norm}",
        f"norm_placement: {settings.norm_placement}",
        f"positions: {settings.positions}",
        *_dropout_lines(settings),
    ]
    if config.tokenizer.vocab_size:
        lines.append(f"{sum(each.numel() for each in model.parameters()):,} parameters")
    for number, line in enumerate(lines, 1):
        place = left, top - 0.06 - 0.22 * number
        diagram.text(place, line, size=SMALL, ha="left", color=diagram.theme.muted)


def _dropout_lines(config: ModelConfig) -> list[str]:
    """The dropout rates; those that are 0 are left out, but for that of sub-layers."""
    others = [f"{name}: {rate:g}" for name in ("attention_dropout", "ff_dropout") if (rate := getattr(config, name))]
    return [f"dropout: {config.dropout:g} after each sub-layer and embedding", *others]


_WIRING_NAMES: dict[NormPlacement, str] = {
    "pre": "Xiong et al. 2020",
    "post": "the paper",
    "residual_of_normed": "Hello Transformer",
}
_WIRING_TEXTS = {
    "sublayer": ("f: the sub-layer", "attention or feed-forward"),
    "norm": ("norm",),
    "dropout": ("dropout",),
}
_WIRING_KINDS = {"sublayer": "attention", "norm": "norm", "dropout": "plain"}
_PANEL_WIDTH, _PANEL_LEFT, _WIRING_BOX, _PANEL_HEIGHT = 2.54, 0.1, (1.86, 0.42), 4.75
_WIRING_PITCH = 0.64


def draw_residuals(config: Config, theme: Theme) -> Figure:
    """The wirings side by side; that of the config has a thick border."""
    diagram = Diagram(_PANEL_HEIGHT, theme)
    for number, placement in enumerate(WIRINGS):
        left = _PANEL_LEFT + number * (_PANEL_WIDTH + 0.09)
        is_chosen = placement == config.model.norm_placement
        border = theme.lines[1] if is_chosen else None
        diagram.panel((left, 0.42), (_PANEL_WIDTH, _PANEL_HEIGHT - 0.52), color=border)
        middle = left + _PANEL_WIDTH / 2
        diagram.text((middle, _PANEL_HEIGHT - 0.32), placement, size=TITLE, weight="bold")
        diagram.text((middle, _PANEL_HEIGHT - 0.58), _WIRING_NAMES[placement], size=SMALL, color=theme.muted)
        if is_chosen:
            used = f"in {on_one_line(config.name, MAX_NAME)}"
            diagram.text((middle, 0.2), used, size=SMALL, color=theme.lines[1], weight="bold")
        _draw_wiring(diagram, wiring_of(placement), middle)
    return diagram.figure


def _draw_wiring(diagram: Diagram, wiring: Wiring, x: float) -> None:
    """One wiring, from x at the bottom to the output at the top."""
    width, height = _WIRING_BOX
    diagram.text((x, 0.6), "x", weight="bold")
    fork = below = 0.86
    diagram.line((x, 0.7), (x, fork))
    side = x + width / 2 + 0.18
    y = 1.02
    for step in wiring.branch:
        diagram.arrow((x, below), (x, y))
        diagram.box((x - width / 2, y), _WIRING_BOX, _WIRING_TEXTS[step], _WIRING_KINDS[step])
        below, y = y + height, y + _WIRING_PITCH
    center = y + 0.06
    radius = diagram.sum((x, center))
    diagram.arrow((x, below), (x, center - radius))
    diagram.arrow((x, fork), (side, fork), (side, center), (x + radius, center))
    below, y = center + radius, center + 0.38
    for step in wiring.after_sum:
        diagram.arrow((x, below), (x, y))
        diagram.box((x - width / 2, y), _WIRING_BOX, _WIRING_TEXTS[step], _WIRING_KINDS[step])
        below, y = y + height, y + _WIRING_PITCH
    diagram.arrow((x, below), (x, below + 0.26))
    formula = wiring.formula.replace("sublayer", "f")
    diagram.text((x, _PANEL_HEIGHT - 0.84), formula, size=SMALL, family="monospace")
