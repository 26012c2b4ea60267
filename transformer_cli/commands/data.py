"""`tfm data`: show the first pairs of a corpus, their tokens, and the report of the preparation."""

import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from transformer_cli.config import SplitName, load_config
from transformer_cli.data.preparation import prepare_data
from transformer_cli.data.selection.held_out import held_out_pairs

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
    if as_json:
        shown = [{"source": pair.source, "target": pair.target} for pair in pairs]
        json.dump(
            {"report": report.to_json(), "split": split, "pairs": shown},
            sys.stdout,
            ensure_ascii=False,
            indent=1,
        )
        sys.stdout.write("\n")
        return
    lines = [f"{split}, the first {len(pairs)} pairs:"]
    for pair in pairs:
        ids = (
            prepared.source_tokenizer.encode(pair.source),
            prepared.target_tokenizer.encode(pair.target),
        )
        tokens = prepared.source_tokenizer.tokens(ids[0]), prepared.target_tokenizer.tokens(ids[1])
        lines += [f"  SOURCE  {pair.source}", f"          {' | '.join(tokens[0])}"]
        lines += [f"  TARGET  {pair.target}", f"          {' | '.join(tokens[1])}"]
    sys.stdout.write("\n".join([*lines, "", *report.lines()]) + "\n")
