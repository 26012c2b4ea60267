"""The seeds of samples: each part of each input line has its own seed."""

import hashlib
from dataclasses import replace

from transformer_cli.decoding.text_pipeline import PreparedLine


def seeded(prepared: PreparedLine, seed: int, number: int, first_part: int = 0) -> PreparedLine:
    """A line whose parts have seeds, so that equal lines and equal sentences of a line get other samples.

    Args:
        prepared: the line.
        seed: of the whole input.
        number: of the line in its input, from 0.
        first_part: the number of the first part; other texts of the same line have other numbers.
    """
    parts = (
        request._replace(seed=request_seed(seed, number, part))
        for part, request in enumerate(prepared.parts, first_part)
    )
    return replace(prepared, parts=tuple(parts))


def request_seed(seed: int, line: int, part: int) -> int:
    """A number of 63 bits; different arguments give unrelated numbers, the same on every machine."""
    digest = hashlib.blake2b(f"{seed} {line} {part}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
