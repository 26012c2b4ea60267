"""The task for each window of lines: translates it, and makes bytes of output from the translations."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from transformer_cli.commands.streams.prefix_lines import PrefixLines
from transformer_cli.commands.translating.translation_lines import output_lines
from transformer_cli.commands.translating.wishes import Wishes
from transformer_cli.decoding import Translation, Translator
from transformer_cli.process.escaping import for_output


class InputLine(NamedTuple):
    """A line of the input, and what holds for it alone."""

    number: int
    """From 0."""
    text: str
    prefix: str
    """The text with which its translation begins."""
    end: str = "\n"
    """Its line feed, after a carriage return if it has one."""

    @classmethod
    def of(cls, number: int, line: str, prefix: str) -> "InputLine":
        """A line as it was read, without its line feed."""
        text = line.removesuffix("\r")
        return cls(number, text, prefix, f"{line[len(text) :]}\n")


def input_lines(windows: Iterable[list[str]], wishes: Wishes) -> Iterator[list[InputLine]]:
    """Each line of each window with its number and its prefix.

    Raises:
        DataError: the file of prefixes has fewer or more lines than the input.
    """
    prefixes, num_before = PrefixLines(wishes.prefix, wishes.prefixes), 0
    for window in windows:
        numbers = range(num_before, num_before + len(window))
        yield list(map(InputLine.of, numbers, window, prefixes.take(len(window))))
        num_before += len(window)
    prefixes.finish()


@dataclass(frozen=True, slots=True)
class Task:
    """A translator, and how its translations are written."""

    translator: Translator
    wishes: Wishes
    as_json: bool

    def translations(
        self, window: Sequence[InputLine], *, with_details: bool = False
    ) -> list[Translation]:
        """The translations of the lines of a window, in order.

        Args:
            window: lines that follow each other in the input.
            with_details: whether they have details, even if nobody wished for them.
        """
        translations = self.translator.translate(
            [line.text for line in window],
            prefixes=[line.prefix for line in window],
            num_before=window[0].number if window else 0,
            with_details=with_details or self.wishes.any_details,
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

    def output(
        self, window: Sequence[InputLine], translations: Sequence[Translation], *, is_standard: bool
    ) -> bytes:
        """The same as bytes; a translation without anything beside it ends as its line does.

        Args:
            is_standard: whether they go to standard output, which may be a terminal.
        """
        lines = self.lines(translations)
        if is_standard:
            lines = [for_output(line, sys.stdout) for line in lines]
        is_text_only = not (self.wishes.num_best or self.wishes.alignment or self.as_json)
        ends = (line.end for line in window) if is_text_only else repeat("\n")
        return "".join(map(str.__add__, lines, ends)).encode()
