"""Reads the text of a Markdown file as segments that are translated and put back in its place, also in the markup of extensions of Markdown."""

import logging
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from transformer_cli.extensions.documents.character_encoding import decoded
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions, ReadingWatch
from transformer_cli.extensions.documents.html import IMPLIED_END, slots_in_part
from transformer_cli.extensions.documents.markdown_blocks import (
    EXAMPLE,
    DividedLines,
    divided_lines,
    may_begin_extension,
)
from transformer_cli.extensions.documents.markdown_inline import (
    EXAMPLE_IN_LINES,
    FIELD,
    NAME_OF_BOX,
    InlineEvent,
    MarkdownInline,
    Title,
    title_at_end,
)
from transformer_cli.extensions.documents.myst import is_directive_with_text, with_colons
from transformer_cli.extensions.documents.page_templates import front_matter
from transformer_cli.extensions.documents.segments import (
    InlinePart,
    LineNumbers,
    Markup,
    Piece,
    Role,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    WithoutWords,
    merged,
    moved_slot,
    nested,
    plain_text,
    rendered,
)
from transformer_cli.extensions.documents.translator import Extent
from transformer_cli.text.normalization import has_letter

if TYPE_CHECKING:
    from markdown_it.token import Token


logger = logging.getLogger(__name__)

# By the names of ranges: the signs of emphasis without words between them would be text.
_WITHOUT_WORDS = {
    **dict.fromkeys(("em", "strong", "s", "marked"), WithoutWords.LEFT_OUT),
    **dict.fromkeys(("link", "label"), WithoutWords.AT_NEAREST),
}
# The names of ranges that end a word where another range follows, as the changes {--red--}{++blue++}, and of those that end it
# before a word, too: in ~~red~~blue, words are taken out.
_TAKEN_OUT = frozenset(["s", "taken_out", "<del>", "<s>", "<strike>"])
# The end of a link and another word directly behind it: [Anna's](url)*Ghost*
_LINK_AND_WORD = re.compile(r"[a-z'\u2019](?:\]\([^\s()]*\)|\]\[[^\[\]]*\])[*_]{1,3}[A-Z][a-z]")
_CHANGES = _TAKEN_OUT | {"edited", "marked", "words", "<ins>"}
# Marks whose texts stay, by their names.
_KEPT_MARKS = {
    "critic": "a comment or substitution of CriticMarkup",
    "note": "a footnote of several lines inside its sentence",
}
# The first line of a box of GitHub, Obsidian or DocFX, with its title; it stays a line.
_BOX_LINE = re.compile(rf"{NAME_OF_BOX}[^\n]*(?=\n)")

_LINE_OF_FIELD = re.compile(rf"^{FIELD}[^\n]*", re.MULTILINE)
# A definition of a link whose target has a part of a template, in which Markdown allows no spaces: [dog]: {{ site.url }}/dog
_TEMPLATE_IN_DEFINITION = re.compile(
    r"^( {0,3}\[[^\[\]\n]+\]:[ \t]+)([^\s{}]*(?:(?:\{\{[^{}\n]*\}\}|\{%[^{}%\n]*%\})[^\s{}]*)+)(?=[ \t]*$)",
    re.MULTILINE,
)

# Settings without a line around them: of MultiMarkdown and MkDocs (title: The car), and the title block of Pandoc (% The car).
_SETTINGS = re.compile(
    r"\A(?:(?=(?:.*\n){0,20}?(?i:title|slug|layout|template):)(?:[A-Za-z][\w-]{0,40}:(?:[ \t].*)?\n(?:[ \t]+\S.*\n)*)+"
    r"|%[ \t].*\n(?:[ \t]+\S.*\n|%.*\n)*)(?=[ \t]*(?:\n|\Z))"
)
# Of a slide of Slidev, in a file that has settings at its beginning, too. CommonMark would read a title below a line.
_SETTINGS_OF_SLIDE = re.compile(
    r"(?<=\n\n)---[ \t]*\n[a-z][\w.-]{0,40}:(?:[ \t].*)?\n"
    r"(?:(?:[A-Za-z][\w.-]{0,40}:(?:[ \t].*)?|[ \t]+\S.*|-[ \t].*|\#.*|[ \t]*)\n){0,60}?---[ \t]*(?=\n|\Z)"
)
# Also seo_title, oneLineDescription and imageAlt; the value of hide_title is none.
_NAMES_OF_TEXTS = (
    "title|subtitle|description|summary|excerpt|abstract|tagline|sidebar_label|linktitle"
    r"|[a-z][\w-]{0,40}(?:[_-]|(?-i:(?<=[a-z])(?=[TDSCA])))(?:title|description|summary|caption|alt)"
)
_NO_TEXT_OF_SETTING = r"(?!(?:true|false|null|yes|no|on|off|none|auto)[ \t]*(?:#.*)?\r?$)"


