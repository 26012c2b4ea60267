"""Documents that are one text: the translations replace parts of it, and all other characters stay."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from transformer_cli.extensions.documents.character_encoding import DecodedText
from transformer_cli.extensions.documents.segments import (
    Languages,
    Markup,
    Piece,
    Segment,
    TranslatedSegment,
)


class Slot(NamedTuple):
    """A part of a text that holds a segment: text[start:end].

    A slot may lie inside the markup of another one, such as the attribute of an image inside a paragraph, or a footnote
    inside one; else slots do not overlap.
    """

    start: int
    end: int
    segment: Segment
    render: Callable[[TranslatedSegment], str]
    """What stands there instead, for a translation that differs from the segment."""


class Edit(NamedTuple):
    """Another part that changes, such as the name of the language: text[start:end]."""

    start: int
    end: int
    replacement: Callable[[Languages], str]


class Change(NamedTuple):
    """What stands in place of text[start:end]."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class SplicedDocument:
    """A `Document` of one text."""

    content: DecodedText
    slots: tuple[Slot, ...]
    edits: tuple[Edit, ...] = ()

    @property
    def segments(self) -> Sequence[Segment]:
        """See `Document.segments`."""
        return [slot.segment for slot in self.slots]

    def write(self, translations: Sequence[TranslatedSegment], languages: Languages) -> bytes:
        """See `Document.write`."""
        return self.content.encoded(self.translated_text(translations, languages))

    def translated_text(
        self, translations: Sequence[TranslatedSegment], languages: Languages
    ) -> str:
        """The text of `write`, before it is encoded."""
        changes = sorted(Change(*edit[:2], edit.replacement(languages)) for edit in self.edits)
        # The shortest first: what lies inside the markup of another slot is ready when that slot is written.
        in_order = sorted(
            zip(self.slots, translations, strict=True), key=lambda each: each[0].end - each[0].start
        )
        for slot, translation in in_order:
            if translation.pieces == slot.segment.pieces:
                continue
            first, last = (bisect_left(changes, (place,)) for place in (slot.start, slot.end))
            text = slot.render(_with_changes(translation, changes[first:last]))
            changes[first:last] = [Change(slot.start, slot.end, text)]
        return spliced(self.content.text, changes)


def spliced(text: str, changes: Iterable[Change]) -> str:
    """The text with its changes, which do not overlap."""
    parts, place = [], 0
    for start, end, replacement in sorted(changes):
        parts += [text[place:start], replacement]
        place = end
    return "".join([*parts, text[place:]])


def rendered(pieces: Iterable[Piece], escape: Callable[[str], str]) -> str:
    """Pieces as they stand in a file: the markup as it is, the text escaped."""
    return "".join(escape(piece) if isinstance(piece, str) else piece.raw for piece in pieces)


def _inside(changes: Sequence[Change], start: int, end: int) -> Sequence[Change]:
    """The changes of a sorted list that lie in a range."""
    return changes[bisect_left(changes, (start,)) : bisect_left(changes, (end,))]


def _with_changes(translation: TranslatedSegment, changes: Sequence[Change]) -> TranslatedSegment:
    """The translation, with the changes that lie in its markup."""
    pieces: list[Piece] = []
    for piece in translation.pieces:
        if not isinstance(piece, Markup) or piece.start is None:
            pieces.append(piece)
            continue
        start = piece.start
        own = [
            Change(change.start - start, change.end - start, change.text)
            for change in _inside(changes, start, start + len(piece.raw))
        ]
        pieces.append(piece._replace(raw=spliced(piece.raw, own)))
    return replace(translation, pieces=tuple(pieces))
