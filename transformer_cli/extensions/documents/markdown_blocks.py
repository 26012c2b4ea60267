"""Which lines of a Markdown text are blocks that only its extensions know: footnotes, definitions, boxes, directives, formulas, tables of Pandoc.

CommonMark would read them as parts of a paragraph, and the translation would join their lines.
"""

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from transformer_cli.extensions.documents.myst import (
    TITLED,
    may_be_myst,
    rows_of_myst,
    text_of_option,
)
from transformer_cli.extensions.documents.page_templates import COMMANDS_WITH_CODE
from transformer_cli.text.lines_for_programs import part_for_programs
from transformer_cli.text.normalization import has_letter

Lines = list[str]

# Without another bracket in it: a text of brackets would be read to its end from each of them.
NOTE = r"\[\^[^\[\]\s]+\]"
"""The mark of a footnote."""
_FOOTNOTE = re.compile(rf" {{0,3}}{NOTE}:[ \t]*")
# Of a link: [name]: http://example.org "Title". Behind the text of a footnote people leave no blank line.
_REFERENCE = re.compile(r""" {0,3}\[[^\[\]]+\]:[ \t]*\S+(?:[ \t]+(?:"[^"]*"|'[^']*'|\([^()]*\)))?[ \t]*""")
_DEFINITION = re.compile(r" {0,3}[:~][ \t]+(?=\S)")
# A line of a poem or an address: | The red dog
_LINE_OF_BLOCK = re.compile(r"\|[ \t]+(?=\S)")
# An example of Pandoc, which gets a number: (@) The red dog sleeps.
EXAMPLE = re.compile(r" {0,3}\(@[\w-]*\)[ \t]+(?=\S)")
_DELIMITER_ROW = re.compile(r"[ \t]*+(?:\|[ \t]*+)?:?-++:?[ \t]*+(?>(?:\|[ \t]*+:?-++:?[ \t]*+)*)(?:\|[ \t]*+)?")
# A box of MkDocs: !!! note "Title", ??? tip, === "Tab"; its text is indented.
_BOX = re.compile(
    r""" {0,3}(?:(?:!!!|\?\?\?\+?)[ \t]+(?:[\w|-]+|[a-z][\w|-]*(?:[ \t]+[a-z][\w|-]*){1,3}|(?:[\w|-]+[ \t]+){0,4}["'].*)[ \t]*"""
    r"""|===[ \t]+[\w"'].*)"""
)
# A line of a notice of Grav, which stays a line: ! The red dog, !!! The red dog
_NOTICE = re.compile(r"!{1,4}[ \t]+(?=\S)")
# A line of the head of a mail: Subject: The red dog
_LINE_OF_HEAD = re.compile(r"[A-Z][A-Za-z-]{1,40}:[ \t]+(?=\S)")
# Directives (:::), commands of Hugo and Jekyll on a line of their own, attributes, a table of contents, abbreviations.
_KEPT = re.compile(
    r" {0,3}(?::{3,}.*|(?:\{\{[<%](?:(?!\}\}).)*\}\}[ \t]*|\{%(?:(?!%\}).)*%\}[ \t]*)+|\{:.*\}[ \t]*|\{[ \t]*(?:[.#]|[\w-]+=)[^{}]*\}[ \t]*|\[\[?_?TOC_?\]?\][ \t]*|\*\[[^\]]+\]:.*|\{/\*.*\*/\}[ \t]*"
    # The label of MyST before a title or figure, to which its links lead: (my-label)=
    r"|\([^\s()][^()]*+\)=[ \t]*"
    # A block of PyMdown and its end: /// note | Title
    r"|/{3,}[ \t]*(?:[ \t][a-z][\w-]*[ \t]*(?:\|.*)?)?"
    # Of MDX, which Docusaurus reads in .md, too.
    # Code of a file, of VitePress: <<< @/snippets/a.ts#region
    r"|<<<[ \t]*(?:@|\.{1,2})?/\S.*"
    r"|import[ \t]+(?:[\w*{][^'\"]*[ \t]from[ \t]+)?['\"][^'\"]+['\"];?[ \t]*|export[ \t]+(?:const|default|function|let)[ \t].*)",
    re.IGNORECASE,
)
_QUOTATION = r"(?: {0,3}>)*"
# Code of Jekyll, Hexo and GitBook, and of Hugo: {% highlight ruby %}, {{< highlight go >}}; also in a quotation.
_BEGINNING_OF_CODE = re.compile(
    rf"{_QUOTATION}[ \t]*(?:\{{%-?|\{{\{{[<%])[ \t]*(?P<name>{COMMANDS_WITH_CODE})(?![\w-])[^{{}}]*+\}}{{1,2}}[ \t]*"
)
_END_OF_CODE = re.compile(
    rf"{_QUOTATION}[ \t]*(?:\{{%-?[ \t]*end|\{{\{{[<%][ \t]*/[ \t]*)(?P<name>{COMMANDS_WITH_CODE})[ \t]*-?[>%]\}}{{1,2}}[ \t]*"
)
# Of Grav and WordPress, in square brackets: [prism classes="language-git"] ... [/prism]
_BEGINNING_OF_SHORTCODE = re.compile(
    r"[ \t]*\[(?P<name>prism|code|codeblock|sourcecode|raw|mermaid)(?:[ =][^\[\]]*)?\][ \t]*"
)
_END_OF_SHORTCODE = re.compile(r"[ \t]*\[/(?P<name>prism|code|codeblock|sourcecode|raw|mermaid)\][ \t]*")
# A comment of kramdown; its end may have no name.
_BEGINNING_OF_COMMENT = re.compile(r" {0,3}\{::(?P<name>comment)\}[ \t]*")
_END_OF_KRAMDOWN = re.compile(r" {0,3}\{:/(?P<name>comment)?\}[ \t]*")
# A comment of Obsidian, on one line and on several: %% the words %%
_COMMENT = re.compile(rf"{_QUOTATION}[ \t]*%%(?!%)(?>(?:[^%\n]|%(?!%))*)(?P<end>%%[ \t]*)?")
_END_OF_COMMENT = re.compile(r"(?>(?:[^%\n]|%(?!%))*)%%[ \t]*")
_FORMULA = re.compile(r" {0,3}(?P<sign>\$\$|\\{1,2}\[[ \t]*\Z|\\begin\{[A-Za-z]{1,30}\*?\})")
# Tables of Pandoc: +---+---+ and ----  ----, and what stands above and below a table of several lines; also in a quotation.
_MARK_OF_QUOTATION = re.compile(_QUOTATION)
_GRID = re.compile(rf"{_QUOTATION} {{0,3}}\+[-=:]{{2,}}[-=:+]*\+[ \t]*")
_GRID_ROW = re.compile(rf"{_QUOTATION} {{0,3}}[+|].*")
_DASHES = re.compile(rf"{_QUOTATION} {{0,3}}-{{2,}}(?: +-{{1,}})+ *")
_LONG_DASHES = re.compile(rf"{_QUOTATION} {{0,3}}-{{5,}} *")
_MAX_TABLE, _MAX_ROWS_OF_HEAD = 1000, 20
_ANY = re.compile(
    _QUOTATION
    + r"[ \t]*(?:\{[{%]|%%|\[(?:prism|code|sourcecode|raw|mermaid))| {0,3}(?:\[[\^\[T_]|:|~[ \t]|\|[ \t]|!{1,4}[ \t]|\?\?\?|===|\{|\*\[|\(@|\([^\s()][^()]*+\)=|\$\$|///|(?:> {0,3})*(?:\+[-=:]|--+ +-)|<<<|import[ \t]|export[ \t]|\\(?:begin\{|\\?\[))",
    re.IGNORECASE,
)
# The title of a box: of MkDocs in quotation marks, of Docusaurus, VuePress and MyST behind its kind; the text of a picture of DocFX.
_TITLE = re.compile(
    r""" {0,3}(?:(?:!!!|\?\?\?\+?|===[!+]?)[ \t]++[^"]*+"(?P<quoted>[^"]*+)"[ \t]*+"""
    r"""|:{3,}[ \t]*[A-Za-z][\w-]*\[(?P<bracketed>[^\[\]]+)\].*|:{3,}[ \t]*[A-Za-z][\w-]*[ \t]++(?![\w-]++=)(?P<open>[^\s:{}](?>(?:[^ \t:{}]++|[ \t]++(?=[^ \t:{}]))*))[ \t]*+(?:\{[^{}]*+\}[ \t]*+)?"""
    rf"""|:{{3,}}\{{(?:{TITLED})\}}[ \t]++(?P<named>\S.*)"""
    r"""|:::image[ \t]++(?:[\w-]++="[^"]*+"[ \t]*+)*?alt-text="(?P<alt>[^"]*+)".*"""
    r"""|/{3,}[ \t]+(?!html(?!\w))[a-z][\w-]*[ \t]*+\|[ \t]*+(?P<slashed>\S.*)"""
    r"""|:{3,}[ \t]*\{[^{}"]*(?:"[^"]*"[^{}"]*)*?[ \t]title="(?P<attribute>[^"]+)"[^{}]*\}[ \t]*"""  # of Quarto
    r"""|\*\[[^\[\]]+\]:[ \t]*+(?P<long>\S.*))"""
)
_MAX_FORMULA = 200  # lines
_END_OF_FORMULA = re.compile(r"(?:\$\$|\\{1,2}\]|\\end\{[A-Za-z]{1,30}\*?\})\Z")
_LABEL_OF_FORMULA = re.compile(r"(?<=\$\$)[ \t]*+(?:\([^\s()]++\)|\{#[^{}]*+\})[ \t]*+\Z")
_LONGEST_END = len(r"\end{*}") + 30
_TABLE = "table"
# Rows and columns of DocFX, whose texts may be indented as code is.
_ROW, _END_OF_ROW = re.compile(r" {0,3}:::row(?:[ \t].*)?:::[ \t]*"), re.compile(r"[ \t]*:::row-end:::[ \t]*")
# The settings of a slide of remark, behind a line of dashes or at the beginning.
_SETTING_OF_SLIDE = re.compile(
    r"(?:background-(?:image|position|size)|class|count|exclude|layout|name|template):[ \t]*\S.*"
)
_DIAGRAM, _END_OF_DIAGRAM = re.compile(r" {0,3}:{3,}[ \t]*(?:mermaid|plantuml)[ \t]*"), re.compile(r" {0,3}:{3,}[ \t]*")
_END_OF_SLIDE = re.compile(r"-{2,3}[ \t]*")
_INDENTED = re.compile(r" {4}| {0,3}\t")


