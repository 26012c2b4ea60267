"""The elements of XML, against lxml."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from transformer_cli.extensions.documents.xml import (
    Element,
    XmlToken,
    escaped_xml,
    read_xml,
    unescaped_xml,
    xml_tokens,
)
from transformer_cli.process.errors import DataError

NAMES = st.sampled_from(["a", "b:c", "d-e", "f"])
TEXTS = st.text(st.sampled_from("xy <>&'\"é\n\u00a0]"), max_size=8)


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> str:
    name = draw(NAMES)
    values = draw(st.lists(TEXTS, max_size=2))
    attributes = "".join(
        f" k{number}='{escaped_xml(value).replace(chr(39), '&#39;')}'"
        for number, value in enumerate(values)
    )
    inner = ""
    for _ in range(draw(st.integers(0, 3)) if depth else 0):
        inner += draw(
            st.one_of(
                elements(depth=depth - 1),
                TEXTS.map(escaped_xml),
                TEXTS.map(lambda text: f"<![CDATA[{text.replace(']', '')}]]>"),
                st.sampled_from(["<!-- <a> -->", "<?x <y> ?>", "&#233;&#xE9;&quot;"]),
            )
        )
    if not inner and draw(st.booleans()):
        return f"<{name}{attributes}/>"
    return f"<{name}{attributes}>{inner}</{name}>"


def shape(element: Element) -> list[object]:
    return [
        element.space,
        element.local,
        {name: value for name, value in element.attributes.items() if not name.startswith("xmlns")},
        [shape(child) for child in element.elements],
    ]


def shape_of_lxml(element: "etree._Element") -> list[object]:
    name = etree.QName(element)
    children = [shape_of_lxml(child) for child in element if isinstance(child.tag, str)]
    return [name.namespace or "", name.localname, dict(element.attrib), children]


@given(elements())
def test_elements_texts_and_attributes_are_those_that_lxml_reads(inner: str) -> None:
    text = f'<?xml version="1.0"?><!-- x --><root xmlns:b="urn:b">{inner}</root>'
    # XML reads a line break in an attribute as a space.
    text = text.replace("\n", " ")
    xml = read_xml(text.encode())
    expected = etree.fromstring(text.encode())
    assert shape(xml.root) == shape_of_lxml(expected)
    text_of_lxml = etree.tostring(expected, method="text", encoding="unicode")
    assert xml.whole_text(xml.root) == text_of_lxml
    tokens = list(xml_tokens(text))
    assert "".join(text[token.start : token.end] for token in tokens) == text
    for element in xml.root.walk():
        assert xml.raw(element).startswith(f"<{element.name}")
        for child in element.children:
            start, end = (child.start, child.end)
            assert element.inner_start <= start < end <= element.inner_end
            assert isinstance(child, XmlToken | Element)


@given(st.text())
def test_escaped_text_is_read_as_it_was(text: str) -> None:
    allowed = "".join(sign for sign in text if sign in "\t\n\r" or sign.isprintable())
    assert unescaped_xml(escaped_xml(allowed)) == allowed


@pytest.mark.parametrize(
    "bad",
    [
        b"<a>",
        b"<a></b>",
        b"text",
        b"",
        b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        b"<a>" * 300 + b"</a>" * 300,
    ],
)
def test_xml_that_is_broken_or_made_to_harm_is_refused(bad: bytes) -> None:
    with pytest.raises(DataError):
        read_xml(bad)


def test_other_encodings_are_read_by_their_declaration() -> None:
    text = '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'
    xml = read_xml(text.encode("latin-1"))
    assert xml.whole_text(xml.root) == "é"
    utf16 = read_xml('<?xml version="1.0" encoding="utf-16"?><a>é</a>'.encode("utf-16"))
    assert utf16.whole_text(utf16.root) == "é"
