"""Finds what is no text in a page that is a template, or has formulas: statements, values, comments and settings; statements divide texts.

The languages of templates: Jinja, Twig, Django, Liquid, Handlebars, Go, ERB, EJS, PHP, Blade, Razor, Angular, Svelte, Smarty, FreeMarker,
Velocity, Template Toolkit, Pandoc and Fluid.
"""

import re
from collections import deque
from dataclasses import replace
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from transformer_cli.extensions.documents.inline_text import DIVISION
from transformer_cli.extensions.documents.segments import Markup, Piece, Role, Segment, merged
from transformer_cli.text.normalization import has_letter


class PartKind(Enum):
    """What a part of a template is for the text around it."""

    COMMENT = "comment"
    """Nothing: it stays beside its word."""
    STATEMENT = "statement"
    """It divides texts, such as {% if x %}; so do the settings before a page."""
    VALUE = "value"
    """It takes the place of a word, such as <?= $name ?>; so does a formula."""


class TemplatePart(NamedTuple):
    """A part of a page: text[start:end]."""

    kind: PartKind
    start: int
    end: int


_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n((?:.*\n)*?)\1[ \t]*(?:\r?\n|\Z)")
_KEY = re.compile(r"^[ \t]*[A-Za-z][\w.-]*:|[:=](?=\s)", re.MULTILINE)
_COMMENT_OF_YAML = re.compile(r"^[ \t]*#.*$", re.MULTILINE)


# What stands in an environment of LaTeX, with at most four others inside each other.
_INSIDE = r"(?>(?:[^\\]++|\\(?!begin\{|end\{))*)"
for _ in range(4):
    _INSIDE = rf"(?>(?:[^\\]++|\\(?!begin\{{|end\{{)|\\begin\{{[^{{}}]{{1,40}}\}}{_INSIDE}\\end\{{[^{{}}]{{1,40}}\}})*)"
# A search for the end of the same name would read the whole text from each environment that never ends.
ENVIRONMENT = rf"\\begin\{{(?P<environment>[A-Za-z]{{1,30}}\*?)\}}{_INSIDE}\\end\{{(?P=environment)\}}"
"""The pattern of an environment of LaTeX, such as align; others may stand in it, at most four inside each other."""
FORMULA = r"\$\$[^$]+\$\$|\$(?=\S)(?![^$\n]*<[A-Za-z/])(?:(?>(?:[^\s$\\]++|\\\S)+)|(?=[^$\n\\^_={}+<>]*+[\\^_={}+<>])(?>(?:[^$\n\\]++|\\[^\n])+))(?<=\S)\$(?!\d)"
"""The pattern of a formula between dollar signs; those of prices have none of the signs of formulas."""

