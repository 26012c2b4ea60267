"""The character encoding of a text file: found, kept, and written again."""

import codecs
import re
from dataclasses import dataclass, replace

from transformer_cli.config.data import known_encoding
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.messages import on_one_line
from transformer_cli.text.languages import name_of_language, primary_language
from transformer_cli.text.legacy_encodings import (
    hint_for,
    is_not_utf_8,
    likely_readings,
    not_utf_8_in_words,
    unwritable_letters,
)

_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
# At most this many characters are named in a message.
_MOST_SIGNS = 8

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# XML in UTF-16 may lack the mark: then its first bytes tell.
_BEGINNINGS = (
    (re.compile(rb"<\0[^\0]\0"), "utf-16-le"),
    (re.compile(rb"\0<\0[^\0]"), "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class DecodedText:
    """The text of a file, and how it is encoded."""

    text: str
    """Without the byte-order mark; its line ends are those of the file, but "\n" for those of old Macs (`has_old_line_ends`)."""
    encoding: str = "utf-8"
    mark: bytes = b""
    """The byte-order mark, if the file has one."""
    is_markup: bool = False
    """Whether a character that the encoding does not have may become a reference such as &#8364;."""
    has_old_line_ends: bool = False
    """Whether each line of the file ends with "\r" alone."""

    def encoded(self, text: str) -> bytes:
        """Another text in the same encoding.

        Raises:
            DataError: the encoding does not have some of the characters.
        """
        if self.is_markup and "\r" not in self.text:
            text = text.replace("\r", "&#13;")  # as itself it would be read as the end of a line
        if self.has_old_line_ends:
            text = text.replace("\n", "\r")
        if self.is_markup and not self.encoding.startswith("utf"):
            text = _with_references(text, self.encoding)
        try:
            return self.mark + text.encode(self.encoding, "surrogateescape")
        except UnicodeEncodeError as error:
            raise _lacking(self.encoding, _missing(text, self.encoding), error.start, text) from error

    def require_letters_of(self, language: str) -> None:
        """Refuse an encoding that lacks letters which nearly every text of a language has, before it is translated.

        Raises:
            DataError: it lacks them, and they cannot be written as references.
        """
        if self.is_markup or self.encoding.startswith("utf"):
            return
        letters = unwritable_letters(self.encoding, primary_language(language))
        if letters:
            raise DataError(
                f"the encoding of this file, {self.encoding}, lacks letters of {name_of_language(primary_language(language))}: {' '.join(letters)}",
                hint=_hint_to_convert(self.encoding),
            )


def decoded(
    data: bytes,
    named: str | None = None,
    *,
    given: str | None = None,
    is_markup: bool = False,
) -> DecodedText:
    """The text of a file in the given encoding; else by its byte-order mark, its first bytes, the name in the file, or as UTF-8.

    Bytes that are no text in the encoding stay as they are, unless a person has given it.

    Args:
        named: the encoding that the file itself names, such as iso-8859-1; an unknown name is UTF-8.
        given: the encoding that a person names; every byte must be text in it.
        is_markup: as in `DecodedText`.

    Raises:
        DataError: the file is not in this encoding, or the encoding does not give the same bytes again.
    """
    mark, marked = next((each for each in _MARKS if data.startswith(each[0])), (b"", None))
    body = data[len(mark) :]
    if given is not None:
        return _in_given(body, mark, marked, given, is_markup=is_markup)
    begun = next((encoding for begin, encoding in _BEGINNINGS if begin.match(data)), None)
    encoding = marked or begun or _known(named) or "utf-8"
    try:
        text = body.decode(encoding, "surrogateescape")
        is_same = text.encode(encoding, "surrogateescape") == body
    except UnicodeError:
        is_same = False
    if not is_same:
        raise DataError(
            f"the file is no valid text in the encoding {encoding}",
            hint="name the right one with --encoding, or convert the file to UTF-8 first, for example with iconv",
        )
    return _with_usual_line_ends(DecodedText(text, encoding, mark, is_markup))


def _with_usual_line_ends(content: DecodedText) -> DecodedText:
    """The text with "\n" for the line ends of old Macs, which no format needs to know so."""
    if "\r" not in content.text or "\n" in content.text:
        return content
    return replace(content, text=content.text.replace("\r", "\n"), has_old_line_ends=True)


def has_byte_order_mark(data: bytes) -> bool:
    """Whether a file begins with a mark that tells its encoding."""
    return any(data.startswith(mark) for mark, _ in _MARKS)


def encoding_beside_memory(data: bytes, given: str | None) -> str | None:
    """The encoding in which a text is read if the given one may be that of another file; None: it is UTF-8.

    A byte-order mark counts, and UTF-8 with letters beyond ASCII; else the text has the given encoding.
    """
    marked = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)
    if marked is not None:
        return None if marked == "utf-8" else marked.rsplit("-", 1)[0]
    return given if data.isascii() or is_not_utf_8(data) else None


def require_utf_8_document(data: bytes, content: DecodedText | None) -> None:
    """Refuse a text that was read as UTF-8, if it is in another encoding: most of it would stay as it is.

    Args:
        content: the text; None: it could not be read.

    Raises:
        DataError: with the encodings in which it can be read.
    """
    has_mark = has_byte_order_mark(data)
    was_read = content is None or content.encoding == "utf-8"
    if was_read and not has_mark and is_not_utf_8(data):
        message, hint = not_utf_8_in_words(data)
        raise DataError(message, hint=hint)


def _in_given(body: bytes, mark: bytes, marked: str | None, given: str, *, is_markup: bool) -> DecodedText:
    encoding = known_encoding(given)
    if encoding is None:
        raise UsageError(
            f"--encoding {given}: no such encoding is known",
            hint="such as windows-1252, iso-8859-2, shift_jis or utf-16",
        )
    if marked is not None:
        if not marked.startswith(encoding):  # utf-16 is utf-16-le or utf-16-be
            raise DataError(
                f"the file begins with the byte-order mark of {marked}, and --encoding says {given}",
                hint="leave out --encoding",
            )
        encoding = marked
    try:
        text = body.decode(encoding)
        is_same = text.encode(encoding) == body
    except UnicodeDecodeError as error:
        line = body[: error.start].count(b"\n") + 1
        is_utf_8 = not is_not_utf_8(body)
        raise DataError(
            f"line {line}: byte 0x{body[error.start]:02X} is no text in {given}",
            hint="the file is UTF-8: leave out --encoding" if is_utf_8 else hint_for(likely_readings(body)),
        ) from error
    except UnicodeError:
        is_same = False
    if not is_same:
        raise DataError(
            f"the file cannot be read in {given} and written again with the same bytes",
            hint="convert the file to UTF-8 first, for example with iconv",
        )
    return _with_usual_line_ends(DecodedText(text, encoding, mark, is_markup))


def declared_encoding(data: bytes) -> str | None:
    """The encoding that the first line of an XML file names."""
    declared = _DECLARED.match(data)
    return declared[1].decode("ascii") if declared else None


def _missing(text: str, encoding: str) -> str:
    """The different characters of a text that an encoding does not have."""
    found = []
    for sign in dict.fromkeys(text):
        try:
            sign.encode(encoding, "surrogateescape")
        except UnicodeEncodeError:
            found.append(sign)
    return "".join(found)


def _lacking(encoding: str, signs: str, place: int, text: str) -> DataError:
    shown = ", ".join(f"{sign} (U+{ord(sign):04X})" for sign in signs[:_MOST_SIGNS])
    more = f" and {len(signs) - _MOST_SIGNS} more" if len(signs) > _MOST_SIGNS else ""
    around = on_one_line(text[max(0, place - 20) : place + 20], 60)
    return DataError(
        f"the encoding of this file, {encoding}, does not have these characters of the translation: {shown}{more}; "
        f"the first stands in: {around}",
        hint=_hint_to_convert(encoding),
    )


def _hint_to_convert(encoding: str) -> str:
    return (
        f"convert the file to UTF-8 first: iconv -f {encoding} -t UTF-8 OLD > NEW; "
        "a file that names its encoding must name utf-8 then"
    )


def _known(name: str | None) -> str | None:
    """The name of an encoding of files of text; browsers read iso-8859-1 as windows-1252."""
    found = None if name is None else known_encoding(name)
    # A file whose bytes could be read as ASCII up to this name is not in UTF-16, whatever it says.
    if found is None or found.startswith(("utf-16", "utf-32")):
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
