"""Which values of a tree are translated: patterns such as items.*.title."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

Path = tuple[str | int, ...]


def is_chosen(path: Path, patterns: Sequence[str]) -> bool:
    """Whether a value is translated.

    Args:
        path: the keys and places that lead to it.
        patterns: keys with points between them. `*` in a key is any text, a key `*` also any place in a list, and
            `**` any number of keys. Nothing: every value.
    """
    parts = tuple(map(str, path))
    return not patterns or any(_fits(parts, tuple(pattern.split("."))) for pattern in patterns)


def shown(path: Path) -> str:
    """A path as people write it."""
    return ".".join(map(str, path)) or "the whole file"


def _fits(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    # For each number of keys, whether the pattern so far fits them.
    fits = [True] + [False] * len(path)
    for part in pattern:
        if part == "**":
            for number in range(1, len(fits)):
                fits[number] = fits[number] or fits[number - 1]
        else:
            fits = [False] + [
                fits[number] and fnmatchcase(key, part) for number, key in enumerate(path)
            ]
    return fits[-1]
