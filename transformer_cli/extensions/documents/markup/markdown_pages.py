"""Markdown: paragraphs, titles, list items, cells of tables and texts of images are translated, and nothing else."""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from transformer_cli.extensions.documents.character_encoding import decoded
from transformer_cli.extensions.documents.guards.reading_limits import ReadingWatch
from transformer_cli.extensions.documents.line_numbers import LineNumbers
from transformer_cli.extensions.documents.markup.markdown_blocks import (
    DividedLines,
    divided_lines,
    may_begin_extension,
)
from transformer_cli.extensions.documents.markup.markdown_inline import InlineEvent, MarkdownInline
from transformer_cli.extensions.documents.markup.nested_ranges import InlinePart, nested_runs
from transformer_cli.extensions.documents.reading_options import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import (
    Markup,
    Piece,
    Role,
    Segment,
    TranslatedSegment,
    has_letter,
    merged,
    plain_text,
)
from transformer_cli.extensions.documents.spliced import Slot, SplicedDocument, rendered
from transformer_cli.extensions.documents.text_translator import Extent

if TYPE_CHECKING:
    from markdown_it.token import Token

logger = logging.getLogger(__name__)

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(?:.*\n)*?\1[ \t]*(?:\n|\Z)")
_CODE = frozenset(["fence", "code_block", "html_block"])
_MAX_DEPTH = 4  # of footnotes, definitions and boxes
_SPECIAL = re.compile(r"([\\`*_\[\]<>&~|])")
# What would begin another block than a paragraph.
_BLOCK_MARK = re.compile(r"#{1,6}(?=\s|\Z)|>|[-+*](?=\s)|\d{1,9}[.)](?=\s)|`(?=``)|~(?=~~)")


