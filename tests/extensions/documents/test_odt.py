"""ODT: paragraphs, notes and fields, and everything else byte for byte."""

import re
from collections import Counter
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.formats import format_of
from transformer_cli.extensions.documents.odt import read_odt
from transformer_cli.extensions.documents.segments import plain_text
from transformer_cli.process.errors import DataError

from .archives import packed, unpacked
from .fake_translators import REVERSED, UPPER, Identity, WordByWord, done

SPACES = 'xmlns:office="o" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:draw="d" xmlns:table="t" xmlns:xlink="x"'


def odt(*paragraphs: str) -> bytes:
    inner = "".join(f"<text:p>{each}</text:p>" for each in paragraphs)
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<office:document-content {SPACES}>{inner}</office:document-content>'
    )
    styles = f"<office:document-styles {SPACES}><text:p>In the header</text:p></office:document-styles>"
    parts = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content}
    return packed(parts | {"styles.xml": styles, "Pictures/a.png": "x"}, stored=("mimetype",))


def result(*paragraphs: str) -> str:
    return unpacked(done(read_odt(odt(*paragraphs))).data)["content.xml"]


def test_spans_links_and_fields_come_back_around_their_words() -> None:
    paragraph = 'See <text:span text:style-name="B">the <text:a xlink:href="u">page</text:a></text:span> of <text:date>1 May</text:date>.'
    expected = (
        paragraph.replace("See", "SEE").replace(">the ", ">THE ").replace(">page", ">PAGE").replace(" of ", " OF ")
    )
    assert f"<text:p>{expected}</text:p>" in result(paragraph)


def test_a_word_that_is_divided_among_equal_spans_is_in_one_of_them() -> None:
    part = '<text:span text:style-name="T3">%s</text:span>'
    given = odt(part % "Transl" + part % "ation " + part % "here")
    found = done(read_odt(given), UPPER)
    assert part % "TRANSLATION HERE" in unpacked(found.data)["content.xml"]
    assert found.doubts == ()


def test_spans_with_the_same_formats_inside_each_other_are_one() -> None:
    """Word writes each word, space and number of a paragraph in two spans of its own."""
    part = '<text:span text:style-name="Font"><text:span text:style-name="T3">%s</text:span></text:span>'
    given = odt("".join(part % each for each in ("Open", " ", "from", " 9", "h", "00 ", "on")))
    for translator, expected in ((UPPER, "OPEN FROM 9H00 ON"), (REVERSED, "ON 9H00 FROM OPEN")):
        found = done(read_odt(given), translator)
        assert part % expected in unpacked(found.data)["content.xml"]
        assert found.doubts == ()
    assert done(read_odt(given), Identity()).data == given


def test_two_readings_of_ruby_beside_each_other_stay_two() -> None:
    ruby = "<text:ruby><text:ruby-base>%s</text:ruby-base><text:ruby-text>%s</text:ruby-text></text:ruby>"
    assert result(ruby % ("to", "a") + ruby % ("kyo", "b")).count("<text:ruby>") == 2


def test_footnotes_and_frames_are_texts_of_their_own_inside_a_paragraph() -> None:
    note = '<text:note text:id="1"><text:note-citation>1</text:note-citation><text:note-body><text:p>A <text:span>small</text:span> note</text:p></text:note-body></text:note>'
    frame = "<draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box></draw:frame>"
    paragraph = f"Before{note} after{frame}"
    segments = [plain_text(each.pieces) for each in read_odt(odt(paragraph)).segments]
    assert segments == ["Before after", "A small note", "In a box", "In the header"]
    found = result(paragraph)
    expected = note.replace("A <", "A <").replace("small", "SMALL").replace(" note<", " NOTE<")
    assert expected in found
    assert frame.replace("In a box", "IN A BOX") in found


def test_tabs_and_line_breaks_divide_texts_and_tracked_changes_are_left_alone() -> None:
    data = odt(
        "One<text:tab/>two<text:line-break/>three", "<text:tracked-changes><text:p>old</text:p></text:tracked-changes>"
    )
    texts = [plain_text(each.pieces) for each in read_odt(data).segments]
    assert texts == ["One", "two", "three", "In the header"]


def test_the_mimetype_stays_first_and_uncompressed() -> None:
    data = done(read_odt(odt("Hello"))).data
    assert data[30:38] == b"mimetype"
    assert data[38:].startswith(b"application/vnd.oasis.opendocument.text")
    assert list(unpacked(data)) == ["mimetype", "content.xml", "styles.xml", "Pictures/a.png"]


