"""Counts the terms of a glossary in translations, and warns of each term that is missing."""

import logging
from dataclasses import dataclass

from transformer_cli.decoding.text_pipeline import Translation
from transformer_cli.process.escaping import on_one_line

logger = logging.getLogger(__name__)

MAX_SHOWN_CHARACTERS = 40


@dataclass(slots=True)
class GlossaryUse:
    """A count over the translations of lines, in their order."""

    num_lines: int = 0
    num_lines_with_terms: int = 0
    num_terms: int = 0
    num_missing: int = 0

    def add(self, translation: Translation) -> None:
        """Count the terms of the next line; warn of a term that is not in its translation."""
        self.num_lines += 1
        self.num_lines_with_terms += bool(translation.terms)
        self.num_terms += len(translation.terms)
        for term in translation.terms:
            if not term.is_applied:
                self.num_missing += 1
                logger.warning(
                    "line %d: the translation does not contain %s, which the glossary gives for %s",
                    self.num_lines,
                    on_one_line(term.target, MAX_SHOWN_CHARACTERS),
                    on_one_line(term.source, MAX_SHOWN_CHARACTERS),
                )

    def report(self) -> None:
        """Log the count."""
        logger.info(
            "glossary: terms found: %d, in %d of %d lines; %s",
            self.num_terms,
            self.num_lines_with_terms,
            self.num_lines,
            f"{self.num_missing} missing in the translations"
            if self.num_missing
            else "all of them are in the translations",
        )
