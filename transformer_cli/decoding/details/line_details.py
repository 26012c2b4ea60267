"""The details of a translated line: tokens, probabilities, attention weights and word alignment."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from transformer_cli.decoding.details.word_links import Link
from transformer_cli.decoding.engine import Explanation, TokenIds


class PartDetails(NamedTuple):
    """The details of one part of a line: of a sentence, or of a piece of a long one."""

    source_ids: TokenIds
    """S source tokens, with [EOS] and a tag where the model reads these."""
    target_ids: TokenIds
    """T target tokens, with [EOS] if the search reached it."""
    explanation: Explanation
    """Probabilities and attention of these tokens."""


@dataclass(frozen=True, slots=True)
class LineDetails:
    """The details of the best translation of a line."""

    parts: tuple[PartDetails, ...]
    """What was translated by itself, in order."""
    links: tuple[Link, ...]
    """The word alignment: for each word of the translation, the word of the line to which it is linked, both counted
    from zero. A word without a link is missing."""

    @property
    def confidence(self) -> float | None:
        """The geometric mean of the probabilities of all tokens, 0 to 1; None if there are no tokens.

        Source: Fomicheva et al. 2020, "Unsupervised Quality Estimation for Neural Machine Translation", section 3.1:
        its logarithm is called TP there.
        """
        log_probs = [
            float(each) for part in self.parts for each in part.explanation.token_log_probs
        ]
        return math.exp(math.fsum(log_probs) / len(log_probs)) if log_probs else None
