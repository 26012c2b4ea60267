"""Sentence pairs from two texts, of which at least one comes through a pipe or standard input."""

import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from transformer_cli.commands.streams.input_lines import opened_stream, pieces_of_stream
from transformer_cli.commands.streams.open_descriptors import STANDARD, descriptor_of
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.sources.lines import cut_lines, decode_pairs, read_lines
from transformer_cli.data.sources.local_files import pair_lines
from transformer_cli.process.errors import DataError, UsageError


def is_stream(path: Path) -> bool:
    """Whether a path can be read only once: standard input (-), an open descriptor, a pipe or a device."""
    if path == STANDARD or descriptor_of(path) is not None:
        return True
    mode = path.stat().st_mode if path.exists() else 0
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def pairs_of_streams(source: Path, reference: Path, report: ReadingReport) -> list[SentencePair]:
    """All pairs of two texts, of which one may be a file.

    Raises:
        DataError: they have different numbers of lines, or none, or are not UTF-8.
    """
    if _number(source) is not None and _number(source) == _number(reference):
        raise UsageError(f"--source {source} and --reference {reference} name the same input")
    names = str(source), str(reference)
    with ExitStack() as opened:
        sides = [_lines(path, opened) for path in (source, reference)]
        rows = pair_lines((source, reference), *sides)
        texts = decode_pairs(rows, names, "error", report)
        pairs = [SentencePair(*sentences, 0) for sentences in texts]
    if not pairs:
        raise DataError(f"no sentence pair in {names[0]} and {names[1]}")
    return pairs


def _number(path: Path) -> int | None:
    return 0 if path == STANDARD else descriptor_of(path)


def _lines(path: Path, opened: ExitStack) -> Iterator[bytes | None]:
    if not is_stream(path):
        return read_lines(path)
    number = _number(path)
    if number is None:
        number = opened.enter_context(opened_stream(path))
    return cut_lines(pieces_of_stream(number, str(path)), path)
