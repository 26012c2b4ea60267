"""All sentence patterns of the phrasebook; the generated sentences depend on their order."""

from __future__ import annotations

from transformer_cli.phrasebook.patterns.complex_sentences import (
    clause_pairs,
    conjunctions,
    infinitives,
    relative_clauses,
)
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.patterns.simple_sentences import (
    being,
    degrees,
    full_verbs,
    having,
    identity,
    imperatives,
    liking,
    object_pronouns,
    questions,
    weather,
)
from transformer_cli.phrasebook.patterns.situations import (
    conversation,
    daily_life,
    directions,
    enquiries,
    small_talk,
    templates,
    travel,
)

PATTERNS: tuple[Pattern, ...] = (
    *being.PATTERNS,
    *imperatives.PATTERNS,
    *degrees.PATTERNS,
    *enquiries.PATTERNS,
    *having.PATTERNS,
    *identity.PATTERNS,
    *infinitives.PATTERNS,
    *conjunctions.PATTERNS,
    *liking.PATTERNS,
    *clause_pairs.PATTERNS,
    *small_talk.PATTERNS,
    *daily_life.PATTERNS,
    *object_pronouns.PATTERNS,
    *questions.PATTERNS,
    *relative_clauses.PATTERNS,
    *conversation.PATTERNS,
    *travel.PATTERNS,
    *full_verbs.PATTERNS,
    *directions.PATTERNS,
    *templates.PATTERNS,
    *weather.PATTERNS,
)
