"""The translator: lines in, lines out, in the same number and order."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, repeat

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import Engine
from transformer_cli.decoding.glossary import Glossary
from transformer_cli.decoding.text_pipeline import TextPipeline, Translation
from transformer_cli.errors import DataError

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

    def translate(
        self,
        lines: Iterable[str],
        *,
        to: str | None = None,
        from_: str | None = None,
        prefixes: Iterable[str] | None = None,
    ) -> Iterator[Translation]:
        """One translation per line, in order; reads `WINDOW_LINES` lines ahead.

        Args:
            to: the target language, for a model that translates into several.
            from_: the source language, for a model that translates from several into `to`.
            prefixes: for each line, the text with which its translation begins: whole words, or an empty string.

        Raises:
            UsageError: no direction of the model has these languages, or several have them.
            DataError: there are not as many prefixes as lines, or the model cannot write one of them.
        """
        for texts in (lines, prefixes):
            if isinstance(texts, str | bytes):
                raise TypeError(f"give a list of lines, not {_described(texts)}")
        of_lines = None if prefixes is None else iter(prefixes)
        return self.towards(to, from_)._translations(iter(lines), of_lines)

    def towards(self, to: str | None, from_: str | None = None) -> "Translator":
        """The translator of one direction; see `TextPipeline.towards`."""
        return replace(self, pipeline=self.pipeline.towards(to, from_))

    def with_glossary(self, glossary: Glossary) -> "Translator":
        """The translator whose translations contain the terms of a glossary.

        Where a sentence contains a source term as whole words, its translation contains the target term as whole words, as
        often as the source term stands there.

        Raises:
            UsageError: the model translates no language.
            DataError: a term is empty, stands for two target terms, or cannot be written by the model.
        """
        return replace(self, pipeline=self.pipeline.with_glossary(glossary))

    def in_direction(self, number: int) -> "Translator":
        """The translator of the direction with this index in `data.directions`."""
        return replace(self, pipeline=replace(self.pipeline, direction=number))

    def _translations(
        self, lines: Iterator[str], prefixes: Iterator[str] | None
    ) -> Iterator[Translation]:
        num_before = 0
        while window := list(islice(lines, WINDOW_LINES)):
            for number, line in enumerate(window, num_before + 1):
                if not isinstance(line, str):
                    raise TypeError(f"line {number}: a string is expected, not {_described(line)}")
            of_window = list(islice(repeat("") if prefixes is None else prefixes, len(window)))
            if len(of_window) < len(window):
                raise DataError(f"there are {num_before + len(of_window)} prefixes, but more lines")
            yield from self._translate_window(window, of_window)
            num_before += len(window)
        if prefixes is not None and next(prefixes, None) is not None:
            raise DataError(f"there are {num_before} lines, but more prefixes")

    def _translate_window(self, lines: Sequence[str], prefixes: Sequence[str]) -> list[Translation]:
        prepared_lines = list(map(self.pipeline.prepare, lines, prefixes))
        if num_cut := sum(prepared.is_cut for prepared in prepared_lines):
            limit = self.pipeline.max_length
            logger.warning(
                "%s a sentence of more than %d tokens, which was translated in parts",
                "1 line has" if num_cut == 1 else f"{num_cut} lines have",
                limit,
            )
        # Equal parts are translated once.
        parts = list(dict.fromkeys(part for line in prepared_lines for part in line.parts))
        hypotheses = dict(zip(parts, self.engine.translate(parts, self.decoding), strict=True))
        return [
            self.pipeline.restore(prepared, [hypotheses[part] for part in prepared.parts])
            for prepared in prepared_lines
        ]


def _described(value: object) -> str:
    kinds = {str: "a string", bytes: "bytes", type(None): "None"}
    return kinds.get(type(value), f"a value of the type {type(value).__name__}")
