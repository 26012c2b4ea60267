"""Splitting a line that is too long for the model into shorter parts."""

import re
from collections.abc import Callable, Iterator

# Full-width punctuation of Chinese and Japanese; no white space follows it.
_WIDE_STOPS = "\u3002\uff01\uff1f"
_WIDE_PAUSES = "\u3001\uff0c\uff1a\uff1b"
# Places for a cut, best first: after a sentence, after a comma or colon, between words. The white
# space in the group is removed.
_BOUNDARIES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"[.!?…][\"'»”)\]]*(\s+)|[{_WIDE_STOPS}](\s*)",
        rf"[,;:](\s+)|[{_WIDE_PAUSES}](\s*)",
        r"(\s+)",
    )
)


def split_line(text: str, is_short: Callable[[str], bool]) -> Iterator[str]:
    """Yield short parts of a text in order; each part that is too long is cut in two, repeatedly.

    A cut lies in the middle half of a part: after a sentence if possible, else after a comma,
    colon or semicolon, else at white space, else exactly in the middle. White space at a cut is
    removed.

    Args:
        text: a line.
        is_short: says whether a part is short enough; a single character always is.
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
    """The two parts of a text of two or more characters; one of them is empty if it was blank."""
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
