"""The character encoding of a text file: found, kept, and written again."""

import codecs
from dataclasses import dataclass

from transformer_cli.errors import DataError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class DecodedText:
    """The text of a file, and how it is encoded."""

    text: str
    """Without the byte-order mark; its line ends are those of the file."""
    encoding: str = "utf-8"
    mark: bytes = b""
    """The byte-order mark, if the file has one."""
    is_markup: bool = False
    """Whether a character that the encoding does not have may become a reference such as &#8364;."""

    def encoded(self, text: str) -> bytes:
        """Another text in the same encoding.

        Raises:
            DataError: the encoding does not have one of the characters.
        """
        if self.is_markup and not self.encoding.startswith("utf"):
            text = _with_references(text, self.encoding)
        try:
            return self.mark + text.encode(self.encoding, "surrogateescape")
        except UnicodeEncodeError as error:
            sign = error.object[error.start]
            raise DataError(
                f"the encoding of this file, {self.encoding}, does not have the character {sign} (U+{ord(sign):04X}) of the translation",
                hint="convert the file to UTF-8 first, for example with iconv",
            ) from error


def decoded(data: bytes, named: str | None = None, *, is_markup: bool = False) -> DecodedText:
    """The text of a file, by its byte-order mark, the name of its encoding in the file, or as UTF-8.

    Bytes that are not valid in the encoding stay as they are.

    Args:
        named: the encoding that the file itself names, such as iso-8859-1; an unknown name is UTF-8.
        is_markup: as in `DecodedText`.

    Raises:
        DataError: the encoding does not give the same bytes again.
    """
    mark, encoding = next((each for each in _MARKS if data.startswith(each[0])), (b"", None))
    encoding = encoding or _known(named) or "utf-8"
    body = data[len(mark) :]
    try:
        text = body.decode(encoding, "surrogateescape")
        is_same = text.encode(encoding, "surrogateescape") == body
    except UnicodeError:
        is_same = False
    if not is_same:
        raise DataError(
            f"the file is no valid text in the encoding {encoding}",
            hint="convert the file to UTF-8 first, for example with iconv",
        )
    return DecodedText(text, encoding, mark, is_markup)


def _known(name: str | None) -> str | None:
    """The name of an encoding that Python knows and that holds text; browsers read iso-8859-1 as windows-1252."""
    if name is None:
        return None
    try:
        "".encode(name.strip())  # fails for rot13 and hex, which are no encodings of text
        found = codecs.lookup(name.strip()).name
    except (LookupError, ValueError):
        return None
    # A file whose bytes could be read as ASCII up to this name is not in UTF-16, whatever it says.
    if found.startswith(("utf-16", "utf-32")):
        return None
    return {"iso8859-1": "cp1252", "ascii": "cp1252"}.get(found, found)


def _with_references(text: str, encoding: str) -> str:
    """The text with &#N; for each character that the encoding does not have."""
    return text.encode(encoding, "tfm-references").decode(encoding, "surrogateescape")


def _reference(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign, end = error.object[error.start], error.start + 1
    if "\udc80" <= sign <= "\udcff":  # a byte that is not valid in the encoding
        return sign.encode("ascii", "surrogateescape"), end
    return f"&#{ord(sign)};", end


codecs.register_error("tfm-references", _reference)
