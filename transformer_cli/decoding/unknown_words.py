"""Counts the words of the source that are not in the vocabulary."""

import logging
from dataclasses import dataclass

from transformer_cli.decoding.text_pipeline import Translation

logger = logging.getLogger(__name__)

MAX_SHOWN_CHARACTERS = 40


@dataclass(slots=True)
class UnknownWords:
    """A count over translations; the model reads each such word as [UNK], so it cannot translate it."""

    num_unknown: int = 0
    num_words: int = 0
    first: str = ""

    def add(self, translation: Translation) -> None:
        """Count the words of one line."""
        if not self.num_unknown and translation.unknown_words:
            self.first = translation.unknown_words[0]
        self.num_unknown += len(translation.unknown_words)
        self.num_words += translation.num_words

    def report(self) -> None:
        """Log the count if there are unknown words, and start again from zero."""
        if self.num_unknown:
            logger.warning(
                "unknown words: %d of %d are not in the vocabulary of the model, which read them as [UNK]; "
                "the first: %s",
                self.num_unknown,
                self.num_words,
                _shown(self.first),
            )
        self.num_unknown = self.num_words = 0


def _shown(word: str) -> str:
    """A word for a terminal: shortened, and without control characters."""
    short = word if len(word) <= MAX_SHOWN_CHARACTERS else f"{word[:MAX_SHOWN_CHARACTERS]}..."
    return "".join(character if character.isprintable() else "\ufffd" for character in short)