# Each pattern ends where its kind begins anew, so that no text is read more than a few times.
# (?>.*?(?=end|\Z)) goes to the next `end` and never beyond it; (?>(?:(?!end).)*) would do so with 60 bytes of memory for each character.
_PARENTHESES = r"\((?>(?:[^()]{1,500}+|\((?>(?:[^()]{1,500}+|\([^()]{1,500}+\))*)\))*)\)"
_CALL_OF_FLUID = rf"[a-z]\w{{0,30}}:[A-Za-z][\w.]{{0,99}}{_PARENTHESES}"
COMMANDS_WITH_CODE = "highlight|codeblock|sourcecode|code(?:-toggle)?|mermaid"
"""The names of commands of generators of pages between which code stands, as a pattern."""
# Of Jekyll, Hexo and GitBook: {% highlight ruby %} ... {% endhighlight %}; of Hugo: {{< highlight go >}} ... {{< /highlight >}}.
_CODE_OF_COMMAND = (
    rf"\{{%-?\s*+(?P<command>{COMMANDS_WITH_CODE})(?![\w-])(?>.*?(?=\{{%|%\}}|\Z))%\}}(?>.*?(?=\{{%-?\s*+(?:end)?(?P=command)\b|\Z))"
    r"\{%-?\s*+end(?P=command)\s*+-?%\}"
    rf"|\{{\{{[<%]\s*+(?P<shortcode>{COMMANDS_WITH_CODE})(?![\w-])(?>.*?(?=\{{\{{|\}}\}}|\Z))\}}\}}(?>.*?(?=\{{\{{[<%]\s*+/?(?P=shortcode)\b|\Z))"
    r"\{\{[<%]\s*+/\s*+(?P=shortcode)\s*+[>%]\}\}"
)
# A block whose name says that its value is for a program: {% block id %}welcome{% endblock %}
_NAME_OF_VALUE = (
    r"['\"]?(?:(?:\w{1,40}[-_])?(?:id|class(?:es)?|href|src|lang|url|uri|dir|charset|rel|attrs?|attributes|css|js|scripts?|styles?|stylesheets?|robots|locale|slug)"
    r"|(?:body|html|page|main|nav|container)(?:id|class)|\w{1,40}(?:Id|Class|Href|Src|Url|Lang))['\"]?"
)
_NO_TAG = r"[^<>{}%]{0,300}"
_BLOCK_OF_VALUE = (
    rf"\{{%-?\s*+block\s+{_NAME_OF_VALUE}\s*+-?%\}}{_NO_TAG}\{{%-?\s*+endblock\b[^%{{}}]{{0,60}}%\}}"
    rf"|\{{block\s+(?:name=)?{_NAME_OF_VALUE}\}}{_NO_TAG}\{{/block\}}"  # Smarty
    rf"|\{{\{{-?\s?(?:block|define)\s+{_NAME_OF_VALUE}(?:\s[.$]\w*)?\s*+-?\}}\}}{_NO_TAG}\{{\{{-?\s*+end\s*+-?\}}\}}"  # Go
    rf"|\{{\{{#[\w-]{{1,40}}\s+{_NAME_OF_VALUE}\s*+\}}\}}{_NO_TAG}\{{\{{/[\w-]{{1,40}}\s*+\}}\}}"  # Handlebars
    rf"|(?<![\w@.])@section\(\s*+{_NAME_OF_VALUE}\s*+\){_NO_TAG}@(?:end(?:section)?|show|stop)\b"  # Blade
)
_PARTS = {
    PartKind.COMMENT: (
        r"\{#(?>.*?(?=\{#|#\}|\Z))#\}",  # Jinja, Twig
        r"\{\{!--(?>.*?(?=\{\{!--|--\}\}|\Z))--\}\}|\{\{![^{}]*+\}\}",  # Handlebars
        r"\{\{--(?>.*?(?=\{\{--|--\}\}|\Z))--\}\}|@\*(?>.*?(?=@\*|\*@|\Z))\*@",  # Blade, Razor
        r"\{\{-? ?/\*(?>.*?(?=\{\{|\*/|\Z))\*/ ?-?\}\}",  # Go
        r"\{%-?\s*comment\b[^%]{0,99}%\}(?>.*?(?=\{%-?\s*(?:end)?comment|\Z))\{%-?\s*endcomment\s*-?%\}",  # Liquid, Django
        r"\{\*(?>.*?(?=\{\*|\*\}|\Z))\*\}|<#--(?>.*?(?=<#--|-->|\Z))-->",  # Smarty, FreeMarker
        r"<%--(?>.*?(?=<%|--%>|\Z))--%>|<%\#(?>.*?(?=<%|%>|\Z))%>",  # JSP, ERB
        r"<f:comment>(?>.*?(?=</?f:comment|\Z))</f:comment>",  # Fluid
    ),
    PartKind.STATEMENT: (
        _CODE_OF_COMMAND,
        _BLOCK_OF_VALUE,
        r"\{%[-+~]?\s*+(?:end\w*|if\w*|el(?:if|sif|seif|se)|for|foreach|while|unless|case|when|block|blocktrans\w*"
        r"|trans(?=\s*-?%\})|translate(?=\s*-?%\})|plural|pluralize|with|filter|macro|call|autoescape|spaceless|raw"
        r"|verbatim|capture|tablerow|switch|set|extends|import|from|layout|load|assign|do|break|continue)\b"
        r"(?>.*?(?=\{%|%\}|\Z))%\}",
        r"\{\{[-~]? ?(?:[#/^][^{}]*+|(?:else|end|if|range|with|define|block|return|break|continue)\b(?>.*?(?=\{\{|\}\}|\Z)))\}\}",
        r"<%(?![=@#-])(?>.*?(?=<%|%>|\Z))%>|<%-?\s*+(?:end|else|if|unless|\})(?!\w)(?>.*?(?=<%|%>|\Z))%>",
        r"<\?(?!xml|=|php\s+echo\b)(?>.*?(?=<\?|\?>|\Z))\?>",
        rf"(?:\}}\s*+)?@(?:if|else(?: if)?|for|foreach|while|empty|switch|case|default|defer|placeholder|loading|error)\b\s*+(?:{_PARENTHESES})?\s*+\{{",
        r"@let\s[^;<>]{1,500}+;",
        rf"(?<![\w@.])@(?:(?:if|elseif|unless|isset|empty|foreach|for|forelse|while|switch|case|can|section|auth|guest)\s?{_PARENTHESES}|(?:else|end[a-z]{{2,20}})\b)",
        r"\{[#:/](?:if|else|each|await|then|catch|key|snippet)\b[^{}]*+\}",  # Svelte
        r"\{/?(?:if|elseif|else|foreach|foreachelse|section|block|while|capture|literal|strip)(?:\s[^{}]*+)?\}",  # Smarty
        r"</?#[a-z]\w{0,30}(?>(?:[^<>\"']++|\"[^\"<]*\"|'[^'<]*')*)>|</?@[\w.]{1,60}[^<>]*+>",  # FreeMarker
        rf"(?<![\w&])#(?:if|elseif|foreach|set|parse|include|macro)\s?{_PARENTHESES}|(?<![\w&])#(?:end|else)\b",  # Velocity
        r"\[%[-+]?\s*+(?:IF|ELSE|ELSIF|UNLESS|END|FOREACH|FOR|WHILE|BLOCK|WRAPPER|FILTER|SET|USE|SWITCH|CASE)\b(?>.*?(?=\[%|%\]|\Z))%\]",
        r"\$(?:(?:if|elseif|for)\([\w.-]{1,99}\)|else|endif|endfor|sep)\$",
    ),
    PartKind.VALUE: (
        r"\{%(?>.*?(?=\{%|%\}|\Z))%\}|<%[=@-](?>.*?(?=<%|%>|\Z))%>|<\?(?:=|php\s+echo\b)(?>.*?(?=<\?|\?>|\Z))\?>",
        r"\{\{\{[^{}]*+\}\}\}|\{\{(?!\{)(?>.*?(?=\{\{|\}\}|\Z))\}\}|\{!!(?>.*?(?=\{!!|!!\}|\Z))!!\}",
        r"\{\$[^{}]*+\}|\[%(?>.*?(?=\[%|%\]|\Z))%\]",  # Smarty, Template Toolkit
        rf"(?<![\w@.])@[a-z]\w{{0,40}}{_PARENTHESES}",  # Blade
        rf"(?<![\w@])@(?:[A-Za-z]\w{{0,99}}(?:\.\w{{1,99}}(?:{_PARENTHESES})?)+|{_PARENTHESES})",  # Razor
        r"\$[A-Za-z][\w.-]{0,99}(?:\(\)|/[\w/]{1,40})?\$",  # Pandoc
        rf"\{{\s*+(?:[\w.]{{1,99}}\s*+->\s*+)?{_CALL_OF_FLUID}(?>(?:\s*+->\s*+{_CALL_OF_FLUID})*)\s*+\}}",
        FORMULA,
        ENVIRONMENT,
        r"\\\((?>.*?(?=\\\(|\\\)|\Z))\\\)|\\\[(?>.*?(?=\\\[|\\\]|\Z))\\\]",
    ),
}
TEMPLATE = "|".join(
    (
        *_PARTS[PartKind.COMMENT],
        _CODE_OF_COMMAND,
        _BLOCK_OF_VALUE,
        r"\{%(?>.*?(?=\{%|%\}|\Z))%\}|<%(?>.*?(?=<%|%>|\Z))%>|\{\{(?>.*?(?=\{\{|\}\}|\Z))\}\}",
    )
)
"""The pattern of what stays inside a sentence of a template; the dot is any character."""
_PATTERN = re.compile(
    "|".join(f"(?P<{kind.value}>{'|'.join(patterns)})" for kind, patterns in _PARTS.items()),
    re.DOTALL,
)
# A line of nothing but a statement of Blade, Razor or Angular, such as @section('title', 'Home') or }.
_LINE = re.compile(
    rf"^[ \t]*+(?:\}}[ \t]*+)?(?:@[A-Za-z]\w{{0,40}}+[ \t]*+(?>(?:{_PARENTHESES})?)[ \t]*+\{{?|(?P<brace>[{{}}])|@\{{[^{{}}]*+\}}"
    r"|@(?:model|using|inject|page|namespace|inherits|layout|addTagHelper|implements|attribute)[ \t][^\r\n<]*+)[ \t]*+\r?$",
    re.MULTILINE,
)
# What shows that a brace alone on a line, #end and {if ...} belong to a template and not to prose.
_BLOCK_OF_BRACES = re.compile(r"@[A-Za-z(][^\n{}]{0,500}+\{[ \t]*+\r?$", re.MULTILINE)
_VELOCITY = re.compile(r"(?<![\w&])#(?:if|foreach|macro|define)\s?\(")
_SMARTY = re.compile(r"\{(if|elseif|else|foreach|foreachelse|section|block|while|capture|literal|strip)\b")
_END_OF_SMARTY = re.compile(r"\{/([a-z]{2,9})\}")
_CONDITION = re.compile(r"[{<%?@\[#-]{1,4}\s?(?:php\s)?\s?(?:if|unless)\b", re.IGNORECASE)
_LONGEST_ENDING = 5  # letters
MAY_BE_PART = re.compile(r"[{$\\@]|<[%?#]|</#|<f:c|\[%|#\w|\A(?:---|\+\+\+)")
"""What a text with a part of a template has."""
_UNTOUCHED = re.compile(
    r"<(script|style|pre|code|xmp|textarea)\b(?:(?!<\1\b).)*?</\1\s*>|<!--(?:(?!<!--).)*?-->",
    re.I | re.S,
)


