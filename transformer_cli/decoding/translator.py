"""Lines in, lines out: same count, same order."""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from transformer_cli.config import DataConfig, DecodingConfig, SequencesData
from transformer_cli.data.normalization import is_blank, normalize
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.decoding.long_lines import split_line
from transformer_cli.decoding.search import Hypotheses, Symbols, beam_search, greedy_search
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Machine

logger = logging.getLogger(__name__)

# Lines that are sorted by length together.
WINDOW_LINES = 2000
# Whatever somebody may take for the end of a line.
_LINE_BREAK = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


class Alternative(NamedTuple):
    """One of the best translations of a line."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Translation:
    """What became of one line; `text` never holds a line break."""

    source: str
    text: str
    score: float
    """Log-probability / length penalty; of a line cut into parts, the sum over its parts."""
    alternatives: tuple[Alternative, ...]
    """At most `decoding.num_best`, all different, best first, `text` among them; none for a blank line."""


@contextmanager
def inference(model: Transformer, machine: Machine) -> Iterator[None]:
    """No gradients, no dropout, the machine's precision; the model's training mode comes back."""
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode(), machine.autocast():
            yield
    finally:
        model.train(was_training)


@dataclass(slots=True)
class Translator:
    """A trained model with its tokenizers, on a machine.

    A blank line gives an empty one. A line with more tokens than `model.max_length` is cut into
    parts, between sentences where possible, which are translated one by one and joined by spaces;
    `num_lines_cut` counts such lines. `[UNK]` is shown where the model says that it lacks the word.
    """

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    decoding: DecodingConfig
    data: DataConfig
    machine: Machine
    num_lines_cut: int = field(default=0, init=False)

    def translate(self, lines: Iterable[str]) -> Iterator[Translation]:
        """One translation per line, in order; reads a window of lines ahead."""
        remaining = iter(lines)
        while window := list(islice(remaining, WINDOW_LINES)):
            yield from self._translate_window(window)

    def _translate_window(self, lines: Sequence[str]) -> list[Translation]:
        parts_of_lines = [self._parts(line) for line in lines]
        # Equal sentences are searched once.
        sentences = list(dict.fromkeys(part for parts in parts_of_lines for part in parts))
        found = dict(zip(sentences, self._search_all(sentences), strict=True))
        num_cut = sum(len(parts) > 1 for parts in parts_of_lines)
        if num_cut:
            self.num_lines_cut += num_cut
            logger.warning(
                "lines with more than %d tokens, translated in parts: %d",
                self.model.config.max_length, num_cut,
            )  # fmt: skip
        return [
            _join(line, [found[part] for part in parts])
            for line, parts in zip(lines, parts_of_lines, strict=True)
        ]

    def _parts(self, line: str) -> list[tuple[int, ...]]:
        """The ids of a line, as many sequences as the model's maximal length asks for."""
        text = normalize(line, self.data.cleaning)
        if is_blank(text):
            return []
        ids = self._encode(text)
        ...
