"""The numbers of the lines of a text, for messages."""

import re
from bisect import bisect_right

_LINE_END = re.compile(r"\r\n?|\n")


class LineNumbers:
    """Tells the line of a place in a text, counted from 1."""

    def __init__(self, text: str) -> None:
        self._ends = [match.end() for match in _LINE_END.finditer(text)]

    def number_at(self, place: int) -> int:
        """The line in which text[place] stands."""
        return bisect_right(self._ends, place) + 1
