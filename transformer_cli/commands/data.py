"""`tfm data`: show the first pairs of a corpus, their tokens, and the report of the preparation."""

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

from transformer_cli.commands.output import fitting, show
from transformer_cli.config import SplitName, load_config
from transformer_cli.data.preparation import prepare_data
from transformer_cli.data.selection import held_out_pairs
from transformer_cli.escaping import on_one_line
from transformer_cli.text import Tokenizer

NUM_SHOWN = 10


def show_data(
    config_path: str, overrides: Sequence[str], *, split: SplitName, as_json: bool
) -> None:
    """Prepare the corpus in a temporary folder, as `tfm train` would, and print the report."""
    config = load_config(config_path, overrides)
    with tempfile.TemporaryDirectory(prefix="tfm-data-") as folder:
        prepared = prepare_data(config, Path(folder))
        if split == "train":
            pairs = list(itertools.islice(prepared.train_text(), NUM_SHOWN))
        else:
            pairs = held_out_pairs(config, split)[:NUM_SHOWN]
        report = prepared.report
        source_tokenizer, target_tokenizer = prepared.source_tokenizer, prepared.target_tokenizer
        del prepared  # Windows deletes no file that is mapped into memory
    shown = [{"source": pair.source, "target": pair.target} for pair in pairs]
    lines = [f"{split}, the first {len(pairs)} pairs:"]
    for pair in pairs:
        lines += _text_and_tokens("SOURCE", pair.source, source_tokenizer)
        lines += _text_and_tokens("TARGET", pair.target, target_tokenizer)
    facts = {"report": report.to_json(), "split": split, "pairs": shown}
    show(facts, [*lines, "", *fitting(report.lines())], as_json=as_json)


def _text_and_tokens(side: str, text: str, tokenizer: Tokenizer) -> list[str]:
    tokens = tokenizer.tokens(tokenizer.encode(text))
    return [f"  {side}  {on_one_line(text)}", f"          {on_one_line(' | '.join(tokens))}"]
