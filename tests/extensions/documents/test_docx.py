"""DOCX: what is text, how runs come back, and everything else byte for byte."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from transformer_cli.extensions.documents.docx import read_docx
from transformer_cli.extensions.documents.segments import Markup, Role, plain_text
from transformer_cli.process.errors import DataError

from .archives import packed, unpacked
from .fake_translators import REVERSED, UPPER, Identity, WordByWord, done

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
BOLD, ITALIC = "<w:rPr><w:b/></w:rPr>", "<w:rPr><w:i/></w:rPr>"


def run(text: str, run_format: str = "") -> str:
    return f'<w:r w:rsidR="00A1">{run_format}<w:t xml:space="preserve">{text}</w:t></w:r>'


def body(*paragraphs: str) -> str:
    inner = "".join(f"<w:p><w:pPr><w:jc/></w:pPr>{each}</w:p>" for each in paragraphs)
    return f'<?xml version="1.0"?>\n<w:document xmlns:w="{W}" xmlns:r="urn:r"><w:body>{inner}<w:sectPr/></w:body></w:document>'


def docx(*paragraphs: str, **others: str) -> bytes:
    more = {f"word/{name}.xml": content for name, content in others.items()}
    return packed(
        {"[Content_Types].xml": "<Types/>", "word/document.xml": body(*paragraphs)}
        | more
        | {"word/media/a.png": "\u0089"}
    )


def texts(data: bytes) -> list[str]:
    return [plain_text(segment.pieces) for segment in read_docx(data).segments]


def shown(document: str) -> list[list[tuple[str, str]]]:
    """For each paragraph, what Word shows: the format and the text of each stretch; other content by its name."""
    found = []
    for paragraph in etree.fromstring(document.encode()).iter(f"{{{W}}}p"):
        stretches: list[tuple[str, str]] = []
        for each in paragraph.iter(f"{{{W}}}r"):
            properties = each.find(f"{{{W}}}rPr")
            names = "" if properties is None else " ".join(etree.QName(p).localname for p in properties)
            for child in each:
                name = etree.QName(child).localname
                text = child.text or "" if name == "t" else f"<{name}>"
                if name == "rPr":
                    continue
                if name == "t" and stretches and stretches[-1][0] == names and "<" not in stretches[-1][1]:
                    stretches[-1] = (names, stretches[-1][1] + text)
                elif text:
                    stretches.append((names, text))
        found.append(stretches)
    return found


def result(*paragraphs: str, translator: WordByWord = UPPER) -> str:
    return unpacked(done(read_docx(docx(*paragraphs)), translator).data)["word/document.xml"]


def test_runs_with_the_same_format_are_one_text_and_others_are_ranges_that_move() -> None:
    paragraph = (
        run("The ")
        + '<w:proofErr w:type="spellStart"/>'
        + run("ol")
        + run("d ")
        + run("red", BOLD)
        + run(" car")
        + run(" ", BOLD)
        + run("stops", ITALIC)
    )
    [segment] = read_docx(docx(paragraph)).segments
    assert plain_text(segment.pieces) == "The old red car stops"
    assert sum(isinstance(piece, Markup) for piece in segment.pieces) == 4
    [stretches] = shown(result(paragraph))
    assert stretches == [("", "THE OLD "), ("b", "RED"), ("", " CAR "), ("i", "STOPS")]
    [backwards] = shown(result(paragraph, translator=REVERSED))
    assert backwards == [("i", "STOPS"), ("", " CAR "), ("b", "RED"), ("", " OLD THE")]


def test_the_format_of_most_of_the_text_is_that_of_the_paragraph() -> None:
    [segment] = read_docx(docx(run("All of this is bold ", BOLD) + run("but this"))).segments
    assert isinstance(segment.pieces[0], str)
    assert isinstance(segment.pieces[1], Markup)


def test_tabs_and_line_breaks_divide_texts_and_stay_in_their_runs() -> None:
    paragraph = (
        "<w:r><w:rPr><w:b/></w:rPr><w:t>First</w:t><w:br/><w:t>second</w:t><w:tab/></w:r><w:r><w:t>third</w:t></w:r>"
    )
    assert texts(docx(paragraph)) == ["First", "second", "third"]
    [stretches] = shown(result(paragraph))
    assert stretches == [("b", "FIRST"), ("b", "<br>"), ("b", "SECOND"), ("b", "<tab>"), ("", "THIRD")]


def test_links_move_with_their_words_and_fields_take_the_place_of_a_word() -> None:
    link = '<w:hyperlink r:id="rId5">' + run("this page", ITALIC) + "</w:hyperlink>"
    number = (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> PAGE </w:instrText></w:r>'
        '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>12</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
    paragraph = run("See ") + link + run(" on ") + number + run(" please")
    found = result(paragraph, translator=REVERSED)
    assert number in found
    assert re.search(
        r'<w:hyperlink r:id="rId5"><w:r><w:rPr><w:i/></w:rPr><w:t[^>]*>PAGE THIS</w:t></w:r></w:hyperlink>', found
    )
    order = [found.index(part) for part in ("PLEASE", "begin", "ON", "hyperlink r", "SEE")]
    assert order == sorted(order)


def test_the_text_of_a_link_that_is_a_field_is_translated() -> None:
    parts = [
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> HYPERLINK "x" </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>',
        run("a page"),
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
    ]
    found = result(run("See ") + "".join(parts))
    assert found.index(parts[0]) < found.index("A PAGE") < found.index(parts[2])


def test_notes_headers_and_text_boxes_are_translated_and_comments_and_deleted_text_are_not() -> None:
    box = f"<w:r><w:drawing><w:txbxContent><w:p>{run('In a box')}{run(' bold', BOLD)}</w:p></w:txbxContent></w:drawing></w:r>"
    note = '<w:r><w:rPr><w:vertAlign/></w:rPr><w:footnoteReference w:id="2"/></w:r>'
    paragraph = (
        run("Outside") + box + note + '<w:del w:id="1"><w:r><w:delText>gone</w:delText></w:r></w:del>' + run(" text")
    )
    others = {
        name: f'<w:{name} xmlns:w="{W}"><w:p>{run(f"Text of {name}")}</w:p></w:{name}>'
        for name in ("header1", "footer2", "footnotes", "endnotes", "comments")
    }
    data = docx(paragraph, **others)
    assert sorted(texts(data)) == sorted(
        [
            "Outside text",
            "In a box bold",
            "Text of header1",
            "Text of footer2",
            "Text of footnotes",
            "Text of endnotes",
        ]
    )
    parts = unpacked(done(read_docx(data)).data)
    assert parts["word/comments.xml"] == others["comments"]
    assert "TEXT OF header1" in parts["word/header1.xml"]
    document = parts["word/document.xml"]
    assert document.count("gone") == document.count("footnoteReference") == 1
    assert "OUTSIDE" in document
    assert re.search(r"<w:txbxContent><w:p>.*IN A BOX.*BOLD.*</w:p></w:txbxContent>", document)


def test_a_place_names_the_part_and_the_paragraph() -> None:
    assert read_docx(docx(run("1"), run("Two"))).segments[0].place == "word/document.xml, paragraph 2"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"text", "no whole zip file"),
        (b"\xd0\xcf\x11\xe0" + bytes(20), "an old .doc file"),
        (packed({"a.txt": "x"}), "it has no word/document.xml"),
        (packed({"word/document.xml": "<a>"}), "no well-formed XML"),
        (packed({"word/document.xml": "<a>" + " " * 18_000_000 + "</a>"}), "zip bomb"),
        (packed({"word/document.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a/>'}), "declares an entity"),
    ],
)
def test_other_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_docx(data)


ITEMS = st.sampled_from(
    [
        "<w:t>word</w:t>",
        '<w:t xml:space="preserve"> two words </w:t>',
        "<w:tab/>",
        "<w:br/>",
        '<w:footnoteReference w:id="1"/>',
        "<w:t>é &amp; &lt;</w:t>",
        "<w:t/>",
        "<w:noBreakHyphen/>",
        "<w:lastRenderedPageBreak/>",
        "<w:drawing><w:x/></w:drawing>",
    ]
)
FORMATS = st.sampled_from(["", "", BOLD, ITALIC])
RUNS = st.builds(lambda f, items: f"<w:r>{f}{''.join(items)}</w:r>", FORMATS, st.lists(ITEMS, max_size=3))
MARKS = st.sampled_from(
    [
        '<w:bookmarkStart w:id="0"/>',
        '<w:bookmarkEnd w:id="0"/>',
        '<w:fldSimple w:instr="PAGE"><w:r><w:t>3</w:t></w:r></w:fldSimple>',
    ]
)
CONTENT = st.lists(st.one_of(RUNS, MARKS), max_size=4).map("".join)
WRAPPED = st.one_of(
    CONTENT,
    CONTENT.map(lambda inner: f'<w:hyperlink r:id="a">{inner}</w:hyperlink>'),
    CONTENT.map(lambda inner: f"<w:sdt><w:sdtPr/><w:sdtContent>{inner}</w:sdtContent></w:sdt>"),
    CONTENT.map(lambda inner: f"<w:r><w:pict><w:txbxContent><w:p>{inner}</w:p></w:txbxContent></w:pict></w:r>"),
)
PARAGRAPHS = st.lists(WRAPPED, max_size=4).map("".join)


def names(document: str) -> Counter[str]:
    """The elements that are neither runs, texts nor formats, and what Word forgets."""
    tags = (etree.QName(each).localname for each in etree.fromstring(document.encode()).iter())
    forgotten = ("r", "t", "rPr", "b", "i", "lastRenderedPageBreak", "noBreakHyphen")
    return Counter(tag for tag in tags if tag not in forgotten)


def letters(document: str) -> Counter[str]:
    text = etree.tostring(etree.fromstring(document.encode()), method="text", encoding="unicode")
    return Counter(sign for sign in text.upper() if sign.isalnum())


@pytest.mark.long
@given(st.lists(PARAGRAPHS, min_size=1, max_size=3))
def test_equal_translations_keep_every_byte_and_others_lose_and_double_nothing(
    paragraphs: list[str],
) -> None:
    data = docx(*paragraphs)
    assert done(read_docx(data), Identity()).data == data
    before = unpacked(data)["word/document.xml"]
    for translator in (UPPER, REVERSED):
        parts = unpacked(done(read_docx(data), translator).data)
        after = parts["word/document.xml"]
        assert names(after) == names(before)
        assert letters(after) == letters(before)
        for text in etree.fromstring(after.encode()).iter(f"{{{W}}}t"):
            assert etree.QName(text.getparent()).localname == "r"
        for each in etree.fromstring(after.encode()).iter(f"{{{W}}}r"):
            assert etree.QName(each.getparent()).localname != "r"
        assert {**parts, "word/document.xml": before} == unpacked(data)


def test_an_empty_format_is_none() -> None:
    found = result(run("Split", '<w:rPr><w:lang w:val="en"/></w:rPr>') + run(" word"))
    assert "SPLIT WORD" in found


FIELD = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> HYPERLINK "x" </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>',
    '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
)


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (f'<w:ins w:id="5">{run("very big ")}</w:ins>', "BIG VERY</w:t></w:r></w:ins>"),
        (f"<w:smartTag>{run('very big ')}</w:smartTag>", "BIG VERY</w:t></w:r></w:smartTag>"),
        (
            f"<w:sdt><w:sdtPr/><w:sdtContent>{run('very big ')}</w:sdtContent></w:sdt>",
            "BIG VERY</w:t></w:r></w:sdtContent></w:sdt>",
        ),
        (
            '<w:del w:id="5"><w:r><w:delText>very big </w:delText></w:r></w:del>',
            "<w:delText>very big </w:delText></w:r></w:del>",
        ),
        (
            f'<w:bookmarkStart w:id="7" w:name="x"/>{run("very big ")}<w:bookmarkEnd w:id="7"/>',
            'BIG VERY</w:t></w:r><w:bookmarkEnd w:id="7"/>',
        ),
    ],
)
def test_whatever_stands_in_a_link_that_is_a_field_stays_in_it(inside: str, expected: str) -> None:
    begin, end = FIELD
    paragraph = f"{run('See ')}{begin}{run('the ')}{inside}{run('red house')}{end}{run(' there.')}"
    found = result(paragraph, translator=REVERSED)
    link = found[found.index(begin) : found.index(end)]
    assert expected in link
    assert all(word in link for word in ("HOUSE", "RED", "THE"))


def test_a_link_field_may_begin_and_end_inside_runs_with_text() -> None:
    begin, end = (mark.removeprefix("<w:r>").removesuffix("</w:r>") for mark in FIELD)
    paragraph = f'<w:r>{BOLD}<w:t xml:space="preserve">See </w:t>{begin}<w:t>the house</w:t></w:r>{run(" of")}<w:r><w:t xml:space="preserve"> Anna</w:t>{end}<w:t xml:space="preserve"> now</w:t></w:r>'
    found = result(paragraph)
    etree.fromstring(found.encode())
    marks = re.sub(r"<w:rPr>.*?</w:rPr>|</?w:[rt]\b[^>]*>", "", found[found.index("SEE") :])
    kept = re.sub(r"</?w:r>", "", begin)
    assert marks.startswith(f"SEE {kept}THE HOUSE OF ANNA{end} NOW")


@pytest.mark.parametrize("kind", ["bookmark", "commentRange", "perm", "moveToRange"])
def test_two_marks_that_belong_together_stay_around_their_words(kind: str) -> None:
    start, end = f'<w:{kind}Start w:id="1"/>', f'<w:{kind}End w:id="1"/>'
    found = result(f"{run('I have a ')}{start}{run('red car')}{end}{run(' and a dog.')}", translator=REVERSED)
    assert re.sub(r"<[^>]*>", "", found[found.index(start) : found.index(end)]) == "CAR RED"


def test_marks_that_cross_a_link_keep_their_order() -> None:
    start, end = '<w:bookmarkStart w:id="1"/>', '<w:bookmarkEnd w:id="1"/>'
    link = f'<w:hyperlink r:id="r">{run("a big ")}{start}{run("red")}</w:hyperlink>'
    found = result(f"{run('I have ')}{link}{run(' car')}{end}{run(' and a dog.')}", translator=REVERSED)
    assert found.index(start) < found.index(end)
    etree.fromstring(found.encode())


def test_the_main_part_and_its_headers_are_those_that_the_package_names() -> None:
    def relationships(*targets: tuple[str, str]) -> str:
        inner = "".join(
            f'<Relationship Id="r" Type="http://x/relationships/{kind}" Target="{target}"/>' for kind, target in targets
        )
        return f'<Relationships xmlns="http://x">{inner}</Relationships>'

    header = f'<w:hdr xmlns:w="{W}"><w:p>{run("At the top")}</w:p></w:hdr>'
    parts = {
        "_rels/.rels": relationships(
            ("officeDocument", "/word/document2.xml"), ("extended-properties", "docProps/app.xml")
        ),
        "word/document2.xml": body(run("The house")),
        "word/_rels/document2.xml.rels": relationships(
            ("header", "tops/one.xml"), ("styles", "styles.xml"), ("image", "../a.png")
        ),
        "word/tops/one.xml": header,
        "word/header9.xml": header.replace("top", "side"),
    }
    assert texts(packed(parts)) == ["The house", "At the top"]


def test_a_control_character_in_a_part_is_left_out_and_the_part_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = docx(run("The house\x0b is big"))
    assert texts(data) == ["The house is big"]
    assert "line 2 of word/document.xml: the character U+000B" in caplog.text
    written = unpacked(done(read_docx(data), UPPER).data)["word/document.xml"]
    assert "THE HOUSE IS BIG" in written
    etree.fromstring(written.encode())


# A run of a drawing must have a text.
EMPTY = "<a:t></a:t>"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"


def with_diagram(paragraph: str) -> bytes:
    """A document with SmartArt: its data, and the drawing that other programs show."""
    kinds = {
        "data1": "http://schemas.openxmlformats.org/officeDocument/2006/relationships/diagramData",
        "drawing1": "http://schemas.microsoft.com/office/2007/relationships/diagramDrawing",
    }
    targets = "".join(
        f'<Relationship Id="r{number}" Type="{kind}" Target="diagrams/{name}.xml"/>'
        for number, (name, kind) in enumerate(kinds.items())
    )
    drawing = f'<d:t xmlns:d="urn:d" xmlns:a="{A}"><a:bodyPr/><a:p>{paragraph}</a:p></d:t>'
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": body(run("The house")),
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{RELATIONSHIPS}">{targets}</Relationships>',
            "word/diagrams/data1.xml": drawing,
            "word/diagrams/drawing1.xml": drawing,
        }
    )


@pytest.mark.parametrize(
    ("paragraph", "reversed_"),
    [
        (
            '<a:pPr/><a:r><a:rPr lang="en-US" dirty="0"/><a:t>The big house</a:t></a:r><a:endParaRPr/>',
            '<a:pPr/><a:r><a:rPr lang="it" dirty="0"/><a:t>HOUSE BIG THE</a:t></a:r><a:endParaRPr/>',
        ),
        (
            '<a:r><a:rPr lang="en-US"/><a:t>The ho</a:t></a:r><a:r><a:rPr lang="it"/><a:t>use is </a:t></a:r><a:r><a:rPr b="1" err="1"/><a:t>big</a:t></a:r>',
            f'<a:r><a:rPr lang="it"/>{EMPTY}</a:r><a:r><a:rPr b="1"/><a:t>BIG</a:t></a:r><a:r><a:t> IS HOUSE THE</a:t></a:r><a:r><a:rPr b="1"/>{EMPTY}</a:r>',
        ),
        (
            "<a:r><a:t>One dog</a:t></a:r><a:br/><a:r><a:t>Two dogs</a:t></a:r>",
            "<a:r><a:t>DOG ONE</a:t></a:r><a:br/><a:r><a:t>DOGS TWO</a:t></a:r>",
        ),
        (
            '<a:r><a:t>Page </a:t></a:r><a:fld id="1"><a:t>7</a:t></a:fld>',
            f'<a:r>{EMPTY}</a:r><a:fld id="1"><a:t>7</a:t></a:fld><a:r><a:t> PAGE</a:t></a:r>',
        ),
    ],
)
def test_the_texts_of_smart_art_are_translated(paragraph: str, reversed_: str) -> None:
    data = with_diagram(paragraph)
    before, after = unpacked(data), unpacked(done(read_docx(data), REVERSED).data)
    for name in ("word/diagrams/data1.xml", "word/diagrams/drawing1.xml"):
        assert after[name] == before[name].replace(paragraph, reversed_)
    assert done(read_docx(data), Identity()).data == data


RUBY = "<w:ruby><w:rubyPr/><w:rt>{reading}</w:rt><w:rubyBase>{base}</w:rubyBase></w:ruby>"


@pytest.mark.parametrize("beside", [("", ""), ("<w:t>old</w:t>", "<w:t> red</w:t>")])
def test_the_base_of_ruby_is_text_and_its_reading_stays_above_it(beside: tuple[str, str]) -> None:
    ruby = RUBY.format(reading=run("reading"), base=run("big", ITALIC) + run(" dog"))
    before, behind = beside
    data = docx(run("The ") + f"<w:r>{BOLD}{before}{ruby}{behind}</w:r>" + run(" house"))
    assert texts(data) == ["The " + ("oldbig dogred" if before else "big dog") + " house"]
    written = unpacked(done(read_docx(data), REVERSED).data)["word/document.xml"]
    root = etree.fromstring(written.encode())
    [found] = root.iter(f"{{{W}}}ruby")
    reading, base = (found.find(f"{{{W}}}{name}") for name in ("rt", "rubyBase"))
    assert reading is not None
    assert base is not None
    assert "".join(reading.itertext()) == "reading"
    assert "BIG" in "".join(base.itertext())
    assert {etree.QName(each).localname for each in base} == {"r"}
    [parent] = root.iterfind(f".//{{{W}}}ruby/..")
    assert etree.QName(parent).localname == "r"
    whole = "".join(each.text or "" for each in root.iter(f"{{{W}}}t"))
    for word in ("THE", "HOUSE", "DOG", *(("RED", "OLD") if before else ())):
        assert word in whole
    assert done(read_docx(data), Identity()).data == data


def test_ruby_without_a_base_stays() -> None:
    ruby = RUBY.format(reading=run("reading"), base="")
    data = docx(run("The ") + f"<w:r>{ruby}</w:r>" + run("house"))
    assert ruby in unpacked(done(read_docx(data), UPPER).data)["word/document.xml"]


RAISED, LOWERED = (f'<w:rPr><w:vertAlign w:val="{name}script"/></w:rPr>' for name in ("super", "sub"))
NOTE = '<w:r><w:footnoteReference w:id="2"/></w:r>'


@pytest.mark.parametrize(
    ("paragraph", "wanted"),
    [
        (run("Five m") + run("2", RAISED), [("", "m"), ("vertAlign", "2"), ("", " FIVE")]),
        (run("Red H") + run("2", LOWERED) + run("O"), [("", "H"), ("vertAlign", "2"), ("", "O RED")]),
        (run("The car") + run("1", RAISED) + run(" is"), [("", "IS CAR"), ("vertAlign", "1"), ("", " THE")]),
        (run("The car") + run("TM", RAISED) + run(" is"), [("", "IS CAR"), ("vertAlign", "TM"), ("", " THE")]),
        (run("Red x") + run("i", LOWERED) + run(" is"), [("", "IS X"), ("vertAlign", "i"), ("", " RED")]),
        (run("The car.") + NOTE + run(" We go"), [("", "CAR. THE"), ("", "<footnoteReference>"), ("", " GO WE")]),
    ],
)
def test_what_is_raised_or_lowered_stays_with_its_word(paragraph: str, wanted: list[tuple[str, str]]) -> None:
    assert shown(result(paragraph, translator=REVERSED)) == [wanted]


CAP = '<w:pPr><w:framePr w:dropCap="drop" w:lines="3"/></w:pPr>'


def with_initial(letters: str, *behind: str, between: str = "") -> str:
    first = f"<w:p>{CAP}{run(letters)}</w:p>"
    return f"<w:p/>{first}{between}" + "".join(f"<w:p>{each}</w:p>" for each in behind)


def of_initial(inner: str, translator: WordByWord) -> list[str]:
    """The texts of the paragraphs in the body of a document with an initial."""
    document = body("").replace("<w:sectPr/>", f"{inner}<w:sectPr/>")
    data = packed({"[Content_Types].xml": "<Types/>", "word/document.xml": document})
    assert done(read_docx(data), Identity()).data == data
    written = unpacked(done(read_docx(data), translator).data)["word/document.xml"]
    texts = ["".join(text for _, text in each) for each in shown(written)]
    return [text for text in texts if text]


@pytest.mark.parametrize(
    ("letters", "behind", "expected"),
    [
        ("T", run("he red car"), ["C", "AR RED THE"]),
        ("T", run("he ") + run("red", BOLD) + run(" car"), ["C", "AR RED THE"]),
        ("I", run(" am red"), ["RED", " AM I"]),
        ("Once", run(" upon a time"), ["TIME", " A UPON ONCE"]),
        ("Th", run("e red car"), ["CA", "R RED THE"]),
    ],
)
def test_a_drop_cap_and_the_text_behind_it_are_one_text(letters: str, behind: str, expected: list[str]) -> None:
    assert of_initial(with_initial(letters, behind), REVERSED) == expected


def test_a_mark_before_the_first_letter_of_a_translation_stays_with_it() -> None:
    quoting = WordByWord(lambda word: f"\u00ab{word}\u00bb")
    assert of_initial(with_initial("T", run("he")), quoting) == ["\u00abT", "he\u00bb"]


def test_a_drop_cap_without_a_text_directly_behind_it_is_a_text_of_its_own() -> None:
    table = f"<w:tbl><w:tr><w:tc><w:p>{run('in a table')}</w:p></w:tc></w:tr></w:tbl>"
    assert of_initial(with_initial("Once", between=table), UPPER) == ["ONCE", "IN A TABLE"]
    assert of_initial(with_initial("Once"), UPPER) == ["ONCE"]
    assert of_initial(with_initial("T", "", run("he car")), UPPER) == ["T", "HE CAR"]


def test_the_format_of_the_first_letter_of_a_text_stays_with_the_first_letter() -> None:
    written = result(run("T", BOLD) + run("he red car"), translator=REVERSED)
    assert shown(written) == [[("b", "C"), ("", "AR RED THE")]]


@pytest.mark.parametrize("kind", ["dropDownList", "date"])
def test_a_control_with_a_list_or_a_date_takes_the_place_of_a_word(kind: str) -> None:
    control = f'<w:sdt><w:sdtPr><w:{kind}><w:listItem w:displayText="red"/></w:{kind}></w:sdtPr><w:sdtContent>{run("red")}</w:sdtContent></w:sdt>'
    found = result(run("Choose ") + control + run(" dogs"), translator=REVERSED)
    assert control in found
    assert re.search(f"DOGS .*{kind}.* CHOOSE", found)


def test_a_formula_in_a_sentence_takes_the_place_of_a_word() -> None:
    formula = '<m:oMath xmlns:m="urn:m"><m:r><m:t>x+y</m:t></m:r></m:oMath>'
    [segment] = read_docx(docx(formula + run(" is a sum"))).segments
    assert [piece.role for piece in segment.pieces if isinstance(piece, Markup)] == [Role.WORD]
    assert re.search(r"SUM A IS .*x\+y", result(formula + run(" is a sum"), translator=REVERSED))


@pytest.mark.parametrize("binding", ["w:dataBinding w:xpath='/a'", "w15:dataBinding", "w:text"])
def test_a_control_that_is_bound_to_data_is_named(binding: str, caplog: pytest.LogCaptureFixture) -> None:
    """Word writes the data in the place of the translation when it opens the file."""
    control = f"<w:sdt><w:sdtPr><{binding}/></w:sdtPr><w:sdtContent>{run('A red dog')}</w:sdtContent></w:sdt>"
    name = 'xmlns:w15="urn:w15"'
    read_docx(docx(control.replace("<w:sdt>", f"<w:sdt {name}>")))
    assert ("(w:dataBinding)" in caplog.text) == ("dataBinding" in binding)


@pytest.mark.parametrize("kind", ["dropDownList", "date"])
def test_a_control_with_a_list_or_a_date_around_a_paragraph_stays(kind: str) -> None:
    control = f"<w:sdt><w:sdtPr><w:{kind}/></w:sdtPr><w:sdtContent><w:p>{run('A red dog')}</w:p></w:sdtContent></w:sdt>"
    parts = unpacked(docx(run("Choose")))
    parts["word/document.xml"] = parts["word/document.xml"].replace("<w:p>", f"{control}<w:p>", 1)
    [segment] = read_docx(packed(parts)).segments
    assert plain_text(segment.pieces) == "Choose"


def test_a_line_through_words_is_not_on_the_spaces_beside_them() -> None:
    struck, subscript = "<w:rPr><w:strike/></w:rPr>", '<w:rPr><w:vertAlign w:val="subscript"/></w:rPr>'
    for line in (struck, '<w:rPr><w:u w:val="single"/></w:rPr>'):
        given = run("big", BOLD) + run(" ") + run("dog", ITALIC) + run(" ") + run("strikethrough", line)
        found = result(given)
        of_line = "strike" if line is struck else "u"
        assert shown(found) == [[("b", "BIG"), ("", " "), ("i", "DOG"), ("", " "), (of_line, "STRIKETHROUGH")]]
    # The same where the text beside it has the space: the line of a link is longer than what stands before it.
    line = '<w:rPr><w:u w:val="single"/></w:rPr>'
    found = result(run("Hello world ") + f"<w:hyperlink>{run('this is a long link', line)}</w:hyperlink>")
    assert shown(found) == [[("", "HELLO WORLD "), ("u", "THIS IS A LONG LINK")]]
    # In text that has such a line everywhere, the spaces have it, too.
    assert shown(result(run("a big dog", line))) == [[("u", "A BIG DOG")]]
    # A format that nobody sees on a space is still that of most of the text.
    assert shown(result(run("the", BOLD) + run(" ") + run("big dog", subscript)))[0][-1] == ("vertAlign", " BIG DOG")


def test_a_page_that_word_inserts_is_translated_and_another_document_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kinds = "".join(
        f'<Relationship Id="{name}" Type="http://x/relationships/aFChunk" Target="/word/{name}"/>'
        for name in ("a.html", "b.mht")
    )
    parts = {
        "word/document.xml": body(run("The house")),
        "word/_rels/document.xml.rels": f'<Relationships xmlns="http://x">{kinds}</Relationships>',
        "word/a.html": "<p>The <b>dog</b></p>",
        "word/b.mht": "<p>The cat</p>",
    }
    found = unpacked(done(read_docx(packed(parts))).data)
    assert found["word/a.html"] == "<p>THE <b>DOG</b></p>"
    assert found["word/b.mht"] == parts["word/b.mht"]
    assert "word/b.mht is not translated" in caplog.text


def test_copies_of_the_texts_of_pictures_and_those_of_old_pictures_are_translated() -> None:
    """Word repeats a text in pic:cNvPr, and writes pictures a second time for old versions, with alt."""
    found = docx(
        '<w:r><w:drawing xmlns:wp="a" xmlns:pic="b"><wp:docPr id="1" name="P" descr="the cat"/>'
        '<pic:cNvPr id="1" name="P" descr="the cat"/></w:drawing>'
        '<w:pict xmlns:v="urn:schemas-microsoft-com:vml"><v:shape id="s" type="#t" alt="the dog"/></w:pict></w:r>'
    )
    read = read_docx(found)
    assert [each.place for each in read.segments] == ["word/document.xml, picture 1"] * 3
    written = unpacked(done(read).data)["word/document.xml"]
    assert written.count('name="P" descr="THE CAT"') == 2
    assert '<v:shape id="s" type="#t" alt="THE DOG"/>' in written


def test_the_texts_of_pictures_are_translated_and_names_of_files_stay() -> None:
    drawing = (
        '<w:r><w:drawing><wp:inline xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing">'
        '<wp:docPr id="1" name="Picture 1" title="{}" descr="{}"/></wp:inline></w:drawing></w:r>'
    )
    found = result(
        run("the dog ") + drawing.format("the cat", "red &amp; blue") + run(" sleeps"),
        drawing.format("", "the cat.png"),
    )
    assert 'title="THE CAT" descr="RED &amp; BLUE"' in found
    assert 'name="Picture 1" title="" descr="the cat.png"' in found
    assert "THE DOG" in found
    assert "SLEEPS" in found


def test_the_language_of_the_text_becomes_that_of_the_translation() -> None:
    def tag(name: str) -> str:
        return f'<w:rPr><w:lang w:val="{name}" w:eastAsia="ja-JP"/></w:rPr>'

    styles = (
        f'<w:styles xmlns:w="{W}"><w:docDefaults><w:rPrDefault>{tag("%s")}</w:rPrDefault></w:docDefaults>'
        f'<w:style w:type="paragraph" w:default="1">{tag("%s")}</w:style>'
        f'<w:style w:type="character">{tag("%s")}</w:style></w:styles>'
    )
    paragraph = run("The house", tag("en-GB")) + "<w:r><w:rPr>%s</w:rPr><w:tab/></w:r>" + run("Haus", tag("de"))
    data = docx(paragraph % tag("en"), styles=styles % ("de-DE", "en-US", "x-none"))
    found = unpacked(done(read_docx(data)).data)
    assert found["word/styles.xml"] == styles % ("it", "it", "x-none")
    languages = re.findall('w:lang w:val="([^"]*)"', found["word/document.xml"])
    assert languages == ["it", "it", "de"]
    assert done(read_docx(data), Identity()).data == data


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ('<w:lvlText w:val="Annex %1."/>', '<w:lvlText w:val="ANNEX %1."/>'),
        ('<w:lvlText w:val="%1 &amp; part %2"/>', '<w:lvlText w:val="%1 &amp; PART %2"/>'),
        ('<w:lvlText w:val="%1.%2)"/>', '<w:lvlText w:val="%1.%2)"/>'),
        ('<w:numFmt w:val="bullet"/><w:lvlText w:val="o"/>', '<w:numFmt w:val="bullet"/><w:lvlText w:val="o"/>'),
        ('<w:numFmt w:val="bullet"/><w:lvlText w:val="ox"/>', '<w:numFmt w:val="bullet"/><w:lvlText w:val="ox"/>'),
        ('<w:numFmt w:val="none"/><w:lvlText w:val="Note:"/>', '<w:numFmt w:val="none"/><w:lvlText w:val="NOTE:"/>'),
    ],
)
def test_words_beside_the_numbers_of_a_list_are_translated(level: str, expected: str) -> None:
    part = f'<w:numbering xmlns:w="{W}"><w:abstractNum><w:lvl w:ilvl="0">%s</w:lvl></w:abstractNum></w:numbering>'
    data = docx(run("A list"), numbering=part % level)
    assert unpacked(done(read_docx(data)).data)["word/numbering.xml"] == part % expected
    assert done(read_docx(data), Identity()).data == data


def test_the_numbers_of_several_levels_move_together() -> None:
    part = f'<w:numbering xmlns:w="{W}"><w:lvl><w:lvlText w:val="%s"/></w:lvl></w:numbering>'
    data = docx(run("A list"), numbering=part % "Section %1.%2:")
    label = read_docx(data).segments[-1]
    assert [piece if isinstance(piece, str) else piece.raw for piece in label.pieces] == ["Section ", "%1.%2", ":"]
    assert unpacked(done(read_docx(data), REVERSED).data)["word/numbering.xml"] == part % "%1.%2: SECTION"


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        (
            f'<w:hyperlink w:tooltip="Open the page" r:id="a">{run("here")}</w:hyperlink>',
            '<w:hyperlink w:tooltip="OPEN THE PAGE" r:id="a">',
        ),
        (
            '<w:r><w:pict xmlns:v="urn:schemas-microsoft-com:vml"><v:textpath style="x" string="Do not copy"/></w:pict></w:r>',
            '<v:textpath style="x" string="DO NOT COPY"/>',
        ),
        ('<w:tblCaption w:val="All dogs"/><w:tblDescription w:val="x.png"/>', '<w:tblCaption w:val="ALL DOGS"/>'),
    ],
)
def test_tips_watermarks_and_descriptions_of_tables_are_translated(paragraph: str, expected: str) -> None:
    assert expected in result(paragraph)
    assert "x.png" in result(paragraph) or "x.png" not in paragraph


def test_building_blocks_which_no_page_shows_stay_whole() -> None:
    blocks = body("<w:p>" + run("The dog") + "</w:p>")
    given = docx(run("The cat"), **{"glossary/document": blocks})
    parts = unpacked(done(read_docx(given)).data)
    assert parts["word/glossary/document.xml"] == blocks
    assert "THE CAT" in parts["word/document.xml"]


@pytest.mark.parametrize(
    ("paragraph", "wanted"),
    [
        (run("A pre-") + run("war", BOLD) + run(" house"), "A PRE-WAR HOUSE"),
        (run("An ") + run("un", BOLD) + run("happy dog"), "AN UNHAPPY DOG"),
        (run("An X-") + run("ray", BOLD) + run(" here"), "AN X-RAY HERE"),
    ],
)
def test_a_format_of_a_part_of_a_word_divides_no_word(paragraph: str, wanted: str) -> None:
    [found] = shown(result(paragraph))
    assert "".join(text for _, text in found) == wanted
    assert any(formats for formats, _ in found)
