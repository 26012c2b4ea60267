"""`tfm next`: what a model expects to come next, given a source and the beginning of a target."""

import json
import logging
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_cli.decoding.translator import Translator, inference
from transformer_cli.errors import UsageError
from transformer_cli.inference import load_for_inference
from transformer_cli.text.normalization import is_blank, normalize
from transformer_cli.text.sequence_format import SequenceFormat

logger = logging.getLogger(__name__)


def show_next(
    source: str, *, prefix: str, top: int, run: str | None, overrides: Sequence[str], as_json: bool
) -> None:
    """Print the most probable next symbols, and how much probability all others share."""
    translator = load_for_inference(run, overrides).translator
    probabilities = next_symbol(translator, source, prefix)
    best = probabilities.topk(min(top, len(probabilities)))
    symbols = translator.target_tokenizer.tokens(best.indices.tolist())
    rows = list(zip(symbols, best.values.tolist(), strict=True))
    rest = max(0.0, 1.0 - sum(probability for _, probability in rows))
    if as_json:
        expected = [{"symbol": name, "probability": value} for name, value in rows]
        figures = {"source": source, "prefix": prefix, "next": expected, "rest": rest}
        json.dump(figures, sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
        return
    lines = [f"{value:>8.4f}  {'█' * round(40 * value):<40}  {name}" for name, value in rows]
    remaining = len(probabilities) - len(rows)
    if remaining:
        lines.append(f"{rest:>8.4f}  {remaining:,} others")
    sys.stdout.write("\n".join(lines) + "\n")


def next_symbol(translator: Translator, source: str, prefix: str) -> Tensor:
    """(V,) probabilities of each target symbol after the prefix; they sum to 1.

    Raises:
        UsageError: the source is blank.
    """
    rules = translator.data.cleaning
    text = normalize(source, rules)
    if is_blank(text):
        raise UsageError("the source is blank", hint="tfm next 'a sentence' --prefix 'so far'")
    source_tokenizer, target_tokenizer = translator.source_tokenizer, translator.target_tokenizer
    source_ids = SequenceFormat.of(translator.data).with_end(
        source_tokenizer.encode(text), source_tokenizer.eos_id
    )
    # White space at its end would be a symbol of its own, where the next one brings it along.
    beginning = normalize(prefix, rules).rstrip()
    prefix_ids = [target_tokenizer.sos_id, *target_tokenizer.encode(beginning)]
    for what, ids, tokenizer in (
        ("source", source_ids, source_tokenizer),
        ("prefix", prefix_ids, target_tokenizer),
    ):
        if num_unknown := ids.count(tokenizer.unk_id):
            logger.warning("symbols of the %s that the model does not know: %d", what, num_unknown)
    device = translator.machine.device
    sources = torch.tensor([source_ids], device=device)  # (1, S)
    with inference(translator.model, translator.machine):
        logits = translator.model(
            sources,
            torch.ones_like(sources, dtype=torch.bool),
            torch.tensor([prefix_ids], device=device),
        )  # (1, T, V)
    return logits[0, -1].softmax(-1).cpu()
