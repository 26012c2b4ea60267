"""The inline markup of Markdown with its places: markdown-it-py finds it, and wrapped rules note where it stands."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_cli.extensions.documents.guards.reading_limits import ReadingWatch
from transformer_cli.extensions.documents.markup.html_pages import is_inline_element
from transformer_cli.extensions.documents.markup.html_tokens import TokenKind, html_tokens
from transformer_cli.extensions.documents.segments import Role

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token


class InlineEvent(NamedTuple):
    """A part of an inline text that is not what it looks like: text[start:end]."""

    start: int
    end: int
    role: Role | None
    """None: it is text, or it ends the line."""
    name: str = ""
    """Of a range: begins and ends with the same name."""
    shown: str | None = None
    """What it is as text, such as the & of &amp;; None with the role None: the end of a line, which stays."""
    alt: tuple[int, int] | None = None
    """Of an image: where its text stands."""


# The mark of a footnote, and words of GitHub such as [!NOTE]; Markdown itself does not know them.
_MARKS = re.compile(r"\[\^[^\]\s]+\]:?|\[![A-Z]+\]|\A\[[ xX]\](?=\s)")


# Formulas and names of pictures such as :smile:, which Markdown itself does not know either; they are no text.
_EXTENSIONS = {
    "math": re.compile(
        r"\$\$[^$]+\$\$|\$(?=\S)(?:[^\s$]+|[^$\n]*[\\^_={}+<>][^$\n]*)(?<=\S)\$(?!\d)"
    ),
    "emoji": re.compile(r"(?<!\w):(?:[+-]1|[a-z][a-z0-9_]+):(?!\w)"),
}


@dataclass(slots=True)
class _Notes:
    """What the wrapped rules find in one text."""

    tokens: list["Token"]
    events: list[InlineEvent] = field(default_factory=list)


class MarkdownInline:
    """Finds the inline markup of texts, with one parser."""

    def __init__(self, watch: ReadingWatch) -> None:
        """A finder of markup.

        Args:
            watch: is shown each block and each place of an inline text at which markup could begin.
        """
        from markdown_it import MarkdownIt

        self.parser: MarkdownIt = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        # `events` reads the inline texts; the parser alone would read all of them a second time.
        self.parser.disable("inline")
        self.is_reading = True
        """Whether the watch counts; False while translations are written."""
        self._notes: _Notes | None = None
        # A text, and where its last ] stands.
        self._searched, self._last_bracket = "", -1
        ruler = self.parser.inline.ruler
        for name, pattern in _EXTENSIONS.items():
            ruler.before("escape", name, partial(_extension, pattern))
        rules: list[tuple[str, Callable[..., bool]]] = [
            (rule.name, rule.fn) for rule in ruler.__rules__ if rule.name != "text"
        ]
        for name, rule in rules:
            ruler.at(name, self._noting(name, rule))

        def shown_to_watch(*state_and_more: Any) -> bool:
            is_silent = state_and_more[-1]  # the parser looks ahead
            if is_silent or not self.is_reading:
                watch.check()
            else:
                watch.look()
            return False

        for each in (ruler, self.parser.block.ruler):
            each.before(each.__rules__[0].name, "watch", shown_to_watch)

    def events(self, text: str, env: dict[str, Any]) -> list[InlineEvent]:
        """The markup of an inline text, in order, without overlaps.

        Args:
            env: the link references of the document, as the parser has collected them.
        """
        notes = self._notes = _Notes([])
        self.parser.inline.parse(text, self.parser, env, notes.tokens)
        self._notes = None
        for token in notes.tokens:
            event = _range_of(token)
            if event is not None:
                notes.events.append(event)
        taken = [False] * (len(text) + 1)
        for event in notes.events:
            taken[event.start : event.end] = [True] * (event.end - event.start)
        for match in _MARKS.finditer(text):
            if not any(taken[match.start() : match.end()]):
                notes.events.append(InlineEvent(*match.span(), Role.POINT))
        return sorted(notes.events, key=lambda event: event[:2])

    def _noting(self, name: str, rule: Callable[..., bool]) -> Callable[..., bool]:
        """A rule that notes what it finds."""

        def noting(state: "StateInline", silent: bool) -> bool:
            if name in ("link", "image") and not self._may_be_closed(state):
                return False
            start, num_before = state.pos, len(state.tokens)
            pending = state.pending if name == "newline" else ""
            is_found = rule(state, silent)
            notes = self._notes
            pushed = state.tokens[num_before:]
            if is_found and not silent and pushed and notes is not None and state.tokens is notes.tokens:  # fmt: skip
                if name in ("emphasis", "strikethrough"):
                    _note_places(pushed, start, state.pos)
                elif name == "link":
                    end = state.md.helpers.parseLinkLabel(state, start, True)
                    notes.events.append(InlineEvent(start, start + 1, Role.OPEN, "link"))
                    notes.events.append(InlineEvent(end, state.pos, Role.CLOSE, "link"))
                else:
                    if pushed[-1].type == "hardbreak":
                        start -= len(pending) - len(pending.rstrip(" "))
                    notes.events.append(
                        _event(name, pushed[-1], state.src[start : state.pos], start)
                    )
            return is_found

        return noting

    def _may_be_closed(self, state: "StateInline") -> bool:
        """Whether a bracket that opens here can be closed; without this look, the parser searches all of the text."""
        if state.src is not self._searched:
            self._searched, self._last_bracket = state.src, state.src.rfind("]")
        return state.pos < self._last_bracket


def _extension(pattern: re.Pattern[str], state: "StateInline", silent: bool) -> bool:
    """A rule of the parser: what the pattern describes stays as it is."""
    match = pattern.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("code_inline", "", 0).content = match[0]
    state.pos = match.end()
    return True


def _note_places(tokens: list["Token"], start: int, end: int) -> None:
    """Note where each delimiter stands; later rules of the parser make ranges of some of them."""
    for token in reversed(tokens):
        end -= len(token.content)
        if end < start:
            return  # the text before the delimiters
        token.meta["start"] = end


def _range_of(token: "Token") -> InlineEvent | None:
    """The event of a delimiter that has become the beginning or the end of a range."""
    start = token.meta.get("start")
    if start is None or token.nesting == 0:
        return None
    length = len(token.markup)
    if token.type == "strong_open":
        start -= 1  # the parser makes the second of the two signs the tag
    role = Role.OPEN if token.nesting > 0 else Role.CLOSE
    return InlineEvent(start, start + length, role, token.type.split("_")[0])


def _event(name: str, token: "Token", raw: str, start: int) -> InlineEvent:
    """What a rule has found."""
    end = start + len(raw)
    if name in ("backticks", "autolink", *_EXTENSIONS):
        return InlineEvent(start, end, Role.WORD)
    if name == "image":
        alt = (start + 2, start + 2 + len(token.content))
        return InlineEvent(start, end, Role.POINT, alt=alt)
    if name == "html_inline":
        return _html_event(raw, start, end)
    if token.type == "text_special":
        return InlineEvent(start, end, None, shown=token.content)
    return InlineEvent(start, end, None, shown=None if token.type == "hardbreak" else " ")


def _html_event(raw: str, start: int, end: int) -> InlineEvent:
    token = next(html_tokens(raw))
    if token.kind in (TokenKind.START, TokenKind.END):
        if token.name == "br":
            return InlineEvent(start, end, None)
        if is_inline_element(token.name):
            role = Role.OPEN if token.kind is TokenKind.START else Role.CLOSE
            return InlineEvent(start, end, role, f"<{token.name}>")
    return InlineEvent(start, end, Role.POINT)
