"""Documents that are made to harm are refused before they take memory or read other files."""

import io
import zipfile
from contextlib import nullcontext

import pytest

from transformer_cli.extensions.documents.formats import ReadingLimits, ReadingOptions, format_named, read_document
from transformer_cli.extensions.documents.xml import read_xml
from transformer_cli.extensions.documents.zip_files import opened_archive, read_part
from transformer_cli.process.errors import DataError


def packed(*parts: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in parts:
            archive.writestr(name, data)
    return file.getvalue()


def test_a_part_of_an_ordinary_archive_is_read() -> None:
    archive = opened_archive(packed(("word/document.xml", b"<w/>"), ("a.png", b"\x00\x01")))
    assert read_part(archive, "word/document.xml") == b"<w/>"


@pytest.mark.long
def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(DataError, match="looks like a zip bomb"):
        opened_archive(packed(("a.xml", b"0" * 30_000_000)))


@pytest.mark.parametrize(("size", "limit", "is_refused"), [(1000, 1000, False), (1001, 1000, True)])
def test_a_small_document_that_repeats_itself_is_no_bomb(size: int, limit: int, is_refused: bool) -> None:
    data = packed(("a.xml", b"0" * size))
    limits = ReadingLimits(max_ratio=2, max_bytes_of_any_ratio=limit)
    with pytest.raises(DataError, match="looks like a zip bomb") if is_refused else nullcontext():
        opened_archive(data, limits)


def test_ten_mebibytes_of_one_sentence_are_read() -> None:
    opened_archive(packed(("a.xml", b"0" * 10_000_000)))


def test_a_part_with_a_false_size_in_its_header_is_refused() -> None:
    data = packed(("a.xml", b"0" * 1000))
    false = data.replace((1000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    with pytest.raises(DataError, match="damaged"):
        read_part(opened_archive(false), "a.xml")


def test_a_damaged_part_that_no_one_translates_is_refused_with_its_name() -> None:
    """Before the translation begins: the part is needed when the document is written."""
    data = packed(("content.xml", b"<w/>"), ("picture.png", b"0123456789"), compression=0)
    with pytest.raises(DataError, match=r"picture\.png: this part of the document is damaged"):
        opened_archive(data.replace(b"0123456789", b"0123456780"))


def test_a_part_in_a_compression_that_is_not_known_is_refused_with_its_name() -> None:
    data = bytearray(packed(("a.xml", b"<w/>"), ("theme.xml", b"<w/>")))
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        data[data.rindex(mark) + offset] = 99
    with pytest.raises(DataError, match=r"theme\.xml: this part of the document is damaged"):
        opened_archive(bytes(data))


def test_a_part_larger_than_the_limit_is_refused() -> None:
    archive = opened_archive(packed(("a.xml", b"0123456789" * 1000)))
    with pytest.raises(DataError, match="takes more than"):
        read_part(archive, "a.xml", ReadingLimits(max_part_bytes=100))


def test_too_many_parts_are_refused() -> None:
    parts = [(str(number), b"") for number in range(11)]
    with pytest.raises(DataError, match="11 parts; at most 10"):
        opened_archive(packed(*parts), ReadingLimits(max_parts=10))


@pytest.mark.parametrize("name", ["../etc/passwd", "/etc/passwd", "a/../../b", "..\\b"])
def test_a_name_that_leads_out_of_the_archive_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="leads out"):
        opened_archive(packed((name, b"x")))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_parts_of_one_name_are_refused() -> None:
    with pytest.raises(DataError, match="two parts"):
        opened_archive(packed(("a", b"1"), ("a", b"2")))


@pytest.mark.parametrize("name", ["csv", "txt", "yaml", "json", "po"])
def test_binary_data_is_named_as_such_and_not_by_an_encoding(name: str, caplog: pytest.LogCaptureFixture) -> None:
    program = b"\x7fELF\2\1\1" + bytes(9) + b"\3\0>\0\1\r\r\r\0\xd0\xf0\xdb, \t\n" * 100
    with pytest.raises(DataError, match=r"^binary data, where text in UTF-8 is expected"):
        read_document(program, format_named(name))
    assert not caplog.messages


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x03\x04" + b"\x00" * 100, b"x" * 1000])
def test_other_bytes_are_no_zip_file(data: bytes) -> None:
    with pytest.raises(DataError, match="no whole zip file"):
        opened_archive(data)


BILLION = b"""<!DOCTYPE a [<!ENTITY b "xxxxxxxxxx"><!ENTITY c "&b;&b;&b;&b;&b;">]><a>&c;</a>"""
EXTERNAL = b"""<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>"""
PARAMETER = b"""<!DOCTYPE a [<!ENTITY % b SYSTEM "http://127.0.0.1/x"> %b;]><a/>"""


@pytest.mark.parametrize("data", [BILLION, EXTERNAL, PARAMETER])
def test_entities_are_refused(data: bytes) -> None:
    with pytest.raises(DataError, match="line 1: the XML declares an entity"):
        read_xml(data)


def test_deep_nesting_is_refused() -> None:
    read_xml(b"<a>" * 200 + b"</a>" * 200)
    with pytest.raises(DataError, match="line 1: nested more than 200 deep"):
        read_xml(b"<a>" * 201 + b"</a>" * 201)


def test_broken_xml_is_refused_with_its_line() -> None:
    with pytest.raises(DataError, match="line 2: no well-formed XML: mismatched tag"):
        read_xml(b"<a>\n</b>")


def test_a_doctype_with_an_external_dtd_is_read_without_it() -> None:
    xml = read_xml(b'<!DOCTYPE a SYSTEM "http://127.0.0.1/none.dtd"><a>x</a>')
    assert xml.whole_text(xml.root) == "x"


def test_a_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(DataError, match="at most 0 MiB are read"):
        read_xml(b"<a></a>", ReadingOptions(limits=ReadingLimits(max_bytes=3)))
