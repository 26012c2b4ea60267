"""What a sentence pattern is: a name, a way to build it, and how often it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from transformer_cli.phrasebook.grammar.draw import Draw

Build = Callable[[Draw], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A way to build a sentence; `weight` says how often it is used."""

    name: str
    build: Build
    weight: int = 2


def in_tenses(
    name: str, build: Callable[..., tuple[str, str]], tenses: dict[str, int], *, asks: bool = False
) -> tuple[Pattern, ...]:
    """The pattern in several tenses with their weights; with `asks`, as a question too."""
    patterns = []
    for tense, weight in tenses.items():
        patterns.append(Pattern(f"{name}.{tense}", partial(build, tense=tense), weight))
        if asks:
            asking = partial(build, tense=tense, asks=True)
            patterns.append(Pattern(f"{name}.{tense}.question", asking, max(20, weight // 3)))
    return tuple(patterns)
