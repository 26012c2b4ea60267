"""Fonts for the labels of a picture: any language, as far as the installed fonts have its characters."""

import functools
import logging
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

logger = logging.getLogger(__name__)

USUAL = "DejaVu Sans"
"""This font comes with matplotlib and has the Latin, Greek and Cyrillic scripts."""
MOST_SHOWN = 3
_CJK = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH")
# Chinese characters look different in Japan and Korea; the name of each Noto font ends in its region.
_REGIONS = {"HIRAGANA": "JP", "KATAKANA": "JP", "HANGUL": "KR"}
_told: set[str] = set()


def readable_labels(labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """The labels, and the font families that draw them; matplotlib takes each character from the first that has it.

    A character that no installed font has is shown by its code point, such as U+4F60, and logged.
    """
    if all(label.isascii() and label.isprintable() for label in labels):
        return list(labels), [USUAL]
    characters = frozenset("".join(labels))
    beyond = _without_glyph(characters, [USUAL])
    families = [USUAL, *_families(beyond)]
    missing = _without_glyph(beyond, families[1:])
    if missing:
        is_cjk = any(_name(character).startswith(_CJK) for character in missing)
        _tell("fonts-noto-cjk" if is_cjk else "fonts-noto-core", missing)
    return [_with_code_points(label, missing) for label in labels], families


@functools.lru_cache(maxsize=64)
def _families(characters: frozenset[str]) -> tuple[str, ...]:
    """A few installed families that together have these characters, or as many of them as possible."""
    names = {_name(character).split()[0] for character in characters}
    region = next((_REGIONS[name] for name in sorted(names & _REGIONS.keys())), "SC")
    families = []
    for family in sorted(_fonts(), key=lambda family: not family.endswith(f"CJK {region}")):
        if not characters:
            break
        rest = _without_glyph(characters, [family])
        if rest != characters:
            families.append(family)
            characters = rest
    return tuple(families)


def _without_glyph(characters: frozenset[str], families: Iterable[str]) -> frozenset[str]:
    """The characters that none of these families has."""
    for family in families:
        if characters and (font := _font(_fonts()[family])) is not None:
            characters = frozenset(c for c in characters if not font.get_char_index(ord(c)))
    return characters


@functools.lru_cache(maxsize=8)  # an open font is an open file
def _font(path: str) -> Any:
    """A font; None if matplotlib cannot draw with it, such as one of coloured pictures."""
    from matplotlib.ft2font import FT2Font

    try:
        font = FT2Font(path)
    except (OSError, RuntimeError, ValueError):
        return None
    return font if font.scalable else None


@functools.cache
def _fonts() -> dict[str, str]:
    """Installed families with the path of their upright regular font; Noto first, which has many scripts."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {entry.fname for entry in fontManager.ttflist}
    for path in sorted({*findSystemFonts()} - known):
        try:  # a font that was installed after matplotlib had made its list
            fontManager.addfont(path)
        except (OSError, RuntimeError, ValueError):
            continue
    regular = {
        entry.name: entry.fname
        for entry in fontManager.ttflist
        if entry.style == "normal"
        and entry.weight in (400, "normal", "regular")
        and "last resort" not in entry.name.lower()  # this font draws a box for every character
    }
    order = sorted(regular, key=lambda name: (not name.startswith("Noto Sans"), name))
    return {name: regular[name] for name in order}


def _tell(package: str, missing: frozenset[str]) -> None:
    """Log once for each package: a run draws a picture at every validation."""
    if package in _told:
        return
    _told.add(package)
    logger.warning(
        "attention picture: no installed font has the characters %s; they are shown as code points "
        "(on Debian and Ubuntu, the package %s has them)",
        _sample(missing),
        package,
    )


def _with_code_points(label: str, missing: frozenset[str]) -> str:
    parts = [f"U+{ord(c):04X} " if c in missing else c for c in label]
    num_missing = sum(c in missing for c in label)
    if num_missing > MOST_SHOWN:
        last = [index for index, c in enumerate(label) if c in missing][MOST_SHOWN]
        parts = [*parts[:last], "…"]
    return "".join(parts).strip()


def _sample(missing: frozenset[str]) -> str:
    shown = " ".join(sorted(missing)[:MOST_SHOWN])
    return shown if len(missing) <= MOST_SHOWN else f"{shown} and {len(missing) - MOST_SHOWN} more"


def _name(character: str) -> str:
    return unicodedata.name(character, "unnamed")
