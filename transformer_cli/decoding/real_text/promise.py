"""The promise about protected spans: finds the spans that a translation must contain, and checks it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transformer_cli.decoding.real_text.joined_parts import with_texts_of
from transformer_cli.decoding.text_pipeline import Translation
from transformer_cli.text.protected.spans import Span, SpanKind, find_spans, span_texts


@dataclass(frozen=True, slots=True)
class Promise:
    """The spans of a source, and how often its translation must hold each.

    A translation may have numbers that its source does not have ("two cats" may become "2 gatti"), but no other spans:
    a URL or a tag that the source does not have is invented.
    """

    counts: Mapping[str, int]
    may_repeat_numbers: bool = False
    """For a line of several sentences: the translation of one may write a number that the span of another has."""

    @classmethod
    def of(cls, text: str, spans: Sequence[Span], *, may_repeat_numbers: bool = False) -> "Promise":
        """The promise for a source and its spans."""
        return cls(Counter(span_texts(text, spans)), may_repeat_numbers)

    def is_kept_by(self, text: str) -> bool:
        """Whether a translation holds each span exactly as often as the source, and no invented one."""
        found: Counter[str] = Counter()
        is_number: dict[str, bool] = {}
        for span in find_spans(text):
            span_text = text[span.start : span.end]
            found[span_text] += 1
            is_number[span_text] = span.kind is SpanKind.NUMBER
        if any(span not in self.counts and not is_number[span] for span in found):
            return False
        return all(
            found[span] == count
            or (self.may_repeat_numbers and found[span] > count and is_number[span])
            for span, count in self.counts.items()
        )

    def kept_part(self, translation: Translation) -> Translation | None:
        """The translation with only the alternatives that keep the promise; None if none of them does."""
        kept = with_texts_of(translation, lambda text: text if self.is_kept_by(text) else None)
        return kept if kept.alternatives else None
