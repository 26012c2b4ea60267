"""How a run has learned, as lines for people: the same sentences at each validation."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from transformer_cli.extensions.lessons.commands.explaining.paint import (
    Paint,
    bar,
    block,
    names_downwards,
    padded,
)
from transformer_cli.extensions.lessons.explaining.learning import Moment, WatchedSentence, films
from transformer_cli.process.escaping import on_one_line

_BAR_WIDTH = 10


def learning_lines(run: str, moments: Sequence[Moment], paint: Paint, width: int) -> Iterator[str]:
    """A table of translations for each sentence, and a film strip of its cross-attention."""
    yield paint(f"{run}: {len(moments)} validations", "heading")
    for film in films(moments):
        _, newest = film[-1]
        yield ""
        yield f"source     {on_one_line(newest.source)}"
        yield f"reference  {on_one_line(newest.target)}"
        yield paint(f"  {'step':>8}  {'confidence':<{_BAR_WIDTH + 5}}  translation", "heading")
        for step, sentence in film:
            share = f"{sentence.confidence:>4.0%} {bar(sentence.confidence, _BAR_WIDTH)}"
            yield f"  {step:>8}  {share}  {on_one_line(sentence.translation)}"
        yield from _strip(film, paint, width)


def _strip(film: Sequence[tuple[int, WatchedSentence]], paint: Paint, width: int) -> Iterator[str]:
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
                "".join(map(block, weights[row].tolist())) if row < weights.shape[0] else ""
                for _, weights in shown
            )
            line = "".join(f"{one:<{column}}" for one in cells).rstrip()
            yield f"  {paint(line, 'weight')}"
