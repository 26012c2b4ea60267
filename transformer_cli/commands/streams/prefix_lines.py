"""Forced prefixes of `tfm translate`: one text for all lines, or line N of a file for line N of the input."""

from itertools import chain, repeat
from pathlib import Path

from transformer_cli.commands.streams.input_lines import check_input, opened_lines
from transformer_cli.commands.streams.open_descriptors import STANDARD
from transformer_cli.process.errors import DataError

_HINT = "line N of the prefixes belongs to line N of the input; an empty line means no prefix"


class PrefixLines:
    """The prefix of each line of the input, in order."""

    def __init__(self, of_all: str | None, path: Path | None) -> None:
        """
        Args:
            of_all: the prefix of all lines; None: no prefix.
            path: a file with a prefix for each line, which is read at once; used instead of `of_all`.

        Raises:
            MissingInputError: there is no such file.
            DataError: the file holds no text.
        """
        self._path = path
        self._num_taken = 0
        self._prefixes: list[str] = []
        if path is not None:
            with opened_lines(None if path == STANDARD else path) as batches:
                self._prefixes = list(chain.from_iterable(batches))
        self._of_all = of_all or ""

    def take(self, num_lines: int) -> list[str]:
        """The prefixes of the next lines of the input.

        Raises:
            DataError: the file has too few lines.
        """
        if self._path is None:
            return list(repeat(self._of_all, num_lines))
        taken = self._prefixes[self._num_taken : self._num_taken + num_lines]
        self._num_taken += num_lines
        if len(taken) < num_lines:
            raise DataError(
                f"{self._path}: it ends after line {len(self._prefixes)}, but the input has more lines",
                hint=_HINT,
            )
        return taken

    def finish(self) -> None:
        """Check that the file has no line that belongs to no line of the input.

        Raises:
            DataError: it has one.
        """
        if self._path is not None and self._num_taken < len(self._prefixes):
            raise DataError(
                f"{self._path}: {len(self._prefixes)} lines, but the input has {self._num_taken}",
                hint=_HINT,
            )


def check_prefixes(path: Path | None, *, is_input_standard: bool) -> None:
    """Refuse a file of prefixes that cannot be read, before a model is loaded.

    Raises:
        DataError: the file holds no text, or standard input is already read for the lines.
        MissingInputError: there is no such file.
    """
    if path == STANDARD and is_input_standard:
        raise DataError(
            "--prefixes -: standard input holds the lines to translate",
            hint="name a file of prefixes, or give the lines with --input",
        )
    if path is not None and path != STANDARD:
        check_input(path, "--prefixes")