def front_matter(text: str) -> re.Match[str] | None:
    """The settings before a page of Jekyll, Hugo and others; a text without a key between two lines of dashes is none."""
    found = _FRONT_MATTER.match(text)
    if found is None or found[1] != "---" or _KEY.search(found[2]):
        return found
    return None if has_letter(_COMMENT_OF_YAML.sub("", found[2])) else found


def template_parts(text: str) -> list[TemplatePart]:
    """What is no text in a page, in order and without overlaps; nothing inside scripts, code and comments."""
    if not MAY_BE_PART.search(text):
        return []
    settings = front_matter(text)
    found = [] if settings is None else [TemplatePart(PartKind.STATEMENT, *settings.span())]
    found += [
        TemplatePart(next(kind for kind in PartKind if each[kind.value] is not None), *each.span())
        for each in _PATTERN.finditer(text)
    ]
    found = _without_prose(text, found) + _lines(text)
    untouched = [each.span() for each in _UNTOUCHED.finditer(text)][::-1]
    kept: list[TemplatePart] = []
    for part in sorted(found, key=lambda part: (part.start, -part.end)):
        while untouched and untouched[-1][1] <= part.start:
            untouched.pop()
        is_untouched = bool(untouched) and untouched[-1][0] <= part.start
        if not is_untouched and (not kept or part.start >= kept[-1].end):
            kept.append(part)
    return _with_whole_words(text, kept)