@dataclass(slots=True)
class DividedLines:
    """The lines of a text, as documents of CommonMark; each has all rows, and a row of another document is blank."""

    plain: Lines
    """Without the extensions."""
    inner: tuple[Lines, ...] = ()
    """The texts inside footnotes, definitions and boxes, without their indentation."""
    titles: tuple[tuple[int, int, str], ...] = ()
    """The titles of boxes, each with its row and how far before the end of the line it begins."""
    tables: tuple[int, ...] = ()
    """The first row of each table of Pandoc that has words, which stay."""


@dataclass(slots=True)
class _Container:
    """A block whose lines behind the first are indented."""

    row: int
    text: str
    """What stands behind the mark in the first row."""
    is_lazy: bool
    """Whether lines without indentation go on with a paragraph in it."""
    lines: dict[int, str] = field(default_factory=dict)
    """The other rows, without their indentation."""


def may_begin_extension(line: str) -> bool:
    """Whether a line looks like the beginning of one of these blocks."""
    return (
        _ANY.match(line) is not None
        or _SETTING_OF_SLIDE.fullmatch(line) is not None
        or may_be_myst(line)
        or _is_head([line])
    )


def divided_lines(lines: Sequence[str], code_rows: Collection[int], html_rows: Collection[int] = ()) -> DividedLines:
    """Take the extensions out of a Markdown text.

    Args:
        lines: without their line ends.
        code_rows: the rows in blocks of code, in which nothing begins.
        html_rows: those in blocks of HTML, in which only code between two commands begins and ends.
    """
    command_rows = _rows_of_comments(lines, code_rows) | _rows_of_slides(lines) | _rows_of_diagrams(lines)
    for pair in (
        (_BEGINNING_OF_CODE, _END_OF_CODE),
        (_BEGINNING_OF_SHORTCODE, _END_OF_SHORTCODE),
        (_BEGINNING_OF_COMMENT, _END_OF_KRAMDOWN),
    ):
        command_rows |= _rows_between(lines, code_rows, *pair)
    code_rows = {*code_rows, *html_rows} - command_rows
    plain = list(lines)
    found: list[_Container] = []
    titles: list[tuple[int, int, str]] = []
    items = _rows_of_items(lines)
    myst = rows_of_myst(lines, code_rows)
    tables: list[tuple[int, int]] = []
    for row in _starts(lines, code_rows, items, myst | command_rows, tables):
        if row < _end(found):
            continue
        if row in command_rows:
            plain[row] = ""
            continue
        title = text_of_option(lines[row]) if row in myst else _TITLE.fullmatch(lines[row])
        if title is not None and title.lastgroup is not None:
            start = title.start(title.lastgroup)
            titles.append((row, len(lines[row]) - start, title[title.lastgroup]))
        container = None if row in myst else _container_at(lines, row, items)
        if container is None:
            plain[row] = ""
            continue
        _read_rows(container, lines, code_rows, items, myst)
        found.append(container)
        for taken in (row, *container.lines):
            plain[taken] = ""
    # Neighbours come into different documents, so that their paragraphs are not joined.
    inner = [[""] * len(lines) for _ in range(min(2, len(found)))]
    for number, container in enumerate(found):
        document = inner[number % 2]
        document[container.row] = container.text
        for row, line in container.lines.items():
            document[row] = line
    with_words = (first for first, last in tables if any(map(has_letter, lines[first:last])))
    return DividedLines(plain, tuple(inner), tuple(titles), tuple(with_words))