@pytest.mark.parametrize("data", [b"x", packed({"a": "b"}), packed({"content.xml": "<a>"})])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(DataError):
        read_odt(data)


SPACE = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}s"
SPAN = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}span"
PARTS = st.recursive(
    st.sampled_from(
        [
            "A word",
            " ",
            "é &amp;",
            "<text:s/>",
            "<text:tab/>",
            "<text:line-break/>",
            "<text:bookmark-start/>",
            "<text:page-number>3</text:page-number>",
            "<text:span/>",
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        .map("".join)
        .flatmap(
            lambda text: st.sampled_from(
                [
                    f"<text:span>{text}</text:span>",
                    f"<text:a>{text}</text:a>",
                    f"<text:note><text:note-body><text:p>{text}</text:p></text:note-body></text:note>",
                ]
            )
        )
    ),
    max_leaves=6,
)


@pytest.mark.long
@given(st.lists(PARTS, max_size=5).map("".join))
def test_equal_translations_keep_every_byte_and_others_every_element(paragraph: str) -> None:
    data = odt(paragraph)
    assert done(read_odt(data), Identity()).data == data
    before = Counter(each.tag for each in etree.fromstring(unpacked(data)["content.xml"].encode()).iter())
    beside_each_other = paragraph.count("</text:span><text:span>")
    for translator in (UPPER, REVERSED):
        after = etree.fromstring(unpacked(done(read_odt(data), translator).data)["content.xml"].encode())
        found = Counter(each.tag for each in after.iter())
        # Several spaces between two words are left out where they would stand before or behind all words, and two equal
        # spans can become one.
        assert found[SPACE] <= before[SPACE]
        assert before[SPAN] - beside_each_other <= found[SPAN] <= before[SPAN]
        assert {**found, SPACE: 0, SPAN: 0} == {**before, SPACE: 0, SPAN: 0}


def test_an_element_of_spaces_divides_words() -> None:
    paragraph = '<text:s text:c="2"/>One.<text:s/>Two. <text:s/>Three<text:s/>'
    segments = [plain_text(each.pieces) for each in read_odt(odt(paragraph)).segments]
    assert segments[0] == "One. Two. Three"
    assert '<text:p><text:s text:c="2"/>ONE.<text:s/>TWO. <text:s/>THREE<text:s/></text:p>' in result(paragraph)


def test_an_element_of_spaces_divides_a_field_and_a_word() -> None:
    page, count = "<text:page-number>5</text:page-number>", "<text:page-count>7</text:page-count>"
    paragraph = f"<text:s/>{page}<text:s/>of {count}<text:s/>"
    assert read_odt(odt(f"Page<text:s/>{paragraph}")).segments[0].pieces.count(" ") == 1
    assert f"<text:p><text:s/>{page}<text:s/>OF {count}<text:s/></text:p>" in result(paragraph)
    assert f"<text:p>PAGE<text:s/>{page}<text:s/>OF {count}</text:p>" in result(
        f"Page<text:s/>{page}<text:s/>of {count}"
    )


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ('<text:bookmark-start text:name="x"/>', '<text:bookmark-end text:name="x"/>'),
        ('<text:reference-mark-start text:name="x"/>', '<text:reference-mark-end text:name="x"/>'),
        ('<text:change-start text:change-id="x"/>', '<text:change-end text:change-id="x"/>'),
        ('<text:toc-mark-start text:id="x"/>', '<text:toc-mark-end text:id="x"/>'),
        (
            '<office:annotation office:name="x"><text:p>A note</text:p></office:annotation>',
            '<office:annotation-end office:name="x"/>',
        ),
    ],
)
def test_two_marks_that_belong_together_stay_around_their_words(start: str, end: str) -> None:
    data = done(read_odt(odt(f"I have a {start}red car{end} and a dog.")), REVERSED).data
    assert f"DOG. A AND {start}CAR RED{end} A HAVE I" in unpacked(data)["content.xml"]


def test_a_document_with_a_password_is_refused_with_the_reason() -> None:
    parts = {"mimetype": "x", "content.xml": "\u0001\u0002", "META-INF/manifest.xml": "<m><encryption-data/></m>"}
    with pytest.raises(DataError, match="this document has a password"):
        read_odt(packed(parts))


STYLES = (
    '<office:automatic-styles><style:style style:name="T1" style:family="text"><style:text-properties style:text-position="super 58%"/></style:style>'
    '<style:style style:name="T2" style:family="text"><style:text-properties style:text-position="-33% 58%"/></style:style>'
    '<style:style style:name="T3" style:family="text" style:parent-style-name="T1"/>'
    '<style:style style:name="T4" style:family="text" style:parent-style-name="T4"/></office:automatic-styles>'
)


