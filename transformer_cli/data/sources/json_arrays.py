"""Reads a JSON file that is one array of objects, item by item, so that memory does not grow with the file."""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformer_cli.data.sources.lines import MAX_LINE_BYTES, read_text_chunks
from transformer_cli.process.errors import DataError

_BLANK = re.compile(r"[ \t\r\n]*")
_MAX_ITEM_CHARACTERS = 4 * MAX_LINE_BYTES


def is_json_array(path: Path, encoding: str | None = None) -> bool:
    """Whether the first character of a file, after white space, opens an array."""
    for chunk in read_text_chunks(path, encoding):
        if text := chunk.lstrip():
            return text.startswith(b"[")
    return False


def array_items(path: Path, encoding: str | None = None) -> Iterator[Any]:
    """The items of the array that a file holds; bytes that are not UTF-8 become surrogates.

    Raises:
        DataError: the file is not one whole array.
    """
    text = _Text(path, encoding)
    text.take("[")
    number = 0
    if text.next_character() == "]":
        text.take("]")
    else:
        while number == 0 or text.take(",]", number) == ",":
            number += 1
            yield text.take_value(number)
    if text.next_character():
        raise DataError(f"{path}: text after the end of the array", hint="remove it")


class _Text:
    """The text of a file, read piece by piece; only the part that is not consumed yet is kept."""

    def __init__(self, path: Path, encoding: str | None) -> None:
        self._path = path
        self._chunks = read_text_chunks(path, encoding)
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._json = json.JSONDecoder()
        self._text = ""
        self._position = 0

    def next_character(self) -> str:
        """The next character that is no white space; empty at the end of the file."""
        while True:
            blank = _BLANK.match(self._text, self._position)
            self._position = blank.end() if blank else self._position
            if self._position < len(self._text) or not self._read_on():
                return self._text[self._position : self._position + 1]

    def take(self, characters: str, number: int = 0) -> str:
        """Consume the next character, which must be one of these."""
        found = self.next_character()
        if not found or found not in characters:
            expected = " or ".join(characters)
            problem = f"{found!r}" if found else "the end of the file: it is cut short"
            raise DataError(
                f"{self._path}: after item {number} of the array: {expected} is expected, found {problem}"
            )
        self._position += 1
        return found

    def take_value(self, number: int) -> Any:
        """Consume the next JSON value, which may span several pieces of the file."""
        self.next_character()
        while True:
            try:
                value, self._position = self._json.raw_decode(self._text, self._position)
                return value
            except (ValueError, RecursionError) as error:
                # An item that is cut off by the end of the piece becomes whole with the next piece.
                is_short = len(self._text) - self._position <= _MAX_ITEM_CHARACTERS
                if isinstance(error, ValueError) and is_short and self._read_on():
                    continue
                reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
                raise DataError(
                    f"{self._path}: item {number} of the array is not JSON: {reason}"
                ) from error

    def _read_on(self) -> bool:
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self._text = self._text[self._position :] + self._decoder.decode(chunk)
        self._position = 0
        return True
