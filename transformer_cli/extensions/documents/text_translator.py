"""What translates the texts of documents: its interface, and the links between words that move the markup."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from transformer_cli.decoding.details import word_spans
from transformer_cli.extensions.documents.segments import Languages
from transformer_cli.text.sentences import Sentence

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
    is_copied: bool = False
    """Whether a sentence stands here as in the source, because the model lost protected parts of it."""
    is_in_pieces: bool = False
    """Whether a sentence was translated in pieces around its protected parts."""
    is_cut: bool = False
    """Whether a sentence was too long for the model, and was translated in parts."""
    is_divided: bool = False
    """Whether a sentence was translated clause by clause, so that no text of it is lost."""
    is_untranslated: bool = False
    """Whether a sentence or clause stands here as in the source, because its translation loses text."""
    spans_of_terms: frozenset[str] = frozenset()
    """Protected spans in terms of a glossary, such as A4: the terms decide how often they are in the translation."""


class TextTranslator(Protocol):
    """Translates texts of one language into another; see `ModelTranslator` for that of a trained model."""

    @property
    def languages(self) -> Languages:
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
