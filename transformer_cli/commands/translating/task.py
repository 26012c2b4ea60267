"""What is done with each window of lines: it is translated, and its translations become bytes of output."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from transformer_cli.commands.streams.prefix_lines import PrefixLines
from transformer_cli.commands.translating.translation_lines import output_lines
from transformer_cli.commands.translating.wishes import Wishes
from transformer_cli.decoding import Translation, Translator
from transformer_cli.escaping import for_output

PrefixedLine = tuple[str, str]
"""A line of the input, and the text with which its translation begins."""


def with_prefixes(windows: Iterable[list[str]], wishes: Wishes) -> Iterator[list[PrefixedLine]]:
    """Each line of each window with its prefix.

    Raises:
        DataError: the file of prefixes has fewer or more lines than the input.
    """
    prefixes = PrefixLines(wishes.prefix, wishes.prefixes)
    for window in windows:
        yield list(zip(window, prefixes.take(len(window)), strict=True))
    prefixes.finish()


@dataclass(frozen=True, slots=True)
class Task:
    """A translator, and how its translations are written."""

    translator: Translator
    wishes: Wishes
    as_json: bool

    def translations(
        self, window: Sequence[PrefixedLine], num_before: int, *, with_details: bool = False
    ) -> list[Translation]:
        """The translations of the lines of a window, in order.

        Args:
            num_before: the number of lines of the input before this window, on which samples depend.
            with_details: whether they have details, even if nobody wished for them.
        """
        translated = self.translator.translate(
            [line for line, _ in window],
            prefixes=[prefix for _, prefix in window],
            num_before=num_before,
            with_details=with_details or self.wishes.any_details,
        )
        return list(translated)

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
