"""Explanations as lines for a terminal or a file: one sentence from its pieces to its translation, and how a run has learned."""

import os
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TextIO

import numpy as np
from numpy.typing import NDArray
from tqdm.utils import disp_len, disp_trim

from transformer_cli.extensions.lessons.explaining.explanation import (
    BeamNode,
    ExplainedSentence,
    LineExplanation,
    TargetToken,
    TensorShapes,
)
from transformer_cli.extensions.lessons.explaining.learning import Moment, WatchedSentence, films
from transformer_cli.process.messages import on_one_line

_CODES = {"heading": "1", "chosen": "1;32", "finished": "36", "dropped": "2", "weight": "34"}
_BLOCKS = " ·░▒▓█"
_MAX_NAME = 5  # characters of the name of a column


@dataclass(frozen=True, slots=True)
class Paint:
    """Puts colours around texts, or leaves them as they are."""

    has_colors: bool

    @classmethod
    def of(cls, output: TextIO, environment: Mapping[str, str] = os.environ) -> "Paint":
        """Colours for a terminal, unless NO_COLOR is set."""
        is_wanted = not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
        return cls(output.isatty() and is_wanted)

    def __call__(self, text: str, style: str) -> str:
        """The text in the colour of a style; `kept` is an ordinary text."""
        code = _CODES.get(style)
        return text if code is None or not self.has_colors else f"\x1b[{code}m{text}\x1b[0m"


def block(share: float) -> str:
    """A character for a number from 0 to 1; a space stands for less than 0.05."""
    if share < 0.05:
        return _BLOCKS[0]
    return _BLOCKS[min(len(_BLOCKS) - 1, 1 + int(share * (len(_BLOCKS) - 1)))]


def bar(share: float, width: int) -> str:
    """A bar for a number from 0 to 1."""
    return f"{'█' * round(share * width):<{width}}"


def names_downwards(names: Sequence[str]) -> list[str]:
    """Lines that name columns of one character each: every name is written from top to bottom.

    A name is cut to five characters. A name with a character that is not one column wide, such as a Chinese one, becomes
    the number of its column, from 0.
    """
    shown = [
        name if all(map(_is_one_column, name)) else str(place) for place, name in enumerate(map(_without_spaces, names))
    ]
    height = min(max(map(len, shown), default=0), _MAX_NAME)
    return ["".join(name[line : line + 1] or " " for name in shown) for line in range(height)]


def _is_one_column(character: str) -> bool:
    return unicodedata.category(character)[0] not in "MC" and disp_len(character) == 1


def _without_spaces(name: str) -> str:
    return on_one_line(name).strip()


