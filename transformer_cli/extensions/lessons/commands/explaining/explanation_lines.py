"""An explanation as lines for people, from the pieces of the source to the translation."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from transformer_cli.extensions.lessons.commands.explaining.paint import (
    Paint,
    block,
    names_downwards,
    padded,
)
from transformer_cli.extensions.lessons.commands.explaining.search_lines import (
    hypothesis_lines,
    step_lines,
)
from transformer_cli.extensions.lessons.explaining.explanation import (
    ExplainedSentence,
    LineExplanation,
    TensorShapes,
)
from transformer_cli.process.escaping import on_one_line

_PIECE_WIDTH = 14
_MAX_POSITION_COLUMNS = 48


def explanation_lines(explanation: LineExplanation, paint: Paint, width: int) -> Iterator[str]:
    """The whole explanation; the first line is the translation.

    Args:
        width: number of columns that the lines should not exceed.
    """
    yield paint(on_one_line(explanation.translation), "chosen")
    num_sentences = len(explanation.sentences)
    for number, sentence in enumerate(explanation.sentences, start=1):
        which = f" {number} of {num_sentences}" if num_sentences > 1 else ""
        yield ""
        yield paint(f"sentence{which}: {on_one_line(sentence.source.text)}", "heading")
        sections = (
            ("pieces and ids that the encoder reads", _pieces(sentence)),
            (f"positions: {sentence.positions.kind}", _positions(sentence)),
            ("masks: ■ may be read, · may not", _masks(sentence)),
            (_title_of_shapes(explanation, sentence), _shapes(sentence.tensors)),
            ("attention: mean over the heads, by layer", _attention(sentence, paint, width)),
            ("decoding, step by step", step_lines(explanation, sentence, paint, width)),
            ("hypotheses", hypothesis_lines(sentence, paint)),
        )
        for place, (title, lines) in enumerate(sections, start=1):
            yield ""
            yield paint(f"{place}. {title}", "heading")
            yield from lines


def _pieces(sentence: ExplainedSentence) -> Iterator[str]:
    yield f"  {'position':>8} {'id':>7}  {padded('piece', _PIECE_WIDTH)}  characters"
    for place, token in enumerate(sentence.source.tokens):
        span = "" if token.start is None else f"{token.start}-{token.end}"
        yield f"  {place:>8} {token.id:>7}  {padded(token.piece, _PIECE_WIDTH)}  {span}"


def _positions(sentence: ExplainedSentence) -> Iterator[str]:
    positions = sentence.positions
    if positions.source is None:
        yield "  the model gets no positions: it can tell the order from the causal mask alone"
        return
    of_source = positions.source.values
    shown = of_source[:, :: max(1, -(-of_source.shape[1] // _MAX_POSITION_COLUMNS))]
    what = (
        "added to each embedding" if positions.meaning == "added" else "sines and cosines of angles"
    )
    yield f"  {what}: {of_source.shape[1]} numbers for each position, from {positions.source.low:.3g} to {positions.source.high:.3g}; darker is larger"
    low, high = positions.source.low, positions.source.high
    for token, row in zip(sentence.source.tokens, shown, strict=True):
        cells = "".join(block((value - low) / (high - low)) for value in row.tolist())
        yield f"  {padded(token.piece, _PIECE_WIDTH)} {cells}"


def _masks(sentence: ExplainedSentence) -> Iterator[str]:
    masks = sentence.masks
    read, written = sentence.source.tokens, sentence.decoder_input
    yield f"  encoder: {_visibility(masks.encoder.values)}"
    yield f"  cross-attention: {_visibility(masks.cross.values)}"
    yield f"  decoder: {_visibility(masks.decoder.values)}"
    del read
    for token, row in zip(written, masks.decoder.values.tolist(), strict=True):
        cells = " ".join("■" if cell else "·" for cell in row)
        yield f"    {padded(token.piece, _PIECE_WIDTH)} {cells}"


def _visibility(mask: NDArray[np.float32]) -> str:
    num_rows, num_columns = mask.shape
    if mask.all():
        return f"each of {num_rows} positions reads all {num_columns}"
    if num_rows == num_columns and (mask == np.tril(np.ones_like(mask))).all():
        return "each position reads itself and those before it (the causal mask)"
    return f"{int(mask.sum())} of {mask.size} pairs may be read"


def _title_of_shapes(explanation: LineExplanation, sentence: ExplainedSentence) -> str:
    model = explanation.model
    num_source, num_target = len(sentence.source.tokens), len(sentence.decoder_input)
    return (
        f"shapes: 1 sentence, {num_source} source and {num_target} target positions, d_model {model['d_model']}, "
        f"{model['num_heads']} heads of {model['head_width']}"
    )


def _shapes(tensors: Sequence[TensorShapes]) -> Iterator[str]:
    """Each module with its shapes; a layer with the shapes of the layer before it takes one line."""
    groups: list[tuple[str, list[TensorShapes]]] = []
    for one in tensors:
        layer = ".".join(one.name.split(".")[:3]) if ".layers." in one.name else ""
        if not groups or groups[-1][0] != layer:
            groups.append((layer, []))
        groups[-1][1].append(one)
    shown: dict[str, list[str]] = {}
    for layer, of_group in groups:
        rows = [_row(one, layer) for one in of_group]
        stack = layer.split(".")[0]
        if layer and shown.get(stack) == rows:
            yield f"  {layer}: the same shapes as the layer before it"
            continue
        if layer:
            shown[stack] = rows
            yield f"  {layer}"
        yield from (f"  {'  ' if layer else ''}{row}" for row in rows)


def _row(one: TensorShapes, layer: str) -> str:
    name = one.name.removeprefix(layer).removeprefix(".") or ("the layer" if layer else "the model")
    inputs = ", ".join(map(_shape, one.inputs))
    note = "" if one.operation == "forward" else f"  ({one.operation})"
    return f"{name:<32} {inputs} -> {_shape(one.output)}{note}"


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _attention(sentence: ExplainedSentence, paint: Paint, width: int) -> Iterator[str]:
    attention = sentence.attention
    source = [token.piece for token in sentence.source.tokens]
    read = [token.piece for token in sentence.decoder_input]
    predicted = [token.piece for token in sentence.hypotheses[0].tokens]
    yield "  a row reads the columns, whose names are written downwards; darker is more"
    kinds = (
        ("encoder", attention.encoder.values, source, source),
        ("decoder, by the token that it reads", attention.decoder.values, read, read),
        (
            "cross-attention, by the token that it predicts",
            attention.cross.values,
            predicted,
            source,
        ),
    )
    for title, weights, rows, columns in kinds:
        yield f"  {title}"
        yield from _grids(weights.mean(1), (rows, columns), paint, width)
    best = attention.aligning_layer
    yield f"  cross-attention of each head of layer {best}, from which words are aligned"
    yield from _grids(attention.cross.values[best], (predicted, source), paint, width, of="head")


def _grids(
    weights: NDArray[np.float32],
    names: tuple[Sequence[str], Sequence[str]],
    paint: Paint,
    width: int,
    of: str = "layer",
) -> Iterator[str]:
    """(N, Q, C): N pictures of weights side by side, as many as fit; the names are those of rows and of columns."""
    rows, columns = names
    num_pictures, _, num_columns = weights.shape
    column = max(num_columns, len(of) + 3) + 2
    at_once = max(1, (width - _PIECE_WIDTH - 5) // column)
    for first in range(0, num_pictures, at_once):
        numbers = range(first, min(first + at_once, num_pictures))
        titles = "".join(f"{f'{of} {number}':<{column}}" for number in numbers)
        yield f"    {'':<{_PIECE_WIDTH}} {titles.rstrip()}"
        for line in names_downwards(columns):
            yield f"    {'':<{_PIECE_WIDTH}} {f'{line:<{column}}' * len(numbers)}".rstrip()
        for place, row in enumerate(rows):
            cells = (
                f"{''.join(map(block, weights[number, place].tolist())):<{column}}"
                for number in numbers
            )
            yield f"    {padded(row, _PIECE_WIDTH)} {paint(''.join(cells).rstrip(), 'weight')}"
