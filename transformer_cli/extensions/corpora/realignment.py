"""Realignment: the pairs of a corpus whose two sides have drifted apart, put together again."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from transformer_cli.extensions.corpora.alignment.drift import Stretch
from transformer_cli.extensions.corpora.numbered_pairs import NumberedPair

WITHOUT_TRANSLATION = "no translation near this line"
# The place where the offset changes is known to a few lines only.
_UNSURE_LINES = 4


def realigned(
    pairs: Iterable[NumberedPair], stretches: Sequence[Stretch]
) -> Iterator[NumberedPair]:
    """Each source with the target that belongs to it; `damage` says where there is none.

    The number of pairs stays the same, so that each can be counted.

    Args:
        pairs: the pairs as they stand in the files.
        stretches: the offsets of all lines, in order.
    """
    if all(stretch.offset == 0 for stretch in stretches):
        yield from pairs
        return
    remaining = deque(stretches)
    unsure = {
        line
        for stretch in stretches[1:]
        for line in range(stretch.first_line - _UNSURE_LINES, stretch.first_line + _UNSURE_LINES)
    }
    reach = max(abs(stretch.offset or 0) for stretch in stretches)
    window: deque[NumberedPair] = deque()  # the current pair, and `reach` pairs before and after it
    current = 0

    def current_pairs(is_end: bool) -> Iterator[NumberedPair]:
        nonlocal current
        while current < len(window) and (is_end or current + reach < len(window)):
            while remaining[0].last_line < window[current].line and len(remaining) > 1:
                remaining.popleft()
            is_unsure = window[current].line in unsure
            offset = None if is_unsure else remaining[0].offset
            yield _with_target(window, current, offset)
            current += 1
            if current > reach:
                window.popleft()
                current -= 1

    for pair in pairs:
        window.append(pair)
        yield from current_pairs(is_end=False)
    yield from current_pairs(is_end=True)


def _with_target(window: Sequence[NumberedPair], current: int, offset: int | None) -> NumberedPair:
    pair = window[current]
    if offset is None or not 0 <= current + offset < len(window):
        return pair._replace(damage=pair.damage or WITHOUT_TRANSLATION)
    other = window[current + offset]
    return pair._replace(target=other.target, offset=offset, damage=pair.damage or other.damage)
