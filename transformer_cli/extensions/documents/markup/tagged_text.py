"""Strings with HTML tags, as in message catalogues and JSON: their tags are markup that moves with its words."""

import re
from collections.abc import Iterator

from transformer_cli.extensions.documents.inline_text import DIVISION
from transformer_cli.extensions.documents.markup.html_pages import is_inline_element
from transformer_cli.extensions.documents.markup.html_tokens import TokenKind, html_tokens
from transformer_cli.extensions.documents.markup.nested_ranges import InlinePart, nested_runs
from transformer_cli.extensions.documents.segments import Markup, Role, Segment, TranslatedSegment
from transformer_cli.extensions.documents.spliced import rendered
from transformer_cli.extensions.documents.strings.icu_messages import is_icu_message

_BLOCKS = re.compile(
    r"address|article|aside|blockquote|br|caption|dd|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|header|hr|li|"
    r"main|nav|ol|p|section|table|tbody|td|tfoot|th|thead|tr|ul"
)


def tagged_segment(text: str, place: str, *, keeps_spaces: bool = True) -> Segment:
    """The segment of a string. If its inline tags do not fit together, they are text that stays, as a placeholder."""
    if is_icu_message(text):
        # The branches of such a message are translated in JSON; in other files it stays.
        return Segment((Markup(Role.WORD, 0, text),), place, keeps_spaces)
    if "<" not in text or DIVISION in text:
        return Segment.plain(text, place, keeps_spaces=keeps_spaces)
    parts = list(_parts(text))
    runs = nested_runs(parts)
    if len(runs) != 1 or len(runs[0]) != len(parts):
        return Segment.plain(text, place, keeps_spaces=keeps_spaces)
    return Segment(tuple(part.piece for part in runs[0]), place, keeps_spaces)


def _parts(text: str) -> Iterator[InlinePart]:
    """Text and tags in order; between the texts of two blocks stands a line end that the string does not have."""
    has_text = False
    for token in html_tokens(text):
        raw = text[token.start : token.end]
        is_tag = token.kind in (TokenKind.START, TokenKind.END)
        role = Role.OPEN if token.kind is TokenKind.START else Role.CLOSE
        if is_tag and is_inline_element(token.name):
            yield InlinePart(Markup(role, token.start, raw), token.start, token.end, token.name)
            continue
        if not is_tag or not _BLOCKS.fullmatch(token.name):
            has_text = has_text or bool(raw.strip())
            yield InlinePart(raw, token.start, token.end)
            continue
        division = InlinePart(DIVISION if has_text else "", token.start, token.start)
        tag = InlinePart(Markup(Role.POINT, token.start, raw), token.start, token.end)
        yield from (division, tag) if role is Role.OPEN and token.name != "br" else (tag, division)
        has_text = False


def string_of(translation: TranslatedSegment) -> str:
    """The string of a translation."""
    text = rendered(translation.pieces, str)
    return text.replace(DIVISION, "") if "<" in text else text