def _rows_between(
    lines: Sequence[str], code_rows: Collection[int], beginning: re.Pattern[str], end: re.Pattern[str]
) -> frozenset[int]:
    """The rows from a line that begins something to the next one that ends something of the same name, such as {% highlight ruby %} and {% endhighlight %}."""
    found: set[int] = set()
    ends: dict[str | None, list[int]] = defaultdict(list)
    for row, line in enumerate(lines):
        if row not in code_rows and (match := end.fullmatch(line)):
            ends[match["name"]].append(row)
    for row, line in enumerate(lines if ends else ()):
        match = None if row in found or row in code_rows else beginning.fullmatch(line)
        if match is not None:
            last = min(_next_row(ends[name], row) for name in (match["name"], None))
            found.update(range(row, int(last) + 1) if last < math.inf else ())
    return frozenset(found)


def _rows_of_diagrams(lines: Sequence[str]) -> frozenset[int]:
    """The rows of diagrams between colons, as in wikis of Azure DevOps."""
    found: set[int] = set()
    ends = [row for row, line in enumerate(lines) if _END_OF_DIAGRAM.fullmatch(line)]
    for row, line in enumerate(lines if ends else ()):
        if row not in found and _DIAGRAM.fullmatch(line) and (end := _next_row(ends, row)) < math.inf:
            found.update(range(row, int(end) + 1))
    return frozenset(found)


