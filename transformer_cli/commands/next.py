"""`tfm next`: the probabilities of the next target token, given a source and the beginning of its target."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    FromOption,
    JsonOption,
    Overrides,
    RunOption,
    ToOption,
    set_option,
)
from transformer_cli.commands.output import show
from transformer_cli.process.errors import UsageError
from transformer_cli.process.messages import on_one_line, terminal_width
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import is_blank

if TYPE_CHECKING:
    from torch import Tensor

    from transformer_cli.decoding import Translator

logger = logging.getLogger(__name__)

_PUNCTUATION = ".,;:!?…\"'()[]«»„“”¿¡"


def next_command(
    source: Annotated[str, typer.Argument(help="The source sentence.")],
    prefix: Annotated[str, typer.Option("--prefix", help="The beginning of its translation.")] = "",
    top: Annotated[int, typer.Option("--top", min=1, max=1000, help="How many tokens to show.")] = 10,
    run: RunOption = None,
    overrides: Annotated[Overrides, set_option("runtime.device=cpu", completion.settings_of_the_machine)] = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the probabilities of the next token. Greedy search takes the largest."""
    from transformer_cli.decoding.loading import load_run

    loaded = load_run(run, overrides or [], command="next", or_demonstration=True)
    translator = loaded.translator.towards(to, from_)
    probabilities = next_token_probabilities(translator, source, prefix)
    best = probabilities.topk(min(top, len(probabilities)))
    tokens = translator.pipeline.target_tokenizer.tokens(best.indices.tolist())
    rows = list(zip(tokens, best.values.tolist(), strict=True))
    rest = max(0.0, 1.0 - sum(probability for _, probability in rows))
    expected = [{"symbol": name, "probability": value} for name, value in rows]
    figures = {"source": source, "prefix": prefix, "next": expected, "rest": rest}
    width = _bar_width(name for name, _ in rows)
    lines = [f"{value:>8.4f}  {'█' * round(width * value):<{width}}  {on_one_line(name)}" for name, value in rows]
    if remaining := len(probabilities) - len(rows):
        lines.append(f"{rest:>8.4f}  {remaining:,} others")
    show(figures, lines, as_json=as_json)


def _bar_width(names: Iterable[str]) -> int:
    """Width of the bars in columns: 40, or less if a narrow terminal needs the room for numbers and symbols."""
    from tqdm.utils import disp_len

    num_columns = terminal_width(sys.stdout) or 1000
    longest = max((disp_len(on_one_line(name)) for name in names), default=0)
    return max(4, min(40, num_columns - longest - len("  0.0000") - 4))


def next_token_probabilities(translator: Translator, source: str, prefix: str) -> Tensor:
    """(V,) probabilities of the target token after the prefix; they sum to 1.

    Logs the words that are not in the vocabulary.

    Raises:
        UsageError: the source is blank.
    """
    pipeline = translator.pipeline
    text = pipeline.normalize_source(source)
    if is_blank(text):
        raise UsageError("the source is blank", hint='tfm next "a sentence" --prefix "so far"')
    # A space at the end of the prefix would be a token of its own; it belongs to the word that comes next.
    beginning = pipeline.normalize_given_target(prefix).rstrip()
    _warn_of_unknown_words("source", text, pipeline.source_tokenizer)
    _warn_of_unknown_words("prefix", beginning, pipeline.target_tokenizer)
    prefix_ids = tuple(pipeline.target_tokenizer.encode(beginning))
    return translator.engine.next_token_probabilities(pipeline.source_ids(text), prefix_ids)


def _warn_of_unknown_words(side: str, text: str, tokenizer: Tokenizer) -> None:
    if tokenizer.unk_id not in tokenizer.encode(text):
        return
    unknown = [word for word in text.split() if tokenizer.unk_id in tokenizer.encode(word)]
    names = {repr(word.strip(_PUNCTUATION) or word): None for word in unknown or [text]}
    words = "word" if len(names) == 1 else "words"
    logger.warning("unknown %s %s: %s", side, words, ", ".join(names))
