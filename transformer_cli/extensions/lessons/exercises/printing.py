"""What a learner's code prints: it goes to standard error, with the name of the file, up to a limit."""

import io
import os

from transformer_cli.process.escaping import escaped

MAX_CHARACTERS = 4000
MAX_LINES = 20


class LimitedOutput(io.TextIOBase):
    """A text stream in place of standard output and standard error of a learner's code.

    Args:
        name: stands before each line.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._num_characters_left = MAX_CHARACTERS
        self._num_lines_left = MAX_LINES
        self._line = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Pass on the complete lines of the text."""
        for part in text[: self._num_characters_left].splitlines(keepends=True):
            self._num_characters_left -= len(part)
            self._line += part
            if part.endswith("\n"):
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Pass on the last line."""
        if not self._line:
            return
        self._num_lines_left -= 1
        if self._num_lines_left == 0 or self._num_characters_left <= 0:
            self._line = "... (the rest of what this code prints is left out)"
            self._num_characters_left = 0
        line = escaped(self._line.removesuffix("\n")).encode("utf-8", "backslashreplace")
        os.write(2, self._name.encode() + b" prints: " + line + b"\n")
        self._line = ""
