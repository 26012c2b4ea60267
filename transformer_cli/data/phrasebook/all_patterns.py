"""All sentence patterns of the phrasebook."""

from __future__ import annotations

from transformer_cli.data.phrasebook import patterns_being, patterns_liking, patterns_verbs
from transformer_cli.data.phrasebook.pattern import Pattern

PATTERNS: tuple[Pattern, ...] = (
    *patterns_verbs.PATTERNS,
    *patterns_being.PATTERNS,
    *patterns_liking.PATTERNS,
)
