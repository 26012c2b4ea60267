"""All sentence patterns, each with its name and its weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from transformer_cli.data.phrasebook.draw import Draw

Build = Callable[[Draw], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A way to build a sentence; `weight` says how often it is used."""

    name: str
    build: Build
    weight: int = 2