def _text_of_settings(comment: str) -> re.Pattern[str]:
    """Among the settings, what people read.

    Args:
        comment: the pattern of what follows a value and is no part of it.
    """
    plain = rf"[^\s\"'#&*!|>%@`\[{{:,?-]\S*+(?>(?:[ \t]++(?!{comment})\S++)*)"
    return re.compile(
        rf"^(?:(?:{_NAMES_OF_TEXTS})(?P<sign>[ \t]*+[:=][ \t]*+){_NO_TEXT_OF_SETTING}|\A%[ \t]++)"
        rf"""(?:(?:"(?P<double>(?>(?:[^"\\\r\n]++|\\["\\])*))"|'(?P<single>(?>(?:[^'\\\r\n]++|'')*))'|(?P<plain>{plain}))(?:[ \t]++{comment}|[ \t]*+)(?=\r?$)"""
        r"(?!\r?\n[ \t]+\S)|(?P<block>[^\s{\[#].*+)$)",
        re.MULTILINE | re.IGNORECASE,
    )


_TEXT_OF_SETTINGS = _text_of_settings(r"#[^\r\n]*+")
# Outside of YAML and TOML, # begins no comment.
_TEXT_WITHOUT_COMMENTS = _text_of_settings("(?!)")
# A setting of YAML whose value stands in the lines below it.
_VALUE_BELOW = re.compile(rf"^(?:{_NAMES_OF_TEXTS}):[ \t]*(?P<block>)(?=\r?$)", re.MULTILINE | re.IGNORECASE)
# A value of YAML of several lines, each of which is a space in it: all indented, none blank; and the mark before such lines.
_INDENTED_LINES = re.compile(r"(?:\r?\n[ \t]+\S.*)+(?=\r?\n\S|\r?\n?\Z)")
# Text in the lines below a setting, perhaps behind blank ones.
_LINES_BELOW = re.compile(r"(?>(?:\r?\n[ \t]*+(?=\r?\n))*)\r?\n[ \t]+(?:[^\r\n]*[^\W\d_])")
_INDENTATION = re.compile(r"\r?\n[ \t]+")
_FOLDED = re.compile(r">[-+]?(?:[ \t]+#.*)?")
# A text of TOML of several lines; none of them is a setting.
_LINES_OF_TOML = re.compile(r"\'\'\'.*?(?:\'\'\'|\Z)|\"\"\".*?(?:\"\"\"|\Z)", re.DOTALL)
_MOST_NAMED = 5
_CODE = frozenset(["fence", "code_block"])
_HTML = frozenset(["html_block"])
_MAX_DEPTH = 4  # of footnotes, definitions and boxes
_SPECIAL = re.compile(r"([\\`*_\[\]<>&~|])")
# In the title of a link: the beginning of a character reference or of an escape.
_READ_AS_ESCAPE = re.compile(r"&(?=#?\w+;)|\\(?=[!-/:-@\[-`{-~]|\Z)")
# The end of a line inside of markup, with the mark of a quotation before the next one.
_LINE_END = re.compile(r"[ \t]*+(?:\r\n?|\n)[ \t]*+(?>(?:>[ \t]*+)*)")
_MARK_BEHIND_LINE_END = re.compile(r"[\r\n][ \t]*+>")
# What would begin another block than a paragraph.
_BLOCK_MARK = re.compile(r"#{1,6}(?=\s|\Z)|>|[-+*](?=\s)|\d{1,9}[.)](?=\s)|`(?=``[^`]*\Z)|~(?=~~)")


