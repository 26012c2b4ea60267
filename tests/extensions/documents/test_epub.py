"""EPUB: chapters, the table of contents and the description of the book."""

import pytest

from transformer_cli.extensions.documents.epub import read_epub
from transformer_cli.extensions.documents.segments import plain_text
from transformer_cli.process.errors import DataError

from .archives import packed, unpacked
from .fake_translators import Identity, WordByWord, done

CONTAINER = '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
OPF = """<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A small book</dc:title>
<dc:creator>Nobody</dc:creator><dc:language>en-GB</dc:language></metadata><manifest>
<item id="two" href="two%20b.xhtml" media-type="application/xhtml+xml"/><item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/><item id="css" href="a.css" media-type="text/css"/>
</manifest><spine><itemref idref="one"/><itemref idref="two"/></spine></package>"""
NCX = "<ncx><docTitle><text>A small book</text></docTitle><navLabel><text>First chapter</text></navLabel></ncx>"
PAGE = '<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><head><title>{0}</title></head><body><p>{0} <b>text</b><br/>&#160;end</p></body></html>'


def book(**changed: str) -> bytes:
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OEBPS/book.opf": OPF,
        "OEBPS/toc.ncx": NCX,
        "OEBPS/two b.xhtml": PAGE.format("Second"),
        "OEBPS/text/one.xhtml": PAGE.format("First"),
        "OEBPS/a.css": "p {color: red}",
    }
    return packed(parts | {name.replace("__", "/"): text for name, text in changed.items()}, stored=("mimetype",))


def test_chapters_are_translated_in_the_order_of_reading() -> None:
    texts = [plain_text(each.pieces) for each in read_epub(book()).segments]
    assert texts[0] == "A small book"
    assert texts.index("First") < texts.index("Second") < texts.index("First chapter")


def test_a_translated_book_names_its_language_and_is_xml_everywhere() -> None:
    words = WordByWord(lambda word: f"{word.upper()}\u00a0!")
    before, after = unpacked(book()), unpacked(done(read_epub(book()), words).data)
    assert list(after) == list(before)
    assert "<dc:language>it</dc:language>" in after["OEBPS/book.opf"]
    assert "Nobody" in after["OEBPS/book.opf"]
    assert "FIRST&#160;!" in after["OEBPS/text/one.xhtml"]
    assert 'xml:lang="it"' in after["OEBPS/text/one.xhtml"]
    assert "FIRST\u00a0! CHAPTER\u00a0!" in after["OEBPS/toc.ncx"]
    for name in ("mimetype", "META-INF/container.xml", "OEBPS/a.css"):
        assert after[name] == before[name]
    read_epub(done(read_epub(book()), words).data)


def test_a_chapter_that_is_not_there_is_named_and_one_with_a_place_in_its_address_is_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    opf = OPF.replace("two%20b.xhtml", "two%20c.xhtml").replace("text/one.xhtml", "text/one.xhtml#start")
    texts = [plain_text(each.pieces) for each in read_epub(book(**{"OEBPS/book.opf": opf})).segments]
    assert "First" in texts
    assert "Second" not in texts
    assert caplog.messages == [
        "OEBPS/two c.xhtml: the book names this chapter, but does not have it, so it is not translated"
    ]


def test_names_of_authors_and_numbers_of_pages_stay_in_the_table_of_contents() -> None:
    ncx = (
        "<ncx><docTitle><text>A book</text></docTitle><docAuthor><text>Green, Ann</text></docAuthor>"
        "<navMap><navPoint><navLabel><text>One</text></navLabel></navPoint></navMap>"
        "<pageList><navLabel><text>Pages</text></navLabel><pageTarget><navLabel><text>xii</text></navLabel></pageTarget></pageList></ncx>"
    )
    after = unpacked(done(read_epub(book(**{"OEBPS__toc.ncx": ncx}))).data)["OEBPS/toc.ncx"]
    wanted = ncx
    for text in ("A book", "One", "Pages"):
        wanted = wanted.replace(f">{text}<", f">{text.upper()}<")
    assert after == wanted


def test_a_chapter_without_a_language_is_in_that_of_its_book() -> None:
    page = '<html><body><p>Good day</p><p lang="de">Guten Tag</p></body></html>'
    after = unpacked(done(read_epub(book(**{"OEBPS__text__one.xhtml": page}))).data)
    assert after["OEBPS/text/one.xhtml"] == page.replace("Good day", "GOOD DAY")


