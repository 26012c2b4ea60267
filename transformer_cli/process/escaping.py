"""Texts for messages and terminals: control characters become codes, and long texts are cut."""

import re
from typing import Any

# C0 without tab and line feed, DEL and C1; then the characters that change the direction of the text around them.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]")
_BREAKS = re.compile("[\t\n]")


def escaped(text: str) -> str:
    """The text with control characters written as \\x1b or \\u202e; tabs and line feeds stay."""
    return _CONTROLS.sub(lambda match: _as_code(match[0]), text)


def on_one_line(text: str, max_characters: int | None = None) -> str:
    """As `escaped`, and a tab or a line feed is written as \\x09 or \\x0a: for a text from a corpus.

    Args:
        text: any text.
        max_characters: a longer result is cut; None: it is never cut.
    """
    line = _BREAKS.sub(lambda match: _as_code(match[0]), escaped(text))
    return line if max_characters is None else shortened(line, max_characters)


def shortened(text: str, max_characters: int) -> str:
    """The text, or its beginning with "…" at the end if it has more characters than allowed."""
    return text if len(text) <= max_characters else f"{text[: max_characters - 1]}…"


def escaped_in_json(json_text: str) -> str:
    """JSON that means the same, without the control characters that JSON itself would allow."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


def for_output(text: str, output: Any) -> str:
    """The text of a translation: unchanged for a file or a pipe, with control characters as codes for a terminal."""
    return escaped(text) if output.isatty() else text


def _as_code(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
