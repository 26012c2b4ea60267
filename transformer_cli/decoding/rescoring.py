"""Rescoring: the translations of a beam in the order of what several models together say about them (`decoding.rescore`).

Sources: Li and Jurafsky 2016, "Mutual Information and Diverse Decoding Improve Neural Machine Translation"; Liu et al. 2016,
"Agreement on Target-bidirectional Neural Machine Translation".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from transformer_cli.config import Direction, RescoreKind, RescoringConfig
from transformer_cli.decoding.checks.reverse_reading import Reader
from transformer_cli.decoding.engine import Hypothesis, Request
from transformer_cli.decoding.translator import Translator
from transformer_cli.process.errors import ConfigError
from transformer_cli.text.languages import primary_language


class Rescorer(NamedTuple):
    """A further model that scores translations."""

    translator: Translator
    kind: RescoreKind
    weight: float
    name: str
    """Of its run."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}:{self.weight:g}"

    def scores(self, pairs: Sequence[tuple[str, str]], languages: Direction) -> list[float]:
        """The weighted mean log-probability of the tokens of each pair of a source and its translation, in nats."""
        from transformer_cli.decoding.given_pairs import pair_likelihoods

        source, target = languages
        if self.kind == "channel":
            pairs, (source, target) = (
                [(target, source) for source, target in pairs],
                (target, source),
            )
        elif self.kind == "right-to-left":
            pairs = [(source, " ".join(reversed(target.split()))) for source, target in pairs]
        towards = self.translator.towards(target, source)
        return [self.weight * one.log_probability / max(1, one.num_tokens) for one in pair_likelihoods(towards, pairs)]


def loaded_rescorers(
    rescoring: RescoringConfig,
    directions: Sequence[Direction],
    load: Callable[[str], Reader],
) -> tuple[Rescorer, ...]:
    """The further models of a setting.

    Args:
        rescoring: names their runs.
        directions: in which the first model translates.
        load: gives the model of a run.

    Raises:
        ConfigError: a model has other languages than its kind needs.
        MissingInputError: there is no such run.
    """
    found = []
    for one in rescoring.models:
        translator, name, _ = load(one.run)
        found.append(Rescorer(translator, one.kind, one.weight, name))
        theirs = translator.pipeline.data.directions
        known = {(primary_language(each.source), primary_language(each.target)) for each in theirs}
        for source, target in directions:
            needed = (target, source) if one.kind == "channel" else (source, target)
            if tuple(map(primary_language, needed)) not in known:
                raise ConfigError(
                    f"decoding.rescore: {one.run} translates {', '.join(map(str, theirs))}, but as a model of the kind {one.kind} it has "
                    f"to translate {'-'.join(needed)}",
                    hint="channel: a run of the reverse direction; forward and right-to-left: a run of the same direction",
                )
    return tuple(found)


def rescored(
    translator: Translator, parts: Sequence[Request], candidates: Sequence[Sequence[Hypothesis]]
) -> list[list[Hypothesis]]:
    """The hypotheses of each part, the one with the best sum of scores first; their own scores stay those of the search.

    The sum has the mean log-probability of the tokens by the model itself, and those by the other models with their weights. All
    candidates of all parts are scored together, so that batches are full.
    """
    pipeline = translator.pipeline
    several = [number for number, part_candidates in enumerate(candidates) if len(part_candidates) > 1]
    places = [(number, each) for number in several for each in candidates[number]]
    explained = translator.explaining_engine().explain(
        [parts[number]._replace(terms=(), seed=0) for number, _ in places],
        [each.ids for _, each in places],
        batch_tokens=translator.decoding.batch_tokens,
    )
    totals = [float(one.token_log_probs.mean()) for one in explained]
    read, write = pipeline.source_tokenizer.decode, pipeline.target_tokenizer.decode
    pairs = [(read(parts[number].ids), write(each.ids)) for number, each in places]
    for rescorer in translator.rescorers:
        scores = rescorer.scores(pairs, pipeline.languages)
        totals = [total + score for total, score in zip(totals, scores, strict=True)]
    place_totals, found = iter(totals), list(map(list, candidates))
    for number in several:
        ranked = [(-next(place_totals), place) for place in range(len(candidates[number]))]
        found[number] = [candidates[number][place] for _, place in sorted(ranked)]
    return found