def with_styles(paragraph: str, styles: str = STYLES, name: str = "content.xml") -> str:
    """The paragraph of a document with these styles, with the words of its translation in the reverse order."""
    spaces = f'{SPACES} xmlns:style="s"'
    content = f"<office:document-content {spaces}>{styles if name == 'content.xml' else ''}<text:p>{paragraph}</text:p></office:document-content>"
    common = f"<office:document-styles {spaces}>{styles if name != 'content.xml' else ''}</office:document-styles>"
    data = packed({"content.xml": content, "styles.xml": common})
    found = unpacked(done(read_odt(data), REVERSED).data)["content.xml"]
    return found.split("<text:p>")[1].split("</text:p>")[0]


def span(style: str, text: str) -> str:
    return f'<text:span text:style-name="{style}">{text}</text:span>'


@pytest.mark.parametrize("style", ["T1", "T3"])
@pytest.mark.parametrize("part", ["content.xml", "styles.xml"])
def test_a_raised_number_stays_beside_its_word_as_the_mark_of_a_footnote(style: str, part: str) -> None:
    found = with_styles(f"The dog{span(style, '12')} sees a cat.", name=part)
    assert found == f"CAT. A SEES DOG{span(style, '12')} THE"


def test_exponents_and_numbers_of_formulas_stay_parts_of_their_words() -> None:
    found = with_styles(f"We have 5 m{span('T1', '2')} and H{span('T2', '2')}O here.")
    assert found == f"HERE. H{span('T2', '2')}O AND m{span('T1', '2')} 5 HAVE WE"


def test_the_index_of_a_variable_and_a_trade_mark_stay_beside_their_words() -> None:
    found = with_styles(f"The x{span('T2', 'i')} of Acme{span('T1', 'TM')} grows.")
    assert found == f"GROWS. ACME{span('T1', 'TM')} OF X{span('T2', 'i')} THE"


def test_a_style_that_is_its_own_parent_is_an_ordinary_one() -> None:
    assert with_styles(f"The {span('T4', 'dog')} runs.") == f"RUNS. {span('T4', 'DOG')} THE"


@pytest.mark.parametrize(
    "field",
    [
        "<text:table-count>3</text:table-count>",
        '<text:drop-down><text:label text:value="a"/>a</text:drop-down>',
        "<text:bibliography-mark>[Smith 2001]</text:bibliography-mark>",
        "<text:editing-cycles>7</text:editing-cycles>",
        "<text:page-number/>",
        "<text:description>old words</text:description>",
    ],
)
def test_every_field_takes_the_place_of_a_word_and_keeps_its_text(field: str) -> None:
    assert with_styles(f"The {field} dogs run.") == f"RUN. DOGS {field} THE"


def test_bold_letters_inside_a_word_ruby_and_page_breaks_stay_with_their_words() -> None:
    ruby = "<text:ruby><text:ruby-base>cat</text:ruby-base><text:ruby-text>kæt</text:ruby-text></text:ruby>"
    found = with_styles(f"A {span('B', 'do')}g, a {ruby} and<text:soft-page-break/> a cow.")
    assert ruby.replace("cat", "CAT") in found
    assert span("B", "DOG") in found
    assert "<text:soft-page-break/>" in found


def test_cells_of_a_table_are_texts_unless_the_program_computes_them() -> None:
    cells = (
        '<table:table-cell office:value-type="string"><text:p>red</text:p></table:table-cell>'
        '<table:table-cell office:value-type="date"><text:p>1 May</text:p></table:table-cell>'
        '<table:table-cell table:formula="of:=[.A1]" office:value-type="string"><text:p>red</text:p></table:table-cell>'
        "<table:table-cell><text:p>blue</text:p></table:table-cell>"
    )
    content = f"<office:document-content {SPACES}>{cells}</office:document-content>"
    found = unpacked(done(read_odt(packed({"content.xml": content}))).data)["content.xml"]
    assert found == content.replace(">red", ">RED", 1).replace("blue", "BLUE")


@pytest.mark.parametrize("ending", ["odp", "otp", "ods", "ots"])
def test_presentations_and_tables_of_libreoffice_are_read_by_their_endings(ending: str) -> None:
    found = format_of(PurePath(f"a.{ending}"))
    assert found is not None
    assert found.name == f"od{ending[-1]}"


BOX = "<draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box></draw:frame>"