def is_comment_with_statement(raw: str) -> bool:
    """Whether a part of a page is a comment of HTML with a statement, as <!-- {% if x %} -->: it runs, and keeps its place between texts."""
    if not (raw.startswith("<!--") and raw.endswith("-->")):
        return False
    parts = template_parts(raw.removeprefix("<!--").removesuffix("-->"))
    return any(part.kind is PartKind.STATEMENT for part in parts)


def _lines(text: str) -> list[TemplatePart]:
    """The lines of nothing but a statement; a brace alone is one only where another line is."""
    found = list(_LINE.finditer(text))
    if all(each["brace"] for each in found) and not _BLOCK_OF_BRACES.search(text):
        return []
    return [TemplatePart(PartKind.STATEMENT, *each.span()) for each in found]


def _without_prose(text: str, found: list[TemplatePart]) -> list[TemplatePart]:
    """The parts without those that look like a statement of Velocity or Smarty but have no partner, as in "see #end"."""
    has_velocity = _VELOCITY.search(text) is not None
    closed = set(_END_OF_SMARTY.findall(text))

    def is_prose(part: TemplatePart) -> bool:
        raw = text[part.start : part.end]
        if raw in ("#end", "#else"):
            return not has_velocity
        smarty = _SMARTY.match(raw)
        if smarty is None:
            return False
        name = smarty[1]
        return not closed if name in ("else", "elseif", "foreachelse") else name not in closed

    return [part for part in found if part.kind is not PartKind.STATEMENT or not is_prose(part)]


