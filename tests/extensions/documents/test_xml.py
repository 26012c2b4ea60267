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
        f" k{number}='{escaped_xml(value).replace(chr(39), '&#39;')}'" for number, value in enumerate(values)
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


@pytest.mark.long
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
    tokens = list(xml_tokens(text.encode(), xml.content))
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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_places_are_those_of_the_text_in_every_encoding(encoding: str) -> None:
    wide = "é" if encoding == "iso-8859-1" else "é€\U0001f600"
    text = f'<r>{wide}<a x="/>{wide}"></a><b/>{wide}<![CDATA[<c>{wide}]]><!--{wide}--><d>{wide}</d >\r\n</r>'
    name = "" if encoding == "utf-8-sig" else f' encoding="{encoding}"'
    text = f'<?xml version="1.0"{name}?>\n<!DOCTYPE r SYSTEM "r.dtd" [<!-- > --><?x ]>?><!ELEMENT b EMPTY>]>{text}'
    xml = read_xml(text.encode(encoding))
    raw = [xml.raw(element) for element in xml.root.elements]
    assert raw == [f'<a x="/>{wide}"></a>', "<b/>", f"<d>{wide}</d >"]
    assert xml.raw(xml.root) == text[text.index("<r>") :]
    assert xml.root.elements[0].attributes == {"x": f"/>{wide}"}
    shown = [xml.text_of(child) for child in xml.root.children if not isinstance(child, Element)]
    assert shown == [wide, wide, f"<c>{wide}", "", "\r\n"]


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("named", ["", ' encoding="utf-16"', ' encoding="UTF-16LE"'])
def test_a_text_in_utf_16_without_a_mark_is_known_by_its_first_bytes(codec: str, named: str) -> None:
    if "LE" in named:
        named = named.replace("LE", codec[-2:].upper())
    data = f'<?xml version="1.0"{named}?><a>b€<c/></a>'.encode(codec)
    xml = read_xml(data)
    assert xml.whole_text(xml.root) == "b€"
    assert xml.content.encoded(xml.content.text) == data


def test_an_entity_of_a_document_type_that_is_not_read_stays_as_it_is() -> None:
    xml = read_xml(b'<!DOCTYPE r SYSTEM "r.dtd"><r><a>&nbsp;b</a>c&nbsp;</r>')
    assert xml.whole_text(xml.root) == "&nbsp;bc&nbsp;"


def test_other_encodings_are_read_by_their_declaration() -> None:
    text = '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'
    xml = read_xml(text.encode("latin-1"))
    assert xml.whole_text(xml.root) == "é"
    utf16 = read_xml('<?xml version="1.0" encoding="utf-16"?><a>é</a>'.encode("utf-16"))
    assert utf16.whole_text(utf16.root) == "é"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize(
    ("sign", "name"),
    [
        ("\x0b", "U+000B"),
        ("\x00", "U+0000"),
        ("\x1f", "U+001F"),
        ("&#x1F;", "&#x1F;"),
        ("&#0;", "&#0;"),
        ("&#xD800;", "&#xD800;"),
        ("&#x110000;", "&#x110000;"),
        (f"&#{'9' * 5000};", "&#9999999999"),
    ],
)
def test_a_character_that_xml_forbids_is_left_out_with_its_line(
    encoding: str, sign: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    declared = "" if encoding == "utf-8-sig" else f' encoding="{encoding}"'
    head = f'<?xml version="1.0"{declared}?>\n<r>'
    text = f"{head}\n<a b='x{sign}y'>é{sign}z</a>{sign}<c/>&#9;&#xE9;</r>"
    xml = read_xml(text.encode(encoding), part="a.xml")
    assert xml.whole_text(xml.root) == "\néz\té"
    assert xml.root.elements[0].attributes == {"b": "xy"}
    assert xml.content.encoded(xml.content.text) == text.replace(sign, "").encode(encoding)
    [first, *others] = [record.getMessage() for record in caplog.records]
    assert first == f"line 3 of a.xml: the character {name}, which XML does not allow, was left out"
    assert len(others) == 2


def test_what_looks_like_a_forbidden_reference_stays_where_it_is_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = "<r><![CDATA[&#0;<!--]]>&#33;<!-- &#0; <![CDATA[ --><a>&amp;#0;</a></r>"
    xml = read_xml(text.encode())
    assert xml.content.text == text
    assert xml.whole_text(xml.root) == "&#0;<!--!&#0;"
    assert not caplog.records


def test_a_forbidden_character_does_not_make_broken_xml_readable() -> None:
    with pytest.raises(DataError, match="line 2: no well-formed XML"):
        read_xml(b"<a>\x0b\n<b></a>")
