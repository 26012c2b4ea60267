"""The translator: lines in, lines out, in the same number and order."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.details_of_lines import details_of, explained_hypotheses
from transformer_cli.decoding.engine import Engine, ExplainingEngine, Hypothesis, Request
from transformer_cli.decoding.glossary import Glossary
from transformer_cli.decoding.minimum_bayes_risk import by_expected_utility
from transformer_cli.decoding.sample_seeds import seeded
from transformer_cli.decoding.text_pipeline import PreparedLine, TextPipeline, Translation
from transformer_cli.errors import DataError, UsageError

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
        num_before: int = 0,
        with_details: bool = False,
    ) -> Iterator[Translation]:
        """One translation per line, in order; reads `WINDOW_LINES` lines ahead.

        Args:
            to: the target language, for a model that translates into several.
            from_: the source language, for a model that translates from several into `to`.
            prefixes: for each line, the text with which its translation begins: whole words, or an empty string.
            num_before: the number of lines of the same input that were translated before; `decoding.sampling` draws
                other samples for each line of an input.
            with_details: whether each translation gets its `details`; this takes a second pass of the model over each
                source and its best translation.

        Raises:
            UsageError: no direction of the model has these languages, or several have them; or the engine cannot
                explain its translations.
            DataError: there are not as many prefixes as lines, or the model cannot write one of them.
        """
        for texts in (lines, prefixes):
            if isinstance(texts, str | bytes):
                raise TypeError(f"give a list of lines, not {_described(texts)}")
        of_lines = None if prefixes is None else iter(prefixes)
        explainer = self._explainer() if with_details else None
        towards = self.towards(to, from_)
        windows = towards._prepared_windows(iter(lines), of_lines, num_before)
        return chain.from_iterable(towards._translated(window, explainer) for window in windows)

    def _explainer(self) -> ExplainingEngine:
        if isinstance(self.engine, ExplainingEngine):
            return self.engine
        raise UsageError(
            "this engine tells no probabilities and no attention of its translations",
            hint="translate without details, or with the engine that runs on PyTorch",
        )

    def towards(self, to: str | None, from_: str | None = None) -> "Translator":
        """The translator of one direction; see `TextPipeline.towards`."""
        return replace(self, pipeline=self.pipeline.towards(to, from_))

    def with_glossary(self, glossary: Glossary) -> "Translator":
        """The translator whose translations contain the terms of a glossary.

        Where a sentence contains a source term as whole words, its translation contains the target term as whole words, as
        often as the source term stands there.

        Raises:
            UsageError: the model translates no language, or translations are sampled.
            DataError: a term is empty, stands for two target terms, or cannot be written by the model.
        """
        if self.decoding.sampling is not None:
            raise UsageError(
                "a glossary needs beam search, but decoding.sampling draws translations at random",
                hint="leave out decoding.sampling or the glossary",
            )
        return replace(self, pipeline=self.pipeline.with_glossary(glossary))

    def in_direction(self, number: int) -> "Translator":
        """The translator of the direction with this index in `data.directions`."""
        return replace(self, pipeline=replace(self.pipeline, direction=number))

    def _prepared_windows(
        self, lines: Iterator[str], prefixes: Iterator[str] | None, num_before: int
    ) -> Iterator[list[PreparedLine]]:
        """Windows of prepared lines, each read when it is asked for."""
        num_read = 0
        while window := list(islice(lines, WINDOW_LINES)):
            for number, line in enumerate(window, num_read + 1):
                if not isinstance(line, str):
                    raise TypeError(f"line {number}: a string is expected, not {_described(line)}")
            of_window = list(islice(repeat("") if prefixes is None else prefixes, len(window)))
            if len(of_window) < len(window):
                raise DataError(f"there are {num_read + len(of_window)} prefixes, but more lines")
            prepared_lines = list(map(self.pipeline.prepare, window, of_window))
            if sampling := self.decoding.sampling:
                numbers = range(num_before + num_read, num_before + num_read + len(window))
                seeds = repeat(sampling.seed)
                prepared_lines = list(map(seeded, prepared_lines, seeds, numbers))
            yield prepared_lines
            num_read += len(window)
        if prefixes is not None and next(prefixes, None) is not None:
            raise DataError(f"there are {num_read} lines, but more prefixes")

    def _translated(
        self, prepared_lines: Sequence[PreparedLine], explainer: ExplainingEngine | None
    ) -> list[Translation]:
        if num_cut := sum(prepared.is_cut for prepared in prepared_lines):
            limit = self.pipeline.max_length
            logger.warning(
                "%s a sentence of more than %d tokens, which was translated in parts",
                "1 line has" if num_cut == 1 else f"{num_cut} lines have",
                limit,
            )
        # Equal parts are translated once.
        parts = list(dict.fromkeys(part for line in prepared_lines for part in line.parts))
        hypotheses = dict(zip(parts, self._hypotheses(parts), strict=True))
        translations = [
            self.pipeline.restore(prepared, [hypotheses[part] for part in prepared.parts])
            for prepared in prepared_lines
        ]
        if explainer is None:
            return translations
        best = {request: found[0] for request, found in hypotheses.items() if found}
        explained = explained_hypotheses(explainer, best, self.decoding.batch_tokens)
        return [
            replace(translation, details=details_of(self.pipeline, prepared, explained))
            for prepared, translation in zip(prepared_lines, translations, strict=True)
        ]

    def _hypotheses(self, parts: Sequence[Request]) -> list[list[Hypothesis]]:
        """The best hypotheses of each part: by their scores, or by minimum Bayes risk (`decoding.mbr`)."""
        options = self.decoding
        if options.mbr is None:
            return self.engine.translate(parts, options)
        decode = self.pipeline.target_tokenizer.decode
        asked = options.model_copy(update={"num_best": options.num_candidates})
        candidates = self.engine.translate(parts, asked)
        return [by_expected_utility(of_part, decode)[: options.num_best] for of_part in candidates]


def _described(value: object) -> str:
    kinds = {str: "a string", bytes: "bytes", type(None): "None"}
    return kinds.get(type(value), f"a value of the type {type(value).__name__}")
