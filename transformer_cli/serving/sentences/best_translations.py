"""The best translations of one sentence, each with its words: how probable each is, and what it translates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import ExplainingEngine, Explanation, Request, TokenIds, Translator
from transformer_cli.decoding.details.details_of_lines import spans_in_line
from transformer_cli.decoding.details.word_links import Link, linked_words, word_spans, words_at
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.errors import UsageError


@dataclass(frozen=True, slots=True)
class RankedSentence:
    """One of the best translations of a sentence."""

    text: str
    score: float
    """Log-probability / length penalty."""
    probabilities: tuple[float, ...]
    """Of each word: the smallest probability of its tokens. Empty if they are not known."""
    links: tuple[Link, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values, in the form of a target in the stream of a text."""
        values: dict[str, Any] = {
            "text": self.text,
            "score": round(self.score, 4),
            "words": word_spans(self.text),
            "links": self.links,
        }
        if self.probabilities:
            values["probabilities"] = [round(each, 4) for each in self.probabilities]
        return values


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
    texts = [alternative.text for alternative in translation.alternatives]
    explained = _explained(searching, sentence, texts)
    return [
        RankedSentence(alternative.text, alternative.score, *of_words)
        for alternative, of_words in zip(translation.alternatives, explained, strict=True)
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


_WordDetails = tuple[tuple[float, ...], tuple[Link, ...]]


def _explained(translator: Translator, sentence: str, texts: Sequence[str]) -> list[_WordDetails]:
    """For each translation, the probabilities of its words and their links; empty where they cannot be known."""
    pipeline, engine = translator.pipeline, translator.engine
    source = pipeline.normalize(sentence)
    source_ids = pipeline.source_ids(source)
    target_ids = [pipeline.target_ids(pipeline.normalize(text)) for text in texts]
    longest = max(map(len, [source_ids, *target_ids]))
    if not isinstance(engine, ExplainingEngine) or longest > pipeline.max_length:
        return [((), ())] * len(texts)
    requests = [Request(source_ids)] * len(texts)
    batch_tokens = translator.decoding.batch_tokens
    explanations = engine.explain(requests, target_ids, batch_tokens=batch_tokens)
    pairs = zip(texts, target_ids, explanations, strict=True)
    return [
        _words_of_pair(pipeline, (source, source_ids), (text, ids), explanation)
        for text, ids, explanation in pairs
    ]


def _words_of_pair(
    pipeline: TextPipeline,
    source: tuple[str, TokenIds],
    target: tuple[str, TokenIds],
    explanation: Explanation,
) -> _WordDetails:
    """The words of a pair; each side is its normalised text with its tokens."""
    text = pipeline.normalize(target[0])
    words = word_spans(text)
    if len(words) != len(word_spans(target[0])):
        return (), ()
    source_spans = spans_in_line(source[1], source[0], 0, pipeline.source_tokenizer)
    target_spans = spans_in_line(target[1], text, 0, pipeline.target_tokenizer)
    of_source = words_at(source_spans, word_spans(source[0]))
    of_target = words_at(target_spans, words)
    smallest = [1.0] * len(words)
    for probability, of_token in zip(explanation.token_probs.tolist(), of_target, strict=True):
        for word in of_token:
            smallest[word] = min(smallest[word], probability)
    return tuple(smallest), tuple(linked_words(explanation.attention, of_source, of_target))
