"""Which values of a tree are translated: patterns such as items.*.title."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from transformer_cli.extensions.documents.segments import has_letter
from transformer_cli.process.errors import DataError

Path = tuple[str | int, ...]
# Names for programs, such as en_US, menu.open, item-2 and camelCase.
_IDENTIFIER = re.compile(r"[A-Za-z][\w-]*[_.\d][\w.-]*|[a-z]+[A-Z]\w*")

# Formats of dates for programs, such as %Y-%m-%d and DD/MM/YYYY.
_DATE_FORMAT = re.compile(
    r"(?=.*%)(?:%[-^_0#]?[A-Za-z]|[\W\d_])++"
    r"|(?=.*(?:YYYY|yyyy|MM|DD|dd|HH|hh|mm|ss))(?:Y++|y++|M++|D++|d++|H++|h++|m++|s++|[AaZz]|[\W\d_]++)++"
)


def is_translated(value: str, path: Path, patterns: Sequence[str]) -> bool:
    """Whether a string is translated: if a pattern chooses it, or if there are no patterns and it is no identifier."""
    if not has_letter(value):
        return False
    if patterns:
        return is_chosen(path, patterns)
    if _DATE_FORMAT.fullmatch(value):
        return False
    return not _IDENTIFIER.fullmatch(value) or value.endswith(".")


def require_chosen(patterns: Sequence[str], *, has_values: bool) -> None:
    """Raise DataError if the user names values, and the file has none of them."""
    if patterns and not has_values:
        raise DataError(
            f"no text has the keys that --values names: {', '.join(patterns)}",
            hint="such as --values title --values 'items.*.title'; leave it out to translate all texts",
        )


def is_chosen(path: Path, patterns: Sequence[str]) -> bool:
    """Whether a value is translated.

    Args:
        path: the keys and places that lead to it.
        patterns: keys with points between them. `*` in a key is any text, a key `*` also any place in a list, and
            `**` any number of keys.
    """
    parts = tuple(map(str, path))
    return any(_fits(parts, tuple(pattern.split("."))) for pattern in patterns)


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