def test_equal_translations_keep_every_byte() -> None:
    data = book(**{"OEBPS__book.opf": OPF.replace("en-GB", "en")})
    assert done(read_epub(data), Identity()).data == data


def test_an_encrypted_book_is_refused_and_one_with_obfuscated_fonts_is_not() -> None:
    method = '<encryption><EncryptedData><EncryptionMethod Algorithm="{}"/></EncryptedData></encryption>'
    with pytest.raises(DataError, match="encrypted"):
        read_epub(book(**{"META-INF__encryption.xml": method.format("aes")}))
    fonts = method.format("http://www.idpf.org/2008/embedding")
    assert read_epub(book(**{"META-INF__encryption.xml": fonts})).segments


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        packed({"a": "b"}),
        packed({"META-INF/container.xml": "<a/>"}),
        packed({"META-INF/container.xml": CONTAINER}),
    ],
)
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(DataError):
        read_epub(data)


def test_text_in_a_cdata_section_of_a_chapter_is_translated() -> None:
    page = "<html><head><script src='a.js'/></head><body><p><![CDATA[Tea & milk]]></p><p>The <a id='p2'/>end</p></body></html>"
    after = unpacked(done(read_epub(book(**{"OEBPS__text__one.xhtml": page}))).data)
    wanted = page.replace("<![CDATA[Tea & milk]]>", "TEA &amp; MILK").replace("The", "THE").replace("end<", "END<")
    assert after["OEBPS/text/one.xhtml"] == wanted


@pytest.mark.parametrize("kind", ["text/html", "text/x-oeb1-document"])
def test_chapters_of_other_types_of_pages_are_translated(kind: str) -> None:
    opf = OPF.replace('one.xhtml" media-type="application/xhtml+xml"', f'one.xhtml" media-type="{kind}"')
    after = unpacked(done(read_epub(book(**{"OEBPS__book.opf": opf}))).data)
    assert after["OEBPS/text/one.xhtml"] == unpacked(done(read_epub(book())).data)["OEBPS/text/one.xhtml"]


def test_a_picture_that_is_a_page_is_translated_and_another_chapter_is_named(caplog: pytest.LogCaptureFixture) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><text>Read it</text></svg>'
    items = (
        '<item id="p" href="p.svg" media-type="image/svg+xml"/><item id="q" href="q.svg" media-type="image/svg+xml"/>'
    )
    items += '<item id="d" href="d.xml" media-type="application/x-dtbook+xml"/>'
    refs = '<itemref idref="p"/><itemref idref="d"/></spine>'
    opf = OPF.replace("</manifest>", f"{items}</manifest>").replace("</spine>", refs)
    parts = {"OEBPS__p.svg": svg, "OEBPS__q.svg": svg, "OEBPS__d.xml": "<dtbook><p>A text</p></dtbook>"}
    after = unpacked(done(read_epub(book(**{"OEBPS__book.opf": opf}, **parts))).data)
    assert after["OEBPS/p.svg"] == svg.replace("Read it", "READ IT")
    assert after["OEBPS/q.svg"] == svg
    assert caplog.messages == [
        "OEBPS/d.xml: this chapter is no page of XHTML but application/x-dtbook+xml, so it is not translated"
    ]


def test_numbers_of_printed_pages_stay_and_titles_of_the_guide_are_translated() -> None:
    page = PAGE.format("First").replace(
        "<p>",
        '<nav epub:type="page-list" hidden=""><h2>Pages</h2><ol><li><a href="a">iv</a></li></ol></nav><nav epub:type="toc"><ol><li>iv</li></ol></nav><p>',
    )
    guide = '<guide><reference type="toc" title="What is inside" href="a"/></guide></package>'
    opf = OPF.replace("</package>", guide).replace("<package ", '<package xml:lang="en" ')
    ncx = '<ncx xml:lang="en"><docTitle><text>A book</text></docTitle></ncx>'
    parts = {"OEBPS__book.opf": opf, "OEBPS__text__one.xhtml": page, "OEBPS__toc.ncx": ncx}
    after = unpacked(done(read_epub(book(**parts))).data)
    assert '<h2>PAGES</h2><ol><li><a href="a">iv</a></li></ol></nav>' in after["OEBPS/text/one.xhtml"]
    assert "<li>IV</li>" in after["OEBPS/text/one.xhtml"]
    assert guide.replace("What is inside", "WHAT IS INSIDE") in after["OEBPS/book.opf"]
    assert '<package xml:lang="it"' in after["OEBPS/book.opf"]
    assert after["OEBPS/toc.ncx"].startswith('<ncx xml:lang="it">')
