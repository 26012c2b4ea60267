"""What translates the texts of documents: its interface, and the translator that a trained model gives."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from transformer_cli.config.data import Direction
from transformer_cli.decoding import ExplainingEngine, Translator
from transformer_cli.decoding.details import word_spans
from transformer_cli.decoding.given_pairs import TextAligner
from transformer_cli.decoding.quality import Drift
from transformer_cli.decoding.translation import (
    Estimate,
    PlacedPiece,
    Translation,
    placed_pieces,
)
from transformer_cli.text.sentences import Sentence, split_sentences_around
from transformer_cli.text.spans import find_spans, span_texts

Extent = tuple[int, int]
"""A range of a text: text[start:end]."""


class LinkedWords(NamedTuple):
    """A word of a text and a word of its translation, by their places."""

    source: Extent
    target: Extent


class AskedText(NamedTuple):
    """A text to translate."""

    text: str
    """Without line breaks."""
    needs_links: bool = False
    """Whether markup inside it is to be moved."""


class AnsweredText(NamedTuple):
    """A translation, as a `TextTranslator` gives it."""

    text: str
    links: tuple[LinkedWords, ...] = ()
    """Which words belong together, if it was asked for; nothing if the model cannot tell."""
    pieces: tuple[PlacedPiece, ...] = ()
    """What was translated by itself, in order; nothing if that is the whole text. No link reaches from one into another."""
    is_copied: bool = False
    """Whether a sentence stands here as in the source, because the model lost protected parts of it."""
    is_in_pieces: bool = False
    """Whether a sentence was translated in pieces around its protected parts."""
    is_cut: bool = False
    """Whether a sentence was too long for the model, and was translated in parts."""
    is_divided: bool = False
    """Whether a sentence was translated clause by clause, because it is long, or its translation lost text."""
    is_untranslated: bool = False
    """Whether a sentence or clause stands here as in the source, because its translation loses text."""
    doubts: tuple[str, ...] = ()
    """What the text of the translation shows to be wrong, in words; see `decoding.doubts`."""
    estimate: Estimate | None = None
    """How far it can be trusted; None if the translator does not estimate it, or no model has translated the text."""
    spans_of_terms: frozenset[str] = frozenset()
    """Protected spans in terms of a glossary, such as A4: the terms decide how often they are in the translation."""


class TextTranslator(Protocol):
    """Translates texts of one language into another; see `ModelTranslator` for that of a trained model."""

    @property
    def languages(self) -> Direction:
        """The languages of all texts and translations."""

    def sentences(self, text: str) -> list[Sentence]:
        """The sentences of a text; one, if the model reads several at once."""

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        """One translation per text, in order."""


def links_by_position(source: str, target: str) -> tuple[LinkedWords, ...]:
    """Links for texts of which no alignment is known: equal texts word by word, others by the share of the way."""
    sources, targets = word_spans(source), word_spans(target)
    if not sources:
        return ()
    return tuple(
        LinkedWords(sources[number * len(sources) // len(targets)], word)
        for number, word in enumerate(targets)
    )


@dataclass(frozen=True, slots=True)
class ModelTranslator:
    """A `TextTranslator` of a `Translator` for one direction."""

    translator: Translator
    drift: Drift | None = None
    """What looks at all texts, and compares them with those of the calibration."""

    @classmethod
    def of(
        cls, translator: Translator, *, to: str | None = None, from_: str | None = None
    ) -> "ModelTranslator":
        """The translator of documents in one direction.

        It protects spans.

        Args:
            to: the target language, for a model that translates into several.
            from_: the source language, for a model that translates from several into `to`.
        """
        return cls(
            replace(
                translator.towards(to, from_),
                protects_spans=True,
                reports_lines=False,
                is_strict=False,
                only_green=False,
            )
        )

    @property
    def languages(self) -> Direction:
        """See `TextTranslator.languages`."""
        return self.translator.languages

    def sentences(self, text: str) -> list[Sentence]:
        """See `TextTranslator.sentences`."""
        if not (self.translator.before or self.translator).pipeline.splits_sentences:
            return [Sentence(text, "")]
        return split_sentences_around(find_spans(text), text, self.languages.source)

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        """See `TextTranslator.translate`."""
        translations = list(self.translator.translate([asked.text for asked in texts]))
        if self.drift is not None:
            self.drift.add(translations)
        linked = [
            translation
            for asked, translation in zip(texts, translations, strict=True)
            if asked.needs_links
        ]
        pieces = {id(each): placed_pieces(each) for each in linked}
        of_linked = self._links(linked, list(pieces.values()))
        links = dict(zip(pieces, of_linked, strict=True))
        return [
            AnsweredText(
                translation.text,
                links.get(id(translation), ()),
                tuple(pieces.get(id(translation), ())),
                is_copied=translation.is_partly_copied,
                is_in_pieces=translation.is_in_pieces,
                is_cut=translation.is_cut,
                is_divided=translation.is_divided,
                is_untranslated=translation.is_untranslated,
                doubts=translation.doubts,
                estimate=translation.estimate,
                spans_of_terms=frozenset(
                    span
                    for term in translation.terms
                    for text in (term.source, term.target)
                    for span in span_texts(text, find_spans(text))
                ),
            )
            for asked, translation in zip(texts, translations, strict=True)
        ]

    def _links(
        self, translations: Sequence[Translation], pieces: Sequence[Sequence[PlacedPiece]]
    ) -> list[tuple[LinkedWords, ...]]:
        """The links of each translation, inside of its pieces; none if the engine cannot tell its attention."""
        if self.translator.before is not None:
            of_wholes = self._links_through_pivot(self.translator.before, translations)
            return [
                _links_in_pieces(*each)
                for each in zip(translations, pieces, of_wholes, strict=True)
            ]
        wholes = [
            of_one
            or [PlacedPiece((0, len(each.source)), (0, len(each.text)), each.source == each.text)]
            for each, of_one in zip(translations, pieces, strict=True)
        ]
        # The model reads a piece as for its translation, without words of others that may draw its attention.
        asked = [
            (number, piece)
            for number, of_one in enumerate(wholes)
            for piece in of_one
            if not piece.is_kept and all(map(str.strip, piece.texts(translations[number])))
        ]
        pairs = [piece.texts(translations[number]) for number, piece in asked]
        found: list[list[LinkedWords]] = [[] for _ in translations]
        for (number, piece), links in zip(asked, _links_of(self.translator, pairs), strict=True):
            found[number] += moved_links(links, piece.source[0], piece.target[0])
        return [_links_in_pieces(*each) for each in zip(translations, pieces, found, strict=True)]

    def _links_through_pivot(
        self, before: Translator, translations: Sequence[Translation]
    ) -> list[tuple[LinkedWords, ...]]:
        """The links of each translation by two models, as a whole."""
        pivots = ["" if each.pivot is None else each.pivot.text for each in translations]
        first = zip([each.source for each in translations], pivots, strict=True)
        second = zip(pivots, [each.text for each in translations], strict=True)
        steps = _links_of(before, list(first)), _links_of(self.translator, list(second))
        return [links_through(*links) for links in zip(*steps, strict=True)]


def _links_in_pieces(
    translation: Translation, pieces: Sequence[PlacedPiece], links: Sequence[LinkedWords]
) -> tuple[LinkedWords, ...]:
    """The links between words of the same piece; by their positions in a piece that has none, such as one that is kept."""
    if not pieces:
        return tuple(links)
    # A long text has many of both, so only the links near a piece are compared with it.
    ordered = sorted(links)
    starts = [start for (start, _), _ in ordered]
    longest = max((end - start for (start, end), _ in ordered), default=0)
    kept: list[LinkedWords] = []
    for piece in pieces:
        first, last = piece.source
        near = slice(bisect_right(starts, first - longest), bisect_left(starts, last))
        inside = [
            link
            for link in ordered[near]
            if all(
                begin < end and start < stop
                for (start, end), (begin, stop) in zip(link, piece[:2], strict=True)
            )
        ]
        if piece.is_kept or not inside:
            by_position = links_by_position(*piece.texts(translation))
            inside = list(moved_links(by_position, piece.source[0], piece.target[0]))
        kept += inside
    return tuple(kept)


def moved_links(
    links: Iterable[LinkedWords], by_source: int, by_target: int
) -> Iterator[LinkedWords]:
    """Links of a part of a text, as those of the whole."""
    for (first, last), (start, end) in links:
        yield LinkedWords(
            (first + by_source, last + by_source), (start + by_target, end + by_target)
        )


def moved_pieces(
    pieces: Iterable[PlacedPiece], by_source: int, by_target: int
) -> Iterator[PlacedPiece]:
    """Pieces of a part of a text, as those of the whole."""
    for piece in pieces:
        (link,) = moved_links([LinkedWords(*piece[:2])], by_source, by_target)
        yield PlacedPiece(*link, is_kept=piece.is_kept)


def _links_of(
    translator: Translator, pairs: Sequence[tuple[str, str]]
) -> list[tuple[LinkedWords, ...]]:
    """The links of each pair of a text and its translation by one model."""
    engine = translator.engine
    if not isinstance(engine, ExplainingEngine):
        return [()] * len(pairs)
    distinct = list(dict.fromkeys(pairs))
    aligner = TextAligner(translator.pipeline, engine, translator.decoding.batch_tokens)
    found = dict(zip(distinct, aligner.align(distinct), strict=True))
    return [tuple(LinkedWords(*link) for link in found[pair]) for pair in pairs]


def links_through(
    first: Sequence[LinkedWords], second: Sequence[LinkedWords]
) -> tuple[LinkedWords, ...]:
    """The links of a text with its translation, from those of two steps: words of the pivot that overlap link both."""
    found = (
        LinkedWords(one.source, other.target)
        for other in second
        for one in first
        if one.target[0] < other.source[1] and other.source[0] < one.target[1]
    )
    return tuple(dict.fromkeys(found))
