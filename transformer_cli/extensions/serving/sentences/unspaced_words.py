"""The words of sentences in scripts without spaces between words, such as Chinese: the tokens of the model stand for them."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from transformer_cli.decoding import Translation
from transformer_cli.decoding.details import (
    Span,
    linked_words,
    places_as_given,
    places_of,
    spans_in_line,
    word_spans,
    words_at,
)
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translation import Link

# Han, kana, Thai, Lao, Myanmar and Khmer.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)


class UnspacedWords(NamedTuple):
    """The words of a sentence and of its translation, and the links between them."""

    source: list[Span]
    target: list[Span]
    links: tuple[Link, ...]


def unspaced_words(
    pipeline: TextPipeline, source: str, explained: Translation
) -> UnspacedWords | None:
    """The words of both texts; None if white space shows them, or if the places of the tokens are not known.

    Args:
        pipeline: of the direction.
        source: the sentence.
        explained: its translation with details.
    """
    details, target = explained.details, explained.text
    if details is None or not (_UNSPACED.search(source) or _UNSPACED.search(target)):
        return None
    prepared = pipeline.prepare(source)
    places = places_as_given(source, prepared.read)
    if places is None or len(prepared.parts) != len(details.parts):
        return None
    of_source = [
        [
            (places[start], places[end - 1] + 1) if end > start >= 0 else (start, end)
            for start, end in spans_in_line(part.ids, text, place, pipeline.source_tokenizer)
        ]
        for part, text, place in zip(
            prepared.parts, prepared.texts, places_of(prepared.texts, prepared.read), strict=True
        )
    ]
    of_target = _target_spans(pipeline, target, [part.target_ids for part in details.parts])
    if of_target is None:
        return None
    source_words = _words(source, (span for spans in of_source for span in spans))
    target_words = _words(target, (span for spans in of_target for span in spans))
    links = [
        link
        for part, sources, targets in zip(details.parts, of_source, of_target, strict=True)
        for link in linked_words(
            part.explanation.attention,
            words_at(sources, source_words),
            words_at(targets, target_words),
        )
    ]
    return UnspacedWords(source_words, target_words, tuple(dict.fromkeys(links)))


def _target_spans(
    pipeline: TextPipeline, text: str, parts: Sequence[Sequence[int]]
) -> list[list[Span]] | None:
    """For each part, the places of its tokens in the translation; None if a part does not stand there."""
    tokenizer, place = pipeline.target_tokenizer, 0
    found = []
    for ids in parts:
        of_part = tokenizer.decode(list(ids))
        start = text.find(of_part, place)
        if start < 0:
            return None
        spans = tokenizer.decoded_spans(list(ids))
        # A token behind the text, such as [EOS], stands nowhere.
        found.append(
            [
                (start + first, start + end) if first < len(of_part) else (-2, -1)
                for first, end in spans
            ]
        )
        place = start + len(of_part)
    return found


def _words(text: str, tokens: Iterable[Span]) -> list[Span]:
    """The words of a text; one with signs of such a script is cut where a token begins or ends."""
    cuts = sorted({place for span in tokens for place in span})
    words: list[Span] = []
    for start, end in word_spans(text):
        if not _UNSPACED.search(text, start, end):
            words.append((start, end))
            continue
        inner = [place for place in cuts if start < place < end]
        words += zip([start, *inner], [*inner, end], strict=True)
    return words
