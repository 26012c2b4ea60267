"""What each doubt about a hypothesis costs it, when a repair chooses among several."""

from collections.abc import Iterable

from transformer_cli.decoding.checks.doubts import (
    COPIES,
    DATES,
    LACKS_JOINED,
    LACKS_LIMIT,
    LACKS_NAME,
    LACKS_TITLE,
    NEGATION,
    NUMBERS,
    OPPOSITE,
    OTHER_LANGUAGE,
    OTHER_SCRIPT,
    REPEATS,
    TOO_LONG,
    TWICE,
    UNFINISHED,
    UNREADABLE,
    UNSURE,
    VERBLESS,
    WORDLESS,
)

COSTS = {
    WORDLESS: 100.0,
    UNFINISHED: 6.0,
    REPEATS: 6.0,
    TOO_LONG: 6.0,
    COPIES: 3.0,
    OTHER_LANGUAGE: 3.0,
    OTHER_SCRIPT: 3.0,
    UNREADABLE: 3.0,
    UNSURE: 1.0,
    NUMBERS: 2.0,
    DATES: 2.0,
    LACKS_NAME: 1.0,
    LACKS_TITLE: 2.0,
    TWICE: 0.5,
    NEGATION: 0.7,
    OPPOSITE: 1.5,
    LACKS_LIMIT: 1.5,
    LACKS_JOINED: 1.0,
    VERBLESS: 0.15,  # else another wrong verb hides the fault
}
"""What each doubt about a hypothesis takes from its score, which is its log-probability over its length penalty, in nats.

The first eight outweigh any difference between two hypotheses of a beam. No list has all words that negate, so a hypothesis with
fewer doubts must be nearly as probable there."""


def cost(doubts: Iterable[str]) -> float:
    """What some doubts take from a score together."""
    return sum(COSTS[doubt] for doubt in doubts)


def is_strong(doubts: Iterable[str]) -> bool:
    """Whether one of some doubts outweighs any difference between two hypotheses."""
    return any(COSTS[doubt] >= COSTS[OTHER_SCRIPT] for doubt in doubts)