def read_markdown(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A Markdown text: CommonMark with tables and strikethrough.

    Code, link targets, link references and settings stay, but not the titles and descriptions among these.
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
        # The rows of what stays, and what it is.
        self._kept: list[tuple[int, str]] = []
        parsed = "".join(text[start:end] + "\n" for start, end in self._lines).replace("\0", "\ufffd")
        front = front_matter(parsed) or _SETTINGS.match(parsed)
        if front is not None:
            self._read_settings(0, front[0].count("\n"))
            parsed = _without_signs(front) + parsed[front.end() :]
            if text[:1] == "-":
                parsed = _SETTINGS_OF_SLIDE.sub(self._without_settings_of_slide, parsed)
        parsed = _TEMPLATE_IN_DEFINITION.sub(lambda match: match[1] + "x" * len(match[2]), parsed)
        self._cells: dict[int, Iterator[list[Extent]]] = {}
        self._read_lines(parsed.split("\n"), depth=0)
        self._read_titles_of_definitions()
        self._inline.is_reading = False
        self._name_kept()

    def _read_lines(self, lines: list[str], *, depth: int) -> None:
        """Read the rows of the file that are not blank in `lines`."""
        is_plain = not any(map(may_begin_extension, lines))
        divided = DividedLines(lines) if is_plain else self._divided(lines)
        tokens = self._inline.parser.parse("\n".join(divided.plain), self._env)
        for index, token in enumerate(tokens):
            if token.type == "inline" and token.content and token.map:
                block = tokens[index - 1]
                is_cell = block.type in ("td_open", "th_open")
                self._read(token, is_cell=is_cell, is_title=block.markup.startswith("#"))
            elif token.type == "html_block" and token.map:
                self._read_html_block(token, is_whole=token.level == depth == 0)
            elif token.type == "fence" and token.map and is_directive_with_text(token.info.strip()):
                self._kept.append(
                    (token.map[0], "a directive of MyST that is not closed, or stands inside a list or quotation")
                )
        for row, before_end, title in divided.titles:
            start = self._lines[row][1] - before_end
            places = [(place, place + 1) for place in range(start, start + len(title))]
            self._read_inline(title, places, is_title=True)
        for row in divided.tables:
            self._kept.append((row, "a table of Pandoc"))
        for inner in divided.inner if depth < _MAX_DEPTH else ():
            self._read_lines(inner, depth=depth + 1)

    def _read_html_block(self, token: "Token", *, is_whole: bool) -> None:
        """Read a block of HTML, or name it where other marks stand before its lines."""
        assert token.map is not None
        first, last = token.map
        if is_whole:
            self._read_html(self._lines[first][0], self._lines[min(last, len(self._lines)) - 1][1])
        elif slots_in_part(token.content, ReadingOptions(watch=self._watch)):
            self._kept.append((first, "a block of HTML inside a list, quotation, note or box"))

    def _read_html(self, start: int, end: int) -> None:
        """Read a part of the file that is HTML."""
        for slot in slots_in_part(self._text[start:end], ReadingOptions(watch=self._watch)):
            place = f"line {self._numbers.number_at(start + slot.start)}"
            self.slots.append(moved_slot(slot, start, place))

    def _without_settings_of_slide(self, match: re.Match[str]) -> str:
        first = match.string.count("\n", 0, match.start())
        self._read_settings(first, first + match[0].count("\n"))
        return _without_signs(match)

    def _read_settings(self, first: int, last: int) -> None:
        """Read the titles and descriptions among the settings in the rows from `first` to the one before `last`."""
        has_marks = self._text[:1] in ("-", "+")
        start, end = self._lines[first][0], self._lines[min(last, len(self._lines)) - 1][1]
        lines_of_toml = _LINES_OF_TOML.finditer(self._text, start, end) if self._text[:1] == "+" else ()
        inside = [each.span() for each in lines_of_toml]
        if self._text[:1] == "-":
            self._read_values_below(start, end)
        pattern = _TEXT_OF_SETTINGS if has_marks else _TEXT_WITHOUT_COMMENTS
        for match in pattern.finditer(self._text, start, end):
            at = bisect_right(inside, (match.start(), end)) - 1
            if at >= 0 and match.start() < inside[at][1]:
                continue
            if match["block"] and self._text[:1] == "-" and self._read_lines_of_setting(match, end):
                continue
            if match["block"] or (match["single"] and "=" in match["sign"]):
                self._keep_setting(match.start())
                continue
            kind = next(kind for kind in ("double", "single", "plain") if match[kind] is not None)
            text = match[kind].replace("''", "'") if kind == "single" else match[kind]
            text = re.sub(r'\\(["\\])', r"\1", text) if kind == "double" else text
            if has_letter(text):
                segment = Segment.plain(text, "", keeps_spaces=False)
                quote = {"double": '"', "single": "'", "plain": "" if has_marks else None}[kind]
                self._add(*match.span(kind), segment, partial(_as_setting, quote))

    def _read_values_below(self, start: int, end: int) -> None:
        for match in _VALUE_BELOW.finditer(self._text, start, end):
            if not self._read_lines_of_setting(match, end) and _LINES_BELOW.match(self._text, match.end(), end):
                self._keep_setting(match.start())

    def _keep_setting(self, start: int) -> None:
        row = bisect_right(self._lines, (start, len(self._text))) - 1
        self._kept.append((row, "a text among the settings that has several lines or odd quotation marks"))

    def _read_lines_of_setting(self, match: re.Match[str], end: int) -> bool:
        """Read a value of YAML that goes on in indented lines; False if it cannot be read as one text."""
        lines = _INDENTED_LINES.match(self._text, match.end(), end)
        folded = _FOLDED.fullmatch(match["block"].rstrip())
        if lines is None:
            return False
        stop = match.end() + len(lines[0].rstrip())
        if folded is not None:
            start = match.end() + len(lines[0]) - len(lines[0].lstrip())
            text, render = self._text[start:stop], partial(_as_setting, None)
        else:
            first = _INDENTATION.match(self._text, match.start("block"))
            start = first.end() if first else match.start("block")
            text, render = self._text[start:stop], partial(_as_setting, "")
            if _NOT_PLAIN.search(" ".join(text.split())):
                return False
        if has_letter(text):
            self._add(start, stop, Segment.plain(" ".join(text.split()), "", keeps_spaces=False), render)
        return True

    def _name_kept(self) -> None:
        """Name what stays and has text."""
        for row, what in sorted(self._kept)[:_MOST_NAMED]:
            logger.warning("line %d: %s is not translated", row + 1, what)
        if len(self._kept) > _MOST_NAMED:
            logger.warning("and %d more parts that are not translated", len(self._kept) - _MOST_NAMED)

    def _divided(self, lines: list[str]) -> DividedLines:
        """Take the extensions out of a text; a directive in backticks can stand inside another one."""
        for _ in range(_MAX_DEPTH):
            tokens = self._inline.parser.parse("\n".join(lines), {})
            fences = [
                (token.map[0], token.map[1])
                for token in tokens
                if token.type == "fence" and token.level == 0 and token.map
            ]
            before, lines = lines, with_colons(lines, fences)
            if lines == before:
                break
        code, html = (
            {row for token in tokens if token.type in types and token.map for row in range(*token.map)}
            for types in (_CODE, _HTML)
        )
        return divided_lines(lines, code, html)

    def _read(self, token: "Token", *, is_cell: bool, is_title: bool) -> None:
        """Read the text of a block; that of a title stands behind #, so that its beginning begins no other block."""
        assert token.map is not None
        row = token.map[0]
        places = self._places_in_row(row, token.content) if is_cell else self._places(row, token.content)
        if places is None:
            logger.warning("line %d: this text stays as it is, because its place was not found", row + 1)
            return
        self._read_inline(token.content, places, is_cell=is_cell, is_inner=is_title)

    def _read_inline(
        self,
        content: str,
        places: Sequence[Extent],
        *,
        is_cell: bool = False,
        is_title: bool = False,
        is_inner: bool = False,
    ) -> None:
        """Read a text, whose characters stand at these places of the file.

        Args:
            is_cell: whether it is a cell of a table.
            is_title: whether it is a title in quotation marks.
            is_inner: whether it stands behind other signs of its line, as that of an image or of a title.
        """
        writer = _Writer(self._inline, self._env, is_cell, is_title)
        for number, parts in enumerate(self._runs(content, places, is_cell=is_cell)):
            pieces = tuple(merged([part.piece for part in nested(parts)]))
            if not has_letter(plain_text(pieces)):
                continue
            is_first = number == 0 and parts[0].start == places[0][0] and not (is_cell or is_title or is_inner)
            render = writer.at_start if is_first else writer.written
            self._add(parts[0].start, parts[-1].end, Segment(pieces, ""), render)

    def _add(self, start: int, end: int, segment: Segment, render: Callable[[TranslatedSegment], str]) -> None:
        place = f"line {self._numbers.number_at(start)}"
        placed = self._watch.counted(replace(segment, place=place))
        self.slots.append(Slot(start, end, placed, render))

    def _runs(self, content: str, places: Sequence[Extent], *, is_cell: bool) -> list[list[InlinePart]]:
        """The parts of an inline text with their places in the file, divided at the ends of lines that stay."""
        runs: list[list[InlinePart]] = [[]]
        opened: list[int] = []
        ends_of_lines = _ends_of_lines(content)
        events = list(_gapless(content, self._inline.events(content, self._env)))
        ends_of_words = _ends_of_words(content, events)
        for event in events:
            start, end = places[event.start][0], places[event.end - 1][1]
            if event.role is not None:
                is_implied = event.start == event.end  # of a link, where another one begins
                raw = IMPLIED_END if is_implied else self._text[start:end]
                if _LINE_END.search(raw) and not _has_texts(event, raw):
                    # The next line may begin with the mark of a quotation or box, and the translation is one line.
                    raw = _one_line(content[event.start : event.end])
                if event.name == "link" and event.role is Role.OPEN:
                    opened.append(event.end)
                elif event.name == "link":
                    # The text of a link can be its reference, too, which is not translated.
                    label = content[opened.pop() : event.start]
                    raw = f"][{_one_line(label)}]" if raw.strip() in ("]", "][]") and has_letter(label) else raw
                if event.role is Role.OPEN and _is_between_links(content, event, runs[-1]):
                    runs.append([])
                without_words = _WITHOUT_WORDS.get(event.name, WithoutWords.EMPTY)
                number = -event.start if is_implied else event.start
                piece: Piece = Markup(event.role, number, raw, start, without_words=without_words)
                runs[-1].append(InlinePart(piece, start, end, event.name))
                if event.end in ends_of_words:
                    runs[-1].append(InlinePart(" ", end, end))
                if event.name in _KEPT_MARKS:
                    row = bisect_right(self._lines, (start, len(self._text))) - 1
                    self._kept.append((row, _KEPT_MARKS[event.name]))
                self._read_inside(event, content, places, is_cell=is_cell)
            elif event.shown is None or event.start in ends_of_lines:
                runs.append([])
            else:
                runs[-1].append(InlinePart(event.shown, start, end))
        return runs

    def _read_inside(self, event: InlineEvent, content: str, places: Sequence[Extent], *, is_cell: bool) -> None:
        """Read the text of an image or of a note in its sentence, titles, and the attributes of a tag of HTML."""
        start, end = places[event.start][0], places[event.end - 1][1]
        for title in event.titles:
            self._read_title(title, (places[title.start][0], places[title.end - 1][1]), is_cell=is_cell)
        if event.alt is not None and event.alt[0] < event.alt[1]:
            inner = slice(*event.alt)
            self._read_inline(content[inner], places[inner], is_title=event.name == "docfx", is_inner=True)
        elif _is_whole_tag(self._text[start:end]):
            self._read_html(start, end)

    def _read_title(self, title: Title, place: Extent, *, is_cell: bool = False) -> None:
        if has_letter(title.shown):
            segment = Segment.plain(title.shown, "", keeps_spaces=False)
            self._add(*place, segment, partial(_as_title, title.mark, "|" if is_cell else ""))

    def _read_titles_of_definitions(self) -> None:
        """Read the titles of definitions of links, such as [dog]: http://example.org "The dog"."""
        for each in chain(self._env.get("references", {}).values(), self._env.get("duplicate_refs", ())):
            first, last = each["map"]
            start, end = self._lines[first][0], self._lines[last - 1][1]
            for title in title_at_end(self._text[start:end], each["title"], start):
                self._read_title(title, (title.start, title.end))

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
            places += [(place, place + 1) for place in range(start + found, start + found + len(visible))]
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


def _ends_of_lines(content: str) -> set[int]:
    """The line feeds that stay: behind the first line of a box, and before an example of Pandoc."""
    box_line = _BOX_LINE.match(content)
    examples = EXAMPLE_IN_LINES.finditer(content) if EXAMPLE.match(content) else ()
    kept = {match.start() - 1 for match in examples} | ({box_line.end()} if box_line else set())
    for match in _LINE_OF_FIELD.finditer(content):
        kept |= {match.start() - 1, match.end()}
    return kept


def _ends_of_words(content: str, events: Sequence[InlineEvent]) -> set[int]:
    """Where a word ends although no white space follows: behind a change, before another range or, if it is taken out, a word."""
    ends = set()
    change: InlineEvent | None = None
    for event, following in pairwise(events):
        is_mark = event.name == "critic" or (event.role is Role.POINT and content[event.start] == "{")
        if event.role is Role.CLOSE:
            change = event if event.name in _CHANGES or event.name == "link" else None
        elif event.name == "critic":
            change = change or event
        elif not is_mark:
            change = None
        if change is None:
            continue
        is_range = following.role is Role.OPEN
        if change.name == "link":  # those of a menu are texts of their own
            is_range = following.name in _CHANGES or (
                is_range and (is_mark or _LINK_AND_WORD.match(content, change.start - 1) is not None)
            )
        is_word = following.role is None and content[following.start].isalnum()
        if is_range or (is_word and (change.name in _TAKEN_OUT or event.name == "critic")):
            ends.add(event.end)
    return ends


def _is_between_links(content: str, opening: InlineEvent, run: Sequence[InlinePart]) -> bool:
    """Whether a link begins directly behind another one, without white space: they are two texts, as in a menu."""
    last = run[-1] if run else None
    is_link = last is not None and last.name == opening.name and opening.name in ("link", "<a>")
    texts = (part.piece for part in run[-3:][::-1] if isinstance(part.piece, str))
    return is_link and next(texts, "")[-1:].isalnum() and content[opening.end : opening.end + 1].isalnum()


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes translations as Markdown, with as few escapes as possible."""

    inline: MarkdownInline
    env: dict[str, Any]
    is_cell: bool
    is_title: bool = False

    def written(self, found: TranslatedSegment) -> str:
        """The translation; special signs are escaped only if they would be read as markup."""
        pieces = [
            piece if isinstance(piece, str) else piece._replace(raw=_LINE_END.sub(" ", piece.raw))
            for piece in found.pieces
        ]
        text = rendered(pieces, str)
        if text.endswith("\\") or not self._is_read_as(text, pieces):
            text = rendered(pieces, _escaped)
            if not self._is_read_as(text, pieces):
                with_more = rendered(pieces, _with_more_escapes)
                text = with_more if self._is_read_as(with_more, pieces) else text
        if self.is_title:
            return re.sub(r'"', "'", text)
        return re.sub(r"(?<!\\)\|", r"\\|", text) if self.is_cell else text

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
        wanted = [piece if isinstance(piece, str) else Markup(Role.POINT, 0, piece.raw) for piece in pieces]
        return merged(read) == merged(wanted)


def _has_texts(event: InlineEvent, raw: str) -> bool:
    """Whether texts of their own stand inside of markup."""
    return event.alt is not None or bool(event.titles) or _is_whole_tag(raw)


def _is_whole_tag(raw: str) -> bool:
    """Whether a part of the file is a tag of HTML, without marks of a quotation and escapes of a cell in it."""
    return raw.startswith("<") and _MARK_BEHIND_LINE_END.search(raw) is None and "\\" not in raw


def _as_title(mark: str, end_of_cell: str, found: TranslatedSegment) -> str:
    """The title of a link, which ends with the quotation mark or bracket that it begins with."""
    text = _READ_AS_ESCAPE.sub(lambda match: "&amp;" if match[0] == "&" else "\\\\", found.text)
    marks = ("()" if mark == "(" else mark) + end_of_cell
    return re.sub(f"[{marks}]", r"\\\g<0>", text)


def _as_setting(quote: str | None, found: TranslatedSegment) -> str:
    """The value of a setting in its quotation marks.

    Args:
        quote: the mark; empty: none, so the value gets some if it would be read as something else; None: it never has some.
    """
    text = found.text
    if quote == "'":
        return text.replace("'", "''")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if quote == "" and _NOT_PLAIN.search(text):
        return f'"{escaped}"'
    return escaped if quote else text


# What ends a value of YAML without quotation marks, or begins another one than a text.
_NOT_PLAIN = re.compile(
    r"\A[\s\"'#&*!|>%@`\[\]{},:?-]|:(?:\s|\Z)|\s#|\A(?:true|false|yes|no|on|off|null|[\d.]+)\Z",
    re.IGNORECASE,
)


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


def _without_signs(match: re.Match[str]) -> str:
    """The line ends of what a pattern has found."""
    return re.sub(r"[^\n]", "", match[0])


def _one_line(text: str) -> str:
    return re.sub(r"[ \t]*\n[ \t]*", " ", text)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _with_more_escapes(text: str) -> str:
    """The same, also where dollar signs would be those of a formula, or a ! before a link would make an image of it."""
    return re.sub(r"\$|!\Z", r"\\\g<0>", _escaped(text))


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
