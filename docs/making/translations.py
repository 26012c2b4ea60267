"""Pages in another language: their fenced blocks are those of the English page."""

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from making.blocks import BLOCK, ROOT, MarkerError

TRANSLATIONS = {
    "docs/zh/the_transformer.md": "docs/the_transformer.md",
    "docs/zh/from_the_tutorials.md": "docs/map_of_the_tutorials.md",
    "docs/zh/thirty_questions.md": "docs/thirty_questions.md",
    "docs/zh/exercises.md": "docs/exercises.md",
    "docs/zh/troubleshooting.md": "docs/troubleshooting.md",
    "docs/zh/what_breaks.md": "docs/what_breaks.md",
}
"""A page, and the page from which it takes the blocks: section N those of section N. Sections after the last one of the
English page have blocks of their own."""


def drifted_translations(changed: Mapping[Path, str]) -> Iterator[tuple[Path, str]]:
    """Each translated page that should have another text, with this text.

    Args:
        changed: new texts of English pages that have not been written yet.
    """
    for name, original in TRANSLATIONS.items():
        page, english = ROOT / name, ROOT / original
        old = page.read_text(encoding="utf-8")
        new = with_blocks_of(changed.get(english) or english.read_text(encoding="utf-8"), old, name)
        if new != old:
            yield page, new


def with_blocks_of(english: str, translation: str, name: str) -> str:
    """The text of a translated page with the blocks of the English one.

    Args:
        english: the text of the English page.
        translation: the text of the translated page.
        name: the translated page, for messages.

    Raises:
        MarkerError: a section has another number of blocks.
    """
    originals = sections(english)
    made = []
    for number, section in enumerate(sections(translation)):
        if number >= len(originals):
            made.append(section)
            continue
        wanted = [found[0] for found in BLOCK.finditer(originals[number])]
        present = len(BLOCK.findall(section))
        if present != len(wanted):
            heading = section.partition("\n")[0]
            raise MarkerError(f"{name}: {heading!r} has {present} blocks, and the English page has {len(wanted)} there")
        each = iter(wanted)
        made.append(BLOCK.sub(lambda found, each=each: next(each), section))
    return "".join(made)


def sections(text: str) -> list[str]:
    """The parts of a page, each from a heading of the second level to the next one; fenced lines are no headings."""
    fenced = [found.span() for found in BLOCK.finditer(text)]
    starts = [
        found.start()
        for found in re.finditer(r"^## ", text, re.MULTILINE)
        if not any(start <= found.start() < end for start, end in fenced)
    ]
    edges = [0, *starts, len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]
