"""A translation memory: texts whose translations are known, such as corrected ones, and are reused."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from transformer_cli.decoding.translation import Alternative, Translation
from transformer_cli.process.messages import on_one_line
from transformer_cli.text.span_kinds import TOUCHING_SPECIFICATION
from transformer_cli.text.spans import placeholders_and_tags

logger = logging.getLogger(__name__)

MAX_SHOWN = 60
_MOST_NAMED = 5
NOT_FROM_MEMORY = "its translation in the memory was not used, because it lacks"
"""Followed by the placeholder or tag."""


class MemoryPair(NamedTuple):
    """A text and its translation."""

    source: str
    target: str
    place: str
    """Where it was read, such as corrected.csv:12, for messages."""


@dataclass(slots=True)
class TranslationMemory:
    """Finds a text as a whole; white space around and between words does not count, capital letters and marks do."""

    targets: dict[str, str]
    """Key of a source -> its translation."""
    normalize: Callable[[str], str]
    """What the model does to a source text first, so that two spellings of one text are found as one."""
    name: str
    """Of the file, for messages."""
    sources: dict[str, str] = field(default_factory=dict)
    """Key of each source that no text of the input was equal to until now -> the source as written."""

    @classmethod
    def of(cls, pairs: Iterable[MemoryPair], normalize: Callable[[str], str], name: str) -> "TranslationMemory":
        """The memory of some pairs; of several translations of one text, the last counts, and a warning names the text."""
        memory = cls({}, normalize, name)
        doubtful = 0
        for source, target, place in pairs:
            key = memory._key(source)
            if memory.targets.get(key, target) != target:
                doubtful += 1
                if doubtful == 1:
                    shown = on_one_line(source, MAX_SHOWN)
                    logger.warning("%s: another translation of %s: the last counts", place, shown)
            memory.targets[key] = target
            memory.sources[key] = source
        if doubtful > 1:
            logger.warning("%s: %d texts have several translations", name, doubtful)
        logger.info(
            "%s has %d translation%s: each is used where a whole text of the input is equal to its source",
            name,
            len(memory.targets),
            "" if len(memory.targets) == 1 else "s",
        )
        return memory

    def _key(self, text: str) -> str:
        return " ".join(self.normalize(text).split())

    def __contains__(self, text: str) -> bool:
        """Whether it has the translation of a text."""
        return bool(text.strip()) and self._key(text) in self.targets

    def recall(self, text: str, number: int | None = None) -> Translation | None:
        """The translation of a text, with the white space around the text; None: the memory does not have it.

        Args:
            text: the whole text.
            number: of a line of the input, whose translation must have each placeholder and tag of the line: else it is not used, and
                named; None: the caller looks after this.
        """
        if text not in self:
            return None
        key = self._key(text)
        found = self.targets[key]
        self.sources.pop(key, None)
        if number is not None and (lost := lost_by_memory(text, found)):
            logger.warning("line %d: %s %s", number, NOT_FROM_MEMORY, on_one_line(lost, MAX_SHOWN))
            return None
        start = len(text) - len(text.lstrip())
        recalled = f"{text[:start]}{found}{text[len(text.rstrip()) :]}"
        return Translation(text, recalled, 0.0, (Alternative(recalled, 0.0),), is_from_memory=True)

    def report(self, num_used: int) -> None:
        """Log how many of the texts that were written are from it, and which sources were no text of the input."""
        logger.info("memory: translations from %s: %d", self.name, num_used)
        if self.sources:
            named = [on_one_line(source, MAX_SHOWN) for source in islice(self.sources.values(), _MOST_NAMED)]
            others = len(self.sources) - len(named)
            logger.info(
                "%s: %d of its %d sources are no whole text of the input: %s%s",
                self.name,
                len(self.sources),
                len(self.targets),
                " | ".join(named),
                f" | and {others} more" if others else "",
            )


def lost_by_memory(source: str, target: str) -> str:
    """The first placeholder or tag of a text that its translation in a memory lacks; empty if it is complete.

    How a number, a time, an amount or an address is written is the choice of the person who made the translation.
    """
    read, written = (
        Counter([*placeholders_and_tags(text), *TOUCHING_SPECIFICATION.findall(text)]) for text in (source, target)
    )
    return next(iter(read - written), "")
