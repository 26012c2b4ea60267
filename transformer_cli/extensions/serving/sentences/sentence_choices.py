"""The best translations of one sentence, each with its words: how probable each is, and what it translates."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import ExplainingEngine, Translator
from transformer_cli.decoding.details import details_of
from transformer_cli.extensions.serving.sentences.sentence_details import (
    DetailedSentence,
    detailed_sentence,
)
from transformer_cli.process.errors import UsageError


@dataclass(frozen=True, slots=True)
class RankedSentence:
    """One of the best translations of a sentence."""

    score: float
    """Log-probability / length penalty."""
    details: DetailedSentence

    def as_json(self) -> dict[str, Any]:
        """Plain values, in the form of a target in the stream of a text."""
        values = self.details.as_json(0, 0)
        target = {name: values["target"][name] for name in ("text", "words")}
        if self.details.probabilities:
            target["probabilities"] = values["target"]["probabilities"]
        return {**target, "score": round(self.score, 4), "links": values["links"]}


def ranked_sentences(
    translator: Translator, sentence: str, prefix: str, *, num_alternatives: int
) -> list[RankedSentence]:
    """The best translations of a sentence, best first, all different.

    Args:
        translator: of one direction.
        sentence: the source, without line breaks.
        prefix: whole words with which each translation begins, or nothing.
        num_alternatives: how many translations are told beside the best one; no more than the beam has.

    Raises:
        UsageError: the settings ask for another search than beam search.
        DataError: the model cannot write the prefix.
    """
    decoding = _decoding(translator.decoding, num_alternatives)
    pipeline = replace(translator.pipeline, splits_sentences=False)
    searching = replace(translator, pipeline=pipeline, decoding=decoding)
    [translation] = searching.translate([sentence], prefixes=[prefix])
    explained = _explained(searching, sentence, prefix)
    return [
        RankedSentence(
            one.score, explained.get(one.text) or DetailedSentence(sentence, one.text, (), None, ())
        )
        for one in translation.alternatives
    ]


def _decoding(decoding: DecodingConfig, num_alternatives: int) -> DecodingConfig:
    if decoding.diversity is not None or decoding.mbr is not None or decoding.sampling is not None:
        raise UsageError(
            "this server gives no other translations, because of its settings",
            hint="leave out decoding.diversity, decoding.mbr and decoding.sampling",
        )
    if not num_alternatives:
        return decoding
    # A wider beam could find another best translation than the one that the client has.
    beam_size = decoding.beam_size if decoding.beam_size > 1 else num_alternatives + 1
    num_best = min(num_alternatives + 1, beam_size)
    return decoding.model_copy(update={"num_best": num_best, "beam_size": beam_size})


def _explained(
    translator: Translator, sentence: str, prefix: str
) -> Mapping[str, DetailedSentence]:
    """The hypotheses of the search by their texts; none for a sentence that the model reads in parts."""
    pipeline, engine, decoding = translator.pipeline, translator.engine, translator.decoding
    prepared = pipeline.prepare(sentence, prefix)
    if len(prepared.parts) != 1 or not isinstance(engine, ExplainingEngine):
        return {}
    # The engine of a server has these hypotheses in its cache.
    [request], [found] = prepared.parts, engine.translate(prepared.parts, decoding)
    targets = [hypothesis.ids for hypothesis in found]
    explanations = engine.explain(
        [request] * len(found), targets, batch_tokens=decoding.batch_tokens
    )
    sentences: dict[str, DetailedSentence] = {}
    for hypothesis, explanation in zip(found, explanations, strict=True):
        explained = {request: hypothesis._replace(explanation=explanation)}
        details = details_of(pipeline, prepared, explained)
        translation = replace(pipeline.restore(prepared, [[hypothesis]]), details=details)
        one = detailed_sentence(pipeline, sentence, translation.text, translation)
        sentences.setdefault(translation.text, one)
    return sentences