def read_markdown(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A Markdown text: CommonMark with tables and strikethrough.

    Front matter, code, link targets, link references and blocks of HTML stay.
    """
    content = decoded(data, given=options.encoding)
    reader = _Reader(content.text, options.watch)
    return SplicedDocument(content, tuple(sorted(reader.slots, key=lambda slot: slot.start)))


class _Reader:
    """Reads a Markdown text once."""

    def __init__(self, text: str, watch: ReadingWatch) -> None:
        self.slots: list[Slot] = []
        self._text = text
        self._watch = watch
        # The parser sees "\n" as the end of each line and no NUL; places in a line are the same.
        self._lines = _lines(text)
        self._numbers = LineNumbers(text)
        self._inline = MarkdownInline(watch)
        self._env: dict[str, Any] = {}
        parsed = "".join(text[start:end] + "\n" for start, end in self._lines).replace(
            "\0", "\ufffd"
        )
        front = _FRONT_MATTER.match(parsed)
        if front is not None:
            parsed = re.sub(r"[^\n]", "", front[0]) + parsed[front.end() :]
        self._cells: dict[int, Iterator[list[Extent]]] = {}
        self._read_lines(parsed.split("\n"), depth=0)
        self._inline.is_reading = False

    def _read_lines(self, lines: list[str], *, depth: int) -> None:
        """Read the rows of the file that are not blank in `lines`."""
        is_plain = not any(map(may_begin_extension, lines))
        divided = DividedLines(lines) if is_plain else divided_lines(lines, self._code_rows(lines))
        tokens = self._inline.parser.parse("\n".join(divided.plain), self._env)
        for index, token in enumerate(tokens):
            if token.type == "inline" and token.content and token.map:
                self._read(token, is_cell=tokens[index - 1].type in ("td_open", "th_open"))
        for inner in divided.inner if depth < _MAX_DEPTH else ():
            self._read_lines(inner, depth=depth + 1)

    def _code_rows(self, lines: list[str]) -> set[int]:
        tokens = self._inline.parser.parse("\n".join(lines), {})
        maps = [token.map for token in tokens if token.type in _CODE and token.map]
        return {row for first, last in maps for row in range(first, last)}

    def _read(self, token: "Token", *, is_cell: bool) -> None:
        assert token.map is not None
        row = token.map[0]
        places = self._places_in_row(row, token.content) if is_cell else self._places(row, token.content)  # fmt: skip
        if places is None:
            logger.warning(
                "line %d: this text stays as it is, because its place was not found", row + 1
            )
            return
        writer = _Writer(self._inline, self._env, is_cell)
        for number, parts in enumerate(self._runs(token.content, places)):
            for run in nested_runs(parts):
                pieces = tuple(merged([part.piece for part in run]))
                if not has_letter(plain_text(pieces)):
                    continue
                is_first = number == 0 and run[0].start == places[0][0] and not is_cell
                render = writer.at_start if is_first else writer.written
                self._add(run[0].start, run[-1].end, Segment(pieces, ""), render)

    def _add(
        self, start: int, end: int, segment: Segment, render: Callable[[TranslatedSegment], str]
    ) -> None:
        place = f"line {self._numbers.number_at(start)}"
        placed = self._watch.counted(replace(segment, place=place))
        self.slots.append(Slot(start, end, placed, render))

    def _runs(self, content: str, places: Sequence[Extent]) -> list[list[InlinePart]]:
        """The parts of an inline text with their places in the file, divided at the ends of lines that stay."""
        runs: list[list[InlinePart]] = [[]]
        opened: list[int] = []
        for event in _gapless(content, self._inline.events(content, self._env)):
            start, end = places[event.start][0], places[event.end - 1][1]
            if event.role is not None:
                raw = self._text[start:end]
                if event.name == "link" and event.role is Role.OPEN:
                    opened.append(event.end)
                elif event.name == "link":
                    # The text of a link can be its reference, too, which is not translated.
                    label = content[opened.pop() : event.start]
                    raw = f"][{label}]" if raw in ("]", "][]") else raw
                piece: Piece = Markup(event.role, event.start, raw, start)
                runs[-1].append(InlinePart(piece, start, end, event.name))
                if event.alt is not None and event.alt[0] < event.alt[1]:
                    self._add_alt(content[slice(*event.alt)], places[slice(*event.alt)])
            elif event.shown is None:
                runs.append([])
            else:
                runs[-1].append(InlinePart(event.shown, start, end))
        return runs

    def _add_alt(self, text: str, places: Sequence[Extent]) -> None:
        """The text of an image is a segment of its own, unless it has markup."""
        if has_letter(text) and not _SPECIAL.search(text):
            segment = Segment.plain(text, "", keeps_spaces=False)
            self._add(places[0][0], places[-1][1], segment, lambda found: _escaped(found.text))

    def _places(self, row: int, content: str) -> list[Extent] | None:
        """The place in the file of each character of a block's text; None if a line of it is not found."""
        places: list[Extent] = []
        for number, line in enumerate(content.split("\n"), row):
            if number >= len(self._lines):
                return None
            start, end = self._lines[number]
            given = self._text[start:end].replace("\0", "\ufffd")
            # White space that begins a line may be a part of a tab.
            visible = line.lstrip()
            found = given.rfind(visible)
            if found < 0 or given[found + len(visible) :].strip(" \t#"):
                return None
            if number > row:
                places.append((start, start))  # the line feed
            places += [(start + found, start + found)] * (len(line) - len(visible))
            places += [(place, place + 1) for place in range(start + found, start + found + len(visible))]  # fmt: skip
        return places

    def _places_in_row(self, row: int, content: str) -> list[Extent] | None:
        """The same for a cell of a table; the cells of a row are asked for in order."""
        cells = self._cells.setdefault(row, _cells(self._text, *self._lines[row]))
        for cell in cells:
            shown = "".join("|" if end - start == 2 else self._text[start] for start, end in cell)
            stripped = shown.replace("\0", "\ufffd").rstrip()
            if stripped.endswith(content):
                return cell[len(stripped) - len(content) : len(stripped)]
        return None


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes translations as Markdown, with as few escapes as possible."""

    inline: MarkdownInline
    env: dict[str, Any]
    is_cell: bool

    def written(self, found: TranslatedSegment) -> str:
        """The translation; special signs are escaped only if they would be read as markup."""
        text = rendered(found.pieces, str)
        if text.endswith("\\") or not self._is_read_as(text, found.pieces):
            text = rendered(found.pieces, _escaped)
        return text.replace("|", "\\|") if self.is_cell else text

    def at_start(self, found: TranslatedSegment) -> str:
        """The same for the beginning of a block, where a sign such as # would make a title."""
        text = self.written(found)
        mark = _BLOCK_MARK.match(text)
        return text if mark is None else text[: mark.end() - 1] + "\\" + text[mark.end() - 1 :]

    def _is_read_as(self, text: str, pieces: Sequence[Piece]) -> bool:
        read: list[Piece] = []
        for event in _gapless(text, self.inline.events(text, self.env)):
            raw = text[event.start : event.end]
            is_text = event.role is None and event.shown is not None
            read.append(str(event.shown) if is_text else Markup(Role.POINT, 0, raw))
        wanted = [
            piece if isinstance(piece, str) else Markup(Role.POINT, 0, piece.raw)
            for piece in pieces
        ]
        return merged(read) == merged(wanted)


def _gapless(text: str, events: Sequence[InlineEvent]) -> Iterator[InlineEvent]:
    """The events, with the text between them."""
    place = 0
    for event in events:
        if event.start < place:
            continue
        if event.start > place:
            yield InlineEvent(place, event.start, None, shown=text[place : event.start])
        yield event
        place = event.end
    if place < len(text):
        yield InlineEvent(place, len(text), None, shown=text[place:])


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _lines(text: str) -> list[Extent]:
    """Where each line begins and ends, without its line end."""
    lines, start = [], 0
    for match in re.finditer(r"\r\n?|\n", text):
        lines.append((start, match.start()))
        start = match.end()
    return [*lines, (start, len(text))]


def _cells(text: str, start: int, end: int) -> Iterator[list[Extent]]:
    """The places of the characters between the bars of a line; an escaped bar is one character."""
    cell: list[Extent] = []
    for place in range(start, end):
        if text[place] != "|":
            cell.append((place, place + 1))
        elif place > start and text[place - 1] == "\\":
            cell[-1] = (place - 1, place + 1)
        else:
            yield cell
            cell = []
    yield cell
