"""The elements of an XML text with their places in it, so that a part can be replaced and the rest stays."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from transformer_cli.extensions.documents.character_encoding import (
    DecodedText,
    declared_encoding,
    decoded,
)
from transformer_cli.extensions.documents.guards.reading_limits import ReadingWatch
from transformer_cli.extensions.documents.guards.safe_xml import check_xml
from transformer_cli.extensions.documents.reading_options import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.xml.xml_tokens import (
    XmlKind,
    XmlToken,
    unescaped,
    xml_attributes,
    xml_tokens,
)
from transformer_cli.process.errors import DataError

_XML_SPACE = "http://www.w3.org/XML/1998/namespace"


@dataclass(slots=True, eq=False)
class Element:
    """An element of a text: text[start:end]; its content is text[inner_start:inner_end]."""

    name: str
    """As it is written, with its prefix."""
    space: str
    """The address of its namespace; empty if it has none."""
    local: str
    """The name without the prefix."""
    tag: str
    """Its start tag."""
    start: int
    inner_start: int
    inner_end: int = 0
    end: int = 0
    children: "list[Element | XmlToken]" = field(default_factory=list)

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes; their names have prefixes."""
        return xml_attributes(self.tag)

    @property
    def elements(self) -> "list[Element]":
        """The child elements."""
        return [child for child in self.children if isinstance(child, Element)]

    def child(self, local: str) -> "Element | None":
        """The first child element of a name."""
        return next((child for child in self.elements if child.local == local), None)

    def walk(self) -> "Iterator[Element]":
        """This element and all elements in it, in the order of their start tags."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.elements)


@dataclass(frozen=True, slots=True)
class XmlText:
    """An XML file as text, and its root element."""

    content: DecodedText
    root: Element

    def text_of(self, token: XmlToken) -> str:
        """The characters that a token of text stands for; nothing for a comment."""
        raw = self.content.text[token.start : token.end]
        if token.kind is XmlKind.CDATA:
            return raw[len("<![CDATA[") : -len("]]>")]
        return unescaped(raw) if token.kind is XmlKind.TEXT else ""

    def raw(self, element: Element) -> str:
        """An element as it stands in the file."""
        return self.content.text[element.start : element.end]

    def whole_text(self, element: Element) -> str:
        """All text inside an element, without its markup."""
        texts, waiting = [], [*reversed(element.children)]
        while waiting:
            child = waiting.pop()
            if isinstance(child, Element):
                waiting += reversed(child.children)
            else:
                texts.append(self.text_of(child))
        return "".join(texts)


def read_xml(data: bytes, options: ReadingOptions = DEFAULTS) -> XmlText:
    """The elements of an XML file.

    Raises:
        DataError: it is not well-formed, declares entities, or is too large or too deep.
    """
    check_xml(data, options.limits, options.watch)
    content = decoded(data, declared_encoding(data), is_markup=True)
    return XmlText(content, _root(content.text, options.watch))


def _root(text: str, watch: ReadingWatch) -> Element:
    root: Element | None = None
    opened: list[tuple[Element, dict[str, str]]] = []
    spaces = {"": "", "xml": _XML_SPACE}
    for token in watch.over(xml_tokens(text)):
        if token.kind in (XmlKind.START, XmlKind.EMPTY):
            tag = text[token.start : token.end]
            inner_spaces = _with_declared(spaces, tag)
            prefix, _, local = token.name.rpartition(":")
            space = inner_spaces.get(prefix, "")
            element = Element(token.name, space, local, tag, token.start, token.end)
            if opened:
                opened[-1][0].children.append(element)
            root = root or element
            if token.kind is XmlKind.EMPTY:
                element.inner_end = element.end = token.end
            else:
                opened.append((element, spaces))
                spaces = inner_spaces
        elif token.kind is XmlKind.END and opened:
            element, spaces = opened.pop()
            element.inner_end, element.end = token.start, token.end
        elif opened:
            opened[-1][0].children.append(token)
    if root is None or opened:
        raise DataError("no readable XML: an element has no end")
    return root


def _with_declared(spaces: dict[str, str], tag: str) -> dict[str, str]:
    """The namespaces inside an element, by their prefixes."""
    if "xmlns" not in tag:
        return spaces
    declared = {
        name.partition(":")[2]: value
        for name, value in xml_attributes(tag).items()
        if name == "xmlns" or name.startswith("xmlns:")
    }
    return spaces | declared
