"""The numbers of the lines of a text, for messages."""


class LineNumbers:
    """Tells the line of a place in a text, counted from 1; the places are best asked for in their order."""

    def __init__(self, text: str) -> None:
        self._text = text
        # The last place, and the number of line ends before it. A list of all line ends would take more memory than
        # the text.
        self._place = self._num_ends = 0

    def number_at(self, place: int) -> int:
        """The line in which text[place] stands."""
        first, last = sorted((self._place, place))
        between = self._num_ends_between(first, last)
        self._num_ends += between if place >= self._place else -between
        self._place = place
        is_inside_end = self._text[max(0, place - 1) : place + 1] == "\r\n"
        return self._num_ends - is_inside_end + 1

    def _num_ends_between(self, first: int, last: int) -> int:
        """How many line ends begin before `last`, and end behind `first`: "\\r\\n" is one."""
        count = self._text.count
        in_two = count("\r\n", max(0, first - 1), last)
        return count("\n", first, last) + count("\r", first, last) - in_two