def padded(text: str, width: int) -> str:
    """A text of a corpus on one line, cut or filled to a number of columns; a Chinese character takes two."""
    shown = on_one_line(text)
    if disp_len(shown) > width:
        shown = f"{disp_trim(shown, width - 1)}…"
    return shown + " " * (width - disp_len(shown))


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
            (
                _title_of_shapes(explanation, sentence),
                _shapes(sentence.tensors, explanation.model["head_width"]),
            ),
            ("attention: mean over the heads, by layer", _attention(sentence, paint, width)),
            ("decoding, step by step", step_lines(explanation, sentence, paint, width)),
            (_title_of_hypotheses(explanation, sentence), hypothesis_lines(sentence, paint)),
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
        what = "causal mask" if sentence.masks.decoder is not None else "state of the SSRUs"
        yield f"  the model gets no positions: it can tell the order from the {what} alone"
        return
    source_values = positions.source.values
    step = -(-source_values.shape[1] // _MAX_POSITION_COLUMNS)
    # Sines and cosines stand in turn: an even step shows sines alone, whose waves can be seen.
    shown = source_values[:, :: step if step == 1 else step + step % 2]
    what = "added to each embedding" if positions.meaning == "added" else "sines and cosines of angles"
    yield f"  {what}: {source_values.shape[1]} numbers for each position, from {positions.source.low:.3g} to {positions.source.high:.3g}; darker is larger"
    low, high = positions.source.low, positions.source.high
    for token, row in zip(sentence.source.tokens, shown, strict=True):
        cells = "".join(block((value - low) / (high - low)) for value in row.tolist())
        yield f"  {padded(token.piece, _PIECE_WIDTH)} {cells}"


def _masks(sentence: ExplainedSentence) -> Iterator[str]:
    masks = sentence.masks
    yield f"  encoder: {_visibility(masks.encoder.values)}"
    yield f"  cross-attention: {_visibility(masks.cross.values)}"
    if masks.decoder is None:
        yield f"  decoder: {_SSRU}"
        return
    yield f"  decoder: {_visibility(masks.decoder.values)}"
    for token, row in zip(sentence.decoder_input, masks.decoder.values.tolist(), strict=True):
        cells = " ".join("■" if cell else "·" for cell in row)
        yield f"    {padded(token.piece, _PIECE_WIDTH)} {cells}"


_SSRU = "an SSRU in place of self-attention; its state carries the earlier positions, so there is no mask and no weight"


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


def _shapes(tensors: Sequence[TensorShapes], head_width: int) -> Iterator[str]:
    """Each module with its shapes; a layer with the shapes of the layer before it takes one line."""
    groups: list[tuple[str, list[TensorShapes]]] = []
    for one in tensors:
        layer = ".".join(one.name.split(".")[:3]) if ".layers." in one.name else ""
        if not groups or groups[-1][0] != layer:
            groups.append((layer, []))
        groups[-1][1].append(one)
    shown: dict[str, list[str]] = {}
    for layer, layer_tensors in groups:
        rows = [_row(one, layer, head_width) for one in layer_tensors]
        stack = layer.split(".")[0]
        if layer and shown.get(stack) == rows:
            yield f"  {layer}: the same shapes as the layer before it"
            continue
        if layer:
            shown[stack] = rows
            yield f"  {layer}"
        yield from (f"  {'  ' if layer else ''}{row}" for row in rows)


def _row(one: TensorShapes, layer: str, head_width: int) -> str:
    name = one.name.removeprefix(layer).removeprefix(".") or ("the layer" if layer else "the model")
    inputs = ", ".join(map(_shape, one.inputs))
    note = "" if one.operation == "forward" else f"  ({one.operation})"
    if note and one.module == "Linear":
        note = "  (embedding, which shares this table)"
    if one.name.endswith(("attention.query", "attention.key", "attention.value")):
        *places, width = one.output
        note = f", as heads {_shape((*places[:-1], width // head_width, places[-1], head_width))}"
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
        (
            "decoder, by the token that it reads",
            None if attention.decoder is None else attention.decoder.values,
            read,
            read,
        ),
        (
            "cross-attention, by the token that it predicts",
            attention.cross.values,
            predicted,
            source,
        ),
    )
    for title, weights, rows, columns in kinds:
        if weights is None:
            yield f"  decoder: {_SSRU}"
            continue
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
            cells = (f"{''.join(map(block, weights[number, place].tolist())):<{column}}" for number in numbers)
            yield f"    {padded(row, _PIECE_WIDTH)} {paint(''.join(cells).rstrip(), 'weight')}"


_PROBABILITY_BAR_WIDTH = 16
_MAX_DROPPED = 4
_LEAST_ROOM = 20  # columns of a text
_SIGNS = {"chosen": "*", "kept": "+", "finished": "=", "dropped": "-"}


def step_lines(explanation: LineExplanation, sentence: ExplainedSentence, paint: Paint, width: int) -> Iterator[str]:
    """For each step of the decoder: what it reads, the probabilities of the next token, and the beam."""
    search, nodes = explanation.search, sentence.beam.nodes
    yield (
        f"  beam {search['beam_size']}, score = log-probability / length penalty "
        f"({search['length_normalization']}, alpha {search['length_penalty']:g}); "
        "* on the best path, + kept, = finished, - dropped"
    )
    texts = _texts(nodes, max(_LEAST_ROOM, width) + 1)
    best = sentence.hypotheses[0].tokens
    for step in range(1, 1 + max(node.step for node in nodes)):
        step_nodes = sorted((one for one in nodes if one.step == step), key=lambda one: -one.score)
        yield ""
        if step <= len(best):
            reads = on_one_line(sentence.decoder_input[step - 1].piece)
            yield paint(f"  step {step}: reads {reads}", "heading")
            yield from _alternatives(best[step - 1], paint)
        else:
            yield paint(f"  step {step}, behind the end of the best hypothesis", "heading")
        yield from _beam(step_nodes, texts, paint, width)


def _alternatives(token: TargetToken, paint: Paint) -> Iterator[str]:
    shown = [(one.id, one.piece, one.probability) for one in token.alternatives]
    if token.id not in {index for index, _, _ in shown}:
        shown.append((token.id, token.piece, token.probability))
    for index, piece, probability in shown:
        row = f"    {probability:>6.1%} {bar(probability, _PROBABILITY_BAR_WIDTH)} {padded(piece, _PIECE_WIDTH)}"
        yield paint(row.rstrip(), "chosen" if index == token.id else "kept")


def _beam(nodes: list[BeamNode], texts: dict[int, str], paint: Paint, width: int) -> Iterator[str]:
    num_dropped = 0
    for node in nodes:
        num_dropped += node.state == "dropped"
        if node.state == "dropped" and num_dropped > _MAX_DROPPED:
            continue
        numbers = f"{node.score:>8.3f} = {node.total:>8.3f} / {node.length_penalty:.3f}"
        room = max(_LEAST_ROOM, width - len(numbers) - 10)
        text = padded(_end_of(texts[node.node], room), room).rstrip()
        yield paint(f"      {_SIGNS[node.state]} {numbers}  {text}", node.state)
    if num_dropped > _MAX_DROPPED:
        yield paint(f"      - and {num_dropped - _MAX_DROPPED} more that were dropped", "dropped")