def _rows_of_slides(lines: Sequence[str]) -> frozenset[int]:
    """The rows of the settings of slides, such as class: center, middle."""
    found: set[int] = set()
    is_beginning = True
    for row, line in enumerate(lines):
        if is_beginning and _SETTING_OF_SLIDE.fullmatch(line):
            found.add(row)
        else:
            is_beginning = _END_OF_SLIDE.fullmatch(line) is not None or (is_beginning and not any(lines[: row + 1]))
    return frozenset(found)


def _rows_of_comments(lines: Sequence[str], code_rows: Collection[int]) -> frozenset[int]:
    """The rows of the comments of Obsidian, whose signs %% begin a line and end one."""
    found: set[int] = set()
    ends = [
        row
        for row, line in enumerate(lines)
        if "%%" in line and row not in code_rows and _END_OF_COMMENT.fullmatch(line)
    ]
    for row, line in enumerate(lines if any("%%" in line for line in lines) else ()):
        match = None if row in found or row in code_rows else _COMMENT.fullmatch(line)
        if match is not None and match["end"]:
            found.add(row)
        elif match is not None and (end := _next_row(ends, row)) < math.inf:
            found.update(range(row, int(end) + 1))
    return frozenset(found)


def _end(found: Sequence[_Container]) -> int:
    if not found:
        return 0
    return next(reversed(found[-1].lines), found[-1].row) + 1


