"""HTML pages: what is translated, what stays, and where the tags go."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.formats import ReadingOptions
from transformer_cli.extensions.documents.html import read_html
from transformer_cli.extensions.documents.segments import plain_text
from transformer_cli.extensions.documents.translation import NOT_TEXT, translate_document

from .fake_translators import REVERSED, Identity, WordByWord, done, translated


def upper(html: str) -> str:
    return translated(read_html(html.encode()))


def reverse(html: str) -> str:
    return translated(read_html(html.encode()), REVERSED)


TAGS = ["<p>", "</p>", "<b>", "</b>", "<i class=x>", "</i>", "<br>", "<img alt='a dog' src=a.png>", "<pre>", "</pre>"]
LANGUAGES = ["<html lang=en>", "<span lang=fr>", "</span>", "<div translate=no>", "</div>"]
FOREIGN = [
    "<svg>",
    "</svg>",
    "<text>",
    "</text>",
    "<tspan x=1>",
    "</tspan>",
    "<title/>",
    "<template>",
    "</template>",
    "<video>",
    "</video>",
]
RAW = [
    "<!-- note -->",
    "<script>if (a<b) {}</script>",
    "<code>x &lt; y</code>",
    "<sup>1</sup>",
    "<svg>",
    "</svg>",
    "<title>",
    "</title>",
    "<textarea>",
]
BROKEN = [
    "<!--",
    "-->",
    "<",
    ">",
    "&",
    "</",
    "<p",
    '"',
    "'",
    "=",
    "\x00",
    "\udc80",
    "<![CDATA[",
    "]]>",
    "<?php",
    "?>",
]
TEXTS = [
    "&amp;",
    "&eacute;",
    "&#233;",
    "Hello world. ",
    "How are you?",
    "one ",
    " two",
    "\n",
    "\r\n",
    "  ",
    "\u00e8",
    "{name}",
    "%s",
    "https://x.org/a?b=c",
]
LINKS = ["<a title=\"Read me\" href='u'>", "</a>", "<td>"]
HTML_PARTS = st.sampled_from([*TAGS, *LANGUAGES, *FOREIGN, *RAW, *BROKEN, *TEXTS, *LINKS])


@given(st.lists(HTML_PARTS, max_size=40))
def test_an_identity_translation_gives_identical_bytes(parts: list[str]) -> None:
    data = "".join(parts).encode("utf-8", "surrogateescape")
    assert translate_document(read_html(data), Identity()).data == data


@given(st.lists(HTML_PARTS, max_size=40))
def test_a_translated_page_has_the_segments_of_the_translation(parts: list[str]) -> None:
    data = "".join(parts).encode("utf-8", "surrogateescape")
    page = read_html(data)
    # Small letters stay small, because they say whether a sentence goes on behind <br>.
    found = read_html(done(page, WordByWord(lambda word: word.replace("o", "u"))).data)
    texts = ["".join(sorted(piece for piece in segment.pieces if isinstance(piece, str))) for segment in page.segments]
    assert len(found.segments) == len(texts)


@given(st.lists(HTML_PARTS, max_size=40))
def test_no_markup_is_lost_or_doubled_and_ranges_stay_nested(parts: list[str]) -> None:
    page = read_html("".join(parts).encode("utf-8", "surrogateescape"))
    seen = []

    class Watched:
        segments = page.segments

        def write(self, translations, languages):  # type: ignore[no-untyped-def]
            seen.extend(translations)
            return b""

    translate_document(Watched(), REVERSED)
    for segment, translation in zip(page.segments, seen, strict=True):
        given_markup = [piece for piece in segment.pieces if not isinstance(piece, str)]
        markup = [piece for piece in translation.pieces if not isinstance(piece, str)]
        assert sorted(map(str, markup)) == sorted(map(str, given_markup))
        opened: list[int] = []
        for piece in markup:
            if piece.role.value == "open":
                opened.append(piece.number)
            elif piece.role.value == "close":
                assert opened.pop() == piece.number
        assert not opened


def test_a_tag_moves_with_its_words() -> None:
    assert reverse("<p>A <b>red car</b> stops.</p>") == "<p>STOPS. <b>CAR RED</b> A</p>"


URL = "https://example.com/very/long?a=1"


@pytest.mark.parametrize(
    "link",
    [
        '<a href="u"><span class="invisible">https://</span><span class="ellipsis">example.com/ve</span>'
        '<span class="invisible">ry/long</span></a>',
        '<a href="u"><span>https://</span><wbr><b>example.com</b>/very</a>',
        'https://<b>example.com</b>/a<i>/b</i><img src="i.png">/c',
        "a@<span>b</span>.org",
        "#<span>dogs</span>",
        "@<span>bob</span>",
        "10<b>,5</b>00",
    ],
)
def test_tags_inside_what_is_not_translated_stay_there(link: str) -> None:
    """Mastodon hides parts of each address so."""
    assert reverse(f"<p>See {link}, my <b>friend</b>!</p>").count(link) == 1
    assert reverse(f"<p>{link} and {link} differ</p>") == f"<p>DIFFER {link} AND {link}</p>"


@given(st.sets(st.integers(0, len(URL)), min_size=2, max_size=6))
def test_an_address_keeps_its_tags_wherever_they_stand(cuts: set[int]) -> None:
    places = sorted(cuts)[: len(cuts) // 2 * 2]
    link = URL
    for number, place in reversed(list(enumerate(places))):
        link = f"{link[:place]}<{'/' * (number % 2)}b>{link[place:]}"
    assert f" {link}" in reverse(f"<p>{link} is open</p>")


def test_punctuation_outside_a_tag_stays_outside() -> None:
    assert upper("<p>See <i>the manual</i>, please.</p>") == "<p>SEE <i>THE MANUAL</i>, PLEASE.</p>"


def test_attributes_for_people_are_translated_also_inside_a_paragraph() -> None:
    page = '<p>Look <img src="a.png" alt="A &quot;dog&quot;"> here</p>'
    assert upper(page) == '<p>LOOK <img src="a.png" alt="A &quot;DOG&quot;"> HERE</p>'


def test_code_and_placeholders_stay() -> None:
    assert (
        upper("<p>Call <code>f(x)</code> with {name} and <kbd>q</kbd>.</p>")
        == "<p>CALL <code>f(x)</code> WITH {name} AND <kbd>q</kbd>.</p>"
    )


def test_the_language_of_the_page_changes() -> None:
    assert upper('<html lang="en-US">') == '<html lang="it">'


def test_a_text_in_another_language_stays() -> None:
    page = '<html lang="en"><p>They say <span lang="fr">merci bien</span> here.</p>'
    assert 'SAY <span lang="fr">merci bien</span> HERE.' in upper(page)


def test_a_tag_without_partner_stays_in_its_place() -> None:
    assert upper("<p>one <b>two <p>three</b> four") == "<p>ONE <b>TWO <p>THREE</b> FOUR"


def test_a_character_that_the_encoding_lacks_becomes_a_reference() -> None:
    page = read_html(b'<meta charset="iso-8859-1"><p>caf\xe9</p>')
    found = translate_document(page, WordByWord(lambda word: word + "\u0142", languages=Direction("en", "pl")))
    assert found.data == b'<meta charset="iso-8859-1"><p>caf\xe9&#322;</p>'


def test_entities_and_scripts_stay() -> None:
    page = "<script>var a = '<p>no</p>';</script><style>p > b {}</style><mj-style>.blue dog {}</mj-style><p>Fish &amp; chips</p>"
    assert upper(page) == page[: page.index("<p>Fish")] + "<p>FISH &amp; CHIPS</p>"


def test_a_space_that_does_not_break_is_written_as_a_reference() -> None:
    page = read_html(b"<p>Really? Fish &copy; now</p>")
    french = WordByWord(lambda word: word.replace("?", "\u00a0?"))
    assert translated(page, french) == "<p>Really&#160;? Fish \u00a9 now</p>"


def test_white_space_around_a_block_stays() -> None:
    page = "<div>\n  <p>\n    one\n    two </p>\n  three <img src=a>\n</div>\n"
    wanted = "<div>\n  <p>\n    ONE TWO </p>\n  THREE <img src=a>\n</div>\n"
    assert upper(page) == wanted


def test_tags_around_the_same_words_hold_them_all_before_a_mark() -> None:
    for text in (
        "<p>They are on the <b><i>table</i></b>.</p>",
        '<p>Where is the <a href="x"><u>old station</u></a>?</p>',
        "<p><b><i>They are on the table</i></b>.</p>",
        "<p>He said (<b><i>loudly</i></b>) no.</p>",
    ):
        upper = text.upper().replace('HREF="X"', 'href="x"')
        expected = re.sub(r"</?[A-Z]", lambda tag: tag[0].lower(), upper)
        assert translated(read_html(text.encode())) == expected


def test_a_text_with_bytes_that_are_no_text_stays_and_is_named() -> None:
    data = b"<p>Caf\xe9 here</p><p>And more</p>"
    result = done(read_html(data))
    assert result.data == b"<p>Caf\xe9 here</p><p>AND MORE</p>"
    assert [doubt.reason for doubt in result.doubts] == [NOT_TEXT]


def test_a_link_without_words_is_not_emptied() -> None:
    html = '<p>Their names are <i>Max</i>.<a href="#back">\u21a9\ufe0e</a></p>'
    assert upper(html) == html.replace("Their names are", "THEIR NAMES ARE").replace("Max", "MAX")
    assert upper('dog <a href="#one">1</a> cat') == 'DOG <a href="#one">1</a> CAT'
    assert reverse('dog<a href="#one">1</a> cat') == 'CAT DOG<a href="#one">1</a>'
    assert reverse('dog <a href="#one">1</a> cat') == 'CAT <a href="#one">1</a> DOG'


def test_a_text_in_another_language_than_that_of_the_model_stays_in_a_page_without_a_language() -> None:
    page = (
        '<p>They say <span lang="de">guten Tag</span> here.</p><p lang="de">Guten Tag</p><p lang="en-US">Good day</p>'
    )
    found = translated(read_html(page.encode(), ReadingOptions(language="en")))
    assert found == (
        '<p>THEY SAY <span lang="de">guten Tag</span> HERE.</p><p lang="de">Guten Tag</p><p lang="it">GOOD DAY</p>'
    )


def test_attributes_of_an_element_in_another_language_stay_with_it() -> None:
    page = '<html lang="de"><p lang="en" title="Good day">Good day</p><p title="Guten Tag"></p>'
    assert upper(page) == page.replace("Guten Tag", "GUTEN TAG")


def test_the_language_of_a_page_counts_more_than_that_of_the_model() -> None:
    page = '<html lang="de"><p>Guten <i lang="de-AT">Tag</i></p></html>'
    found = translated(read_html(page.encode(), ReadingOptions(language="en")))
    assert '<p>GUTEN <i lang="de-AT">TAG</i></p>' in found


def test_xhtml_names_languages_with_a_prefix() -> None:
    html = '<html xml:lang="en"><p>good <span xml:lang="it">buono</span></p></html>'
    assert '<span xml:lang="it">buono</span>' in upper(html)
    assert "GOOD" in upper(html)


def test_the_end_tag_of_a_line_break_is_a_line_break_as_browsers_read_it_and_no_end_tag_is_lost() -> None:
    assert (
        upper("<p>The red</br>cars stop.</br>\nThe dog runs.</p>")
        == "<p>THE RED</br> CARS STOP.</br>\nTHE DOG RUNS.</p>"
    )
    assert reverse("<p>The dog.</br>The <img src=a></img> cat</p>") == "<p>DOG. THE</br><img src=a></img> CAT THE</p>"
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><p>The red.<br></br>The car.</p></html>'
    assert upper(page) == page.replace("The red.", "THE RED.").replace("The car.", "THE CAR.")


def test_a_line_break_inside_a_sentence_moves_with_its_words() -> None:
    assert reverse("<p>The red<br>cars</p>") == "<p>CARS RED<br> THE</p>"
    assert upper("<p>The red<br>\ncars stop.<br>Now!</p>") == "<p>THE RED<br> CARS STOP.<br>NOW!</p>"


def test_a_line_break_before_a_capital_letter_divides_two_texts() -> None:
    html = "<p>Best wishes,<br>Marco Rossi<br>12 High Street<br><br>and more</p>"
    assert [segment.pieces for segment in read_html(html.encode()).segments] == [
        ("Best wishes,",),
        ("Marco Rossi",),
        ("12 High Street",),
        ("and more",),
    ]


def test_the_reading_aid_of_a_word_stays() -> None:
    assert upper("<ruby>word<rp>(</rp><rt>reading</rt><rp>)</rp></ruby>") == (
        "<ruby>WORD<rp>(</rp><rt>reading</rt><rp>)</rp></ruby>"
    )


def test_the_space_between_a_text_and_a_tag_without_words_stays() -> None:
    assert upper("<p><a href=u><img src=x></a> one <b></b> <i> </i></p>") == (
        "<p><a href=u><img src=x></a> ONE <b></b> <i> </i></p>"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a>Home</a><a>My garden</a><a>see it</a>", ["Home", "My garden", "see it"]),
        ("<b><a>Home</a>|<a>My garden</a></b>", ["Home|", "My garden"]),
        ("<span>Name</span><span>The red house</span>", ["Name", "The red house"]),
        ("<td><b><a>one</a></b><a>two</a></td>", ["one", "two"]),
    ],
)
def test_inline_elements_that_touch_are_texts_of_their_own(text: str, expected: list[str]) -> None:
    assert [plain_text(each.pieces) for each in read_html(text.encode()).segments] == expected
    words = re.compile("(?<=>)[^<]+|^[^<]+")
    assert translated(read_html(text.encode())) == words.sub(lambda match: match[0].upper(), text)


@pytest.mark.parametrize(
    "text",
    ["The <b>h</b><i>ouse</i>, <b>H</b><i>2</i><b>O</b>", "<a>Home </a><a>is</a>, <a>here</a>"],
)
def test_parts_of_a_word_are_one_text(text: str) -> None:
    assert len(read_html(text.encode()).segments) == 1


def test_an_empty_element_that_html_does_not_know_stands_between_two_words() -> None:
    text = '<p>The car is red <x id="7"></x>. Good morning.</p>'
    assert translated(read_html(text.encode())) == text.upper().replace("P>", "p>").replace(
        'X ID="7"></X', 'x id="7"></x'
    )
    assert len(read_html(text.encode()).segments) == 1
    assert len(read_html(b"<p>One<section></section>two <td></td>three</p>").segments) == 3


def test_attributes_of_elements_whose_content_stays_are_translated() -> None:
    text = (
        '<textarea placeholder="your text">x</textarea><iframe title="the house" src="x"></iframe>'
        '<video title="a film"></video><code title="a name">x</code>'
    )
    expected = (
        text.replace("your text", "YOUR TEXT")
        .replace("the house", "THE HOUSE")
        .replace("a film", "A FILM")
        .replace("a name", "A NAME")
    )
    assert translated(read_html(text.encode())) == expected
    kept = b'<textarea translate="no" placeholder="your text"></textarea>'
    assert done(read_html(kept)).data == kept


@pytest.mark.parametrize(
    "page",
    [
        "<p>«one» <svg viewBox='0 0 9 9' aria-label='«a dog»'><title>«the dog»</title><path d='M0 0'/><text x='1'>«the» <tspan>«big»</tspan> «house»</text></svg> «two»</p>",
        "<svg><g><desc>«a garden»</desc><text><tspan x='0' dy='1em'>«the house»</tspan><tspan x='0' dy='1em'>«is big»</tspan></text></g></svg>",
        "<svg><style>text { fill: red }</style><title/><text>«a house»</text><text translate='no'>brand</text><g class=notranslate><text>brand</text></g></svg>",
        "<svg><foreignObject><p>«a» <b>«big»</b> «house»</p></foreignObject></svg>",
        "<p>«if» <math><mi>x</mi><mo>=</mo><mn>1</mn><mtext>«if it rains»</mtext></math> «is true»</p>",
        "<template id=row><li>«a dog»</li><template><b>«a cat»</b></template></template>",
        "<p>«the» <template><b>«hi»</b></template> «dog»</p>",
        "<video><track label='«english words»' src=a.vtt><p>«no pictures here»</p></video>",
        "<picture><source srcset=a.webp><img src=a.png alt='«a dog»'></picture>",
        "<datalist id=cars><option>«red car»</option></datalist>",
        "<object data=a.swf>«a game»</object> <canvas>«a drawing»</canvas> <audio>«a song»</audio>",
        "<frameset><frame src=a><noframes><body><p>«a» <b>«big»</b> «dog»</p></body></noframes></frameset>",
        "<p>«one dog» <embed src=a><noembed>«no» <i>«pictures»</i> «here»</noembed> «and a cat»</p>",
    ],
)
def test_texts_inside_pictures_templates_and_films_are_translated(page: str) -> None:
    wanted = re.sub("«(.*?)»", lambda text: text[1].upper(), page)
    assert upper(re.sub("[«»]", "", page)) == wanted


def test_a_picture_moves_with_its_words_and_its_own_texts_are_translated() -> None:
    picture = "<svg><title>a dog</title></svg>"
    assert reverse(f"<p>big {picture} house</p>") == f"<p>HOUSE {picture.replace('a dog', 'DOG A')} BIG</p>"


def test_texts_in_very_many_templates_inside_each_other_end_somewhere() -> None:
    page = "<template>" * 3000 + "text" + "</template>" * 3000
    assert upper(page) == page


XHTML = '<html xmlns="http://www.w3.org/1999/xhtml"><head>{head}</head><body>{body}</body></html>'


def test_in_xhtml_an_element_of_one_tag_holds_nothing() -> None:
    page = XHTML.format(
        head='<script src="a.js"/><title/>', body='<p>The <a id="p12"/>big <i/>house</p><textarea/><p>text</p>'
    )
    wanted = (
        page.replace("The <", "THE <").replace(">big", ">BIG").replace("house", "HOUSE").replace(">text<", ">TEXT<")
    )
    assert upper(page) == wanted
    assert reverse(page).count('<a id="p12"/>') == 1
    html = "<title/>a page</title><p>text"
    assert upper(html) == "<title/>A PAGE</title><p>TEXT"


@pytest.mark.parametrize("declaration", ["", '<?xml version="1.0"?>\n', "<!-- a page -->\n<!DOCTYPE html>\n"])
def test_a_cdata_section_is_text_in_xhtml(declaration: str) -> None:
    page = declaration + XHTML.format(head="", body="<p><![CDATA[The dog & cat <3]]> run</p>")
    wanted = page.replace("<![CDATA[The dog & cat <3]]> run", "THE DOG &amp; CAT &lt;3 RUN")
    assert upper(page) == wanted
    assert upper("<p>The <![CDATA[note]]>dog</p>") == "<p>THE <![CDATA[note]]>DOG</p>"


@pytest.mark.parametrize(
    ("page", "reversed_"),
    [
        ("<p><span>NEWS</span>The dog is big</p>", "<p><span>NEWS</span>BIG IS DOG THE</p>"),
        ("<p><b><i>My name</i></b>The house</p>", "<p><b><i>NAME MY</i></b>HOUSE THE</p>"),
        ("<p><b>O</b>nce we go</p>", "<p>GO WE <b>ONCE</b></p>"),
        ("<p><b>H</b>Tml is text</p>", "<p>TEXT IS <b>HTML</b></p>"),
        ("<p>the <b>NEWS</b>Paper is</p>", "<p>IS <b>NEWSPAPER</b> THE</p>"),
        ("<h2><b>1.2</b>Big dogs here</h2>", "<h2><b>1.2</b>HERE DOGS BIG</h2>"),
        ("<p><b>Step 3</b>Open the door</p>", "<p><b>3 STEP</b>DOOR THE OPEN</p>"),
        ("<p><b>x-24</b>Testing <i>dogs</i></p>", "<p><b>x-24</b><i>DOGS</i> TESTING</p>"),
        ("<p><b>3</b>D models run</p>", "<p>RUN MODELS <b>3</b>D</p>"),
        ("<p>H<sub>2</sub>Se is gas</p>", "<p>GAS IS H<sub>2</sub>Se</p>"),
        ("<p><i>H<sub>2</sub></i><sub>3</sub>Se is gas</p>", "<p>GAS IS <i>H<sub>2</sub></i><sub>3</sub>Se</p>"),
    ],
)
def test_a_label_to_which_a_sentence_is_glued_is_a_text_of_its_own(page: str, reversed_: str) -> None:
    assert reverse(page) == reversed_


@pytest.mark.parametrize(
    ("page", "reversed_"),
    [
        (
            '<div><label for="a">First name</label> <input id="a"> <label for="b">Last name</label></div>',
            '<div><label for="a">NAME FIRST</label> <input id="a"> <label for="b">NAME LAST</label></div>',
        ),
        (
            "<label><input type=radio> Yes please</label> <label><input type=radio> No dogs</label>",
            "<label><input type=radio> PLEASE YES</label> <label><input type=radio> DOGS NO</label>",
        ),
        ("<p>First name: <input> Last name: <input>", "<p>NAME: FIRST <input> NAME: LAST <input>"),
        ("<p>wake me at <input> in town", "<p>TOWN <input> IN AT ME WAKE"),
        ("<p>The cat<a>,</a><input>the dog", "<p>DOG THE CAT<a>,</a><input> THE"),
        ("<p>The dog <input TYPE=hidden> Tom is", "<p>IS <input TYPE=hidden> TOM DOG THE"),
    ],
)
def test_the_labels_of_a_form_stay_at_their_fields(page: str, reversed_: str) -> None:
    assert reverse(page) == reversed_


@pytest.mark.parametrize(
    ("page", "reversed_"),
    [
        (
            '<p><span class="a">trans</span><span class="a">la</span><span class="a">tion here</span></p>',
            '<p><span class="a">HERE TRANSLATION</span></p>',
        ),
        ("<p><u><b>cloud-</b><b>based</b></u> dog</p>", "<p>DOG <u><b>CLOUD-BASED</b></u></p>"),
        ("<p><b>WOR</b><b>D is</b></p>", "<p><b>IS WORD</b></p>"),
        ("<p><b>one </b><b>dog</b></p>", "<p><b>DOG</b> <b>ONE</b></p>"),
        # A capital letter begins another word, or another sentence.
        ("<p><b>Yes.</b><b>No dogs</b></p>", "<p><b>YES.</b><b>DOGS NO</b></p>"),
        ("<p><i>New</i><i>Dogs</i></p>", "<p><i>NEW</i><i>DOGS</i></p>"),
        ("<p>two <i></i><i></i> dogs</p>", "<p><i></i><i></i> DOGS TWO</p>"),
    ],
)
def test_a_word_that_is_divided_among_equal_elements_is_in_one_of_them(page: str, reversed_: str) -> None:
    found = done(read_html(page.encode()), REVERSED)
    assert (found.data.decode(), found.doubts) == (reversed_, ())


@pytest.mark.parametrize(
    "icon",
    [
        "<mat-icon>home</mat-icon>",
        '<i class="big material-icons">home</i>',
        '<span class="material-symbols-outlined">open_in_new</span>',
        "<v-icon>home</v-icon>",
    ],
)
def test_the_name_of_an_icon_is_a_picture(icon: str) -> None:
    assert reverse(f"<p>{icon}</p><a>{icon} Your house</a>") == f"<p>{icon}</p><a>{icon} HOUSE YOUR</a>"
    assert upper(f"<p>Press {icon} twice</p>") == f"<p>PRESS {icon} TWICE</p>"
    assert upper('<i class="material">home</i>') == '<i class="material">HOME</i>'


@pytest.mark.parametrize(
    ("text", "upper", "backwards"),
    [
        ("The area is 5 m<sup>2</sup>", "THE AREA IS 5 m<sup>2</sup>", "m<sup>2</sup> 5 IS AREA THE"),
        ("We have 10<sup>6</sup> cars", "WE HAVE 10<sup>6</sup> CARS", "CARS 10<sup>6</sup> HAVE WE"),
        ("We drink H<sub>2</sub>O daily", "WE DRINK H<sub>2</sub>O DAILY", "DAILY H<sub>2</sub>O DRINK WE"),
        ("The CO<sub>2</sub> here", "THE CO<sub>2</sub> HERE", "HERE CO<sub>2</sub> THE"),
        ("The red car<sup>1</sup> is here", "THE RED CAR<sup>1</sup> IS HERE", "HERE IS CAR<sup>1</sup> RED THE"),
        ("He sees it<sup>1</sup> here", "HE SEES IT<sup>1</sup> HERE", "HERE IT<sup>1</sup> SEES HE"),
        ("The letter x<sub>i</sub> is big", "THE LETTER X<sub>i</sub> IS BIG", "BIG IS X<sub>i</sub> LETTER THE"),
        ("The red<sup>TM</sup> car", "THE RED<sup>TM</sup> CAR", "CAR RED<sup>TM</sup> THE"),
        ("The 1<sup>st</sup> car", "THE 1<sup>ST</sup> CAR", "CAR 1<sup>ST</sup> THE"),
        ("We see Na<sup>+</sup> here", "WE SEE Na<sup>+</sup> HERE", "HERE Na<sup>+</sup> SEE WE"),
        ('The car[<a href="#2">2</a>] is', 'THE CAR[<a href="#2">2</a>] IS', 'IS CAR[<a href="#2">2</a>] THE'),
    ],
)
def test_what_is_raised_or_lowered_stays_with_its_word(text: str, upper: str, backwards: str) -> None:
    page = "<p>{}</p>"
    assert translated(read_html(page.format(text).encode())) == page.format(upper)
    assert translated(read_html(page.format(text).encode()), REVERSED) == page.format(backwards)


def test_a_raised_sign_stays_where_the_translation_has_none() -> None:
    without_signs = WordByWord(lambda word: word.strip("-\u2212*").upper())
    for sign in "-\u2212*":
        page = f"<p>{{}} Cl<sup>{sign}</sup> {{}}</p>"
        found = translated(read_html(page.format("see", "here").encode()), without_signs)
        assert found == page.format("SEE", "HERE").replace("Cl", "CL")


@pytest.mark.parametrize(
    ("text", "backwards"),
    [
        ('The red car. <img src="a.png"> We go home', 'CAR. RED THE <img src="a.png"> HOME GO WE'),
        ("The red car.<sup>1</sup> We go home", "CAR. RED THE<sup>1</sup> HOME GO WE"),
        ('The red car. <img src="a.png">We go home', 'CAR. RED THE <img src="a.png">HOME GO WE'),
        ('The red car <img src="a.png">', 'CAR RED THE <img src="a.png">'),
        ('The red car.[<a href="#2">2</a>] We go home', 'CAR. RED THE[<a href="#2">2</a>] HOME GO WE'),
        ('The red car. (<a href="#2">2</a>)', 'CAR. RED THE (<a href="#2">2</a>)'),
        (
            'The red car.<i>[<a href="#2">2</a>, <a href="#3">3</a>]</i>',
            'CAR. RED THE<i>[<a href="#2">2</a>, <a href="#3">3</a>]</i>',
        ),
        ("The red car.<i>[<b>2</b>]</i>", "CAR. RED THE<i>[<b>2</b>]</i>"),
        ("The red car.<i>[<b>2</b>](3)</i> We go home", "CAR. RED THE<i>[<b>2</b>](3)</i> HOME GO WE"),
    ],
)
def test_a_mark_between_two_sentences_stays_between_them(text: str, backwards: str) -> None:
    page = "<p>{}</p>"
    assert translated(read_html(page.format(text).encode()), REVERSED) == page.format(backwards)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('<span class="dropcap">T</span>he red car', '<span class="dropcap">C</span>AR RED THE'),
        ("<big><i>T</i></big>he <u>red</u> car", "<big><i>C</i></big>AR <u>RED</u> THE"),
        ("<big>\u201cT</big>he red car", "<big>C</big>AR RED \u201cTHE"),
        ("<big>T</big> he red", "RED HE <big>T</big>"),
        ("<big>The</big>re is", "IS <big>THERE</big>"),
        ("<big>h</big>ttp://x.org is", "IS <big>h</big>ttp://x.org"),
    ],
)
def test_tags_around_the_first_letter_of_a_text_stay_around_the_first_letter(source: str, expected: str) -> None:
    assert translated(read_html(f"<p>{source}</p>".encode()), REVERSED) == f"<p>{expected}</p>"
    assert done(read_html(source.encode()), Identity()).data.decode() == source


def test_added_words_directly_before_those_taken_out_are_other_words() -> None:
    page = b"<p>A <ins>blue</ins><del>red</del> dog</p>"
    assert translated(read_html(page), REVERSED) == "<p>DOG <del>RED</del> <ins>BLUE</ins> A</p>"


def test_statements_of_templates_in_comments_keep_their_order() -> None:
    page = b"<p>The <!-- {% if a %} --> red dog <!-- {% endif %} --> sleeps <!-- a note --> here</p>"
    wanted = "<p>THE <!-- {% if a %} --> DOG RED <!-- {% endif %} --> <!-- a note --> HERE SLEEPS</p>"
    assert translated(read_html(page), REVERSED) == wanted


@pytest.mark.parametrize("inner", ["", "<img>", "<b></b>"])
def test_an_element_without_text_keeps_the_space_on_both_of_its_sides(inner: str) -> None:
    page = f'<p>Click the <i class="x">{inner}</i> button, <a id="y"></a>now</p>'
    wanted = f'<p>CLICK THE <i class="x">{inner}</i> BUTTON, <a id="y"></a>NOW</p>'
    assert translated(read_html(page.encode())) == wanted
    found = translated(read_html(b'<p>Click the <i class="x"></i> button</p>'), REVERSED)
    assert re.sub("<[^<>]*>", "", found).strip() == "BUTTON THE CLICK"


def test_a_number_inside_two_elements_is_a_word_of_the_sentence() -> None:
    for tagged in ('<i><a href="#">#124</a></i>', '<del><b><a href="#">7</a></b></del>'):
        text = f"<p>I see {tagged}, the house is here.</p>"
        (segment,) = read_html(text.encode()).segments
        assert plain_text(segment.pieces) in (
            "I see #124, the house is here.",
            "I see 7, the house is here.",
        )
    # Directly behind a word it is the mark of a note, as before.
    (segment,) = read_html(b'<p>The house<i><a href="#">7</a></i> is here.</p>').segments
    assert plain_text(segment.pieces) == "The house is here."


def test_a_raised_word_behind_another_one_is_a_word_and_an_ending_is_none() -> None:
    assert upper("<p>see Output<sup class='x'>Effects</sup></p>") == "<p>SEE OUTPUT <sup class='x'>EFFECTS</sup></p>"
    endings = "<p>XIX<sup>ème</sup> M<sup>lle</sup> dog<sup>TM</sup> x<sup>max</sup></p>"
    assert upper(endings).count(" ") == endings.count(" ")


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (
            '<b ng-show="a">the dog</b> <b ng-hide="a">the cat</b>',
            '<b ng-show="a">DOG THE</b> <b ng-hide="a">CAT THE</b>',
        ),
        (
            '<u></u> <b v-if="a">the dog</b><b v-else>the cat</b>',
            '<u></u> <b v-if="a">DOG THE</b><b v-else>CAT THE</b>',
        ),
        (
            '<b x-show="a"><i>the</i> dog</b>\n<i x-show="b">the cat</i>',
            '<b x-show="a">DOG <i>THE</i></b>\n<i x-show="b">CAT THE</i>',
        ),
        ('<b v-if="a">one</b> and <b v-if="b">two</b>', '<b v-if="b">TWO</b> AND <b v-if="a">ONE</b>'),
        ('see <b v-if="a">one</b> <b v-else>two</b>', '<b v-else>TWO</b> <b v-if="a">ONE</b> SEE'),
        ('<b>one</b> <b v-if="a">two</b>', '<b v-if="a">TWO</b> <b>ONE</b>'),
    ],
)
def test_elements_of_which_a_page_shows_one_are_texts_of_their_own(source: str, wanted: str) -> None:
    assert translated(read_html(f"<p>{source}</p>".encode()), REVERSED) == f"<p>{wanted}</p>"


def test_attributes_of_programs_stay_and_so_do_their_names_in_a_text() -> None:
    tag = '<p ng-if="the dog" v-bind:title="a dog" x-text="the dog" *ngIf="a dog" :alt="a dog" @click="go">'
    source = f"<body>{tag}Use ng-if or v-else for the {{{{ dog | plural }}}}.</p></body>"
    expected = source.replace("Use", "USE").replace(" or ", " OR ").replace("for the", "FOR THE")
    assert translated(read_html(source.encode())) == expected


def test_numbers_and_signs_in_spans_of_their_own_are_no_word() -> None:
    page = b"<p>It is <span>$</span><span>5</span> <span>do</span><span>gs</span></p>"
    assert translated(read_html(page)) == "<p>IT IS <span>$</span><span>5</span> <span>DOGS</span></p>"


def test_a_text_behind_a_label_with_a_colon_is_a_text_of_its_own() -> None:
    reversed_page = translated(read_html(b"<p><b>Big note:</b>The dog is red</p><p><b>A.</b> Red dog</p>"), REVERSED)
    assert reversed_page == "<p><b>NOTE: BIG</b>RED IS DOG THE</p><p>DOG RED <b>A.</b></p>"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("the red </a> dog sleeps", "SLEEPS DOG </a> RED THE"),
        ("the <b>red dog sleeps", "SLEEPS DOG <b>RED THE"),
        ("the dog</ b> sleeps", "SLEEPS DOG</ b> THE"),
        ("the <b>red <i>dog</b> sleeps</i> here", "HERE SLEEPS</i> <b><i>DOG RED</b> THE"),
    ],
)
def test_a_tag_without_a_partner_divides_no_sentence(text: str, wanted: str) -> None:
    """A model loses words of the parts: The red | car stops."""
    document = read_html(text.encode())
    assert [plain_text(segment.pieces) for segment in document.segments] == [re.sub("<[^>]*>", "", text)]
    assert sorted(re.findall(r"</?\w+>|[A-Z]+", translated(document, REVERSED))) == sorted(
        re.findall(r"</?\w+>|[A-Z]+", wanted)
    )


def test_no_word_moves_behind_a_tag_whose_quotation_mark_is_not_closed() -> None:
    text = 'the dog <a href="x>sleeps here'
    assert translated(read_html(text.encode()), REVERSED) == 'DOG THE <a href="x>HERE SLEEPS'
    text = 'the dog <img alt="the cat> sleeps'
    assert translated(read_html(text.encode()), REVERSED) == 'DOG THE <img alt="the cat> SLEEPS'


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<p>A man <a href=x>dog<a href=y>cat</a></p>", "<p><a href=x>DOG</a> MAN A<a href=y>CAT</a></p>"),
        ("<p><a href=x>Two dogs <a href=y>a cat</a></p>", "<p><a href=y>CAT A</a> <a href=x>DOGS TWO</a></p>"),
        ("<p><a name=x>Dogs.</p><p>A <a href=y>cat</a></p>", "<p><a name=x>DOGS.</p><p><a href=y>CAT</a> A</p>"),
    ],
)
def test_a_link_ends_where_another_one_begins(text: str, written: str) -> None:
    assert translated(read_html(text.encode()), REVERSED) == written
