"""Sample translations of a model card: some of all, and the worst ones."""

from transformer_cli.evaluation.metrics import measure_corpus
from transformer_cli.evaluation.validation import DirectionReport
from transformer_cli.process.escaping import on_one_line

NUM_TYPICAL, NUM_WORST = 6, 4
_ESCAPED = str.maketrans({character: f"\\{character}" for character in "\\|*_`<>[]"})


def sample_lines(report: DirectionReport) -> str:
    """Two tables: translations evenly spread over the pairs, and those with the lowest chrF of a sentence."""
    texts = [translation.text for translation in report.translations]
    [chrf] = measure_corpus(texts, [pair.target for pair in report.pairs], ["chrf"])
    values = [chrf.value([row]) for row in range(len(texts))]
    count = min(NUM_TYPICAL, len(texts))
    typical = [place * len(texts) // count for place in range(count)]
    others = [row for row in range(len(texts)) if row not in typical]
    worst = sorted(others, key=lambda row: (values[row], row))[:NUM_WORST]
    parts = []
    for title, rows in (("evenly spread", typical), ("the worst", worst)):
        lines = [f"{report.direction}, {title}:", ""]
        lines += ["| source | translation | reference | chrF |", "|---|---|---|--:|"]
        for row in rows:
            pair = report.pairs[row]
            cells = [_cell(text) for text in (pair.source, texts[row], pair.target)]
            lines.append(f"| {' | '.join(cells)} | {values[row]:.0f} |")
        if rows:
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _cell(text: str) -> str:
    """A text as it is, in a cell of a Markdown table."""
    return on_one_line(text, 300).translate(_ESCAPED)