def _starts(
    lines: Sequence[str],
    code_rows: Collection[int],
    items: Collection[int],
    myst: Collection[int],
    tables: list[tuple[int, int]],
) -> Iterator[int]:
    """The rows that are kept as they are, or in which a container begins; `tables` gets the rows of each table of Pandoc."""
    end_of_formula = ""
    end_of_table = 0
    ends = _rows_of_ends(lines)
    for row, line in enumerate(lines):
        if end_of_formula:
            yield row
            is_end = _without_label(line).endswith(end_of_formula)
            end_of_formula = "" if is_end else end_of_formula
        elif row < end_of_table or row in myst:
            yield row
        elif row in code_rows:
            continue
        elif match := _FORMULA.match(line):
            end = _end_of_formula(match["sign"].strip())
            inside = line[match.end() :]
            if end not in inside and _has_end_of_formula(ends, row, end):
                end_of_formula = end
            elif match["sign"] != "$$" and not inside.rstrip().endswith(end):
                continue
            yield row
        elif (table := _table_at(lines, row, ends[_TABLE])) is not None:
            end_of_table = table[1]
            tables.append(table)
            yield from range(table[0], row + 1)
        elif _KEPT.fullmatch(line) or row in items or _container_at(lines, row, items) is not None:
            yield row


def _end_of_formula(beginning: str) -> str:
    return beginning.replace("begin", "end").replace("[", "]")


def _without_label(line: str) -> str:
    """A line without white space at its end, and without a label behind the end of a formula: $$ (my-label) of MyST, $$ {#eq-a} of Quarto."""
    return _LABEL_OF_FORMULA.sub("", line).rstrip()


