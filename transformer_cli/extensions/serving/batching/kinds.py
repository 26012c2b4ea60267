"""Kinds of work for a batcher, and the units of work: one for each different item."""

import sys
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from transformer_cli.extensions.serving.batching.jobs import Waiting

Unwanted = Callable[[], Collection[Any]]
"""Returns the items of a batch that nobody needs any more. Their number never falls."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of work: only items of the same kind are computed together."""

    key: Hashable
    """Equal for equal kinds."""
    name: str
    """What it does; the speed of kinds with the same name is about the same."""
    compute: Callable[[Sequence[Any]], Sequence[Any]]
    """One result for each item. The result of an item does not depend on the other items."""
    length: Callable[[Any], int]
    """The number of tokens of an item."""
    max_tokens: int
    """Largest number of tokens of a batch, padding included; an item with more is a batch of its own."""
    compute_wanted: Callable[[Sequence[Any], Unwanted], Sequence[Any]] | None = None
    """The same as `compute`, but it may ask at any time which items are unwanted, and return anything for them. None: all
    items are computed to their end."""
    max_items: int = sys.maxsize
    """Largest number of items of a batch."""

    @property
    def place(self) -> Hashable:
        """What tells this kind from all others."""
        return self.name, self.key

    def results(self, items: Sequence[Any], unwanted: Unwanted) -> Sequence[Any]:
        """One result for each item, by `compute_wanted` if there is one."""
        if self.compute_wanted is None:
            return self.compute(items)
        return self.compute_wanted(items, unwanted)


class Unit:
    """One item, and the calls that wait for its result."""

    __slots__ = ("item", "key", "kind", "waiting")

    def __init__(self, kind: Kind, key: Hashable, item: Any) -> None:
        self.kind, self.key, self.item = kind, key, item
        self.waiting: list[Waiting] = []

    @property
    def place(self) -> tuple[Hashable, Hashable]:
        """The key of the unit among units of all kinds."""
        return self.kind.place, self.key

    @property
    def num_tokens(self) -> int:
        """The number of tokens of its item."""
        return self.kind.length(self.item)
