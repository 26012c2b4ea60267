"""The search as lines for people: each step with its most probable tokens, and what the beam kept."""

from collections.abc import Iterator

from transformer_cli.extensions.lessons.commands.explaining.paint import Paint, bar, padded
from transformer_cli.extensions.lessons.explaining.explanation import (
    BeamNode,
    ExplainedSentence,
    LineExplanation,
    TargetToken,
)
from transformer_cli.process.escaping import on_one_line

_PIECE_WIDTH = 14
_BAR_WIDTH = 16
_MAX_DROPPED = 4
_SIGNS = {"chosen": "*", "kept": "+", "finished": "=", "dropped": "-"}


def step_lines(
    explanation: LineExplanation, sentence: ExplainedSentence, paint: Paint, width: int
) -> Iterator[str]:
    """For each step of the decoder: what it reads, the probabilities of the next token, and the beam."""
    search, nodes = explanation.search, sentence.beam.nodes
    yield (
        f"  beam {search['beam_size']}, score = log-probability / length penalty "
        f"({search['length_normalization']}, alpha {search['length_penalty']:g}); "
        "* on the best path, + kept, = finished, - dropped"
    )
    texts = _texts(nodes)
    best = sentence.hypotheses[0].tokens
    for step in range(1, 1 + max(node.step for node in nodes)):
        of_step = sorted((one for one in nodes if one.step == step), key=lambda one: -one.score)
        yield ""
        if step <= len(best):
            reads = on_one_line(sentence.decoder_input[step - 1].piece)
            yield paint(f"  step {step}: reads {reads}", "heading")
            yield from _alternatives(best[step - 1], paint)
        else:
            yield paint(f"  step {step}, behind the end of the best hypothesis", "heading")
        yield from _beam(of_step, texts, paint, width)


def _alternatives(token: TargetToken, paint: Paint) -> Iterator[str]:
    shown = [(one.id, one.piece, one.probability) for one in token.alternatives]
    if token.id not in {index for index, _, _ in shown}:
        shown.append((token.id, token.piece, token.probability))
    for index, piece, probability in shown:
        row = (
            f"    {probability:>6.1%} {bar(probability, _BAR_WIDTH)} {padded(piece, _PIECE_WIDTH)}"
        )
        yield paint(row.rstrip(), "chosen" if index == token.id else "kept")


def _beam(nodes: list[BeamNode], texts: dict[int, str], paint: Paint, width: int) -> Iterator[str]:
    num_dropped = 0
    for node in nodes:
        num_dropped += node.state == "dropped"
        if node.state == "dropped" and num_dropped > _MAX_DROPPED:
            continue
        numbers = f"{node.score:>8.3f} = {node.total:>8.3f} / {node.length_penalty:.3f}"
        room = max(20, width - len(numbers) - 10)
        text = padded(_end_of(texts[node.node], room), room).rstrip()
        yield paint(f"      {_SIGNS[node.state]} {numbers}  {text}", node.state)
    if num_dropped > _MAX_DROPPED:
        yield paint(f"      - and {num_dropped - _MAX_DROPPED} more that were dropped", "dropped")


def _end_of(text: str, room: int) -> str:
    return text if len(text) <= room else f"…{text[1 - room :]}"


def _texts(nodes: tuple[BeamNode, ...]) -> dict[int, str]:
    """The pieces from the root to each node, with a space between them."""
    texts: dict[int, str] = {}
    for node in nodes:
        before = "" if node.parent is None else texts[node.parent]
        piece = "" if node.parent is None else on_one_line(node.piece)
        texts[node.node] = f"{before} {piece}".strip()
    return texts


def hypothesis_lines(sentence: ExplainedSentence, paint: Paint) -> Iterator[str]:
    """The hypotheses that the search found, best first, and the word alignment of the best one."""
    for rank, one in enumerate(sentence.hypotheses, start=1):
        numbers = f"{one.score:>8.3f} = {one.log_probability:>8.3f} / {one.length_penalty:.3f}"
        row = f"  {rank}  {numbers}  {on_one_line(one.text)}"
        yield paint(row, "chosen" if rank == 1 else "kept")
    best, source = sentence.hypotheses[0], sentence.source
    links = [
        f"{_word(source.text, source.words[of_source])}-{_word(best.text, best.words[of_target])}"
        for of_source, of_target in best.links
    ]
    if links:
        yield f"  words: {'  '.join(links)}"


def _word(text: str, span: tuple[int, int]) -> str:
    return on_one_line(text[span[0] : span[1]])
