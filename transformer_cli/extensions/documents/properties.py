"""The .properties of Java: values are translated; keys, comments and the layout stay."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from transformer_cli.extensions.documents.character_encoding import DecodedText, decoded, has_byte_order_mark
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.repeated_keys import RepeatedKeys
from transformer_cli.extensions.documents.segments import (
    LineNumbers,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
)
from transformer_cli.extensions.documents.strings import (
    holds_text,
    is_icu_message,
    string_of,
    tagged_segment,
    with_icu_branches,
    with_placeholders,
)
from transformer_cli.text.legacy_encodings import is_not_utf_8

_CONTINUED = r"\\(?:\r\n|\r|\n)[ \t\f]*"
_GAP = rf"(?>(?:{_CONTINUED}|[ \t\f]++)*)"
_ENTRY = re.compile(
    r"^[ \t\f]*+(?:[#!][^\r\n]*"
    rf"|(?P<key>(?:\\(?:\r\n|.)|[^\\\s:=#!])(?>(?:\\(?:\r\n|.)|[^\\\s:=]++)*)){_GAP}(?:[:=]{_GAP})?"
    r"(?P<value>(?>(?:\\(?:\r\n|.)|[^\\\r\n]++)*)))",
    re.MULTILINE | re.DOTALL,
)
_ESCAPE = re.compile(rf"{_CONTINUED}|(?P<codes>(?:\\u[0-9A-Fa-f]{{4}})+)|\\(?P<sign>.)", re.DOTALL)
_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_TO_ESCAPE = re.compile(r"[\\\n\t\r\f]|\A ")
_ESCAPED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"}
# For java.text.MessageFormat: an argument such as {0}, and text in quotes.
_ARGUMENT = re.compile(r"\{\s*\d")
_CHOICE = re.compile(r"\{\s*\d+\s*,\s*choice\s*,")
_FORMAT_PARTS = re.compile(r"'[{}][^'\n]*(?:'|\Z)")
_LONE_APOSTROPHE = re.compile(r"\w'\w")
_TWO_APOSTROPHES = re.compile(r"\w''\w")


@dataclass(frozen=True, slots=True)
class _Writing:
    """How the values of a file are written."""

    encoding: str
    """The letters that it has are written as they are, all others as codes such as \\u20AC."""
    doubles_with_arguments: bool
    """Whether an apostrophe beside an argument such as {0} is written twice, as MessageFormat needs it."""
    doubles_without_arguments: bool

    def doubles(self, raw: str) -> bool:
        """Whether the apostrophes of a value are written twice."""
        has_arguments = _ARGUMENT.search(raw) is not None
        return self.doubles_with_arguments if has_arguments else self.doubles_without_arguments


def read_properties(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A file of properties, in UTF-8 or, as Java has read it from the beginning, in ISO-8859-1."""
    is_latin = options.encoding is None and not has_byte_order_mark(data) and is_not_utf_8(data)
    given = "iso-8859-1" if is_latin else options.encoding
    # No letter is lacking, because any can be a code.
    content = replace(decoded(data, given=given), is_markup=True)
    lines = LineNumbers(content.text)
    values = [
        (match, _unescaped(match["value"]))
        for match in options.watch.over(_ENTRY.finditer(content.text))
        if match["value"]
    ]
    writing = _writing(content, [value for _, value in values])
    slots = []
    keys = RepeatedKeys()
    for match, value in values:
        keys.add(_unescaped(match["key"]), match.start("key"))
        doubles = writing.doubles(value)
        segment = _segment(value, f"line {lines.number_at(match.start('key'))}", doubles=doubles)
        if holds_text(segment, _unescaped(match["key"])):
            render = partial(_written, writing.encoding, doubles)
            slots.append(Slot(*match.span("value"), options.watch.counted(segment), render))
    keys.warn(content.text, options)
    return SplicedDocument(content, tuple(slots))


def _writing(content: DecodedText, values: list[str]) -> _Writing:
    # Java before version 9 reads ISO-8859-1, so a file without other letters gets none in UTF-8.
    encoding = "ascii" if content.text.isascii() else content.encoding
    with_arguments: list[str] = []
    without: list[str] = []
    for value in values:
        (with_arguments if _ARGUMENT.search(value) else without).append(value)
    return _Writing(
        encoding,
        doubles_with_arguments=not any(map(_LONE_APOSTROPHE.search, with_arguments)),
        doubles_without_arguments=any(map(_TWO_APOSTROPHES.search, without))
        and not any(map(_LONE_APOSTROPHE.search, without)),
    )


def _unescaped(raw: str) -> str:
    def sign(match: re.Match[str]) -> str:
        if match["codes"]:
            units = bytes.fromhex(match["codes"].replace("\\u", ""))
            return units.decode("utf-16-be", "replace")
        found = match["sign"]
        return "" if found is None else _SIGNS.get(found, found)

    return _ESCAPE.sub(sign, raw)


def _segment(value: str, place: str, *, doubles: bool) -> Segment:
    """The segment of a value; what MessageFormat reads as an argument or as quoted text is a placeholder."""
    if doubles and _CHOICE.search(value):
        return Segment(with_icu_branches([value], place, doubles=True), place, keeps_spaces=True)
    if not doubles or is_icu_message(value):
        return with_placeholders(tagged_segment(value, place), _FORMAT_PARTS)
    # The quotes of quoted text are single ones, and stay.
    segment = with_placeholders(tagged_segment(value.replace("''", "\x00"), place), _FORMAT_PARTS)
    pieces = (
        piece.replace("\x00", "'") if isinstance(piece, str) else piece._replace(raw=piece.raw.replace("\x00", "''"))
        for piece in segment.pieces
    )
    return replace(segment, pieces=tuple(pieces))


def _written(encoding: str, doubles: bool, found: TranslatedSegment) -> str:
    if doubles:
        pieces = (piece.replace("'", "''") if isinstance(piece, str) else piece for piece in found.pieces)
        found = replace(found, pieces=tuple(pieces))
    text = _TO_ESCAPE.sub(lambda match: _ESCAPED.get(match[0], f"\\{match[0]}"), string_of(found))
    return "".join(_coded(text, encoding))


def _coded(text: str, encoding: str) -> Iterator[str]:
    """The signs of a text, those that an encoding lacks as codes."""
    for sign in text:
        try:
            sign.encode(encoding, "surrogateescape")
            yield sign
        except UnicodeEncodeError:
            units = sign.encode("utf-16-be").hex().upper()
            yield "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
