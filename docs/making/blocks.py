"""The fenced blocks of a page, each with the marker comment before it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The repository."""
BLOCK = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<kind>code|output|measured): (?P<text>.*?) -->\n *)?"
    r"```(?P<language>\w*)\n(?P<content>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
LONELY = re.compile(r"^ *<!-- (?:code|output|measured):.*$", re.MULTILINE)


class MarkerError(ValueError):
    """A marker that cannot be followed: the message says where it stands and what is wrong."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    page: Path
    line: int
    """The line of the page, from 1, in which the block or its marker begins."""
    kind: str
    """code, output, measured, or empty if there is no marker."""
    text: str
    """The text of the marker after its kind."""
    language: str
    content: str
    """With a line feed at its end."""
    program: str
    """The content of the last Python block before this one, for a marker that runs it."""

    @property
    def place(self) -> str:
        """The page and the line, for messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """All pages of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in their order.

    Raises:
        MarkerError: no fenced block follows a marker.
    """
    text = page.read_text(encoding="utf-8")
    program = ""
    within: list[tuple[int, int]] = []
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        kind, marker = found["kind"] or "", found["text"] or ""
        yield Block(page, line, kind, marker, found["language"], found["content"], program)
        within.append(found.span())
        if found["language"] == "python" and not kind:
            program = found["content"]
    for marker in LONELY.finditer(text):
        if not any(start <= marker.start() < end for start, end in within):
            line = text.count("\n", 0, marker.start()) + 1
            raise MarkerError(
                f"{page.relative_to(ROOT)}:{line}: a fenced block must follow this marker in the next line"
            )


def rewritten(page: Path, content_of: Callable[[Block], str | None]) -> str:
    """The text of a page with new contents of its blocks.

    Args:
        page: is read and not written.
        content_of: the new content of a block; None: it stays.
    """
    text = page.read_text(encoding="utf-8")
    all_blocks = iter([*blocks(page)])

    def new(found: re.Match[str]) -> str:
        block = next(all_blocks)
        indent = found["indent"]
        content = content_of(replace(block, content=without_indent(block.content, indent)))
        if content is None:
            return found[0]
        lines = "".join(f"{indent}{line}".rstrip() + "\n" for line in content.splitlines())
        start, end = found.start("content") - found.start(), found.end("content") - found.start()
        return found[0][:start] + lines + found[0][end:]

    return BLOCK.sub(new, text)


def without_indent(content: str, indent: str) -> str:
    """The lines of a block without the spaces by which the whole block is indented."""
    return re.sub(rf"^{indent}", "", content, flags=re.MULTILINE) if indent else content


def cut(lines: list[str], options: dict[str, str], place: str, mark: str) -> list[str]:
    """The lines that a marker asks for, with `mark` in place of those that are left out.

    Args:
        lines: all lines.
        options: `from`, `to` and `before`, each with a part of a line.
        place: for messages.
        mark: stands for the lines before the first and after the last one.

    Raises:
        MarkerError: no line has such a part.
    """
    first, end = 0, len(lines)
    if "from" in options:
        first = _line_with(options["from"], lines, 0, place)
    if "to" in options:
        end = _line_with(options["to"], lines, first, place) + 1
    if "before" in options:
        end = _line_with(options["before"], lines, first + 1, place)
        while end > first and not lines[end - 1].strip():
            end -= 1
    shown = lines[first:end]
    filled = [line for line in shown if line.strip()]
    return [
        *([f"{_indent(filled[0])}{mark}"] if first else []),
        *shown,
        *([f"{_indent(filled[-1])}{mark}"] if any(map(str.strip, lines[end:])) else []),
    ]


def _indent(line: str) -> str:
    return " " * (len(line) - len(line.lstrip()))


def _line_with(part: str, lines: list[str], start: int, place: str) -> int:
    for number, line in enumerate(lines[start:], start):
        if part in line:
            return number
    raise MarkerError(f"{place}: no line contains {part!r}")
