"""Takes what stays in the text of a segment, such as a command or a smiley, out of it as markup."""

from collections.abc import Sequence
from itertools import accumulate

from transformer_cli.decoding.code_in_text import code_in
from transformer_cli.extensions.documents.segments import Markup, Piece, Role
from transformer_cli.text.spans import SpanKind

# What stands for other markup while a text is searched; tags around words stand for nothing.
_SHOWN = {Role.WORD: "\ue000", Role.POINT: " "}


def with_code_apart(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Pieces in which what stays is markup that stands for text of the segment (`is_text_as_markup`)."""
    found: list[Piece] = []
    number = min(0, *(piece.number for piece in pieces if isinstance(piece, Markup)), 0)
    # Over all pieces: an address whose parts stand in several tags is one.
    shown = [piece if isinstance(piece, str) else _SHOWN.get(piece.role, "") for piece in pieces]
    parts = code_in("".join(shown))
    if not parts:
        return tuple(pieces)
    for piece, text, behind in zip(pieces, shown, accumulate(map(len, shown)), strict=True):
        if not isinstance(piece, str):
            found.append(piece)
            continue
        first = behind - len(text)
        place = 0
        for start, end, kind in parts:
            if first <= start and end <= behind:
                number -= 1
                role = Role.WORD if kind is SpanKind.WORD else Role.POINT
                found += [piece[place : start - first], Markup(role, number, piece[start - first : end - first])]
                place = end - first
        found.append(piece[place:])
    return tuple(piece for piece in found if piece)