@pytest.mark.parametrize("name", ["table-cell", "covered-table-cell"])
def test_a_text_box_in_a_computed_cell_is_translated_and_its_value_is_not(name: str) -> None:
    cell = f'<table:{name} office:value-type="float"><text:p>one</text:p><text:p>two{BOX}</text:p>{BOX}</table:{name}>'
    assert cell.replace("In a box", "IN A BOX") in result(cell)


def test_the_value_of_a_cell_with_text_is_translated_like_its_paragraph() -> None:
    cell = '<table:table-cell office:value-type="string" office:string-value="A &quot;dog&quot;"><text:p>A "dog"</text:p></table:table-cell>'
    assert cell.replace("A &quot;dog", "A &quot;DOG").replace('A "dog', 'A "DOG') in result(cell)
    computed = cell.replace(" office:value", ' table:formula="of:=A1" office:value', 1)
    assert computed in result(computed)


def test_a_position_of_white_space_raises_nothing() -> None:
    styles = f'<office:document-styles {SPACES} xmlns:style="s"><office:styles><style:style style:name="T" style:family="text"><style:text-properties style:text-position=" "/></style:style></office:styles></office:document-styles>'
    data = packed(unpacked(odt('The <text:span text:style-name="T">dog</text:span>')) | {"styles.xml": styles})
    assert '<text:span text:style-name="T">DOG</text:span>' in unpacked(done(read_odt(data)).data)["content.xml"]


def test_the_title_of_an_index_is_translated_where_the_program_writes_it_anew() -> None:
    template = "<text:index-title-template>The %s</text:index-title-template><text:index-entry-text/>"
    found = result(f"x</text:p>{template % 'dog'}<text:p>y")
    assert (template % "dog").replace("The dog", "THE DOG") in found


def test_the_titles_of_a_chart_are_translated_and_the_names_of_its_data_stay() -> None:
    names = 'xmlns:o="urn:o" xmlns:chart="urn:oasis:names:tc:opendocument:xmlns:chart:1.0" '
    names += 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    inside = (
        "<chart:title><text:p>red <text:span>dog</text:span></text:p></chart:title><o:x><text:p>big cat</text:p></o:x>"
    )
    inside += "<chart:axis><chart:title><text:p>years</text:p></chart:title></chart:axis>"
    chart = f"<o:doc {names}>{inside}</o:doc>"
    parts = {**unpacked(odt("<text:p>hello</text:p>")), "Object 1/content.xml": chart, "Object 2/content.xml": ""}
    found = unpacked(done(read_odt(packed(parts)), UPPER).data)
    wanted = chart.replace("red ", "RED ").replace("dog", "DOG").replace("years", "YEARS")
    assert found["Object 1/content.xml"] == wanted
    assert found["Object 2/content.xml"] == ""


def test_the_titles_and_descriptions_of_pictures_are_translated() -> None:
    svg = 'xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"'
    draw = 'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
    frame = f"<draw:frame {draw} {svg}><svg:title>the cat</svg:title><svg:desc>red &amp; blue</svg:desc></draw:frame>"
    found = result(f"the dog {frame} sleeps")
    assert "<svg:title>THE CAT</svg:title><svg:desc>RED &amp; BLUE</svg:desc>" in found
    assert "THE DOG" in found
    assert "SLEEPS" in found


def test_a_text_of_a_spreadsheet_is_named_by_its_sheet_and_cell() -> None:
    cell = '<table:table-cell office:value-type="string"%s><text:p>%s</text:p></table:table-cell>'
    row = "<table:table-row%s>%s</table:table-row>"
    gap = '<table:table-cell table:number-columns-repeated="25"/>'
    rows = row % ("", cell % ("", "Name") + gap + cell % ("", "End"))
    rows += row % (' table:number-rows-repeated="4"', "<table:table-cell/>")
    last = row % ("", cell % (' office:string-value="Tea"', "Tea"))
    group = f"<table:table-row-group>{last}</table:table-row-group>"
    sheet = f'<table:table table:name="Prices 1">{rows}{group}</table:table>'
    content = f"<office:document-content {SPACES}><office:body><office:spreadsheet>{sheet}<text:p>Behind</text:p></office:spreadsheet></office:body></office:document-content>"
    places = [each.place.removeprefix("content.xml, ") for each in read_odt(packed({"content.xml": content})).segments]
    assert places == [
        "sheet Prices 1, cell A1",
        "sheet Prices 1, cell AA1",
        "sheet Prices 1, cell A6",
        "sheet Prices 1, cell A6",
        "paragraph 4",
    ]


