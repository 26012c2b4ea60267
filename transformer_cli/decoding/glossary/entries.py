"""A glossary: source terms and the target terms for them, as text."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """One source term and its target term."""

    source: str
    target: str
    other_forms: tuple[str, ...] = ()
    """Further forms of the target term, such as its plural: the translation contains one of all forms."""
    keeps_case: bool = False
    """Whether capital letters count: the source term is found only in this spelling, and the target term is never
    written with a capital letter at the beginning of a translation."""
    place: str = ""
    """Where the entry was read, such as terms.tsv:12, for messages."""

    @property
    def forms(self) -> tuple[str, ...]:
        """All forms of the target term, without repetitions."""
        return tuple(dict.fromkeys((self.target, *self.other_forms)))


@dataclass(frozen=True, slots=True)
class Glossary:
    """Entries in any order; each source term stands there once, or twice if one of them keeps the case."""

    entries: tuple[GlossaryEntry, ...]

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> "Glossary":
        """A glossary of source terms and their target terms.

        Example:
            translator.with_glossary(Glossary.of({"dog": "Hund"}))
        """
        return cls(tuple(GlossaryEntry(source, target) for source, target in terms.items()))
