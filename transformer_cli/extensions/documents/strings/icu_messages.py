"""Messages in the syntax of ICU, such as {count, plural, one {# file} other {# files}}: the texts inside their branches.

Source: "Formatting Messages", the user guide of ICU; its apostrophes quote { and }.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from transformer_cli.extensions.documents.segments import (
    Markup,
    Piece,
    Role,
    Segment,
    has_letter,
    plain_text,
)

_BRANCHING = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal)\s*,")
_HEAD = re.compile(r"\{\s*[\w.-]+\s*(?:,\s*(?P<kind>\w+)\s*(?P<comma>,)?)?")
_SELECTOR = re.compile(r"\s*(?:offset:\d+\s*)?(?:=\d+|[\w-]+)\s*\{")
_QUOTED = re.compile(r"'[{}#|](?:[^']|'')*'")
_MAX_DEPTH = 20


@dataclass(slots=True)
class IcuText:
    """A message, or a branch of one: value[start:end]."""

    start: int
    end: int
    is_plural: bool
    """Whether # is a number in it."""
    words: list[tuple[int, int]] = field(default_factory=list)
    """Its arguments and quoted parts, in order."""


def is_icu_message(value: str) -> bool:
    """Whether a string has branches, such as those of a plural."""
    return _BRANCHING.search(value) is not None


def icu_texts(value: str) -> list[IcuText]:
    """The message and all branches in it; none if its braces do not fit together."""
    try:
        found = list(_texts(value, 0, len(value), is_plural=False, depth=0))
    except ValueError:
        return []
    return found


def icu_segment(
    value: str, text: IcuText, place: str, raw_of: Callable[[int, int], tuple[str, int]]
) -> Segment | None:
    """The segment of a message or branch; None if it has no words of its own.

    Args:
        place: for messages.
        raw_of: what stands in the file for value[start:end], and where.
    """
    pieces: list[Piece] = []
    at = text.start
    for start, end in [*text.words, (text.end, text.end)]:
        if start > at:
            pieces.append(value[at:start].replace("''", "'"))
        if end > start:
            raw, raw_start = raw_of(start, end)
            pieces.append(Markup(Role.WORD, start, raw, raw_start))
        at = end
    return Segment(tuple(pieces), place, True) if has_letter(plain_text(pieces)) else None


def rendered_icu(pieces: Sequence[Piece], escape: Callable[[str], str]) -> str:
    """The text of a branch: an apostrophe before a brace would quote it, so it is doubled."""
    result = ""
    for piece in reversed(pieces):
        raw = piece if isinstance(piece, str) else piece.raw
        if isinstance(piece, str):
            raw = re.sub(r"'(?=[{}#|])", "''", raw)
            if raw.endswith("'") and result[:1] in ("{", "}", "#", "|"):
                raw += "'"
            raw = escape(raw)
        result = raw + result
    return result


def _texts(value: str, start: int, end: int, *, is_plural: bool, depth: int) -> Iterator[IcuText]:
    """The text value[start:end] and those inside it."""
    if depth > _MAX_DEPTH:
        raise ValueError("too deep")
    text = IcuText(start, end, is_plural)
    inner: list[tuple[int, int, bool]] = []
    at = start
    while at < end:
        quoted = _QUOTED.match(value, at, end)
        if quoted:
            text.words.append(quoted.span())
            at = quoted.end()
        elif value[at] == "{":
            stop = _end_of_argument(value, at, end, is_plural, inner)
            text.words.append((at, stop))
            at = stop
        elif value[at] == "}":
            raise ValueError("a brace closes nothing")
        else:
            if value[at] == "#" and is_plural:
                text.words.append((at, at + 1))
            at += 1
    yield text
    for first, last, has_number in inner:
        yield from _texts(value, first, last, is_plural=has_number, depth=depth + 1)


def _end_of_argument(
    value: str, start: int, end: int, is_plural: bool, inner: list[tuple[int, int, bool]]
) -> int:
    """Where an argument ends; its branches are added to `inner`."""
    head = _HEAD.match(value, start, end)
    if head is None:
        raise ValueError("no name")
    at = head.end()
    kind = head["kind"]
    if kind in ("plural", "select", "selectordinal") and head["comma"]:
        while selector := _SELECTOR.match(value, at, end):
            stop = _closing(value, selector.end(), end)
            inner.append((selector.end(), stop, is_plural or kind != "select"))
            at = stop + 1
        rest = re.compile(r"\s*\}").match(value, at, end)
        if rest is None:
            raise ValueError("no end of the argument")
        return rest.end()
    return _closing(value, at, end) + 1


def _closing(value: str, start: int, end: int) -> int:
    """Where the brace stands that closes the one before `start`."""
    depth, at = 1, start
    while at < end:
        quoted = _QUOTED.match(value, at, end)
        if quoted:
            at = quoted.end()
            continue
        depth += (value[at] == "{") - (value[at] == "}")
        if not depth:
            return at
        at += 1
    raise ValueError("a brace is never closed")
