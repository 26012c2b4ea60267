"""What is counted over the translations of a file: unknown words, and terms of the glossary."""

from collections.abc import Iterable

from transformer_cli.decoding import Translation, UnknownWords
from transformer_cli.decoding.translation import GlossaryUse


class Counts:
    """The counts of one command."""

    def __init__(self, *, has_glossary: bool) -> None:
        self._unknown_words = UnknownWords()
        self._glossary_use = GlossaryUse() if has_glossary else None

    def add(self, translations: Iterable[Translation]) -> None:
        """Count the next lines."""
        for translation in translations:
            self._unknown_words.add(translation)
            if self._glossary_use is not None:
                self._glossary_use.add(translation)

    def report(self) -> None:
        """Log the counts."""
        self._unknown_words.report()
        if self._glossary_use is not None:
            self._glossary_use.report()