def _end_of(text: str, room: int) -> str:
    """The end of a text, in at most so many columns; a Chinese character takes two."""
    # No character has less than one column. Measuring the whole of long texts, again and again, took most of the time.
    if len(text) <= room and disp_len(text) <= room:
        return text
    return f"…{disp_trim(text[: -room - 1 : -1], room - 1)[::-1]}"


def _texts(nodes: tuple[BeamNode, ...], width: int) -> dict[int, str]:
    """The pieces from the root to each node, with a space between them; of long texts, the end that is shown, and a little more."""
    texts: dict[int, str] = {}
    for node in nodes:
        before = "" if node.parent is None else texts[node.parent]
        piece = "" if node.parent is None else on_one_line(node.piece)
        texts[node.node] = f"{before} {piece}".strip()[-width:]
    return texts


def _title_of_hypotheses(explanation: LineExplanation, sentence: ExplainedSentence) -> str:
    num_shown = len(sentence.hypotheses)
    num_ended = sum(one.state == "finished" or one.hypothesis is not None for one in sentence.beam.nodes)
    if num_shown >= min(num_ended, explanation.search["beam_size"]):
        return "hypotheses"
    return f"hypotheses: the best {num_shown} of {num_ended} that have ended; --n-best shows more"


def hypothesis_lines(sentence: ExplainedSentence, paint: Paint) -> Iterator[str]:
    """The hypotheses that the search found, best first, and the word alignment of the best one."""
    for rank, one in enumerate(sentence.hypotheses, start=1):
        numbers = f"{one.score:>8.3f} = {one.log_probability:>8.3f} / {one.length_penalty:.3f}"
        row = f"  {rank}  {numbers}  {on_one_line(one.text)}"
        yield paint(row, "chosen" if rank == 1 else "kept")
    best, source = sentence.hypotheses[0], sentence.source
    links = [
        f"{_word(source.text, source.words[source_word])}-{_word(best.text, best.words[target_word])}"
        for source_word, target_word in best.links
    ]
    if links:
        yield f"  words: {'  '.join(links)}"


def _word(text: str, span: tuple[int, int]) -> str:
    return on_one_line(text[span[0] : span[1]])


_CONFIDENCE_BAR_WIDTH = 10


def learning_lines(run: str, moments: Sequence[Moment], paint: Paint, width: int) -> Iterator[str]:
    """A table of translations for each sentence, and a film strip of its cross-attention."""
    yield paint(f"{run}: {len(moments)} validations", "heading")
    for film in films(moments):
        _, newest = film[-1]
        yield ""
        yield f"source     {on_one_line(newest.source)}"
        yield f"reference  {on_one_line(newest.target)}"
        yield paint(f"  {'step':>8}  {'confidence':<{_CONFIDENCE_BAR_WIDTH + 5}}  translation", "heading")
        for step, sentence in film:
            share = f"{sentence.confidence:>4.0%} {bar(sentence.confidence, _CONFIDENCE_BAR_WIDTH)}"
            yield f"  {step:>8}  {share}  {on_one_line(sentence.translation)}"
        yield from _attention_strip(film, paint, width)


def _attention_strip(film: Sequence[tuple[int, WatchedSentence]], paint: Paint, width: int) -> Iterator[str]:
    """The pictures side by side, as many as fit; rows are tokens of the translation, columns those of the source."""
    pictures = [(step, one.attention) for step, one in film if one.attention is not None]
    columns = {step: names_downwards(one.source_pieces) for step, one in film}
    if not pictures:
        return
    column = max(max(weights.shape[1] for _, weights in pictures), len("step 100000")) + 2
    at_once = max(1, (width - 2) // column)
    yield ""
    yield "  attention: a row is a token of the translation of this step, a column a piece of the source"
    for first in range(0, len(pictures), at_once):
        shown = pictures[first : first + at_once]
        yield ""
        yield f"  {''.join(padded(f'step {step}', column) for step, _ in shown)}".rstrip()
        for parts in zip_longest(*(columns[step] for step, _ in shown), fillvalue=""):
            yield f"  {''.join(padded(one, column) for one in parts)}".rstrip()
        for row in range(max(weights.shape[0] for _, weights in shown)):
            cells = (
                "".join(map(block, weights[row].tolist())) if row < weights.shape[0] else "" for _, weights in shown
            )
            line = "".join(f"{one:<{column}}" for one in cells).rstrip()
            yield f"  {paint(line, 'weight')}"
