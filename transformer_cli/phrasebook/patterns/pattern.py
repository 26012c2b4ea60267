"""What a sentence pattern is: a name, a way to build it, and how often it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from transformer_cli.phrasebook.grammar.draw import Draw

Build = Callable[[Draw], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A function that builds a sentence; twice the `weight` means drawn twice as often."""

    name: str
    build: Build
    weight: int = 2


def in_tenses(
    name: str, build: Callable[..., tuple[str, str]], tenses: dict[str, int], *, asks: bool = False
) -> tuple[Pattern, ...]:
    """One pattern for each tense, with its weight; with `asks`, also one for the question."""
    patterns = []
    for tense, weight in tenses.items():
        patterns.append(Pattern(f"{name}.{tense}", partial(build, tense=tense), weight))
        if asks:
            asking = partial(build, tense=tense, asks=True)
            patterns.append(Pattern(f"{name}.{tense}.question", asking, max(20, weight // 3)))
    return tuple(patterns)
