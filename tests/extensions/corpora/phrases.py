"""A clean corpus for tests, as lists of lines, and damages of it."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from transformer_cli.data.sources.corpus import read_phrasebook


@cache
def _pairs(number: int) -> tuple[tuple[str, str], ...]:
    return tuple((pair.source, pair.target) for pair in read_phrasebook("train", number))


def clean_lines(number: int) -> tuple[list[str], list[str]]:
    """The lines of both sides; pairs that differ only in case, punctuation or spaces stand once."""
    pairs = _pairs(number)
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def write_sides(folder: Path, source: Sequence[str], target: Sequence[str], name: str = "train") -> tuple[str, str]:
    """NAME.en and NAME.it; returns their names."""
    write_lines(folder / f"{name}.en", source)
    write_lines(folder / f"{name}.it", target)
    return f"{name}.en", f"{name}.it"
