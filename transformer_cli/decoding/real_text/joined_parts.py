"""Joins the translations of the parts of a line to one translation."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from transformer_cli.decoding.text_pipeline import Alternative, Translation


def joined(
    source: str, parts: Sequence[Translation], join: Callable[[list[str]], str]
) -> Translation:
    """The translation of a text from those of its parts; the n-th best joins the n-th best of each part.

    Args:
        source: the text.
        parts: at least one.
        join: puts one text per part together.
    """
    of_parts = [part.alternatives or (Alternative(part.text, part.score),) for part in parts]
    alternatives: dict[str, float] = {}
    for nth_best in zip(*of_parts, strict=False):
        text = join([alternative.text for alternative in nth_best])
        alternatives.setdefault(text, sum(alternative.score for alternative in nth_best))
    pairs = tuple(Alternative(*pair) for pair in alternatives.items())
    return Translation(
        source,
        *pairs[0],
        pairs,
        unknown_words=tuple(word for part in parts for word in part.unknown_words),
        num_words=sum(part.num_words for part in parts),
        terms=tuple(term for part in parts for term in part.terms),
        is_cut=any(part.is_cut for part in parts),
        is_partly_copied=any(part.is_partly_copied for part in parts),
        is_in_pieces=any(part.is_in_pieces for part in parts),
        is_divided=any(part.is_divided for part in parts),
        is_untranslated=any(part.is_untranslated for part in parts),
    )


def copied(source: str, text: str | None = None) -> Translation:
    """A text that no model has translated, as its own translation with the score 0."""
    text = source if text is None else text
    return Translation(source, text, 0.0, (Alternative(text, 0.0),) if text.strip() else ())


def with_texts_of(translation: Translation, change: Callable[[str], str | None]) -> Translation:
    """The translation with changed texts; an alternative that becomes None or equal to a better one is left out."""
    alternatives: dict[str, float] = {}
    for text, score in translation.alternatives:
        changed = change(text)
        if changed is not None:
            alternatives.setdefault(changed, score)
    pairs = tuple(Alternative(*pair) for pair in alternatives.items())
    best = pairs[0] if pairs else Alternative("", 0.0)
    return replace(translation, text=best.text, score=best.score, alternatives=pairs)
