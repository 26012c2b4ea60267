"""Which lines of a Markdown text are markup of MyST, the Markdown of Sphinx and Jupyter Book: directives with their options, comments, breaks."""

import math
import re
from collections.abc import Collection, Iterator, Sequence

# Directives with Markdown in them; of these, the words behind the name are a title, or those of a table a caption.
TITLED = (
    "admonition|aside|attention|card|caution|danger|dropdown|error|exercise|grid-item-card|hint|important|list-table|margin|note"
    "|prf:[a-z]+|seealso|sidebar|tab-item|table|tip|topic|warning"
)
_WITH_TEXT = re.compile(
    rf"(?:{TITLED}|blockquote|card-carousel|div|embed|epigraph|figure|glossary|grid|grid-item|pull-quote|solution|subfigure|tab-set)"
)
# Directives whose lines are no Markdown.
_WITH_CODE = re.compile(
    r"(?:anywidget|bibliography|code|code-block|code-cell|csv-table|eval-rst|iframe|image|include|literalinclude|math|mermaid|raw"
    r"|sourcecode|tableofcontents|toctree|typst)"
)
_COLONS = re.compile(r" {0,3}(?P<colons>:{3,})\{(?P<name>[A-Za-z][\w:.-]*)\}.*")
_BACKTICKS = re.compile(r" {0,3}(?P<sign>`{3,}|~{3,})\{(?P<name>[A-Za-z][\w:.-]*)\}[^`]*")
_END = re.compile(r" {0,3}(?P<sign>`{3,}|~{3,}|:{3,})[ \t]*")
# Nothing but MyST has them: a directive in colons, some in backticks, a label, and a role such as {term}`dog`.
_SIGN_OF_MYST = re.compile(
    r" {0,3}:{3,}\{[A-Za-z]| {0,3}`{3,}\{(?:code-block|code-cell|eval-rst|image|include|literalinclude|math|toctree)\}| {0,3}\([^\s()]+\)=[ \t]*\Z|(?:.*[^\w`])?\{[a-z][\w:.-]*\}`[^`]"
)
_OPTION = re.compile(r" {0,3}:[\w-]+:(?:[ \t].*)?")
_TEXT_OF_OPTION = re.compile(r" {0,3}:(?:alt|caption|footer|header|title):[ \t]+(?P<text>\S.*)")
_BLOCK_OF_OPTIONS = re.compile(r" {0,3}-{3,}[ \t]*")
# A comment, the end of a cell or of the header of a card; Markdown would join it with the lines around it.
_LINE = re.compile(r" {0,3}(?:%.*|\+\+\+(?:[ \t].*)?|\^\^\^[ \t]*)")


def may_be_myst(line: str) -> bool:
    """Whether a line looks like markup of MyST."""
    return (
        _LINE.fullmatch(line) is not None
        or _COLONS.fullmatch(line) is not None
        or _BACKTICKS.fullmatch(line) is not None
    )


def with_colons(lines: Sequence[str], fences: Collection[tuple[int, int]]) -> list[str]:
    """Write the directives in backticks whose lines are Markdown as those in colons, which are no code; each line keeps its length.

    Args:
        lines: of a text.
        fences: the first row of each block of code that stands in no other block, and the row behind its last one.
    """
    written = list(lines)
    for first, behind in fences:
        begins, ends = _BACKTICKS.fullmatch(lines[first]), _END.fullmatch(lines[behind - 1])
        if begins and ends and behind > first + 1 and _WITH_TEXT.fullmatch(begins["name"]):
            for row, match in ((first, begins), (behind - 1, ends)):
                sign = match["sign"]
                written[row] = lines[row].replace(sign, ":" * len(sign), 1)
    return written


def is_directive_with_text(info: str) -> bool:
    """Whether a block of code is a directive whose lines are Markdown, by what stands behind its first backticks."""
    name, brace, _ = info.removeprefix("{").partition("}")
    return bool(brace) and info.startswith("{") and _WITH_TEXT.fullmatch(name) is not None


def rows_of_myst(lines: Sequence[str], code_rows: Collection[int]) -> frozenset[int]:
    """The rows that are comments, breaks, options of directives, or code of a directive in colons.

    Args:
        lines: of a text.
        code_rows: the rows in other blocks of code and of HTML.
    """
    found = {row for row in range(len(lines)) if row not in code_rows and _COLONS.fullmatch(lines[row])}
    inside: set[int] = set()
    # From a directive that is never closed, another one with as many colons is not closed either.
    fewest_unclosed = math.inf
    for row in sorted(found):
        if row in inside:
            continue
        inside.update(_rows_of_options(lines, row))
        begins = _COLONS.fullmatch(lines[row])
        num_colons = len(begins["colons"]) if begins and _WITH_CODE.fullmatch(begins["name"]) else 0
        if 0 < num_colons < fewest_unclosed:
            end = _end_of_directive(lines, row, num_colons)
            inside.update(range(row + 1, end or row + 1))
            fewest_unclosed = fewest_unclosed if end else num_colons
    rows = (row for row, line in enumerate(lines) if row not in code_rows and _LINE.fullmatch(line))
    others = frozenset(rows)
    is_myst = bool(others) and any(map(_SIGN_OF_MYST.match, lines))
    return frozenset(inside) | (others if is_myst else frozenset())


def text_of_option(line: str) -> re.Match[str] | None:
    """The value of an option that people read, such as a caption, as the group `text`."""
    return _TEXT_OF_OPTION.fullmatch(line)


def _rows_of_options(lines: Sequence[str], row: int) -> Iterator[int]:
    """The rows behind that of a directive which have its options: lines such as :name: my-figure, or a block of YAML."""
    first = row + 1
    if first < len(lines) and _BLOCK_OF_OPTIONS.fullmatch(lines[first]):
        for last in range(first + 1, len(lines)):
            if _BLOCK_OF_OPTIONS.fullmatch(lines[last]):
                yield from range(first, last + 1)
                return
            if not lines[last].strip():
                return
    while first < len(lines) and _OPTION.fullmatch(lines[first]):
        yield first
        first += 1


def _end_of_directive(lines: Sequence[str], row: int, num_colons: int) -> int | None:
    """The row behind another one that ends a directive."""
    for last in range(row + 1, len(lines)):
        ends = _END.fullmatch(lines[last])
        if ends is not None and ends["sign"].startswith(":" * num_colons):
            return last
    return None
