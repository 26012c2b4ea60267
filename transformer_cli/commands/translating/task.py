"""What is done with each window of lines: it is translated, and its translations become bytes of output."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transformer_cli.commands.streams.prefix_lines import PrefixLines
from transformer_cli.commands.translating.translation_lines import output_lines
from transformer_cli.commands.translating.wishes import Wishes
from transformer_cli.decoding import Translation, Translator
from transformer_cli.escaping import for_output


class InputLine(NamedTuple):
    """A line of the input, and what holds for it alone."""

    number: int
    """From 0."""
    text: str
    prefix: str
    """The text with which its translation begins."""


def input_lines(windows: Iterable[list[str]], wishes: Wishes) -> Iterator[list[InputLine]]:
    """Each line of each window with its number and its prefix.

    Raises:
        DataError: the file of prefixes has fewer or more lines than the input.
    """
    prefixes, num_before = PrefixLines(wishes.prefix, wishes.prefixes), 0
    for window in windows:
        numbers = range(num_before, num_before + len(window))
        yield list(map(InputLine, numbers, window, prefixes.take(len(window))))
        num_before += len(window)
    prefixes.finish()


@dataclass(frozen=True, slots=True)
class Task:
    """A translator, and how its translations are written."""

    translator: Translator
    wishes: Wishes
    as_json: bool

    def translations(self, window: Sequence[InputLine]) -> list[Translation]:
        """The translations of the lines of a window, in order."""
        translations = self.translator.translate(
            [line.text for line in window],
            prefixes=[line.prefix for line in window],
            num_before=window[0].number if window else 0,
            with_details=self.wishes.any_details,
        )
        return list(translations)

    def lines(self, translations: Sequence[Translation]) -> list[str]:
        """The lines of the output for some lines of the input."""
        return [
            line
            for translation in translations
            for line in output_lines(
                translation, self.wishes, self.translator.pipeline, as_json=self.as_json
            )
        ]

    def output(self, translations: Sequence[Translation], *, is_standard: bool) -> bytes:
        """The same as bytes.

        Args:
            is_standard: whether they go to standard output, which may be a terminal.
        """
        lines = self.lines(translations)
        if is_standard:
            lines = [for_output(line, sys.stdout) for line in lines]
        return "".join(f"{line}\n" for line in lines).encode()
