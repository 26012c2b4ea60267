"""All sentence patterns of the phrasebook."""

from __future__ import annotations

from transformer_cli.data.phrasebook import (
    patterns_being,
    patterns_commands,
    patterns_degrees,
    patterns_enquiries,
    patterns_having,
    patterns_identity,
    patterns_infinitives,
    patterns_joined,
    patterns_liking,
    patterns_linked,
    patterns_occasions,
    patterns_pastimes,
    patterns_pronouns,
    patterns_questions,
    patterns_relative,
    patterns_said,
    patterns_travel,
    patterns_verbs,
    patterns_ways,
    patterns_weather,
)
from transformer_cli.data.phrasebook.pattern import Pattern

PATTERNS: tuple[Pattern, ...] = (
    *patterns_being.PATTERNS,
    *patterns_commands.PATTERNS,
    *patterns_degrees.PATTERNS,
    *patterns_enquiries.PATTERNS,
    *patterns_having.PATTERNS,
    *patterns_identity.PATTERNS,
    *patterns_infinitives.PATTERNS,
    *patterns_joined.PATTERNS,
    *patterns_liking.PATTERNS,
    *patterns_linked.PATTERNS,
    *patterns_occasions.PATTERNS,
    *patterns_pastimes.PATTERNS,
    *patterns_pronouns.PATTERNS,
    *patterns_questions.PATTERNS,
    *patterns_relative.PATTERNS,
    *patterns_said.PATTERNS,
    *patterns_travel.PATTERNS,
    *patterns_verbs.PATTERNS,
    *patterns_ways.PATTERNS,
    *patterns_weather.PATTERNS,
)