def _with_whole_words(text: str, parts: list[TemplatePart]) -> list[TemplatePart]:
    """Parts in which the condition of an ending does not divide its word: item{% if n > 1 %}s{% endif %}."""
    kept = list(parts)
    for at, (part, following) in enumerate(pairwise(parts)):
        if part.kind is following.kind is PartKind.STATEMENT and encloses_ending(
            text[part.start - 1 : part.start],
            text[part.start : part.end],
            text[part.end : following.start],
            text[following.end : following.end + 1],
        ):
            kept[at : at + 2] = (part._replace(kind=PartKind.COMMENT), following._replace(kind=PartKind.COMMENT))
    return kept


def encloses_ending(before: str, condition: str, ending: str, behind: str) -> bool:
    """Whether a condition and what follows it enclose the ending of a word: item{% if n > 1 %}s{% endif %}.

    Args:
        before: the character before the condition; empty if there is none.
        condition: as it stands in the file.
        ending: what stands between the two.
        behind: the character behind the second one; empty if there is none.
    """
    return (
        before.isalpha()
        and len(ending) <= _LONGEST_ENDING
        and ending.isalpha()
        and ending.islower()
        and _CONDITION.match(condition) is not None
        and not behind.isalpha()
    )


def masked_parts(text: str, parts: list[TemplatePart]) -> str:
    """The text with letters in the place of its parts, of the same length: no sign in them is one of HTML."""
    pieces, place = [], 0
    for part in parts:
        pieces += [text[place : part.start], "x" * (part.end - part.start)]
        place = part.end
    return "".join([*pieces, text[place:]])


def with_statements_apart(segment: Segment) -> Segment:
    """The segment with each statement of a template, such as {% if x %}, as a point between two texts; comments of templates are points, too.

    Else the translation could have the statements in another order, or outside of what they decide.
    """
    first, *others = segment.pieces or ("",)
    if not others and isinstance(first, str) and DIVISION in first:
        return segment  # the document itself has this character
    raws = [piece if isinstance(piece, str) else piece.raw for piece in segment.pieces]
    joined = "".join(raws)
    parts = deque(
        part
        for part in template_parts(joined)
        # Lines of dashes are the settings of a page, and no statement of a text.
        if part.kind is not PartKind.VALUE and not joined.startswith(("---", "+++"), part.start)
    )
    if not parts:
        return segment
    found: list[Piece] = []
    number = min(0, *(piece.number for piece in segment.pieces if isinstance(piece, Markup)), 0)
    has_statements = False
    offset = 0
    for piece, raw in zip(segment.pieces, raws, strict=True):
        stop = offset + len(raw)
        while parts and parts[0].start < offset:
            parts.popleft()
        place = offset
        while parts and parts[0].start < stop:
            kind, start, end = parts.popleft()
            if isinstance(piece, str) and end <= stop:
                number -= 1
                point = Markup(Role.POINT, number, raw[start - offset : end - offset])
            elif (
                isinstance(piece, Markup)
                and piece.role is Role.WORD
                and piece.inner is None
                and (start, end) == (offset, stop)
            ):
                point = piece._replace(role=Role.POINT)
            else:
                continue
            is_statement = kind is PartKind.STATEMENT
            has_statements = has_statements or is_statement
            division = [DIVISION] if is_statement else []
            found += [raw[place - offset : start - offset], *division, point, *division]
            place = end
        found.append(raw[place - offset :] if isinstance(piece, str) else piece if place == offset else "")
        offset = stop
    pieces = tuple(merged([piece for piece in found if piece]))
    if not has_statements:
        return replace(segment, pieces=pieces)
    if not segment.keeps_spaces:
        pieces = tuple(_SPACES.sub(" ", each) if isinstance(each, str) else each for each in pieces)
    return replace(segment, pieces=pieces, keeps_spaces=True)


_SPACES = re.compile(r"[ \t\r\n]+")
