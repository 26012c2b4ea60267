"""Whether the grammar can build an English sentence, and which Italian translations it gives."""

from __future__ import annotations

from transformer_cli.phrasebook.grammar.draw import DeadEndError, SearchDraw
from transformer_cli.phrasebook.patterns.all_patterns import PATTERNS
from transformer_cli.phrasebook.patterns.pattern import Pattern

MAX_ATTEMPTS = 400_000


def translations_of(english: str, pattern_name: str | None = None) -> dict[str, set[str]]:
    """The Italian translations of a sentence, by the name of the pattern that gives them.

    Args:
        pattern_name: the only pattern to search; None searches all of them.

    Raises:
        ValueError: there is no such pattern, or it allows too many combinations to try them all.
    """
    patterns = [x for x in PATTERNS if pattern_name in {None, x.name}]
    if not patterns:
        raise ValueError(f"there is no sentence pattern {pattern_name!r}")
    found = {pattern.name: _translations(english, pattern) for pattern in patterns}
    return {name: italian for name, italian in found.items() if italian}


def _translations(english: str, pattern: Pattern) -> set[str]:
    draw = SearchDraw(english)
    translations = set()
    for _ in range(MAX_ATTEMPTS):
        draw.start()
        try:
            source, target = pattern.build(draw)
            if source == english and len(set(draw.lemmas)) == len(draw.lemmas):
                translations.add(target)
        except DeadEndError:
            pass
        if not draw.advance():
            return translations
    raise ValueError(
        f"the pattern {pattern.name!r} allows too many combinations to search for {english!r}"
    )
