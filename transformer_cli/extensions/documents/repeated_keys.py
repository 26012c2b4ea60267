"""Which keys a mapping of a file has twice, so that programs read only one of their texts."""

import logging
from collections.abc import Hashable

from transformer_cli.extensions.documents.formats import ReadingOptions
from transformer_cli.extensions.documents.segments import LineNumbers
from transformer_cli.text.normalization import has_letter

logger = logging.getLogger(__name__)

_MOST_NAMED = 5
_LONGEST_SHOWN = 60
# Keys of comments, of which a mapping may have many: "//", "_comment".
_COMMENTS = frozenset(["comment", "comments"])


class RepeatedKeys:
    """Notes the keys of a file, in their order, and names those that a mapping in it has twice."""

    def __init__(self) -> None:
        # For each open mapping, the file itself first: where its keys stand.
        self._mappings: list[dict[Hashable, int]] = [{}]
        self._found: list[tuple[str, int, int]] = []

    def begin_mapping(self) -> None:
        """What follows is in another mapping."""
        self._mappings.append({})

    def end_mapping(self) -> None:
        """The mapping that has begun last ends."""
        self._mappings.pop()

    def add(self, key: str, place: int, *, beside: Hashable = None) -> None:
        """Note a key of the innermost mapping.

        Args:
            place: where it stands in the text of the file.
            beside: what else tells it from another key of the same name.
        """
        if not has_letter(key) or key.strip("_$#@/-").casefold() in _COMMENTS:
            return
        first = self._mappings[-1].setdefault((key, beside), place)
        if first != place:
            self._found.append((key, first, place))

    def warn(self, text: str, options: ReadingOptions) -> None:
        """Name the keys that stand twice in the text of a file, if they are not named already."""
        lines = LineNumbers(text)
        for key, *places in [] if options.is_repeated else self._found[:_MOST_NAMED]:
            first, second = map(lines.number_at, places)
            logger.warning(
                "%s: the key %s is there twice; both texts are translated, but programs may read only one of them",
                f"line {first}" if first == second else f"lines {first} and {second}",
                key if len(key) <= _LONGEST_SHOWN else f"{key[:_LONGEST_SHOWN]}\u2026",
            )
        if len(self._found) > _MOST_NAMED and not options.is_repeated:
            logger.warning("and %d more keys that are there twice", len(self._found) - _MOST_NAMED)
