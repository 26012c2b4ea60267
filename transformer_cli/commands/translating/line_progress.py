"""The progress bar of `tfm translate`: lines done, lines in all, and the time that remains."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from transformer_cli.commands.streams.input_lines import count_lines, is_regular_file

Advance = Callable[[int], object]


@contextmanager
def line_progress(given: object, output: Path | None, num_done: int) -> Iterator[Advance]:
    """A bar on standard error; yields a function that advances it by a number of lines.

    Nothing is shown unless the input is a file, standard error is a terminal, and the translations go elsewhere: into a
    file or a pipe.

    Args:
        given: the input, as of `run_translation`.
        output: the file of the translations; None: standard output.
        num_done: the number of lines that are done already.
    """
    goes_elsewhere = output is not None or not sys.stdout.isatty()
    if not (
        isinstance(given, Path)
        and is_regular_file(given)
        and goes_elsewhere
        and sys.stderr.isatty()
    ):
        yield lambda num_lines: None
        return
    with tqdm(total=count_lines(given), initial=num_done, unit=" lines", dynamic_ncols=True) as bar:
        yield bar.update
