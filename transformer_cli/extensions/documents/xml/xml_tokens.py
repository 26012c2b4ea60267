"""Cuts well-formed XML into tokens that are together exactly the text: tags, text, and everything else."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from transformer_cli.process.errors import DataError


class XmlKind(Enum):
    """What a token is."""

    TEXT = "text"
    """Text with references such as &amp;."""
    CDATA = "cdata"
    """Text without references, between <![CDATA[ and ]]>."""
    START = "start"
    """A start tag."""
    EMPTY = "empty"
    """The tag of an element without content, such as <br/>."""
    END = "end"
    """An end tag."""
    OTHER = "other"
    """A comment, a processing instruction, or the document type."""


class XmlToken(NamedTuple):
    """A part of the text: text[start:end]."""

    kind: XmlKind
    start: int
    end: int
    name: str = ""
    """Of a tag, with its prefix."""


_MARKUP = re.compile(
    r"""
    (?P<other> <!--.*?--> | <\?.*?\?> | <!DOCTYPE(?: [^\["'>]++ | "[^"]*+" | '[^']*+' | \[.*?\]\s*+(?=>) )*+> )
  | (?P<cdata> <!\[CDATA\[.*?\]\]> )
  | <(?P<slash>/?)(?P<name>[^\s/>!?]++)(?: [^>"'/]++ | "[^"]*+" | '[^']*+' | /(?!>) )*+(?P<empty>/?)>
    """,
    re.VERBOSE | re.DOTALL,
)


def xml_tokens(text: str) -> Iterator[XmlToken]:
    """The tokens of well-formed XML, in order, without gaps.

    Raises:
        DataError: a `<` begins no markup.
    """
    place = 0
    while place < len(text):
        start = text.find("<", place)
        if start != place:
            end = len(text) if start < 0 else start
            yield XmlToken(XmlKind.TEXT, place, end)
            place = end
            continue
        match = _MARKUP.match(text, place)
        if match is None:
            raise DataError(f"no readable XML at character {place + 1}: {text[place : place + 40]}")
        yield XmlToken(_kind(match), place, match.end(), match["name"] or "")
        place = match.end()


def _kind(match: re.Match[str]) -> XmlKind:
    if match["cdata"]:
        return XmlKind.CDATA
    if match["other"]:
        return XmlKind.OTHER
    if match["slash"]:
        return XmlKind.END
    return XmlKind.EMPTY if match["empty"] else XmlKind.START


_ATTRIBUTE = re.compile(r"""([^\s=<]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_REFERENCE = re.compile(r"&(?:#x([0-9A-Fa-f]+)|#([0-9]+)|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
# Characters that XML does not allow, not even as references.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def xml_attributes(tag: str) -> dict[str, str]:
    """The attributes of a start tag; their names have prefixes."""
    return {match[1]: unescaped(match[2] or match[3] or "") for match in _ATTRIBUTE.finditer(tag)}


def attribute_value(tag: str, name: str) -> tuple[int, int] | None:
    """Where in a tag the value of an attribute stands, without its quotation marks."""
    for match in _ATTRIBUTE.finditer(tag):
        if match[1] == name:
            return match.span(2) if match[2] is not None else match.span(3)
    return None


def white_space_before(text: str, place: int) -> str:
    """The line break and the indentation before a place; nothing if other text stands directly before it."""
    start = place
    while start and text[start - 1].isspace():
        start -= 1
    return text[start:place]


def unescaped(text: str) -> str:
    """A text with its references resolved; those of entities that XML does not name stay."""

    def resolved(match: re.Match[str]) -> str:
        if match[3]:
            return _NAMED[match[3]]
        number = int(match[1], 16) if match[1] else int(match[2])
        return chr(number) if number <= 0x10FFFF else match[0]

    return _REFERENCE.sub(resolved, text)


def escaped(text: str) -> str:
    """A text as XML; characters that XML does not allow are left out."""
    text = _FORBIDDEN.sub("", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
