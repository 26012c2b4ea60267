"""Finds the inline markup of Markdown: that of CommonMark by its parser, and that of extensions such as notes, formulas and changes."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_cli.extensions.documents.formats import ReadingWatch
from transformer_cli.extensions.documents.html import (
    BLOCKS,
    CODE,
    TokenKind,
    html_tokens,
    is_inline_element,
    is_kept_tag,
)
from transformer_cli.extensions.documents.markdown_blocks import (
    EXAMPLE,
    NOTE,
)
from transformer_cli.extensions.documents.page_templates import (
    ENVIRONMENT,
    FORMULA,
    TEMPLATE,
    is_comment_with_statement,
)
from transformer_cli.extensions.documents.segments import Role

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token


class Title(NamedTuple):
    """The title of a link or image, or a text among attributes: text[start:end], without its quotation marks."""

    start: int
    end: int
    shown: str
    """Without escapes, on one line."""
    mark: str
    """The quotation mark or bracket before it."""


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
    titles: tuple[Title, ...] = ()
    """Of a link, an image or attributes: what is shown over it."""


NAME_OF_BOX = r"\[![A-Za-z]+(?:[ \t]++(?:[\w-]++=|https?:)[^\[\]\n]*+)?\]"
"""The pattern of [!NOTE] of GitHub, and of [!div class="checklist"] and [!VIDEO https://example.org] of DocFX."""
FIELD = r"(?:^|(?<=[\[(]))[A-Za-z][\w.-]{0,40}::(?=[ \t])"
"""The pattern of the name of a field of Obsidian or Logseq: status:: done."""
# The mark of a footnote, and the name of a box; Markdown itself does not know them.
# Also the number of an example of Pandoc, a picture and the name of a block of Obsidian (^a1b2c3), and attributes behind what they belong to.
_MARKS = re.compile(
    rf"{NOTE}:?|{NAME_OF_BOX}[-+]?|\A\[[ xX]\](?=\s)|\A\(@[\w-]*\)(?=\s)|\A\(ref:[\w-]++\)(?=\s)|{FIELD}|!\[\[[^\[\]\n]++\]\]|(?<=[)\]`*_])\{{[ \t]*+(?:[:.#]|[\w-]++=)[^{{}}]*+\}}"
    r"|(?<![ \t])[ \t]++\{[:.#][^{}\n]*+\}\Z|(?<=[ \t\]])\^[A-Za-z0-9-]++\Z",
    re.MULTILINE,
)
# The title at the end of a link, image or definition of a link.
_TITLE = re.compile(
    r"""(?<!\s)\s++(?:"(?P<double>(?>(?:[^"\\]|\\.)*))"|'(?P<single>(?>(?:[^'\\]|\\.)*))'|\((?P<brackets>(?>(?:[^()\\]|\\.)*))\))\s*+\)?\Z""",
    re.DOTALL,
)
_TITLE_AMONG_ATTRIBUTES = re.compile(r'(?<=[\s{:])(?:title|alt|fig-alt|fig-cap)="(?P<text>[^"\\{}]++)"')
# What has spaces in the target of a link, which Markdown itself does not allow: a part of a template, as in
# [dog]({{< ref "dog.md" >}}), and the name of a file, which some generators read: [dog](My Dog/dog.md)
_TARGET_WITH_SPACES = re.compile(
    r"(?<=\]\()(?:[^()\s{}]*+(?:(?:\{\{[^{}\n]*+\}\}|\{%[^{}%\n]*+%\})[^()\s{}]*+)+(?=(?:[ \t]++\"[^\"\n]*+\")?\))"
    r"|(?:[^()\s<>\"']++[ ]){1,9}[^()\s<>\"'#]*\.[A-Za-z]{1,5}(?:\#[\w-]++)?(?=\)))"
)
# A command around a text, and its end; those that are statements divide texts.
_COMMAND = re.compile(
    r"\{\{[<%]\s*+(?P<end>/?)\s*+(?P<name>[\w-]++)[^{}]*+\}\}"
    r"|\{%-?\s*+(?P<ending>(?:end)?)(?P<tag>(?!if|else|els|unless|case|when|for|block|raw|comment|set|end)[a-z][\w-]*+)[^{}%]*+%\}"
)
# Text between two marks that Markdown itself does not know: a link of a wiki with a label, ==marked== words, words that
# CriticMarkup has added or taken out, and [words]{{.class}} of Pandoc.
_PAIRS = re.compile(
    r"(?P<opening>(?<!!)\[\[[^\[\]|\n]++\|)(?P<label>[^\[\]|\n]++)\]\]"
    r"|(?<![=\w])==(?=[^\s=])(?P<marked>[^=\n]++)(?<=\S)==(?![=\w])"
    r"|\{(?P<sign>\+\+|--|==)(?P<edited>[^{}\n]++)(?<=(?P=sign))\}"
    r"|\[(?P<words>[^\[\]\n]++)\]\{[.#][^{}]*+\}"
    r"|\[!UICONTROL[ \t]++(?P<control>[^\[\]\n]++)\]"
)
_TEXTS_OF_PAIRS = ("label", "marked", "edited", "words", "control")
# Where the text of a footnote inside its sentence begins: ^[A dog.]
_NOTE_IN_SENTENCE = re.compile(r"\^\[(?!\^)")
_BRACKET = re.compile(r"[\[\]]")
_LONGEST_NOTE = 2000
# A comment and a substitution of CriticMarkup; their texts stay.
_CRITIC = re.compile(
    r"\{>>(?>.*?(?=\{>>|<<\}|\Z))<<\}|\{~~(?>.*?(?=\{~~|~~\}|~>|\Z))~>(?>.*?(?=\{~~|~~\}|\Z))~~\}", re.DOTALL
)
# Examples of Pandoc in a quotation or list: each begins a line.
EXAMPLE_IN_LINES = re.compile(r"(?<=\n)\(@[\w-]*\)(?=\s)")
_ALT_OF_DOCFX = re.compile(r"\A:::image[ \t](?:[^\"]*\"[^\"]*\")*?[ \t]*alt-text=\"(?P<alt>[^\"]+)\"")
# Formulas and names of pictures such as :smile:, which Markdown itself does not know either; they are no text.
_EXTENSIONS = {
    "template": re.compile(TEMPLATE, re.DOTALL),
    "critic": _CRITIC,
    # A picture or an icon of DocFX: :::image type="icon" source="a.png":::.
    "docfx": re.compile(r":::[a-z-]++(?>(?:[ \t]++[\w-]++=\"[^\"\n]*+\")+)[ \t]*+:::(?!:)"),
    # A comment of Obsidian: %%the words%%; %%name%% alone is a placeholder.
    "remark": re.compile(
        r"(?<![\w%])%%(?!%)(?=[^%]*[ \t\n])(?:[^%]|%(?!%)){1,2000}?%%(?![\w%])"
        # And of kramdown.
        r"|\{::comment\}(?:(?!\{:/)[^\0]){0,2000}\{:/(?:comment)?\}"
    ),
    # Attributes behind what they belong to, which may have escapes: [dog](a.md){:target="\_blank"}
    "attributes": re.compile(r"(?<=\))\{[ \t]*+(?:[:.#]|[\w-]++=)[^{}]*+\}"),
    # References of bookdown: \@ref(fig:dog), (\#tab:dog)
    "reference": re.compile(r"\\@ref\([^()\s]++\)|(?<=\()\\#[A-Za-z]{2,10}:[\w-]++(?=\))"),
    # What another file holds, of DocFX: [!INCLUDE [name](a.md)], [!code-csharp[](a.cs)]; [!DNL the name] is not to be translated.
    "included": re.compile(
        r"\[!(?i:INCLUDE|code(?:-[\w+#.-]++)?)[ \t]*+\[[^\[\]\n]*+\]\([^()\n]*+\)\]|\[!DNL[ \t][^\[\]\n]++\]"
    ),
    "comment": re.compile(r"\{/\*(?>.*?(?=\{/\*|\*/\}|\Z))\*/\}", re.DOTALL),  # of MDX
    # The keys of MkDocs: ++ctrl+alt+del++, ++enter++.
    "keys": re.compile(
        r"\+\+(?:[a-z0-9-]+(?:\+[a-z0-9-]+)+|alt|arrow-\w+|backspace|caps-lock|cmd|command|control|ctrl|delete|end|enter|esc|escape|f\d+|home"
        r"|insert|meta|option|page-(?:up|down)|shift|space|tab|win|windows)\+\+"
    ),
    # \\( is a bracket as well, so only what has a sign of formulas is one.
    "math": re.compile(
        rf"{FORMULA}|{ENVIRONMENT}|\\{{1,2}}\([A-Za-z]['\d]?\\{{1,2}}\)|\\{{1,2}}\((?=[^\n]{{0,300}}?[\^_={{}}+<>])(?:(?!\\\().){{1,2000}}?\\\)"
    ),
    # Also those of MkDocs: :material-plus-circle:, and with attributes :octicons-mail-16:{ .mail }.
    "emoji": re.compile(r"(?<!\w):(?:[+-]1|[a-z][a-z0-9_]+(?:-[a-z0-9_]+)*):(?!\w)"),
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
        masked = _TARGET_WITH_SPACES.sub(lambda match: "x" * len(match[0]), text)
        self.parser.inline.parse(masked, self.parser, env, notes.tokens)
        self._notes = None
        for token in notes.tokens:
            event = _range_of(token)
            if event is not None:
                notes.events.append(event)
        notes.events = _with_whole_code(text, sorted(notes.events, key=lambda event: event[:2]))
        notes.events = _with_commands_around(text, notes.events)
        taken = [False] * (len(text) + 1)
        for event in notes.events:
            taken[event.start : event.end] = [True] * (event.end - event.start)
        for note in _notes_in(text, notes.events, taken):
            inside = [bisect_left(notes.events, place, key=lambda event: event.start) for place in note[:2]]
            notes.events[slice(*inside)] = [note]
            taken[note.start : note.end] = [True] * (note.end - note.start)
        notes.events += _unknown_to_markdown(text, taken)
        return [*_with_closed_links(sorted(notes.events, key=lambda event: event[:2]))]

    def _noting(self, name: str, rule: Callable[..., bool]) -> Callable[..., bool]:
        """A rule that notes what it finds."""

        def noting(state: "StateInline", silent: bool) -> bool:
            if name in ("link", "image") and not self._may_be_closed(state):
                return False
            start, num_before = state.pos, len(state.tokens)
            pending = state.pending if name == "newline" else ""
            before = state.src[max(0, start - 1) : start]
            is_found = rule(state, silent)
            notes = self._notes
            pushed = state.tokens[num_before:]
            if is_found and not silent and pushed and notes is not None and state.tokens is notes.tokens:
                if name in ("emphasis", "strikethrough"):
                    _note_places(pushed, start, state.pos)
                elif name == "link":
                    end = state.md.helpers.parseLinkLabel(state, start, True)
                    first, last = _without_spaces(state.src, start + 1, end, state.pos)
                    notes.events.append(InlineEvent(start, first, Role.OPEN, "link"))
                    opening = next(token for token in pushed if token.type == "link_open")  # behind the text before it
                    titles = _titles(opening, state.src[last : state.pos], last)
                    notes.events.append(InlineEvent(last, state.pos, Role.CLOSE, "link", titles=titles))
                else:
                    if pushed[-1].type == "hardbreak":
                        start -= len(pending) - len(pending.rstrip(" "))
                    notes.events.append(_event(name, pushed[-1], state.src[start : state.pos], start, before))
            return is_found

        return noting

    def _may_be_closed(self, state: "StateInline") -> bool:
        """Whether a bracket that opens here can be closed; without this look, the parser searches all of the text."""
        if state.src is not self._searched:
            self._searched, self._last_bracket = state.src, state.src.rfind("]")
        return state.pos < self._last_bracket


def title_at_end(text: str, shown: object, place: int) -> tuple[Title, ...]:
    """The title at the end of a link, image or definition of a link; nothing if it has none.

    Args:
        text: the link.
        shown: its title, as the parser has read it, or nothing.
        place: where the link begins.
    """
    match = _TITLE.search(text) if shown else None
    if match is None:
        return ()
    start, end = match.span(match.lastgroup or 0)
    return (Title(place + start, place + end, " ".join(str(shown).split()), text[start - 1]),)


def _titles(token: "Token", raw: str, place: int) -> tuple[Title, ...]:
    """The title of a link or image; not that of the definition which it names."""
    return title_at_end(raw, token.attrGet("title"), place) if raw.endswith(")") else ()


def _titles_among_attributes(attributes: str, place: int) -> tuple[Title, ...]:
    """The texts among attributes, such as {title="The dog"}, which begin at a place."""
    return tuple(
        Title(place + match.start("text"), place + match.end("text"), " ".join(match["text"].split()), '"')
        for match in _TITLE_AMONG_ATTRIBUTES.finditer(attributes)
    )


def _unknown_to_markdown(text: str, taken: list[bool]) -> Iterator[InlineEvent]:
    """The markup of extensions where no other markup stands; `taken` says of each character whether some does."""
    for match in _PAIRS.finditer(text):
        name = next(name for name in _TEXTS_OF_PAIRS if match[name] is not None)
        start, end = match.span(name)
        end -= len(match["sign"] or "") if name == "edited" else 0
        marks = (match.start(), start), (end, match.end())
        if start < end and not any(any(taken[first:last]) for first, last in marks):
            name = "taken_out" if match["sign"] == "--" else name
            yield InlineEvent(*marks[0], Role.OPEN, name)
            yield InlineEvent(*marks[1], Role.CLOSE, name)
            for first, last in marks:
                taken[first:last] = [True] * (last - first)
    examples = EXAMPLE_IN_LINES.finditer(text) if EXAMPLE.match(text) else iter(())
    for match in chain(_MARKS.finditer(text), examples):
        if not any(taken[match.start() : match.end()]):
            titles = _titles_among_attributes(match[0], match.start())
            yield InlineEvent(*match.span(), Role.POINT, titles=titles)
            taken[match.start() : match.end()] = [True] * len(match[0])


def _notes_in(text: str, events: Sequence[InlineEvent], taken: Sequence[bool]) -> list[InlineEvent]:
    """The footnotes inside their sentences; one of several lines has no text that is read.

    Args:
        events: the markup of the text, in order.
        taken: says of each character whether it is markup.
    """
    notes: list[InlineEvent] = []
    for match in _NOTE_IN_SENTENCE.finditer(text):
        start, first = match.span()
        if taken[start] or taken[first - 1] or (notes and start < notes[-1].end):
            continue
        last = _closing_bracket(text, first, taken)
        if last is not None and first < last and _is_whole(events, first, last):
            # Notes inside notes could stand in each other without end.
            is_line = not any(sign in text[first:last] for sign in ("\n", "^["))
            alt = (first, last) if is_line else None
            notes.append(InlineEvent(start, last + 1, Role.POINT, "" if is_line else "note", alt=alt))
    return notes


def _closing_bracket(text: str, start: int, taken: Sequence[bool]) -> int | None:
    """Where the bracket is closed that stands before `start`; None if that is not near."""
    depth = 1
    for match in _BRACKET.finditer(text, start, start + _LONGEST_NOTE):
        if not taken[match.start()]:
            depth += 1 if match[0] == "[" else -1
        if not depth:
            return match.start()
    return None


def _is_whole(events: Sequence[InlineEvent], start: int, end: int) -> bool:
    """Whether all ranges that begin or end in text[start:end] do both there."""
    opened: list[str] = []
    for event in events[bisect_left(events, start, key=lambda event: event.start) :]:
        if event.start >= end:
            break
        if event.role is Role.OPEN:
            opened.append(event.name)
        elif event.role is Role.CLOSE and (not opened or opened.pop() != event.name):
            return False
    return not opened


def _extension(pattern: re.Pattern[str], state: "StateInline", silent: bool) -> bool:
    """A rule of the parser: what the pattern describes stays as it is."""
    match = pattern.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("code_inline", "", 0).content = match[0]
    state.pos = match.end()
    return True


def _without_spaces(text: str, first: int, last: int, behind: int) -> tuple[int, int]:
    """Where the text of a link begins and ends without spaces, as of [ dog ](url); those that part it from a word count.

    Args:
        text: with the link.
        first: where the text of the link begins, behind its bracket.
        last: where it ends.
        behind: where the link ends.
    """
    words = text[first:last].strip(" ")
    if not words:
        return first, last
    start = first if text[first - 2 : first - 1].isalnum() else text.index(words, first)
    return start, last if text[behind : behind + 1].isalnum() else text.index(words, first) + len(words)


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


def _event(name: str, token: "Token", raw: str, start: int, before: str) -> InlineEvent:
    """What a rule has found, and the character before it."""
    end = start + len(raw)
    if name in ("critic", "remark", "attributes"):
        titles = _titles_among_attributes(raw, start) if name == "attributes" else ()
        return InlineEvent(start, end, Role.POINT, name, titles=titles)
    if name == "docfx" and (found := _ALT_OF_DOCFX.search(raw)) is not None:
        return InlineEvent(start, end, Role.POINT, name, alt=(start + found.start("alt"), start + found.end("alt")))
    if name in ("backticks", "autolink", *_EXTENSIONS):
        return InlineEvent(start, end, Role.WORD)
    if name == "image":
        alt = (start + 2, start + 2 + len(token.content))
        return InlineEvent(start, end, Role.POINT, alt=alt, titles=_titles(token, raw, start))
    if name == "html_inline":
        return _html_event(raw, start, end, is_in_word=before.isalnum() or before == "_")
    if token.type == "text_special":
        return InlineEvent(start, end, None, shown=token.content)
    return InlineEvent(start, end, None, shown=None if token.type == "hardbreak" else " ")


def _html_event(raw: str, start: int, end: int, *, is_in_word: bool) -> InlineEvent:
    if is_comment_with_statement(raw):
        return InlineEvent(start, end, None)
    token = next(html_tokens(raw))
    if token.kind in (TokenKind.START, TokenKind.END):
        if token.name in BLOCKS:
            return InlineEvent(start, end, None)
        if is_inline_element(token.name):
            role = Role.OPEN if token.kind is TokenKind.START else Role.CLOSE
            return InlineEvent(start, end, role, f"<{token.name}>")
        if token.name in CODE:
            return InlineEvent(start, end, Role.POINT, f"<{'/' * (token.kind is TokenKind.END)}{token.name}>")
        if is_in_word:  # no tag, but a name that somebody else fills in: allow_<NAME>_x
            return InlineEvent(start, end, Role.WORD)
    return InlineEvent(start, end, Role.POINT)


def _with_closed_links(events: Iterable[InlineEvent]) -> Iterator[InlineEvent]:
    """Events in which a link of HTML ends where another one begins, as browsers read it: an event without characters."""
    is_in_link = False
    for event in events:
        if event.name == "<a>":
            if is_in_link and event.role is Role.OPEN:
                yield InlineEvent(event.start, event.start, Role.CLOSE, "<a>")
            is_in_link = event.role is Role.OPEN
        yield event


def _with_commands_around(text: str, events: Sequence[InlineEvent]) -> list[InlineEvent]:
    """Events in which a command and its end, such as {{< mark >}} and {{< /mark >}}, are a range."""
    found = list(events)
    opened: dict[str, list[int]] = {}
    for at, event in enumerate(events):
        command = _COMMAND.fullmatch(text, event.start, event.end) if event.role is Role.WORD else None
        if command is None:
            continue
        name = f"{{{command['name'] or command['tag']}}}"
        if not (command["end"] or command["ending"]):
            opened.setdefault(name, []).append(at)
        elif opened.get(name):
            first = opened[name].pop()
            found[first] = events[first]._replace(role=Role.OPEN, name=name)
            found[at] = event._replace(role=Role.CLOSE, name=name)
    return found


def _with_whole_code(text: str, events: Sequence[InlineEvent]) -> list[InlineEvent]:
    """Events in which a whole element of code, such as <kbd>Enter</kbd>, takes the place of a word, as `Enter` does.

    So does an element whose tag says that it is not to be translated.
    """
    kept: list[InlineEvent] = []
    opened: dict[str, list[int]] = {}
    ends: dict[int, int] = {}
    for place, event in enumerate(events):
        if event.role is Role.OPEN:
            opened.setdefault(event.name, []).append(place)
        elif event.role is Role.CLOSE and opened.get(event.name):
            ends[opened[event.name].pop()] = place
    closing = {
        f"</{name}>": at
        for at, event in enumerate(events)
        if (name := event.name[2:-1]) and event.name.startswith("</")
    }
    at = 0
    while at < len(events):
        event = events[at]
        end = f"</{event.name[1:]}"
        if event.name[1:-1] in CODE and closing.get(end, -1) > at:
            last = next(later for later in range(at, len(events)) if events[later].name == end)
            event, at = InlineEvent(event.start, events[last].end, Role.WORD), last
        elif at in ends and event.name.startswith("<") and is_kept_tag(text[event.start : event.end]):
            event, at = InlineEvent(event.start, events[ends[at]].end, Role.WORD), ends[at]
        kept.append(event)
        at += 1
    return kept
