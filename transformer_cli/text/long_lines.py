"""How a line with more tokens than the model has learned to read is cut into parts."""

import re
from collections.abc import Callable, Iterator

# The full-width stop, marks and comma of Chinese and Japanese, which no white space follows.
_WIDE_STOPS = "\u3002\uff01\uff1f"
_WIDE_PAUSES = "\u3001\uff0c\uff1a\uff1b"
# After the end of a sentence, at a lesser pause, between words: the best kind comes first. What
# the group matches is left out.
_BOUNDARIES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"[.!?…][\"'»”)\]]*(\s+)|[{_WIDE_STOPS}](\s*)",
        rf"[,;:](\s+)|[{_WIDE_PAUSES}](\s*)",
        r"(\s+)",
    )
)


def split_line(text: str, is_short: Callable[[str], bool]) -> Iterator[str]:
    """Parts of a text that are all short, in order, cut near the middle again and again.

    Each cut is made between sentences where that is possible, else at a pause, else between
    words, and inside a word only where there is no white space at all. White space at a cut
    vanishes.

    Args:
        text: a line.
        is_short: whether a part needs no cut; a single character never gets one.
    """
    waiting = [text]
    while waiting:
        part = waiting.pop()
        if len(part) < 2 or is_short(part):
            yield part
            continue
        left, right = _halves(part)
        waiting += [half for half in (right, left) if half]


def _halves(text: str) -> tuple[str, str]:
    """Two non-empty parts of a text of two or more characters, or one where the other is blank."""
    middle = len(text) // 2
    start, end = len(text) // 4, len(text) - len(text) // 4
    for boundary in _BOUNDARIES:
        matches = boundary.finditer(text, start, end)
        cuts = [match.span(match.lastindex or 0) for match in matches]
        cuts = [cut for cut in cuts if 0 < cut[1] < len(text)]
        if cuts:
            cut = min(cuts, key=lambda span: abs(span[1] - middle))
            return text[: cut[0]].rstrip(), text[cut[1] :].lstrip()
    return text[:middle], text[middle:]
