"""What a learner's code prints: it goes to standard error, with the name of the file, up to a limit."""

import io
import os

MAX_CHARACTERS = 4000


class LimitedOutput(io.TextIOBase):
    """A text stream in place of standard output and standard error of a learner's code.

    Args:
        name: stands before each line.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._num_left = MAX_CHARACTERS
        self._line = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Pass on the complete lines of the text."""
        if self._num_left > 0:
            self._num_left -= len(text)
            *lines, self._line = (self._line + text).split("\n")
            for line in lines:
                self._pass_on(line)
            if self._num_left <= 0:
                self._pass_on("... (the rest of what this code prints is left out)")
                self._line = ""
        return len(text)

    def flush(self) -> None:
        """Pass on an incomplete last line."""
        if self._line:
            self._pass_on(self._line)
            self._line = ""

    def _pass_on(self, line: str) -> None:
        line = line[:MAX_CHARACTERS].encode("utf-8", "backslashreplace").decode()
        os.write(2, f"{self._name} prints: {line}\n".encode())
