"""A line before its translation, as token ids, and after it, as text."""

from dataclasses import dataclass
from typing import NamedTuple

from transformer_cli.decoding.alternatives import Alternative
from transformer_cli.decoding.details.line_details import LineDetails
from transformer_cli.decoding.engine import Request
from transformer_cli.decoding.glossary import AppliedTerm, RequiredTerm


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of one line; `text` never contains a line break."""

    source: str
    text: str
    score: float
    """Log-probability / length penalty; for a line of several sentences or parts, the sum over them."""
    alternatives: tuple[Alternative, ...]
    """At most `decoding.num_best`, all different, best first; the first is the translation itself. Empty for a
    blank line."""
    unknown_words: tuple[str, ...] = ()
    """The words and marks of the source that are not in the vocabulary, in order; the model read each as [UNK]."""
    num_words: int = 0
    """Number of words of the source, plus its unknown marks; 0 for subwords, which can encode every text."""
    terms: tuple[AppliedTerm, ...] = ()
    """The terms of the glossary that stand in the line, in order, and whether the translation contains their target terms."""
    details: LineDetails | None = None
    """Tokens, probabilities, attention and word alignment of the best translation; None unless they were asked for."""
    is_cut: bool = False
    """Whether a sentence had more tokens than the model can read, and was translated in parts."""
    is_partly_copied: bool = False
    """Whether a sentence stands here as in the source, because the model lost protected spans of it."""
    is_in_pieces: bool = False
    """Whether a sentence was translated in several pieces, around protected spans that the model cannot place itself."""
    is_divided: bool = False
    """Whether a sentence was translated clause by clause, because it is longer than those of the training, or because its
    translation as a whole lost text."""
    is_untranslated: bool = False
    """Whether a sentence or clause stands here as in the source, because its translation was empty or far too short."""

    @property
    def confidence(self) -> float | None:
        """The geometric mean of the probabilities of its tokens, 0 to 1; None without details, and for a blank line."""
        return self.details.confidence if self.details is not None else None


class Clause(NamedTuple):
    """A part of a line as it was given, and its place in its sentence."""

    text: str
    """Normalised, in the spelling of the line."""
    starts_inside: bool = False
    """Whether words of the same sentence stand before it."""
    ends_inside: bool = False
    """Whether words of the same sentence follow it."""
    closing: str = ""
    """The mark that ends the sentence, if words follow: the model reads it behind the clause, as it knows sentences."""


@dataclass(frozen=True, slots=True)
class PreparedLine:
    """A line and its token ids, for the engine and for `restore`."""

    line: str
    """As it was given."""
    parts: tuple[Request, ...]
    """What the engine translates, in order: none for a blank line, else its sentences. A sentence that is too long
    for the model has several parts."""
    gaps: tuple[str, ...] = ()
    """For each part, the white space before its translation, with the marks between two clauses; empty for the first
    part."""
    is_cut: bool = False
    """Whether a sentence was too long for the model."""
    unknown_words: tuple[str, ...] = ()
    """As in `Translation`."""
    num_words: int = 0
    """As in `Translation`."""
    texts: tuple[str, ...] = ()
    """The normalised text of each part; only white space stands between two of them, or marks between clauses."""
    read: str = ""
    """The whole line as the model reads it: normalised, and with unknown words in known spellings."""
    terms: tuple[tuple[RequiredTerm, ...], ...] = ()
    """For each part, what the glossary requires of its translation: nothing without a glossary."""
    clauses: tuple[Clause, ...] = ()
    """For each part, its text as it was given, and its place in its sentence."""
    kept: frozenset[int] = frozenset()
    """The numbers of the parts that stay as they were given, because their translations lose text."""
