"""The promise about protected spans: finds the spans that a translation must contain, and checks it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transformer_cli.decoding.glossary import RequiredTerm
from transformer_cli.decoding.real_text.joined_parts import with_texts_of
from transformer_cli.decoding.text_pipeline import Translation
from transformer_cli.text.protected.spans import Span, SpanKind, find_spans, span_texts

# In place of the characters of a protected span: it is neither a letter nor white space nor a mark of a layout.
HIDDEN = "\ue000"


@dataclass(frozen=True, slots=True)
class Promise:
    """The spans of a source, and how often its translation must hold each.

    A translation may have numbers that its source does not have ("two cats" may become "2 gatti"), but no other spans:
    a URL or a tag that the source does not have is invented.
    """

    counts: Mapping[str, int]
    may_repeat_numbers: bool = False
    """For a line of several sentences: the translation of one may write a number that the span of another has."""

    allowed: frozenset[str] = frozenset()
    """Spans of terms of a glossary, which a translation may have more often."""

    @classmethod
    def of(
        cls,
        text: str,
        spans: Sequence[Span],
        *,
        may_repeat_numbers: bool = False,
        allowed: frozenset[str] = frozenset(),
    ) -> "Promise":
        """The promise for a source and its spans."""
        return cls(Counter(span_texts(text, spans)), may_repeat_numbers, allowed)

    def is_kept_by(self, text: str) -> bool:
        """Whether a translation holds each span exactly as often as the source, and no invented one."""
        found: Counter[str] = Counter()
        is_number: dict[str, bool] = {}
        for span in find_spans(text):
            span_text = text[span.start : span.end]
            found[span_text] += 1
            is_number[span_text] = span.kind is SpanKind.NUMBER
        if any(
            span not in self.counts and span not in self.allowed and not is_number[span]
            for span in found
        ):
            return False
        return all(
            found[span] == count
            or (self.may_repeat_numbers and found[span] > count and is_number[span])
            or (span in self.allowed and found[span] > count)
            for span, count in self.counts.items()
        )

    def kept_part(self, translation: Translation) -> Translation | None:
        """The translation with only the alternatives that keep the promise; None if none of them does."""
        kept = with_texts_of(translation, lambda text: text if self.is_kept_by(text) else None)
        return kept if kept.alternatives else None


def spans_of_terms(required: Sequence[RequiredTerm]) -> frozenset[str]:
    """The protected spans that stand in target terms, such as A4 in "foglio A4"."""
    forms = [form for each in required for form in (*each.forms, *each.first_forms)]
    return frozenset(span for form in forms for span in span_texts(form, find_spans(form)))


def spans_outside_terms(text: str, required: Sequence[RequiredTerm]) -> list[Span]:
    """The protected spans of a text, but not those that stand in a source term: the target term takes their place."""
    taken, place = [], 0
    for each in required:
        start = text.find(each.source, place)
        if start >= 0:
            place = start + len(each.source)
            taken.append((start, place))
    return [
        span
        for span in find_spans(text)
        if not any(start <= span.start and span.end <= end for start, end in taken)
    ]
