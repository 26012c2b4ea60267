"""A translated sentence with its words: how probable each is, and which word of the source it translates."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from transformer_cli.decoding import LineDetails, Translation, Translator
from transformer_cli.decoding.details import Span, word_spans, words_at
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translation import Link
from transformer_cli.extensions.serving.sentences.unspaced_words import (
    UnspacedWords,
    unspaced_words,
)


class DetailedSentence(NamedTuple):
    """The translation of one sentence."""

    source: str
    target: str
    probabilities: tuple[float, ...]
    """Of each word of the target: the smallest probability of its tokens. Empty if they are not known."""
    confidence: float | None
    """The geometric mean of the probabilities of all tokens; None if the model has translated nothing."""
    links: tuple[Link, ...]
    words: UnspacedWords | None = None
    """The words, if white space does not show them."""
    is_untranslated: bool = False
    """Whether the sentence, or a clause of it, stays as it is, because the model loses text of it."""

    def as_json(self, start: int, target_start: int) -> dict[str, Any]:
        """Plain values; `start` and `target_start` are the places of the sentence in both texts."""
        target_words: dict[str, Any] = {
            "words": word_spans(self.target) if self.words is None else self.words.target
        }
        if self.probabilities:
            target_words["probabilities"] = [round(each, 4) for each in self.probabilities]
        return {
            "source": {
                **_place(start, self.source),
                "words": word_spans(self.source) if self.words is None else self.words.source,
            },
            "target": {**_place(target_start, self.target), **target_words},
            "confidence": None if self.confidence is None else round(self.confidence, 4),
            "links": self.links,
            **({"untranslated": True} if self.is_untranslated else {}),
        }

    @property
    def num_bytes(self) -> int:
        """About the memory that it takes in a cache."""
        return 400 + 4 * (len(self.source) + len(self.target)) + 100 * len(self.links)


def detailed_sentences(translator: Translator, texts: Sequence[str]) -> list[DetailedSentence]:
    """The translations of sentences, in order, each as `tfm translate` translates a line with this sentence.

    Args:
        texts: without line breaks.
    """
    # With details the model reads whole lines, so marks around a text and capitals could come out in another form.
    translations = translator.translate(texts)
    explained = translator.translate(texts, with_details=True)
    return [
        detailed_sentence(translator.pipeline, text, translation.text, of_words)._replace(
            is_untranslated=translation.is_untranslated
        )
        for text, translation, of_words in zip(texts, translations, explained, strict=True)
    ]


def detailed_sentence(
    pipeline: TextPipeline, source: str, target: str, explained: Translation
) -> DetailedSentence:
    """A translated sentence with its words.

    Args:
        source: as it was given.
        target: its translation.
        explained: a translation of it with details; the words of its text are those of `target`, or nothing is told.
    """
    details = explained.details
    if details is None or not details.parts:
        return DetailedSentence(source, target, (), None, ())
    confidence = details.confidence
    num_words = len(target.split())
    if num_words != len(explained.text.split()):
        return DetailedSentence(source, target, (), confidence, ())
    found = unspaced_words(pipeline, source, explained) if target == explained.text else None
    links = details.links if found is None else found.links
    spans = word_spans(explained.text) if found is None else found.target
    probabilities = _word_probabilities(pipeline, explained.text, spans, details)
    return DetailedSentence(source, target, probabilities, confidence, links, found)


def _word_probabilities(
    pipeline: TextPipeline, text: str, words: Sequence[Span], details: LineDetails
) -> tuple[float, ...]:
    """For each word of a translation, the smallest probability of its tokens; empty if a token cannot be found."""
    smallest = [1.0] * len(words)
    tokenizer, place = pipeline.target_tokenizer, 0
    for part in details.parts:
        of_part = tokenizer.decode(part.target_ids)
        start = text.find(of_part, place)
        if start < 0:
            return ()
        spans: list[Span] = [
            (start + first, start + end) for first, end in tokenizer.decoded_spans(part.target_ids)
        ]
        probabilities = part.explanation.token_probs.tolist()
        for probability, of_token in zip(probabilities, words_at(spans, words), strict=True):
            for word in of_token:
                smallest[word] = min(smallest[word], probability)
        place = start + len(of_part)
    return tuple(smallest)


def _place(start: int, text: str) -> dict[str, Any]:
    return {"start": start, "end": start + len(text), "text": text}
