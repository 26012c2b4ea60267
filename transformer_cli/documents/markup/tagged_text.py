"""Strings with HTML tags, as in message catalogues and JSON: their tags are markup that moves with its words."""

from transformer_cli.documents.markup.html_pages import is_inline_element
from transformer_cli.documents.markup.html_tokens import TokenKind, html_tokens
from transformer_cli.documents.markup.nested_ranges import InlinePart, nested_runs
from transformer_cli.documents.segments import Markup, Piece, Role, Segment, TranslatedSegment
from transformer_cli.documents.spliced import rendered


def tagged_segment(text: str, place: str, *, keeps_spaces: bool = True) -> Segment:
    """The segment of a string. If its inline tags do not fit together, they are text that stays, as a placeholder."""
    if "<" not in text:
        return Segment.plain(text, place, keeps_spaces=keeps_spaces)
    parts = []
    for token in html_tokens(text):
        raw = text[token.start : token.end]
        piece: Piece = raw
        if token.kind in (TokenKind.START, TokenKind.END) and is_inline_element(token.name):
            role = Role.OPEN if token.kind is TokenKind.START else Role.CLOSE
            piece = Markup(role, token.start, raw)
        parts.append(InlinePart(piece, token.start, token.end, token.name))
    runs = nested_runs(parts)
    if len(runs) != 1 or len(runs[0]) != len(parts):
        return Segment.plain(text, place, keeps_spaces=keeps_spaces)
    return Segment(tuple(part.piece for part in runs[0]), place, keeps_spaces)


def string_of(translation: TranslatedSegment) -> str:
    """The string of a translation."""
    return rendered(translation.pieces, str)