def _rows_of_ends(lines: Sequence[str]) -> dict[str, list[int]]:
    """For each end of a formula, for "" and for `_TABLE` the rows that have it as their end, are blank, and can end a table."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, line in enumerate(lines):
        text = _without_label(line)
        if not text:
            rows[""].append(row)
        elif match := _END_OF_FORMULA.search(text, max(0, len(text) - _LONGEST_END)):
            rows[match[0]].append(row)
            if match[0] == r"\\]":
                rows[r"\]"].append(row)
        # A table whose rows have several lines ends with dashes before a blank line.
        elif (_DASHES.fullmatch(line) or _LONG_DASHES.fullmatch(line)) and not _goes_on(
            lines, row + 1, _num_quotations(line)
        ):
            rows[_TABLE].append(row)
    return rows


def _table_at(lines: Sequence[str], row: int, ends: Sequence[int]) -> tuple[int, int] | None:
    """The rows of a table of Pandoc, of which this one is the first without letters; the second number is behind the last one.

    Args:
        ends: the rows that can end a table whose rows have several lines, in order.
    """
    last, depth = row + 1, _num_quotations(lines[row])
    if _GRID.fullmatch(lines[row]):
        while _goes_on(lines, last, depth) and _GRID_ROW.fullmatch(lines[last]):
            last += 1
        return (row, last) if last > row + 2 else None
    if not _DASHES.fullmatch(lines[row]):
        return None
    first = row
    while first > max(0, row - _MAX_ROWS_OF_HEAD) and _goes_on(lines, first - 1, depth):
        first -= 1
    # Another table than one whose rows have several lines ends at a blank line.
    end = _next_row(ends, row)
    if (first == row or _LONG_DASHES.fullmatch(lines[first])) and end < row + _MAX_TABLE:
        return first, int(end) + 1
    while _goes_on(lines, last, depth):
        last += 1
    return (first, last) if first < row or last > row + 1 else None


def _num_quotations(line: str) -> int:
    """How many marks of quotations stand before the text of a line."""
    found = _MARK_OF_QUOTATION.match(line)
    return found[0].count(">") if found else 0


def _goes_on(lines: Sequence[str], row: int, num_quotations: int) -> bool:
    """Whether there is a row, and it has text in the same quotation."""
    if row >= len(lines) or _num_quotations(lines[row]) != num_quotations:
        return False
    return bool(lines[row].strip(" \t>") if num_quotations else lines[row].strip())


def _has_end_of_formula(ends: Mapping[str, Sequence[int]], row: int, end: str) -> bool:
    """Whether a formula ends before the next blank line."""
    return _next_row(ends.get(end, ()), row) < min(_next_row(ends.get("", ()), row), row + _MAX_FORMULA)


def _next_row(rows: Sequence[int], row: int) -> float:
    """The first of the rows behind `row`; infinite if there is none."""
    at = bisect_right(rows, row)
    return rows[at] if at < len(rows) else math.inf


def _rows_of_items(lines: Sequence[str]) -> frozenset[int]:
    """The rows that begin a line of a poem, a notice of Grav or an example of Pandoc, in blocks that begin with one, or of the head of a mail.

    The lines of a poem begin with a bar and stay lines; a block with a row of dashes is a table.
    """
    found: set[int] = set()
    first = 0
    for row in range(len(lines) + 1):
        if row < len(lines) and lines[row].strip():
            continue
        block = range(first, row)
        first = row + 1
        if block and EXAMPLE.match(lines[block[0]]):
            found.update(each for each in block if EXAMPLE.match(lines[each]))
        elif (len(block) > 1 and _is_head(lines[block[0] : block[-1] + 1])) or (
            block and all(_NOTICE.match(lines[each]) and not _BOX.fullmatch(lines[each]) for each in block)
        ):
            found.update(block)
        elif (
            block
            and _LINE_OF_BLOCK.match(lines[block[0]])
            and not any(_DELIMITER_ROW.fullmatch(lines[each]) for each in block)
        ):
            found.update(each for each in block if lines[each].startswith("|"))
    return frozenset(found)


def _is_head(block: Sequence[str]) -> bool:
    """Whether the lines of a block are the head of a mail: each has a name, and a program reads one of them."""
    return all(map(_LINE_OF_HEAD.match, block)) and any(part_for_programs(line) is not None for line in block)


def _end_of_row(lines: Sequence[str], row: int) -> int:
    """Behind the end of a row of columns whose texts are indented as code is; 0 if it has none, or they are not."""
    is_indented = False
    for last in range(row + 1, min(row + _MAX_TABLE, len(lines))):
        if _END_OF_ROW.fullmatch(lines[last]):
            return last + 1 if is_indented else 0
        is_indented = is_indented or (_INDENTED.match(lines[last]) is not None and bool(lines[last].strip()))
    return 0


def _container_at(lines: Sequence[str], row: int, items: Collection[int]) -> _Container | None:
    line = lines[row]
    if _ROW.fullmatch(line) and _end_of_row(lines, row):
        return _Container(row, "", is_lazy=False)
    if match := _FOOTNOTE.match(line):
        return _Container(row, line[match.end() :], is_lazy=True)
    if _BOX.fullmatch(line):
        return _Container(row, "", is_lazy=False)
    if row in items and (match := EXAMPLE.match(line)):
        return _Container(row, line[match.end() :], is_lazy=True)
    if row in items and _LINE_OF_HEAD.match(line):
        part = part_for_programs(line)
        is_whole = part is not None and part.end == len(line.rstrip())
        return None if is_whole else _Container(row, line.strip(), is_lazy=False)
    if row in items:
        notice = _NOTICE.match(line)
        return _Container(row, line[notice.end() if notice else 1 :].strip(), is_lazy=False)
    is_behind_term = any(lines[before].strip() for before in range(max(0, row - 2), row))
    match = _DEFINITION.match(line)
    return _Container(row, line[match.end() :], is_lazy=True) if match and is_behind_term else None


def _read_rows(
    container: _Container,
    lines: Sequence[str],
    code_rows: Collection[int],
    items: Collection[int],
    myst: Collection[int],
) -> None:
    """Read the rows behind the first that belong to a container."""
    if _ROW.fullmatch(lines[container.row]):
        end = _end_of_row(lines, container.row)
        inside = lines[container.row + 1 : end]
        widths = [len(line) - len(line.lstrip()) for line in inside if line.strip() and ":::" not in line]
        least = min(widths, default=0)
        for row, line in enumerate(inside, container.row + 1):
            container.lines[row] = line.lstrip() if ":::" in line else line[least:]
        return
    blank: list[int] = []
    for row in range(container.row + 1, len(lines)):
        line = lines[row]
        if not line.strip():
            blank.append(row)
            continue
        indentation = _INDENTED.match(line)
        is_lazy = container.is_lazy and not blank and row not in code_rows
        begins_another = (
            row in myst or _KEPT.fullmatch(line) or _REFERENCE.fullmatch(line) or _container_at(lines, row, items)
        )
        if indentation is None and (not is_lazy or begins_another):
            return
        container.lines |= dict.fromkeys(blank, "")
        container.lines[row] = line[indentation.end() :] if indentation else line
        blank = []
