"""The answer to `:why`: the probability of each token, other probable tokens, and the best translations."""

from collections.abc import Iterator, Sequence

from tqdm.utils import disp_len

from transformer_cli.decoding import PartDetails, TextPipeline, Translation
from transformer_cli.process.escaping import on_one_line

_NUM_OTHERS = 3
_MAX_TOKEN = 16  # characters of a token that are shown
# A token as improbable as this is not told.
_LEAST_PROBABILITY = 0.0005


def reason_lines(translation: Translation, pipeline: TextPipeline) -> list[str]:
    """A table with a row for each token of the translation, and then the other translations with their scores.

    Args:
        translation: one with details.
        pipeline: the one that made it.
    """
    details = translation.details
    if details is None or not details.parts:
        return ["there is nothing to explain: the translation is empty"]
    rows = [("probability", "token", "read most", "others in this place")]
    for part in details.parts:
        rows += _rows(part, pipeline)
    lines = _table(rows)
    if len(translation.alternatives) > 1:
        lines.append("the best translations, by score:")
        lines += [f"{one.score:>11.3f}  {one.text}" for one in translation.alternatives]
    return lines


def _rows(part: PartDetails, pipeline: TextPipeline) -> Iterator[tuple[str, str, str, str]]:
    explanation, tokenizer = part.explanation, pipeline.target_tokenizer
    source_tokens = pipeline.source_tokenizer.tokens(part.source_ids)
    rows = zip(
        part.target_ids,
        explanation.token_probs.tolist(),
        explanation.alignment,
        explanation.best_ids.tolist(),
        explanation.best_probs.tolist(),
        strict=True,
    )
    for token, probability, source_token, best_ids, best_probs in rows:
        others = [
            f"{_shown(name)} {value:.3f}"
            for index, name, value in zip(
                best_ids, tokenizer.tokens(best_ids), best_probs, strict=True
            )
            if index != token and value >= _LEAST_PROBABILITY
        ]
        [name] = tokenizer.tokens([token])
        read = _shown(source_tokens[source_token])
        yield f"{probability:.3f}", _shown(name), read, ", ".join(others[:_NUM_OTHERS])


def _shown(token: str) -> str:
    return on_one_line(token, _MAX_TOKEN)


def _table(rows: Sequence[tuple[str, str, str, str]]) -> list[str]:
    """Rows with columns of equal width; the first is aligned to the right."""
    widths = [max(disp_len(row[column]) for row in rows) for column in range(3)]

    def cell(row: tuple[str, str, str, str], column: int) -> str:
        return row[column] + " " * (widths[column] - disp_len(row[column]))

    return [
        "  ".join((f"{row[0]:>{widths[0]}}", cell(row, 1), cell(row, 2), row[3])).rstrip()
        for row in rows
    ]
