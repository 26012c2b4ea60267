"""XML as a text with tags: a fragment whose elements are part of sentences, or divide them."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_cli.extensions.documents.character_encoding import DecodedText
from transformer_cli.extensions.documents.segments import (
    InlinePart,
    LineNumbers,
    Markup,
    Role,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    nested,
    plain_text,
    rendered,
)
from transformer_cli.extensions.documents.xml import (
    XmlKind,
    XmlToken,
    escaped_xml,
    forbidden_characters,
    unescaped_xml,
    without_characters,
    xml_tokens,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.normalization import has_letter


@dataclass(frozen=True, slots=True)
class TagRules:
    """What the elements of a text do with its sentences, by their names. A name in several sets belongs to the first one."""

    ignored: frozenset[str] = frozenset()
    """Elements whose content is not translated; inside a sentence, each takes the place of a word."""
    splitting: frozenset[str] = frozenset()
    """Elements that always end a sentence."""
    non_splitting: frozenset[str] = frozenset()
    """Elements that never end a sentence."""
    detects_outline: bool = True
    """Whether all other elements end a sentence, except those that stand beside text somewhere; else none of them does."""


def read_tagged_xml(text: str, rules: TagRules) -> SplicedDocument:
    """A fragment of XML: text and elements, with one root or without; characters that XML does not allow are left out.

    Raises:
        DataError: it is not well-formed, declares entities, or is nested too deeply.
    """
    text = without_characters(text, forbidden_characters(text))
    reader = _Reader(text, _tokens(text), rules)
    return SplicedDocument(DecodedText(text), tuple(reader.slots))


def _tokens(text: str) -> list[XmlToken]:
    # What begins with a declaration has one root; a fragment gets one, which is no part of it.
    if text.lstrip().startswith(("<?xml", "<!DOCTYPE")):
        whole = text.strip()
        tokens, moved = list(xml_tokens(whole.encode(), DecodedText(whole))), text.index(whole)
    else:
        whole = f"<_>{text}</_>"
        tokens, moved = list(xml_tokens(whole.encode(), DecodedText(whole)))[1:-1], -len("<_>")
    return [token._replace(start=token.start + moved, end=token.end + moved) for token in tokens]


class _Reader:
    """Reads a fragment once, from the beginning to the end."""

    def __init__(self, text: str, tokens: list[XmlToken], rules: TagRules) -> None:
        self.slots: list[Slot] = []
        self._text, self._rules = text, rules
        self._tokens = tokens
        self._inline = rules.non_splitting
        if rules.detects_outline:
            self._inline |= _names_beside_text(text, self._tokens)
        self._run: list[InlinePart] = []
        self._lines = LineNumbers(text)
        index = 0
        while index < len(self._tokens):
            index = self._read(index)
        self._flush()

    def _read(self, index: int) -> int:
        """Read a token, or a whole ignored element; gives the index of the next token."""
        token = self._tokens[index]
        raw = self._text[token.start : token.end]
        if token.kind is XmlKind.TEXT:
            self._run.append(InlinePart(unescaped_xml(raw), token.start, token.end))
        elif token.kind is XmlKind.CDATA:
            self._add(Role.WORD, token, token)
        elif token.kind is XmlKind.OTHER:
            self._add(Role.POINT, token, token)
        elif token.name in self._rules.ignored and token.kind is XmlKind.START:
            end = _end_of_element(self._tokens, index)
            self._add(Role.WORD, token, self._tokens[end])
            return end + 1
        elif self._splits(token.name):
            self._flush()
        else:
            roles = {XmlKind.START: Role.OPEN, XmlKind.END: Role.CLOSE, XmlKind.EMPTY: Role.POINT}
            self._add(roles[token.kind], token, token)
        return index + 1

    def _splits(self, name: str) -> bool:
        """Whether the tags of an element end a sentence."""
        if name in self._rules.ignored:
            return False
        if name in self._rules.splitting:
            return True
        return self._rules.detects_outline and name not in self._inline

    def _add(self, role: Role, first: XmlToken, last: XmlToken) -> None:
        piece = Markup(role, first.start, self._text[first.start : last.end], first.start)
        self._run.append(InlinePart(piece, first.start, last.end, first.name))

    def _flush(self) -> None:
        """Make segments of the run of text and inline tags that ends here."""
        run, self._run = self._run, []
        pieces = tuple(part.piece for part in nested(run))
        if has_letter(plain_text(pieces)):
            place = f"line {self._lines.number_at(run[0].start)}"
            self.slots.append(Slot(run[0].start, run[-1].end, Segment(pieces, place), _as_xml))


def _names_beside_text(text: str, tokens: Sequence[XmlToken]) -> frozenset[str]:
    """The names of elements that stand beside text with letters, in the same parent element, somewhere in a text."""
    names: set[str] = set()
    # Of each open element: the names of its children, and whether it has text of its own.
    opened: list[tuple[set[str], bool]] = [(set(), False)]
    for token in tokens:
        if token.kind is XmlKind.TEXT and has_letter(text[token.start : token.end]):
            opened[-1] = (opened[-1][0], True)
        elif token.kind in (XmlKind.START, XmlKind.EMPTY):
            opened[-1][0].add(token.name)
        if token.kind is XmlKind.START:
            opened.append((set(), False))
        elif token.kind is XmlKind.END:
            children, has_text = opened.pop()
            if has_text:
                names |= children
    children, has_text = opened[0]
    return frozenset(names | children) if has_text else frozenset(names)


def _end_of_element(tokens: Sequence[XmlToken], index: int) -> int:
    """The index of the end tag of the element that begins at an index."""
    depth = 0
    for place in range(index, len(tokens)):
        depth += (tokens[place].kind is XmlKind.START) - (tokens[place].kind is XmlKind.END)
        if depth == 0:
            return place
    raise DataError(f"the element {tokens[index].name} has no end")


def _as_xml(found: TranslatedSegment) -> str:
    return rendered(found.pieces, escaped_xml)
