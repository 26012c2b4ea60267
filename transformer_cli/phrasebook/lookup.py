"""Whether the grammar makes an English sentence, and with which Italian."""

from __future__ import annotations

from transformer_cli.phrasebook.grammar.draw import DeadEndError, SearchDraw
from transformer_cli.phrasebook.patterns.all_patterns import PATTERNS
from transformer_cli.phrasebook.patterns.pattern import Pattern

MAX_ATTEMPTS = 400_000


def translations_of(english: str, pattern_name: str | None = None) -> dict[str, set[str]]:
    """The Italian translations of a sentence, under the names of the patterns that give them.

    Args:
        pattern_name: the only pattern to look at; all of them where it is None.

    Raises:
        ValueError: there is no such pattern, or it has too many ways to be searched.
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
    raise ValueError(f"{pattern.name!r} has too many ways to make {english!r}")
