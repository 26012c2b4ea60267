"""Features of a line that its translation has too: length, punctuation marks, numbers and similar words."""

import math
import re
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

NUM_ANCHORS = 12
"""At most this many numbers and words of a line are compared."""
_NUM_CHARACTERS = 2000
_MIN_LETTERS, _PREFIX_LETTERS = 3, 4
# Marks of several scripts that have the same meaning; each group is one bit.
_MARKS = (
    "?\uff1f\u061f;", "!\uff01", "\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f", ",\uff0c\u3001\u060c",
    "()\uff08\uff09[]", ":\uff1a", "%\u20ac$\u00a3\u00a5", "0123456789",
)  # fmt: skip
_BIT_OF_MARK = {mark: 1 << bit for bit, marks in enumerate(_MARKS) for mark in marks}
NUM_MARKS = len(_MARKS)
_MARK = re.compile("[" + re.escape("".join(_BIT_OF_MARK)) + "]")
_WORD = re.compile(r"\d+|[^\W\d_]+")

LineFeatures = tuple[float, int, tuple[int, ...]]
"""Logarithm of the length, punctuation marks as bits, and hashes of numbers and words."""
NO_LINE: LineFeatures = (0.0, 0, ())
"""The features of an empty line: they say nothing about its translation."""


def line_features(text: str) -> LineFeatures:
    """The features of a line; those of a long one come from its first 2,000 characters, except the length."""
    num_characters = len(text)
    if not num_characters or text.isspace():
        return NO_LINE
    beginning = text[:_NUM_CHARACTERS]
    marks = 0
    for mark in set(_MARK.findall(beginning)):
        marks |= _BIT_OF_MARK[mark]
    anchors: dict[int, None] = {}
    for word in _WORD.findall(beginning.casefold()):
        if len(word) >= _MIN_LETTERS or word[0].isdecimal():
            # Related words of two languages often begin with the same letters; numbers must be equal.
            start = word if word[0].isdecimal() else word[:_PREFIX_LETTERS]
            anchors[crc32(start.encode()) or 1] = None
            if len(anchors) == NUM_ANCHORS:
                break
    return math.log(num_characters + 1), marks, tuple(anchors)


class FeatureTable:
    """The features of consecutive lines of one side, as arrays."""

    def __init__(self, lines: list[LineFeatures]) -> None:
        self.lengths = np.array([length for length, _, _ in lines], dtype=np.float64)
        self.marks = np.array([marks for _, marks, _ in lines], dtype=np.int64)
        self.anchors: NDArray[np.uint32] = np.zeros((len(lines), NUM_ANCHORS), dtype=np.uint32)
        for row, (_, _, anchors) in enumerate(lines):
            self.anchors[row, : len(anchors)] = anchors

    def __len__(self) -> int:
        return len(self.lengths)
