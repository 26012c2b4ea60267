"""The runs of a server: a translator for each pair of languages, and the engine that its requests share."""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from transformer_cli.config import Direction
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import LoadedRun, load_run
from transformer_cli.extensions.serving.batcher import (
    Batcher,
    Job,
    ResultCache,
    ServedEngine,
    WorkKind,
    key_of,
    search_conditions,
)
from transformer_cli.extensions.serving.sentences import (
    DetailedSentence,
    detailed_sentences,
)
from transformer_cli.process.errors import UsageError
from transformer_cli.storage import MANIFEST_NAME

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServedDirection:
    """One direction of a run."""

    run: str
    """The name of the run."""
    languages: Direction
    translator: Translator
    """Of this direction."""
    shared: ServedEngine
    before: "ServedDirection | None" = None
    """Of a chain: the direction into the pivot language, whose translations this one reads."""

    @contextmanager
    def translator_for(self, job: Job) -> Iterator[Translator]:
        """The translator with which the thread of a job translates."""
        with ExitStack() as stack:
            ready = stack.enter_context(self.shared.batcher.preparing())
            own = replace(self.translator, engine=self.shared.for_job(job, ready))
            if self.before is not None:
                # The second batcher does not wait for sentences that the first one translates now.
                ready()
                own = replace(own, before=stack.enter_context(self.before.translator_for(job)))
            yield own

    @property
    def digest(self) -> str:
        """What tells its models from all others of the server."""
        own = self.shared.model_digest
        return own if self.before is None else f"{self.before.digest} {own}"

    def explained(self, job: Job, line: str, num_alternatives: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What the model does with a line, as plain values; see `Explainer.explain`.

        The thread of the batcher computes it, between two batches.

        Args:
            asked: further arguments of `Explainer.explain`.

        Raises:
            UsageError: two models translate in a row.
        """
        if self.before is not None:
            raise UsageError(
                f"{self.languages} goes through two models ({self.run}); what happens inside is shown for one: translate "
                f"{self.before.languages} first"
            )
        from transformer_cli.extensions.lessons.explaining.explainer import Explainer

        explainer = Explainer.of(self.translator, num_alternatives=num_alternatives)

        def compute(lines: Sequence[str]) -> list[dict[str, Any]]:
            return [explainer.explain(each, **asked).to_json() for each in lines]

        # Both directions of a run share a batcher, and each reads the same line in its own way.
        kind = WorkKind((*self.languages, num_alternatives, *asked.values()), "inside", compute, len, max_tokens=1)
        return self.shared.batcher.results(kind, {line: line}, job)[line]

    def detailed(self, job: Job, sentences: Sequence[str]) -> list[DetailedSentence]:
        """The translations of sentences with their words, in order; those of the cache are not computed again."""
        shared = self.shared
        conditions = search_conditions(self.digest, self.translator.decoding)
        keys = {text: key_of(conditions, (*self.languages, text)) for text in sentences}
        found = {text: shared.cache.get(key) for text, key in keys.items()}
        missing = [text for text, result in found.items() if result is None]
        if missing:
            with self.translator_for(job) as translator:
                for detailed in detailed_sentences(translator, missing):
                    found[detailed.source] = detailed
                    shared.cache.put(keys[detailed.source], detailed, detailed.num_bytes)
        return [found[text] for text in sentences]


@dataclass(frozen=True, slots=True)
class ServedRuns:
    """All directions of the runs of a server, in the order in which the runs were named."""

    directions: dict[Direction, ServedDirection]
    cache: ResultCache

    @property
    def sources(self) -> list[str]:
        """The languages from which these runs translate."""
        return list(dict.fromkeys(direction.source for direction in self.directions))

    @property
    def languages(self) -> list[str]:
        """The languages of both sides."""
        return list(dict.fromkeys([*self.sources, *self.targets]))

    @property
    def targets(self) -> list[str]:
        """The languages into which these runs translate."""
        return list(dict.fromkeys(direction.target for direction in self.directions))

    def targets_of(self, source: str) -> list[str]:
        """The languages into which a language is translated."""
        return [direction.target for direction in self.directions if direction.source == source]

    @property
    def batchers(self) -> dict[str, Batcher]:
        """The batcher of each run, by its name."""
        return {one.run: one.shared.batcher for one in self.directions.values() if one.before is None}

    def close(self) -> None:
        """End the threads of the engines."""
        for batcher in self.batchers.values():
            batcher.close()


def load_served_runs(
    runs: Sequence[str | None],
    overrides: Sequence[str],
    *,
    cache_bytes: int,
    protects_spans: bool = False,
) -> ServedRuns:
    """Load runs for a server.

    Args:
        runs: names or folders, as in `load_run`; None: the run that saved last.
        overrides: settings as in `--set`, for all runs.
        cache_bytes: about the memory for translations that are kept.
        protects_spans: see `Translator.protects_spans`.

    Raises:
        UsageError: two runs have the same name, or no direction is left for one of them.
    """
    loaded_runs = [load_run(run, overrides, command="serve") for run in runs]
    _check_names(runs, [loaded.trained.name for loaded in loaded_runs])
    translators = [
        NamedTranslator(
            loaded.trained.name,
            replace(loaded.translator, protects_spans=protects_spans, reports_lines=False),
            _digest(loaded),
        )
        for loaded in loaded_runs
    ]
    return served_runs(translators, cache_bytes=cache_bytes)


def _check_names(runs: Sequence[str | None], names: Sequence[str]) -> None:
    """Refuse two runs with one name: the answers and measurements of a server tell runs by their names."""
    typed: dict[str, str | None] = {}
    for run, name in zip(runs, names, strict=True):
        if name in typed and typed[name] == run:
            raise UsageError(f"--run {run}: given twice", hint="name each run once")
        if name in typed:
            raise UsageError(
                f"--run {typed[name]} and --run {run}: both have the name {name} in their config",
                hint="serve one of them with a tfm serve of its own, at another --port",
            )
        typed[name] = run


class NamedTranslator(NamedTuple):
    """A translator to serve."""

    name: str
    translator: Translator
    digest: str
    """What tells its model from all other models of the server."""


def served_runs(translators: Sequence[NamedTranslator], *, cache_bytes: int) -> ServedRuns:
    """The directions of translators; of two with the same direction, the first one translates.

    Raises:
        UsageError: as of `load_served_runs`.
    """
    cache = ResultCache(cache_bytes)
    directions: dict[Direction, ServedDirection] = {}
    for name, translator, digest in translators:
        shared = ServedEngine(translator.engine, digest, Batcher(name), cache)
        for number, languages in enumerate(translator.pipeline.data.directions):
            if languages in directions:
                logger.warning(
                    "%s translates %s, too, but %s is asked, because it was named first",
                    name,
                    languages,
                    directions[languages].run,
                )
                continue
            directed_translator = _estimating(name, translator.in_direction(number))
            directions[languages] = ServedDirection(name, languages, directed_translator, shared)
        if name not in {one.run for one in directions.values()}:
            raise UsageError(f"--run: {name} has no language pair that the other runs do not have")
    return ServedRuns(directions | _chains(directions), cache)


def _chains(directions: Mapping[Direction, ServedDirection]) -> dict[Direction, ServedDirection]:
    """The directions that two of the given ones make together, where none of them translates alone.

    The first pivot language counts, in the order in which the runs were named.
    """
    chains: dict[Direction, ServedDirection] = {}
    for first in directions.values():
        for second in directions.values():
            languages = Direction(first.languages.source, second.languages.target)
            is_chain = first.languages.target == second.languages.source
            if not is_chain or languages.source == languages.target or languages in {**directions, **chains}:
                continue
            name = f"{first.run}, {second.run}"
            translator = second.translator.after(first.translator)
            chains[languages] = ServedDirection(name, languages, translator, second.shared, first)
            logger.info("%s goes via %s: %s", languages, first.languages.target, name)
    return chains


def _estimating(name: str, translator: Translator) -> Translator:
    """A translator of one direction that says how far its translations can be trusted, if it has a calibration that promises something."""
    quality, estimating = translator.pipeline.quality, translator.with_estimates_if_possible()
    if quality is None or not estimating.estimates:
        return translator
    logger.info("%s: %s", name, quality.promise)
    if warning := quality.warning_about(translator.decoding.beam_size):
        logger.warning("%s: %s", name, warning)
    return estimating


def _digest(loaded: LoadedRun) -> str:
    """What tells the model of a run from others: the manifest names the digests of its files."""
    manifests = [(one.folder / MANIFEST_NAME).read_bytes() for one in loaded.members]
    return hashlib.sha256(b"".join(manifests)).hexdigest()