def test_a_spreadsheet_inside_a_document_is_translated() -> None:
    cell = '<table:table-cell office:value-type="string"><text:p>The price</text:p></table:table-cell>'
    sheet = f'<table:table table:name="One"><table:table-row>{cell}</table:table-row></table:table>'
    part = f"<office:document-content {SPACES}><office:body><office:spreadsheet>{sheet}</office:spreadsheet></office:body></office:document-content>"
    formula = "<math xmlns='http://www.w3.org/1998/Math/MathML'><mi>speed</mi></math>"
    parts = unpacked(odt("Hello")) | {"Object 1/content.xml": part, "Object 2/content.xml": formula}
    found = unpacked(done(read_odt(packed(parts))).data)
    assert found["Object 1/content.xml"] == part.replace("The price", "THE PRICE")
    assert found["Object 2/content.xml"] == formula


@pytest.mark.parametrize(
    ("paragraph", "reversed_"),
    [
        ("<text:span>red</text:span> <text:s/>houses ", "HOUSES <text:span>RED</text:span> "),
        ('Name:<text:s text:c="9"/>Date', "DATE NAME:"),
        ('<text:s text:c="4"/>red <text:s/>houses', '<text:s text:c="4"/>HOUSES RED'),
        ("red <text:s/>big dogs", "DOGS <text:s/>BIG RED"),
    ],
)
def test_spaces_between_two_words_come_not_before_or_behind_all_words(paragraph: str, reversed_: str) -> None:
    data = odt(paragraph)
    assert f"<text:p>{reversed_}</text:p>" in unpacked(done(read_odt(data), REVERSED).data)["content.xml"]
    assert done(read_odt(data), Identity()).data == data


FORM = 'xmlns:form="urn:oasis:names:tc:opendocument:xmlns:form:1.0"'
SLIDES = 'xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0"'
TABLE = 'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<text:list-level-style-number style:num-prefix=" Annex " style:num-suffix=".">', " ANNEX "),
        ('<text:list-level-style-number style:num-prefix="(" style:num-suffix=")">', None),
        (
            '<text:outline-level-style style:num-suffix=" of x" loext:num-list-format="Part %1% of x">',
            '"PART %1% OF X"',
        ),
        ('<text:a office:title="Open &quot;it&quot;">', '"OPEN &quot;IT&quot;"'),
        ("<text:placeholder>&lt;Your name&gt;", "&lt;YOUR NAME&gt;"),
        ("<text:placeholder>Your name", ">YOUR NAME"),
        (f'<form:checkbox {FORM} form:name="box" form:label="Send it">', 'form:name="box" form:label="SEND IT"'),
        (f'<form:option {FORM} form:label="Send it">', None),
        (f'<presentation:footer-decl {SLIDES} presentation:name="ftr1">Our club', 'name="ftr1">OUR CLUB'),
        (f"<table:title {TABLE}>All dogs", ">ALL DOGS"),
        ("<office:annotation><text:p><text:placeholder>Your name</text:placeholder></text:p>", None),
    ],
)
def test_texts_outside_of_paragraphs_are_translated(before: str, after: str | None) -> None:
    name = re.findall(r"<([\w:-]+)", before)[0]
    names = 'xmlns:style="s" xmlns:loext="l"'
    content = f"<office:document-content {SPACES} {names}><text:p>{before}</{name}></text:p></office:document-content>"
    data = packed({"content.xml": content})
    found = unpacked(done(read_odt(data)).data)["content.xml"]
    assert found == content if after is None else after in found
    assert done(read_odt(data), Identity()).data == data


def test_the_language_of_the_text_becomes_that_of_the_translation() -> None:
    fo = 'xmlns:fo="f" xmlns:style="s"'
    default = '<style:default-style><style:text-properties fo:language="{}" fo:country="{}" style:language-asian="zxx" style:country-asian="none"/></style:default-style>'
    style = '<style:style><style:text-properties fo:language="{}" fo:country="{}"/></style:style>'
    parts = f"<office:document-styles {SPACES} {fo}><office:styles>{default}{style}{style}</office:styles></office:document-styles>"
    data = packed(unpacked(odt("Hello")) | {"styles.xml": parts.format("de", "DE", "en", "GB", "de", "DE")})
    found = unpacked(done(read_odt(data)).data)["styles.xml"]
    assert found == parts.format("it", "none", "it", "none", "de", "DE")
    to_brazil = WordByWord(str.upper, languages=Direction("en", "pt-BR"))
    found = unpacked(done(read_odt(data), to_brazil).data)["styles.xml"]
    assert found == parts.format("pt", "BR", "pt", "BR", "de", "DE")
    assert done(read_odt(data), Identity()).data == data
