"""Cuts HTML into tokens that are together exactly the text: tags, text, comments and everything else.

It follows the tokenizer of the HTML standard (section 13.2.5), so that also malformed HTML is read as browsers do.
"""

import html
import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple


class TokenKind(Enum):
    """What a token is."""

    TEXT = "text"
    """Text with character references such as &amp;."""
    START = "start"
    """A start tag."""
    END = "end"
    """An end tag."""
    OTHER = "other"
    """A comment, a declaration, the content of a script, or a tag that never ends."""


class HtmlToken(NamedTuple):
    """A part of the text: text[start:end]."""

    kind: TokenKind
    start: int
    end: int
    name: str = ""
    """Of a tag, in small letters."""


_DECIMAL_REFERENCE = re.compile(r"&#0*([0-9]{1,8})[0-9]*")


def unescaped_html(text: str) -> str:
    """The text with its character references resolved, such as &amp; and &#65;.

    A number beyond all characters becomes the replacement character, as in browsers. Eight digits are enough to be
    beyond them, and Python refuses to read a number of thousands of digits.
    """
    return html.unescape(_DECIMAL_REFERENCE.sub(r"&#\1", text))


_MARKUP = re.compile(
    r"""
    (?P<comment> <!--(?:-?>|(?s:.*?)(?:--!?>|\Z)) )
  | (?P<other> <[!?][^>]*+(?:>|\Z) | </(?![A-Za-z])[^>]*+(?:>|\Z) )
  | (?P<tag> <(?P<slash>/?)(?P<name>[A-Za-z][^\s/>]*+)
      (?: [^>"'=]++ | =\s*+(?:"[^"]*+"|'[^']*+')? | ["'] )*+ (?P<close>>?) )
    """,
    re.VERBOSE,
)
# Their content is no markup: it goes to their end tag.
_RAW = frozenset(
    ["script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "title", "plaintext"]
)
# Raw elements whose content is text.
_WITH_TEXT = frozenset(["title"])


def html_tokens(text: str) -> Iterator[HtmlToken]:
    """The tokens of an HTML text, in order, without gaps."""
    place = 0
    while match := _MARKUP.search(text, place):
        if match.start() > place:
            yield HtmlToken(TokenKind.TEXT, place, match.start())
        place = match.end()
        if match["tag"] is None:
            yield HtmlToken(TokenKind.OTHER, match.start(), place)
            continue
        if not match["close"]:
            # The file ends inside a tag. A browser shows nothing of it.
            yield HtmlToken(TokenKind.OTHER, match.start(), len(text))
            return
        name = match["name"].lower()
        kind = TokenKind.END if match["slash"] else TokenKind.START
        yield HtmlToken(kind, match.start(), place, name)
        if kind is TokenKind.START and name in _RAW:
            end = _end_of_raw(text, place, name)
            if end > place:
                inner = TokenKind.TEXT if name in _WITH_TEXT else TokenKind.OTHER
                yield HtmlToken(inner, place, end)
            place = end
    if place < len(text):
        yield HtmlToken(TokenKind.TEXT, place, len(text))


def _end_of_raw(text: str, place: int, name: str) -> int:
    """Where the end tag of a raw element begins; the end of the text if it has none."""
    end_tag = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    match = end_tag.search(text, place)
    return match.start() if match and name != "plaintext" else len(text)


class Attribute(NamedTuple):
    """An attribute of a tag."""

    name: str
    """In small letters."""
    value: str
    """As it stands in the tag, without quotation marks and with character references."""
    start: int
    """Where the value begins in the tag, with its quotation mark."""
    end: int
    quote: str
    """The quotation mark around it; empty if it has none."""


_ATTRIBUTE = re.compile(
    r"""[\s/]*+(?P<name>[^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?P<value>"[^"]*+"|'[^']*+'|[^\s>"']?[^\s>]*+))?"""
)
_TAG_NAME = re.compile(r"<[^\s/>]+")


def attributes(tag: str) -> list[Attribute]:
    """The attributes of a start tag that have a value; of two with the same name, only the first one counts."""
    name = _TAG_NAME.match(tag)
    found: dict[str, Attribute] = {}
    for match in _ATTRIBUTE.finditer(tag, name.end() if name else 0, len(tag) - 1):
        value = match["value"]
        if value is None:
            continue
        quote = value[0] if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0] else ""
        inner = value[1:-1] if quote else value
        found.setdefault(
            match["name"].lower(),
            Attribute(
                match["name"].lower(), inner, match.start("value"), match.end("value"), quote
            ),
        )
    return list(found.values())
