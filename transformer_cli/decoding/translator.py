"""The translator: lines in, lines out, in the same number and order."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import Engine
from transformer_cli.decoding.text_pipeline import TextPipeline, Translation

logger = logging.getLogger(__name__)

# Lines that are read before the first is translated: sorted by length, they need little padding.
WINDOW_LINES = 2000


@dataclass(frozen=True, slots=True)
class Translator:
    """A text pipeline and an engine: the pipeline prepares lines, the engine translates their token ids.

    A blank line stays empty. Each sentence of a line is translated by itself (`decoding.split_sentences`),
    and the translations are joined with the white space of the line. A sentence with more tokens than the model can
    read is cut into parts. `[UNK]` in a translation stands for a word that is not in the vocabulary.
    """

    pipeline: TextPipeline
    engine: Engine
    decoding: DecodingConfig

    def translate(self, lines: Iterable[str]) -> Iterator[Translation]:
        """One translation per line, in order; reads `WINDOW_LINES` lines ahead."""
        if isinstance(lines, str):
            raise TypeError("give a list of lines, not a string")
        remaining = iter(lines)
        while window := list(islice(remaining, WINDOW_LINES)):
            yield from self._translate_window(window)

    def _translate_window(self, lines: Sequence[str]) -> list[Translation]:
        prepared_lines = [self.pipeline.prepare(line) for line in lines]
        if num_cut := sum(prepared.is_cut for prepared in prepared_lines):
            limit = self.pipeline.max_length
            logger.warning(
                "lines with a sentence of more than %d tokens, translated in parts: %d",
                limit,
                num_cut,
            )
        # Equal parts are translated once.
        parts = list(dict.fromkeys(part for line in prepared_lines for part in line.parts))
        hypotheses = dict(zip(parts, self.engine.translate(parts, self.decoding), strict=True))
        return [
            self.pipeline.restore(prepared, [hypotheses[part] for part in prepared.parts])
            for prepared in prepared_lines
        ]
