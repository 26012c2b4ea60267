"""Character references in the strings of programs: the model reads the characters that &rsquo;, &#39; and &amp; mean, and the translation writes them as its source does."""

import re
from collections.abc import Mapping, Sequence
from html import unescape

from transformer_cli.extensions.documents.segments import Piece, plain_text

# Not the first one of &amp;copy;, which shows how a reference is written.
_REFERENCE = re.compile(r"&(?!(?:amp|#38|#[xX]26);#?\w+;)(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_APOSTROPHE_IN_WORD = re.compile(r"(?<=[^\W\d_])(?:&rsquo;|&#8217;|&#[xX]2019;)(?=[^\W\d_])")
_SIGNS = frozenset("&<>\"',!")
# They would be a tag or a reference beside those that the text writes by themselves.
_SIGNS_OF_MARKUP = frozenset("&<>")
_OTHER_APOSTROPHE = {"'": "\u2019", "\u2019": "'"}


def without_references(pieces: Sequence[Piece]) -> tuple[tuple[Piece, ...], dict[str, str]]:
    """Pieces with the characters that their references mean, and how each of these is written: \u00e9 -> &eacute;

    Names that are no characters, such as &brandShortName;, and characters that other readers of the string may take for its own
    signs, such as &#123;, stay as they are.
    """
    text = plain_text(pieces)
    found = dict.fromkeys(_REFERENCE.findall(text))
    if not found:
        return tuple(pieces), {}
    plain = _REFERENCE.sub("", text)
    written: dict[str, str] = {}
    for reference in found:
        sign = unescape(reference)
        if _is_read(sign) and not (sign in _SIGNS_OF_MARKUP and sign in plain):
            written.setdefault(sign, reference)
    read = set(written)
    for sign, other in _OTHER_APOSTROPHE.items():
        if sign in read and other not in plain:
            written.setdefault(other, written[sign])

    def characters(piece: str) -> str:
        if "'" in written:
            piece = _APOSTROPHE_IN_WORD.sub("'", piece)  # every model knows can't, and few know can\u2019t
        return _REFERENCE.sub(lambda match: sign if (sign := unescape(match[0])) in read else match[0], piece)

    return tuple(characters(piece) if isinstance(piece, str) else piece for piece in pieces), written


def with_references(pieces: Sequence[Piece], written: Mapping[str, str]) -> tuple[Piece, ...]:
    """Pieces of a translation, in which these characters are written so.

    Args:
        written: of `without_references`, and not empty.
    """
    signs = re.compile(
        "|".join(rf"{re.escape(sign)}(?!#?\w+;)" if sign == "&" else re.escape(sign) for sign in written)
    )
    return tuple(
        signs.sub(lambda match: written[match[0]], piece) if isinstance(piece, str) else piece for piece in pieces
    )


def _is_read(sign: str) -> bool:
    return len(sign) == 1 and (
        sign in _SIGNS or sign.isalpha() or (ord(sign) >= 0xA0 and not "\ud800" <= sign <= "\udfff")
    )
