"""The validation and test pairs of a corpus in plain form, to find them among training pairs."""

from collections.abc import Iterable
from pathlib import Path

from transformer_cli.data.pairs import SentencePair, pair_digest
from transformer_cli.data.selection import DigestSet
from transformer_cli.extensions.corpora.likeness import plain_digest


class HeldOutForms:
    """Digests of held-out pairs, and of their sources and targets alone.

    Args:
        folder: where to put large tables.
    """

    def __init__(self, folder: Path) -> None:
        def digests(name: str) -> DigestSet:
            (folder / name).mkdir()
            return DigestSet(folder / name)

        self.exact = digests("exact")
        """`pair_digest` of the pairs."""
        self._pairs, self._sources, self._targets = map(digests, ("pairs", "sources", "targets"))

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, pair: SentencePair, forms: tuple[str, str]) -> None:
        """Add a held-out pair; a text without letters and digits is left out."""
        if not all(forms):
            return
        self.exact.add(pair_digest(pair))
        self._pairs.add(plain_digest(*forms))
        self._sources.add(plain_digest(forms[0]))
        self._targets.add(plain_digest(forms[1]))

    def overlap(self, pair: SentencePair, forms: tuple[str, str]) -> str | None:
        """How a pair overlaps with a held-out pair: leakage, near_leakage, leaked_source or leaked_target."""
        if not self or not all(forms):
            return None
        if plain_digest(*forms) in self._pairs:
            return "leakage" if pair_digest(pair) in self.exact else "near_leakage"
        if plain_digest(forms[0]) in self._sources:
            return "leaked_source"
        return "leaked_target" if plain_digest(forms[1]) in self._targets else None

    def close(self) -> None:
        """Free the tables."""
        tables: Iterable[DigestSet] = (self.exact, self._pairs, self._sources, self._targets)
        for table in tables:
            table.close()
