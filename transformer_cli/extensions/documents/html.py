"""Reads the text of an HTML page as segments that are translated and put back in its place, and cuts HTML into tokens.

Tokens are together exactly the text. They follow the tokenizer of the HTML standard (section 13.2.5), so that also malformed HTML is read as browsers do.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from html import escape
from itertools import chain, islice
from typing import NamedTuple

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.character_encoding import DecodedText, declared_encoding, decoded
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.page_templates import (
    PartKind,
    is_comment_with_statement,
    masked_parts,
    template_parts,
)
from transformer_cli.extensions.documents.segments import (
    Edit,
    InlinePart,
    LineNumbers,
    Markup,
    Piece,
    Role,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    nested,
    plain_text,
    rendered,
    stands_beside_word,
    with_whole_words,
)
from transformer_cli.text.languages import primary_language
from transformer_cli.text.normalization import has_letter, has_word
from transformer_cli.text.sentences import BRACKETS, ends_sentence


class TokenKind(Enum):
    """What a token is."""

    TEXT = "text"
    """Text with character references such as &amp;."""
    START = "start"
    """A start tag."""
    END = "end"
    """An end tag."""
    CDATA = "cdata"
    """Text without references, between <![CDATA[ and ]]>; only in XHTML and inside pictures (SVG) and formulas."""
    OTHER = "other"
    """A comment, a declaration, the content of a script, or a tag that never ends."""
    STATEMENT = "statement"
    """A statement of a template, such as {% if x %}; it divides texts."""
    VALUE = "value"
    """A value of a template, or a formula, which takes the place of a word."""


class HtmlToken(NamedTuple):
    """A part of the text: text[start:end]."""

    kind: TokenKind
    start: int
    end: int
    name: str = ""
    """Of a tag, in small letters."""
    is_empty: bool = False
    """Of a START: whether it is a whole element, such as <a id="x"/> in XHTML."""

    @property
    def is_implied(self) -> bool:
        """Whether it is the end tag of a link that the text lacks, without characters."""
        return self.start == self.end and self.kind is TokenKind.END


IMPLIED_END = "</a>"
"""How the end tag of a link that the text lacks is written in a translation."""

_DECIMAL_REFERENCE = re.compile(r"&#0*([0-9]{1,8})[0-9]*")


def unescaped_html(text: str) -> str:
    """The text with its character references resolved, such as &amp; and &#65;.

    A number beyond all characters becomes the replacement character, as in browsers. Eight digits are enough to be
    beyond them, and Python refuses to read a number of thousands of digits.
    """
    return html.unescape(_DECIMAL_REFERENCE.sub(r"&#\1", text))


_MARKUP = re.compile(
    r"""
    (?P<comment> <!--(?:-?>|(?s:.*?)(?:--!?>|\Z)) )
  | (?P<cdata> <!\[CDATA\[ )
  | (?P<other> <[!?][^>]*+(?:>|\Z) | </(?![A-Za-z])[^>]*+(?:>|\Z) )
  | (?P<tag> <(?P<slash>/?)(?P<name>[A-Za-z][^\s/>]*+)
      (?>(?: [^>"'=]++ | =\s*+(?:"[^"]*+"|'[^']*+')? | ["'] )*) (?P<close>>?) )
    """,
    re.VERBOSE,
)
# Their content is no markup: it goes to their end tag. That of <noframes> and <noembed> is a page for other browsers.
_RAW = frozenset(["script", "style", "mj-style", "xmp", "iframe", "textarea", "title", "plaintext"])
# Raw elements whose content is text.
_WITH_TEXT = frozenset(["title"])


_CDATA, _END_OF_CDATA = "<![CDATA[", "]]>"
# Elements of other standards, in which CDATA sections and elements of one tag are known, as in XHTML.
_FOREIGN = frozenset(["svg", "math"])


def html_tokens(text: str, *, is_xhtml: bool = False) -> Iterator[HtmlToken]:
    """The tokens of an HTML text, in order, without gaps.

    A link ends where another one begins, as browsers read it; there stands an end tag without characters.

    Args:
        is_xhtml: whether it is read as XML: with CDATA sections, and <title/> is a whole element.
    """
    is_in_link = False
    for token in _tokens(text, is_xhtml=is_xhtml):
        if token.name == "a" and not is_xhtml:
            if is_in_link and token.kind is TokenKind.START:
                yield HtmlToken(TokenKind.END, token.start, token.start, "a")
            is_in_link = token.kind is TokenKind.START
        elif token.name in BLOCKS and token.name != "br":
            is_in_link = False
        yield token


def _tokens(text: str, *, is_xhtml: bool) -> Iterator[HtmlToken]:
    place = 0
    num_foreign = 0
    while match := _MARKUP.search(text, place):
        if match.start() > place:
            yield HtmlToken(TokenKind.TEXT, place, match.start())
        place = match.end()
        is_xml = is_xhtml or num_foreign > 0
        if match["cdata"] is not None:
            end = text.find(_END_OF_CDATA if is_xml else ">", place)
            place = len(text) if end < 0 else end + len(_END_OF_CDATA if is_xml else ">")
            is_text = is_xml and end >= 0
            kind = TokenKind.CDATA if is_text else TokenKind.OTHER
            yield HtmlToken(kind, match.start(), place)
            continue
        if match["tag"] is None:
            yield HtmlToken(TokenKind.OTHER, match.start(), place)
            continue
        if not match["close"]:
            # The file ends inside a tag. A browser shows nothing of it.
            yield HtmlToken(TokenKind.OTHER, match.start(), len(text))
            return
        name = match["name"].lower()
        # A browser reads </br> as <br>.
        is_end = match["slash"] and (is_xml or name != "br")
        kind = TokenKind.END if is_end else TokenKind.START
        is_empty = is_xml and kind is TokenKind.START and match[0].endswith("/>")
        yield HtmlToken(kind, match.start(), place, name, is_empty)
        if name in _FOREIGN and not is_empty:
            num_foreign = num_foreign + 1 if kind is TokenKind.START else max(0, num_foreign - 1)
        if kind is TokenKind.START and name in _RAW and not is_empty:
            end = _end_of_raw(text, place, name)
            if end > place:
                inner = TokenKind.TEXT if name in _WITH_TEXT else TokenKind.OTHER
                yield HtmlToken(inner, place, end)
            place = end
    if place < len(text):
        yield HtmlToken(TokenKind.TEXT, place, len(text))


def _end_of_raw(text: str, place: int, name: str) -> int:
    """Where the end tag of a raw element begins; the end of the text if it has none."""
    end_tag = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    match = end_tag.search(text, place)
    return match.start() if match and name != "plaintext" else len(text)


_KINDS_OF_PARTS = {
    PartKind.COMMENT: TokenKind.OTHER,
    PartKind.STATEMENT: TokenKind.STATEMENT,
    PartKind.VALUE: TokenKind.VALUE,
}


def _tokens_of_page(text: str, *, is_xhtml: bool) -> Iterator[HtmlToken]:
    """The tokens of a page, which can be a template; a part of it inside a tag belongs to the tag."""
    parts = template_parts(text)
    number = 0
    for token in html_tokens(masked_parts(text, parts), is_xhtml=is_xhtml):
        place = token.start
        while number < len(parts) and parts[number].start < token.end:
            kind, start, end = parts[number]
            number += 1
            if token.kind is not TokenKind.TEXT:
                continue
            if start > place:
                yield HtmlToken(TokenKind.TEXT, place, start)
            yield HtmlToken(_KINDS_OF_PARTS[kind], start, end)
            place = end
        if place < token.end or token.is_implied:
            yield token._replace(start=place)


class Attribute(NamedTuple):
    """An attribute of a tag."""

    name: str
    """In small letters."""
    value: str
    """As it stands in the tag, without quotation marks and with character references."""
    start: int
    """Where the value begins in the tag, with its quotation mark."""
    end: int
    quote: str
    """The quotation mark around it; empty if it has none."""


# White space without a name behind it matches, too: otherwise each part of it would be tried again.
_ATTRIBUTE = re.compile(
    r"""[\s/]*+(?:(?P<name>[^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?P<value>"[^"]*+"|'[^']*+'|[^\s>"']?[^\s>]*+))?)?"""
)
_TAG_NAME = re.compile(r"<[^\s/>]+")


def attributes(tag: str) -> list[Attribute]:
    """The attributes of a start tag that have a value; of two with the same name, only the first one counts."""
    name = _TAG_NAME.match(tag)
    found: dict[str, Attribute] = {}
    for match in _ATTRIBUTE.finditer(tag, name.end() if name else 0, len(tag) - 1):
        value = match["value"]
        if value is None:
            continue
        quote = value[0] if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0] else ""
        inner = value[1:-1] if quote else value
        found.setdefault(
            match["name"].lower(),
            Attribute(match["name"].lower(), inner, match.start("value"), match.end("value"), quote),
        )
    return list(found.values())


MAX_CHARACTERS = 300
"""A text without an end of a sentence that is longer is a poem or a list, and no sentence."""
_OPENING = "\"'([{\u00ab\u2018\u201c\u201e-\u2013\u2014 "


@dataclass(slots=True)
class SentenceInWork:
    """The end of a text that is read from its beginning: the last words, and the length of the sentence they are in."""

    last: str = ""
    """The last part that is not blank."""
    num_characters: int = 0

    def add(self, text: str) -> None:
        """Read the next part of the text."""
        if text.strip():
            self.last = text.rstrip()
            self.num_characters += len(text)

    def goes_on(self, after: str) -> bool:
        """Whether a line break stands inside a sentence: the text before it ends none, and a small letter follows.

        Scripts without small letters do not tell; there a line break is the end of a text.

        Args:
            after: the text of the next line.
        """
        if not self.last or ends_sentence(self.last):
            self.num_characters = 0
            return False
        is_inside = after.lstrip(_OPENING)[:1].islower() and self.num_characters < MAX_CHARACTERS
        if not is_inside:
            self.num_characters = 0
        return is_inside


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Elements inside a sentence. Every other element ends the text before it.
_INLINE = _names(
    "a abbr acronym b bdi bdo big cite del dfn em font i ins mark nobr q rb ruby s small span strike "
    "strong sub sup textpath time tspan tt u"
)
BLOCKS = _names(
    "address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html label legend li main menu nav noembed noframes ol optgroup "
    "option p search section select slot summary table tbody td tfoot th thead title tr ul"
)
"""Elements that always divide texts, also without content."""
_POINTS = _names("area basefont img input param source track wbr")
_VOID = _POINTS | _names("base br col embed frame hr link meta")
# Elements whose content is not translated. Inside a sentence they take the place of a word (code),
CODE = _names("code kbd math samp svg var")
# or of nothing,
_INVISIBLE = _names(
    "audio canvas datalist iframe mj-style object picture rp rt rtc script style template textarea video xmp"
)
# Of these, the texts inside are texts of their own.
_WITH_INNER_TEXTS = _names("audio canvas datalist object picture template video")
# Elements and classes of fonts whose signs have names: the word <i class="material-icons">home</i> is a picture.
_ICONS = _names("mat-icon md-icon mwc-icon q-icon v-icon")
_CLASSES_OF_ICONS = ("material-icons", "material-symbols")
_TEXTS_OF_FOREIGN = _names("desc foreignobject mtext text title")
# A line of a text in a picture has a place of its own.
_PLACES_OF_LINES = frozenset(["x", "y", "dy"])
_MOST_NESTED = 50
# or they are blocks of their own.
_CODE_BLOCKS = _names("listing plaintext pre")
_TEXT_ATTRIBUTES = _names(
    "alt aria-description aria-label aria-placeholder aria-roledescription label placeholder summary title"
)
_TEXTS_OF_META = _names(
    "description keywords og:description og:title og:image:alt twitter:description twitter:title twitter:image:alt"
)
# Elements of words that are added or taken out.
_CHANGES = frozenset(["ins", "del", "s", "strike"])
_FEW_TAGS = 10
# What stands between the links of a menu.
_BETWEEN_LINKS = frozenset("|\u00b7\u2022\u203a\u00bb/")
_ENDS_OF_LABELS = frozenset(":.?!")
# Attributes of Angular, Vue and Alpine: an element with one is shown in some cases only.
_CONDITION = re.compile(
    r"[\s\"'](?:(?:data-)?ng-(?:if|show|hide|switch-(?:when|default))|\*ngIf|v-(?:if|else(?:-if)?|show)|x-(?:if|show))(?=[\s=/>])"
)
_MOST_PARTS_OF_CASE = 20
_BUTTONS = frozenset(["button", "reset", "submit"])
_BEGINNING = 4096
_LONGEST_SYMBOL = 40
_NUM_TOKENS_OF_TEXT = 3  # a start tag, text, an end tag
# The mark of a footnote, such as <sup><a href="#n1"><b>1</b></a></sup>, has fewer.
_MOST_TOKENS_OF_MARK = 50
_CHARSET = re.compile(rb"""<meta[^>]+charset\s*+=\s*+["']?+\s*+([A-Za-z0-9_.:-]+)""", re.IGNORECASE)


_XHTML = re.compile(
    r"""\s*(?:<\?xml\s|(?>(?:<!(?:--(?s:.*?)-->|(?!--)[^>]*+>)\s*+)*)<html\s[^>]*?xmlns\s*=\s*["']http://www\.w3\.org/1999/xhtml["'])""",
    re.IGNORECASE,
)


def read_html(data: bytes, options: ReadingOptions = DEFAULTS, *, is_xhtml: bool | None = None) -> SplicedDocument:
    """An HTML page or fragment.

    The content of <script>, <style>, <pre> and <code> stays, and so does that of elements with translate="no", with the
    class notranslate, or in another language than the page.

    Args:
        is_xhtml: whether it is read as XML; None: if it has an XML declaration, or its root the namespace of XHTML.
    """
    charset = _CHARSET.search(data[:_BEGINNING])
    named = charset[1].decode("ascii") if charset else declared_encoding(data)
    content = decoded(data, named, given=options.encoding, is_markup=True)
    if is_xhtml is None:
        is_xhtml = _XHTML.match(content.text[:_BEGINNING]) is not None
    tokens = options.watch.over(_tokens_of_page(content.text, is_xhtml=is_xhtml))
    reader = _Reader(content.text, list(tokens), options)
    return SplicedDocument(content, tuple(reader.slots), tuple(reader.edits))


def read_page(text: str) -> SplicedDocument:
    """A page whose text is known, such as a string of a program."""
    reader = _Reader(text, list(_tokens_of_page(text, is_xhtml=False)), DEFAULTS)
    return SplicedDocument(DecodedText(text), tuple(reader.slots), tuple(reader.edits))


def slots_in_part(text: str, options: ReadingOptions) -> list[Slot]:
    """The texts of a part of a page, such as a block of HTML in a Markdown text, by their places in the part."""
    tokens = list(options.watch.over(_tokens_of_page(text, is_xhtml=False)))
    return _Reader(text, tokens, options).slots


def forbids_translation(tag_attributes: Mapping[str, str]) -> bool:
    """Whether the attributes of a tag say that the content of its element is not to be translated."""
    return (
        tag_attributes.get("translate", "").strip().lower() == "no"
        or "notranslate" in tag_attributes.get("class", "").split()
    )


def is_kept_tag(tag: str) -> bool:
    """Whether a start tag says that the content of its element is not to be translated."""
    return forbids_translation({each.name: unescaped_html(each.value) for each in attributes(tag)})


def is_inline_element(name: str) -> bool:
    """Whether an element stands inside a sentence, such as b."""
    return name in _INLINE


class _Reader:
    """Reads an HTML text once, from the beginning to the end."""

    def __init__(self, text: str, tokens: list[HtmlToken], options: ReadingOptions) -> None:
        self.slots: list[Slot] = []
        self.edits: list[Edit] = []
        self._text = text
        self._watch = options.watch
        self._kept_elements = options.kept_elements
        self._tokens = tokens
        self._run: list[InlinePart] = []
        self._sentence = SentenceInWork()
        self._ends = ends_of_elements(self._tokens)
        self._first_tags = _first_tags(self._tokens)
        self._lines = LineNumbers(text)
        self._language = None if options.language is None else primary_language(options.language)
        # Of the element whose texts are read: the index behind its last token, and in how many such elements it stands.
        self._stop, self._depth = len(tokens), 0
        self._read_all(0, len(tokens))

    def _read_all(self, first: int, stop: int) -> None:
        """Read tokens[first:stop] as texts of their own."""
        outside = self._run, self._sentence, self._stop
        self._run, self._sentence, self._stop = [], SentenceInWork(), stop
        index = first
        while index < stop:
            self._watch.check()
            index = self._read(index)
        self._flush()
        self._run, self._sentence, self._stop = outside

    def _read_inside(self, index: int, end: int) -> None:
        """Read the texts inside an element of `tokens[index:end]` that is markup for the text around it, such as a picture."""
        name = self._tokens[index].name
        if self._depth == _MOST_NESTED or end - index < 2:
            return
        self._depth += 1
        if name in _WITH_INNER_TEXTS:
            self._read_all(index + 1, end)
        elif name in _FOREIGN:
            self._read_foreign(index + 1, end)
        self._depth -= 1

    def _read_foreign(self, first: int, stop: int) -> None:
        """Read the texts of a picture or formula: its titles, descriptions and words."""
        index = first
        while index < stop:
            token, following = self._tokens[index], index + 1
            if token.kind is TokenKind.START:
                tag_attributes = attributes(self._text[token.start : token.end])
                end = min(self._ends.get(index, following), stop)
                if self._is_kept(token.name, tag_attributes):
                    following = end
                else:
                    self._read_attributes(token, tag_attributes)
                    if token.name in _TEXTS_OF_FOREIGN:
                        self._read_all(index + 1, end)
                        following = end
            index = following

    def _end_of(self, index: int) -> int:
        """The index behind the element that begins with a start tag; behind the tag, if it has no end."""
        return min(self._ends.get(index, index + 1), self._stop)

    def _read(self, index: int) -> int:
        """Read a token, or a whole element whose content is not translated; gives the index of the next token."""
        token = self._tokens[index]
        raw = self._text[token.start : token.end]
        if token.kind is TokenKind.TEXT:
            text = unescaped_html(raw)
            if _follows_a_label(self._run, text):
                self._flush()
            self._add_text(text, token.start, token.end)
        elif token.kind is TokenKind.CDATA:
            text = raw[len(_CDATA) : -len(_END_OF_CDATA)]
            self._add_text(text, token.start, token.end)
        elif token.kind is TokenKind.STATEMENT or is_comment_with_statement(raw):
            self._flush()
        elif token.kind is TokenKind.OTHER:
            self._add(Role.POINT, token.start, token.end)
        elif token.kind is TokenKind.VALUE:
            self._add(Role.WORD, token.start, token.end)
        elif token.kind is TokenKind.END:
            if token.name in _INLINE:
                self._add(Role.CLOSE, token.start, token.end, token.name)
            elif token.name in _VOID:
                self._add(Role.POINT, token.start, token.end)  # without an effect, as </img>
            else:
                self._flush()
        else:
            return self._read_start(index, raw)
        return index + 1

    def _read_start(self, index: int, raw: str) -> int:
        token, tag_attributes = self._tokens[index], attributes(raw)
        if any(not each.quote and each.value[:1] in ("'", '"') for each in tag_attributes):
            # A browser goes on with the value to the next quotation mark: no word may come behind it.
            self._flush()
            return index + 1
        role = self._untranslated_role(token, tag_attributes)
        if role is not None and not self._is_kept(token.name, tag_attributes):
            self._read_attributes(token, tag_attributes)
            self._read_inside(index, self._end_of(index))
        elif role is None and self._is_mark(index):
            role = Role.POINT
        if role is not None:
            end = self._end_of(index)
            if role is Role.OPEN:
                self._flush()
            else:
                self._add(role, token.start, self._tokens[end - 1].end)
            return end
        self._read_tag(index, tag_attributes)
        self._read_attributes(token, tag_attributes)
        return index + 1

    def _read_tag(self, index: int, tag_attributes: list[Attribute]) -> None:
        """Read a start tag whose content is text: it is markup inside a sentence, or ends the text before it."""
        token = self._tokens[index]
        if token.name == "tspan" and _PLACES_OF_LINES.intersection(each.name for each in tag_attributes):
            self._flush()
        elif token.name in _INLINE and token.is_empty:
            self._add(Role.POINT, token.start, token.end)
        elif token.name in _INLINE:
            if self._begins_a_text(index) or self._is_other_case(token):
                self._flush()
            elif self._follows_a_change(token.name):
                self._add_text(" ", token.start, token.start)
            self._add(Role.OPEN, token.start, token.end, token.name)
        elif token.name in _POINTS and not self._is_field_between_texts(index, tag_attributes):
            self._add(Role.POINT, token.start, token.end)
            if token.name == "input":
                self._add_text(" ", token.end, token.end)
        elif token.name == "br" and self._sentence.goes_on(self._text_behind(index)):
            self._add(Role.POINT, token.start, token.end)
            # The words on both sides may have no white space between them.
            self._add_text(" ", token.end, token.end)
        else:
            self._flush()

    def _is_field_between_texts(self, index: int, tag_attributes: list[Attribute]) -> bool:
        """Whether a field of a form stands between two texts, as between two labels, and not inside a sentence."""
        if self._tokens[index].name != "input":
            return False
        is_hidden = any(each.name == "type" and each.value.lower() == "hidden" for each in tag_attributes)
        return not is_hidden and not self._sentence.goes_on(self._text_behind(index))

    def _follows_a_change(self, name: str) -> bool:
        """Whether an element is a change of the text directly behind another one: <del>red</del><ins>blue</ins> are two words."""
        last = self._run[-1] if self._run else None
        is_end = last is not None and isinstance(last.piece, Markup) and last.piece.role is Role.CLOSE
        if last is None or not is_end:
            return False
        kinds = [each == "ins" if each in _CHANGES else None for each in (last.name, name)]
        return None not in kinds and kinds[0] != kinds[1]

    def _begins_a_text(self, index: int) -> bool:
        """Whether an inline element and the one before it are texts of their own, as the links of a menu without white space.

        Two links are, and so are two other elements if a capital letter follows a small one. Parts of one word are not:
        <b>H</b><i>ello</i>.
        """
        sign = self._run[-1].piece if self._run else None
        num_signs = int(isinstance(sign, str) and sign in _BETWEEN_LINKS)
        closed = set()
        for part in islice(reversed(self._run), num_signs, None):
            if isinstance(part.piece, str) or part.piece.role is not Role.CLOSE:
                break
            closed.add(part.name)
        few = islice(reversed(self._run), num_signs, num_signs + _FEW_TAGS)
        before = next((part.piece for part in few if isinstance(part.piece, str)), "")[-1:]
        if not closed or not before.isalnum():
            return False
        after = self._text_behind(index)[:1]
        if not after.isalnum():
            return False
        is_link = "a" in closed and self._tokens[index].name == "a"
        return is_link or (not num_signs and before.islower() and after.isupper())

    def _is_other_case(self, token: HtmlToken) -> bool:
        """Whether a page shows either this element or the one before it, such as those with v-if and v-else, which is all the text before it."""
        if len(self._run) > _MOST_PARTS_OF_CASE or not _CONDITION.search(self._text, token.start, token.end):
            return False
        pieces = [each.piece for each in self._run]
        while pieces and isinstance(pieces[-1], str) and not pieces[-1].strip():
            pieces.pop()
        depth, place = 0, len(pieces)
        for piece in reversed(pieces):
            if isinstance(piece, str) and depth == 0:
                return False
            place -= 1
            if isinstance(piece, Markup):
                depth += (piece.role is Role.CLOSE) - (piece.role is Role.OPEN)
            if depth <= 0:
                break
        before = pieces[place] if pieces else ""
        if has_letter(plain_text(tuple(pieces[:place]))) or not isinstance(before, Markup):
            return False
        return depth == 0 and before.role is Role.OPEN and _CONDITION.search(before.raw) is not None

    def _text_behind(self, index: int) -> str:
        """The text that follows a tag in the same block; empty if there is none before the next line break."""
        for at in range(index + 1, len(self._tokens)):
            token = self._tokens[at]
            text = unescaped_html(self._text[token.start : token.end]).strip()
            if token.kind is TokenKind.TEXT and text:
                return text
            is_tag = token.kind in (TokenKind.START, TokenKind.END)
            if token.kind is TokenKind.STATEMENT or (is_tag and token.name not in _INLINE):
                break
        return ""

    def _is_mark(self, index: int) -> bool:
        """Whether an element is the mark of a footnote, a link without words, such as an arrow back to the text, or an index."""
        start, end = self._tokens[index], self._end_of(index)
        if start.name not in ("sup", "sub", "a") or end - index > _MOST_TOKENS_OF_MARK:
            return False
        texts = [each for each in self._tokens[index:end] if each.kind in (TokenKind.TEXT, TokenKind.CDATA)]
        text = unescaped_html("".join(self._text[each.start : each.end] for each in texts)).strip()
        # A number inside two elements stands behind what is before the outer one.
        place = self._tokens[self._first_tags[index]].start
        # In brackets it is read with them: without it, they would be empty.
        is_behind_word = place > 0 and not (self._text[place - 1].isspace() or self._text[place - 1] in BRACKETS)
        is_alone = end - index == _NUM_TOKENS_OF_TEXT
        if start.name in ("sup", "sub") and is_alone:
            before = self._text[max(0, start.start - _LONGEST_SYMBOL) : start.start]
            is_lowered = start.name == "sub"
            return stands_beside_word(text, before, is_lowered=is_lowered, language=self._language)
        if not text or has_letter(text) or start.name == "sub":
            return False
        # A number in a link is a mark directly behind a word; behind a space it is a number of the sentence.
        return start.name == "sup" or is_behind_word or not has_word(text)

    def _untranslated_role(self, token: HtmlToken, tag_attributes: list[Attribute]) -> Role | None:
        """The role of an element whose content is not translated; OPEN for a block, None for all other elements."""
        if token.name in _VOID:
            return None
        if token.name in _INVISIBLE or _is_icon(token.name, tag_attributes) or self._is_empty_and_unknown(token):
            return Role.POINT
        is_kept = self._is_kept(token.name, tag_attributes)
        is_inline = token.name in _INLINE or (token.name in self._kept_elements and token.name not in BLOCKS)
        if token.name in CODE or (is_kept and is_inline):
            return Role.WORD
        return Role.OPEN if is_kept or token.name in _CODE_BLOCKS else None

    def _is_empty_and_unknown(self, token: HtmlToken) -> bool:
        """Whether a tag begins an element without content that HTML does not know, such as <x id="7"></x>."""
        is_known = token.name in BLOCKS or token.name in _INLINE or token.name in CODE or token.name in _CODE_BLOCKS
        ending = f"</{token.name}"
        place = token.end + len(ending)
        is_empty = self._text[token.end : place].lower() == ending and self._text[place : place + 1] in ("", ">", " ")
        return is_empty and not is_known

    def _is_kept(self, name: str, tag_attributes: Sequence[Attribute]) -> bool:
        """Whether the content of an element is not to be translated: as its tag says, or the options of reading."""
        values = {each.name: unescaped_html(each.value) for each in tag_attributes}
        return name in self._kept_elements or forbids_translation(values) or self._is_foreign(name, tag_attributes)

    def _is_foreign(self, name: str, tag_attributes: Sequence[Attribute]) -> bool:
        """Whether an element names another language than the page."""
        values = {each.name: unescaped_html(each.value).strip() for each in tag_attributes}
        language = values.get("lang", values.get("xml:lang"))
        if not language:
            return False
        if name == "html":
            self._language = primary_language(language)
        return self._language not in (None, primary_language(language))

    def _add_text(self, text: str, start: int, end: int) -> None:
        self._run.append(InlinePart(text, start, end))
        self._sentence.add(text)

    def _add(self, role: Role, start: int, end: int, name: str = "") -> None:
        piece = Markup(role, start, self._text[start:end] or (IMPLIED_END if name == "a" else ""), start)
        self._run.append(InlinePart(piece, start, end, name))

    def _flush(self) -> None:
        """Make segments of the run of text and inline markup that ends here."""
        run, self._run = self._run, []
        self._sentence = SentenceInWork()
        pieces = tuple(part.piece for part in with_whole_words(nested(run)))
        if has_letter(plain_text(pieces)):
            start, end = run[0].start, run[-1].end
            whole = _with_icu_branches(pieces, f"line {self._lines.number_at(start)}")
            self._add_slot(start, end, Segment(whole, ""), _as_html)

    def _add_slot(self, start: int, end: int, segment: Segment, render: Callable[[TranslatedSegment], str]) -> None:
        place = f"line {self._lines.number_at(start)}"
        placed = self._watch.counted(replace(segment, place=place))
        self.slots.append(Slot(start, end, placed, render))

    def _read_attributes(self, token: HtmlToken, tag_attributes: list[Attribute]) -> None:
        values = {each.name: unescaped_html(each.value) for each in tag_attributes}
        for each in tag_attributes:
            start, end = token.start + each.start, token.start + each.end
            if each.name in ("lang", "xml:lang"):
                self.edits.append(Edit(start, end, partial(_language_of, each)))
            elif _is_text(token.name, each.name, values) and has_letter(values[each.name]):
                segment = Segment.plain(values[each.name], "", keeps_spaces=False)
                self._add_slot(start, end, segment, partial(_as_attribute, each))


def _with_icu_branches(pieces: tuple[Piece, ...], place: str) -> tuple[Piece, ...]:
    """The pieces of a text, with the branches of a message of ICU as texts of their own, as templates of Angular hold them."""
    if not any(isinstance(piece, str) and "{" in piece for piece in pieces):
        return pieces
    # Strings of programs hold HTML, so their module imports this one.
    from transformer_cli.extensions.documents.strings import with_icu_branches

    return with_icu_branches(pieces, place, _escaped)


def _follows_a_label(run: Sequence[InlinePart], text: str) -> bool:
    """Whether the elements of a run hold words or a number of their own, to which a text is glued: <span>NEWS</span>The dog is back.

    A word in two formats has another form: <b>O</b>nce, <b>H</b>TML, H<sub>2</sub>Se.
    """
    if len(run) > _FEW_TAGS or not (text[:1].isupper() and text[1:2].islower() and " " in text):
        return False
    if not run or not isinstance(run[0].piece, Markup) or not isinstance(run[-1].piece, Markup):
        return False
    if run[0].piece.role is not Role.OPEN or run[-1].piece.role is not Role.CLOSE:
        return False
    label = plain_text([part.piece for part in run])
    if label[-1:].isdecimal():  # <span>1.2</span>Introduction, <span>Step 3</span>Open the door
        return run[-1].name not in ("sup", "sub")
    label = label[:-1] if label[-1:] in _ENDS_OF_LABELS and label[-3:-1].isalpha() else label  # <b>Note:</b>The dog
    return label[-1:].islower() or (len(label) > 1 and label[-2:].isalpha() and label.isupper())


def _is_icon(tag: str, tag_attributes: Sequence[Attribute]) -> bool:
    """Whether the text of an element is the name of a picture in a font."""
    classes = (each.value.split() for each in tag_attributes if each.name == "class")
    return tag in _ICONS or any(name.startswith(_CLASSES_OF_ICONS) for name in chain(*classes))


def _is_text(tag: str, name: str, values: Mapping[str, str]) -> bool:
    """Whether the value of an attribute is text for people."""
    if tag == "meta":
        kind = values.get("name", values.get("property", "")).lower()
        return name == "content" and kind in _TEXTS_OF_META
    if name == "value":
        return tag == "input" and values.get("type", "").lower() in _BUTTONS
    return name in _TEXT_ATTRIBUTES


def _escaped(text: str) -> str:
    return escape(text, quote=False).replace("\u00a0", "&#160;")


def _as_html(found: TranslatedSegment) -> str:
    return rendered(found.pieces, _escaped)


def _as_attribute(given: Attribute, found: TranslatedSegment) -> str:
    quote = given.quote or '"'
    reference = {'"': "&quot;", "'": "&#39;"}[quote]
    return quote + _escaped(found.text).replace(quote, reference) + quote


def _language_of(given: Attribute, languages: Direction) -> str:
    """The value of an attribute `lang`: the target language, if it was the source language."""
    source, target = map(primary_language, languages)
    if primary_language(given.value) != source or source == target:
        return f"{given.quote}{given.value}{given.quote}"
    return f"{given.quote}{languages.target}{given.quote}"


def _first_tags(tokens: Sequence[HtmlToken]) -> list[int]:
    """For the index of each token, that of the first of the inline tags which stand directly before it."""
    firsts: list[int] = []
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else token
        is_tag = before.kind in (TokenKind.START, TokenKind.END) and before.name in _INLINE
        firsts.append(firsts[-1] if index and is_tag else index)
    return firsts


def ends_of_elements(tokens: Sequence[HtmlToken], *, is_page: bool = True) -> dict[int, int]:
    """For the index of each start tag with an end tag, the index behind its end tag.

    Args:
        is_page: whether a page has them, where <link> has no end; in strings <link>here</link> is a tag that the program knows.
    """
    opened: dict[str, list[int]] = {}
    ends = {}
    for index, token in enumerate(tokens):
        if token.kind is TokenKind.START and not (is_page and token.name in _VOID) and not token.is_empty:
            opened.setdefault(token.name, []).append(index)
        elif token.kind is TokenKind.END and opened.get(token.name):
            ends[opened[token.name].pop()] = index + 1
    return ends
