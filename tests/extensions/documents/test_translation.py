"""The translation of segments: sentences, lines, placeholders that must stay, and what is marked."""

import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.formats import (
    ReadingOptions,
    format_named,
    read_document,
    read_plain_text,
)
from transformer_cli.extensions.documents.html import read_html
from transformer_cli.extensions.documents.segments import Markup, Role, Segment, TranslatedSegment
from transformer_cli.extensions.documents.strings import BROKEN_MESSAGE
from transformer_cli.extensions.documents.translation import (
    TOO_MARKED,
    sentence_units,
    translate_document,
)
from transformer_cli.extensions.documents.translator import (
    COPIED,
    IN_PIECES,
    UNBALANCED,
    AnsweredText,
    AskedText,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.sentences import Sentence, split_sentences

from .fake_translators import REVERSED, UPPER, Identity, WordByWord, done, translated


class Segments:
    """A document that remembers what is written."""

    def __init__(self, *segments: Segment) -> None:
        self.segments = segments
        self.written: list[TranslatedSegment] = []

    def write(self, translations: Sequence[TranslatedSegment], languages: object) -> bytes:
        self.written = list(translations)
        return b""


class Losing(WordByWord):
    """Loses some texts from its translations, when they stand in a longer text."""

    def __init__(self, *lost: str) -> None:
        super().__init__(str.upper)
        self.lost = lost
        self.asked: list[str] = []

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        self.asked += [asked.text for asked in texts]
        answers = []
        for answer in super().translate(texts):
            text = answer.text
            for lost in self.lost:
                text = text.replace(lost, "")
            answers.append(answer._replace(text=text))
        return answers


def test_all_sentences_are_asked_for_once_and_together() -> None:
    calls = []

    class Counting(WordByWord):
        def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
            calls.append([asked.text for asked in texts])
            return super().translate(texts)

    bold = (Markup(Role.OPEN, 1, "<b>"), "here", Markup(Role.CLOSE, 1, "</b>"))
    document = Segments(
        Segment.plain("One line.\nTwo.", "a"), Segment(("I am ", *bold, ". It is so."), "b"), Segment.plain("Two.", "c")
    )
    translate_document(document, Counting())
    assert calls == [["One line.", "Two.", "I am here.", "It is so."]] or calls == [
        ["One line.", "Two.", "I am here.", "It is so.", "Two."]
    ]


def test_a_lost_placeholder_is_translated_around_and_marked() -> None:
    document = Segments(Segment.plain("Open {name} in %s now.", "line 7"))
    found = translate_document(document, Losing("{name}"))
    assert document.written[0].text == "OPEN {name} IN %s NOW."
    assert [(doubt.place, doubt.reason) for doubt in found.doubts] == [("line 7", IN_PIECES)]
    assert (found.num_segments, len(found.messages)) == (1, 1)


def test_a_text_stays_if_even_its_pieces_go_wrong() -> None:
    class Inventing(WordByWord):
        def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
            return [AnsweredText("{other} " + asked.text) for asked in texts]

    document = Segments(Segment.plain("Open {name} now.", "x"))
    found = translate_document(document, Inventing())
    assert document.written[0].text == "Open {name} now."
    assert [doubt.reason for doubt in found.doubts] == [COPIED]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("(the house)", ["the house"]),
        ("(The house is big.)", ["The house is big."]),
        ("[door opens].", ["door opens"]),
        ("the (red) house", ["the (red) house"]),
        ("(the red) and (the small)", ["(the red) and (the small)"]),
        ("Home \u00b7 My garden \u203a The station", ["Home", "My garden", "The station"]),
        ("a) The house", ["a) The house"]),
        ("[[name]] and [x]", ["[[name]] and [x]"]),
        ("{{a}} \u2022 {{b}} is", ["{{a}}", "{{b}} is"]),
    ],
)
def test_what_brackets_enclose_and_the_entries_of_a_menu_are_texts_of_their_own(text: str, asked: list[str]) -> None:
    translator = Losing()
    document = Segments(Segment.plain(text, "x"))
    translate_document(document, translator)
    assert translator.asked == asked
    assert document.written[0].text.casefold() == text.casefold()


def test_the_links_of_a_menu_are_texts_of_their_own() -> None:
    for sign in ("|", "&middot;", "\u203a"):
        source = f"<p><a href=1>Home</a> {sign} <a href=2>My garden</a> {sign} or the station</p>"
        found = done(read_html(source.encode()), REVERSED).data.decode()
        assert found == f"<p><a href=1>HOME</a> {sign} <a href=2>GARDEN MY</a> {sign} STATION THE OR</p>".replace(
            "&middot;", "\u00b7"
        )


def test_sentences_in_brackets_with_tags_keep_their_brackets() -> None:
    source = "<p>(The <b>red</b> house is big. The dog is small.)</p>"
    found = done(read_html(source.encode()), REVERSED).data.decode()
    assert found == "<p>(BIG. IS HOUSE <b>RED</b> THE SMALL. IS DOG THE)</p>"


class WithoutBrackets(WordByWord):
    """Knows no brackets: it loses them with the words inside, and takes what has no full stop for a question."""

    def __init__(self) -> None:
        super().__init__(str.upper)
        self.asked: list[str] = []

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        self.asked += [asked.text for asked in texts]
        kept = [re.sub(r"\s*\(.*?\)\s*|\s*\[.*?\]\s*|[()\[\]]", " ", asked.text).strip() for asked in texts]
        found = super().translate([AskedText(text.capitalize()) for text in kept])
        return [
            answer if text.endswith((".", "!", "?")) else answer._replace(text=f"{answer.text}?")
            for answer, text in zip(found, kept, strict=True)
        ]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("(optional) The dog is big.", "(OPTIONAL) THE DOG IS BIG."),
        ("The dog (the big one) sleeps.", "THE DOG (THE BIG ONE) SLEEPS."),
        ("Look at the house (see the garden)!", "LOOK AT THE HOUSE (SEE THE GARDEN)!"),
        ("I (we) like books [not films].", "I (WE) LIKE BOOKS [NOT FILMS]."),
        ("The dog (big ones sleep.", "THE DOG (BIG ONES SLEEP."),
        ("The dog] sleeps.", "THE DOG] SLEEPS."),
        ("The house (with {num} rooms (or more)) is red.", "THE HOUSE (WITH {num} ROOMS (OR MORE)) IS RED."),
    ],
)
def test_what_brackets_enclose_is_translated_by_a_model_that_has_never_seen_them(text: str, written: str) -> None:
    document = Segments(Segment.plain(text, "x"))
    found = translate_document(document, WithoutBrackets())
    assert document.written[0].text == written
    assert [doubt.reason for doubt in found.doubts] == [IN_PIECES]


def test_a_number_keeps_its_unit_where_a_text_is_translated_in_pieces() -> None:
    document = Segments(Segment.plain("Open a 3D house with {name} at 5V now.", "x"))
    losing = Losing("{name}")
    found = translate_document(document, losing)
    assert document.written[0].text == "OPEN A 3D HOUSE WITH {name} AT 5V NOW."
    assert not any(asked.startswith(("D house", "V now")) for asked in losing.asked)
    assert [doubt.reason for doubt in found.doubts] == [IN_PIECES]


def test_tags_around_words_in_brackets_stay_around_them() -> None:
    page = read_html(b"<p>The dog (the <b>big</b> one) sleeps.</p>")
    assert done(page, WithoutBrackets()).data == b"<p>THE DOG (THE <b>BIG</b> ONE) SLEEPS.</p>"


@pytest.mark.parametrize(
    ("text", "lost", "written"),
    [
        ("See (%s) now", ("(", ")"), "SEE (%s) NOW"),
        ("See [%d] and (%s) now", ("[", ")"), "SEE [%d] AND (%s) NOW"),
        ("Dogs and (see {url}).", ("(SEE",), "DOGS AND (SEE {url})."),
        ("The (%s) is (%s)", ("(", ")"), "THE (%s) IS (%s)"),
        ("The (big house) is", ("(",), "THE (BIG HOUSE) IS"),
        ("The (big house) is", ("(", ")"), "THE (BIG HOUSE) IS"),
        ("The dog(s) is", ("(", ")"), "THE DOGS IS"),
        ("A mark :] in [%s] is", ("[",), "A MARK :] IN [%s] IS"),
    ],
)
def test_brackets_around_protected_parts_come_back_and_none_is_left_without_a_partner(
    text: str, lost: tuple[str, ...], written: str
) -> None:
    document = Segments(Segment.plain(text, "x"))
    found = translate_document(document, Losing(*lost))
    assert document.written[0].text == written
    wanted = [UNBALANCED] if text == "The dog(s) is" and lost == ("(",) else []
    has_words = "(big" in text or "(see" in text
    assert [doubt.reason for doubt in found.doubts] == ([IN_PIECES] if has_words else wanted)


@pytest.mark.parametrize(
    ("text", "lost", "written"),
    [
        ('The "big" dog', '"BIG', "THE DOG"),
        ("The \u201cbig\u201d dog", "\u201d", "THE BIG DOG"),
        ("The \u00abbig\u00bb dog (here)", "\u00ab", "THE BIG DOG (HERE)"),
        ('The key "dog-%1$s"', '"DOG-', "THE KEY %1$s"),
        ("The 'blue' dog", "'", "THE BLUE DOG"),
        ("'Blue' dog", "'B", "LUE' DOG"),
        ("'Sea' (dog)", "'", "SEA (DOG)"),
        ("The 'one' and the 'sea side'", "'SEA ", "THE 'ONE' AND THE SIDE"),
        ("The 'purple house' is", "'PURPLE ", "THE HOUSE IS"),
        ("The 'purple house' is", "HOUSE'", "THE PURPLE IS"),
    ],
)
def test_half_a_pair_of_quotation_marks_is_taken_away_and_named(text: str, lost: str, written: str) -> None:
    document = Segments(Segment.plain(text, "x"))
    found = translate_document(document, Losing(lost))
    has_half = lost not in (
        "'",
        "'B",
    )  # both are lost; and three letters before an apostrophe may be a short word
    assert " ".join(document.written[0].text.split()) == written
    assert [doubt.reason for doubt in found.doubts] == ([UNBALANCED] if has_half else [])


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("The [red dog][big cat] is", "IS CAT DOG BIG RED THE"),
        ("The (red dog)(big cat) is", "IS CAT DOG BIG RED THE"),
        ("The red dog[big cat] is", "IS CAT DOG BIG RED THE"),
        ("The red dog(big cat) is", "IS CAT DOG BIG RED THE"),
        ("The [red dog]big cat is", "IS CAT DOG BIG RED THE"),
        ("Many cats (the big)can't show", "SHOW BIG CAN'T THE CATS MANY"),
        ("The Main(string[] args) is", "IS ARGS MAIN STRING[] THE"),
        ("The Main(string args[]) is", "IS ARGS[] MAIN STRING THE"),
        ("The cat(s) and dogs (red big)can't", "BIGCAN'T RED DOGS AND CAT(S) THE"),  # perhaps one word, as in cat(s)
    ],
)
def test_brackets_that_are_taken_away_between_two_words_leave_a_space(text: str, written: str) -> None:
    document = Segments(Segment.plain(text, "x"))
    translate_document(document, REVERSED)
    assert document.written[0].text == written


def test_a_bracket_that_gets_a_partner_gets_it_at_the_edge_of_a_word() -> None:
    document = Segments(Segment.plain("Icons (16x16, 256x256) and {name}", "x"))
    translate_document(document, REVERSED)
    assert document.written[0].text == "{name} AND (256x256) (16x16), ICONS"


def test_quotation_marks_around_a_placeholder_stay_around_it() -> None:
    for text, lost in ('See "%s" now', '"'), ("See \u201c%s\u201d now", "\u201c"):
        document = Segments(Segment.plain(text, "x"))
        translate_document(document, Losing(lost))
        assert document.written[0].text == text.upper().replace("%S", "%s")


@given(st.text(st.sampled_from("()[]ab %s{x}.|"), max_size=24))
def test_no_division_into_units_loses_a_character(text: str) -> None:
    for has_markup in (False, True):
        units = list(sentence_units(Sentence(text, " "), has_markup=has_markup, has_sounds=True))
        assert "".join(unit.gap + unit.text for unit in units) == f" {text}"


def test_code_takes_the_place_of_a_word_and_is_never_seen_by_the_model() -> None:
    code = Markup(Role.WORD, 1, "<code>secret call</code>")
    translator = Losing()
    document = Segments(Segment(("Call ", code, " twice, {{0}}."), "x"))
    translate_document(document, translator)
    assert document.written[0].pieces == ("CALL ", code, " TWICE, {{0}}.")
    assert translator.asked == ["Call {{1}} twice, {{0}}."]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("<code>f</code>", "f"),
        ("<code class='x'>a &lt; b</code>", "a < b"),
        (
            '<w:r><w:rPr></w:rPr><w:fldChar w:fldCharType="begin"></w:fldChar></w:r><w:r><w:instrText xml:space="preserve"> SEQ '
            'Figure </w:instrText></w:r><w:r><w:t>1</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>',
            "1",
        ),
        ("<text:sequence text:name='Figure'>2</text:sequence>", "2"),
        ('<x id="INTERPOLATION" equiv-text="{{name}}"/>', "{{name}}"),
        ('<ph id="0"/>', '<ph id="0"/>'),  # nothing else tells that something stands there
        ("<name>", "<name>"),
        ("`<div>`", "`<div>`"),
    ],
)
def test_a_lost_word_of_code_comes_back_and_a_message_shows_what_a_person_reads(raw: str, shown: str) -> None:
    code = Markup(Role.WORD, 1, raw)
    document = Segments(Segment(("Call ", code, " twice"), "x"))
    found = translate_document(document, Losing("{{0}}"))
    assert document.written[0].pieces == ("CALL ", code, " TWICE")
    assert found.doubts[0].text == f"Call {shown} twice"


@pytest.mark.parametrize("raw", ["#", "{n}", "%1$d", "<xliff:g id='x'>%d</xliff:g>"])
def test_code_for_a_number_is_read_as_one(raw: str) -> None:
    code = Markup(Role.WORD, 1, raw)
    translator = Losing()
    document = Segments(Segment((code, " dogs of ", Markup(Role.WORD, 2, "{name}")), "x"))
    translate_document(document, translator)
    assert translator.asked == ["{{num_0}} dogs of {{1}}"]
    assert document.written[0].pieces[0] == code


@pytest.mark.parametrize("text", ["42", "...", "", " \n ", "{name} %s", "\u00ad"])
def test_what_has_no_words_is_never_asked_for(text: str) -> None:
    translator = Losing()
    document = Segments(Segment.plain(text, "x"))
    found = translate_document(document, translator)
    assert document.written[0].text == text
    assert found.num_segments == 0


@given(st.text(st.sampled_from("ab \n\r\t.!{}%s\u00e8\u2028\x0b"), max_size=60))
def test_lines_stay_lines(text: str) -> None:
    data = text.encode()
    assert translate_document(read_plain_text(data), Identity()).data == data
    found = done(read_plain_text(data), UPPER).data.decode()
    assert found.count("\n") == text.count("\n")
    assert found.count("\r") == text.count("\r")


def test_messages_name_the_line() -> None:
    found = translate_document(read_plain_text(b"one\r\n\r\ntwo {x}\n"), Losing("{x}"))
    assert [doubt.place for doubt in found.doubts] == ["line 3"]


@pytest.mark.parametrize(("depth", "is_moved"), [(50, True), (51, False), (2000, False)])
def test_a_text_with_too_much_markup_stays_and_is_marked(depth: int, is_moved: bool) -> None:
    opening = [Markup(Role.OPEN, number, "<b>") for number in range(depth)]
    closing = [Markup(Role.CLOSE, number, "</b>") for number in reversed(range(depth))]
    document = Segments(Segment(("a", *opening, "b", *closing), "x"))
    found = translate_document(document, UPPER)
    assert (document.written[0].text == "AB") is is_moved
    assert [doubt.reason for doubt in found.doubts] == [TOO_MARKED] * (not is_moved)


DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("html", f"<p title='&#{DIGITS};'>Hello &#{DIGITS};&#x{DIGITS};</p>"),
        ("vtt", f"WEBVTT\n\n00:01.000 --> 00:02.000\nHello &#{DIGITS};\n"),
        ("vtt", f"WEBVTT\n\n{DIGITS}:00:01.000 --> 00:00:02.000\nHello\n\n00:01.000 --> 00:02.000\nHello\n"),
        ("srt", f"{DIGITS}\n00:00:01,000 --> 00:00:02,000\nHello\n"),
        ("md", f"{DIGITS}. Hello &#{DIGITS};\n"),
        ("po", f'msgid ""\nmsgstr "Plural-Forms: nplurals={DIGITS};\\n"\n\nmsgid "Hello"\nmsgstr[{DIGITS}] ""\n'),
        ("json", f'{{"a": "Hello {{x, plural, ={DIGITS}{{house}} other{{houses}}}} {{{DIGITS}}}"}}'),
        ("yaml", f"a: Hello {DIGITS}\nb: {DIGITS}\n"),
    ],
)
def test_a_number_of_thousands_of_digits_is_text_like_any_other(name: str, text: str) -> None:
    """Python refuses to read such a number."""
    document = read_document(text.encode(), format_named(name))
    assert translate_document(document, Identity()).data == text.encode()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("srt", f"1\n{DIGITS}:00:01,000 --> {DIGITS}:00:02,000\nHello\n"),
        ("yaml", f"%YAML 1.{DIGITS}\n---\na: Hello\n"),
        ("yaml", 'a: "\\UFFFFFFFF"\n'),
    ],
)
def test_a_number_that_the_format_does_not_know_is_refused(name: str, text: str) -> None:
    with pytest.raises(DataError):
        read_document(text.encode(), format_named(name))


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("<p>We go. <b>2024.</b> The dog.</p>", "<b>2024.</b>"),
        ("<p><a>#188</a>. The dog.</p>", "<a>#188</a>"),
        ("<p>The dog. It <i>is. (12)</i></p>", "<i>IS. (12)</i>"),
    ],
)
def test_a_tag_around_a_sentence_without_letters_stays_around_it(text: str, tag: str) -> None:
    found = done(read_html(text.encode()))
    assert tag in found.data.decode()
    assert not found.doubts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The {x}dog is big.", "BIG. IS {x}DOG THE"),
        ("The dog{x} is big.", "BIG. IS DOG{x} THE"),
        ("The {{name}}dog and the ${y}cat", "${y}CAT THE AND {{name}}DOG THE"),
        ("{x}dog", "{x}DOG"),
        ("A {x}dog{y} runs", "RUNS {x}DOG{y} A"),
        ("A {x}dog{y}cat runs", "RUNS {x}DOG{y}CAT A"),
        ("A dog{x}%(y)s runs", "RUNS DOG{x}%(y)s A"),
        ("A {x}{y}dog runs", "RUNS {x}{y}DOG A"),
        ("%(a)sdog runs", "RUNS %(a)sDOG"),
        ("The {n}th dog", "DOG {n}TH THE"),
        ("The red{x}dog runs", "RUNS RED{x}DOG THE"),
        ("my{x}dog runs", "RUNS MY{x}DOG"),
        ("{{name}}'s dog", "DOG {{name}}'S"),
        ("The dog{x}'s house", "HOUSE DOG{x}'S THE"),
        ("The dog{x}\u2019s house", "HOUSE DOG{x}\u2019S THE"),
        ("The image{n}-small file", "FILE IMAGE{n}-SMALL THE"),
        ("The dog{x}/cat{y} sleeps", "SLEEPS DOG{x}/CAT{y} THE"),
        ("The dog{x}.txt file", "FILE DOG{x}.TXT THE"),
        ("The big-{x}dog sleeps", "SLEEPS BIG-{x}DOG THE"),
        ('The "{x}dog" sleeps', 'SLEEPS "{x}DOG" THE'),
        ("Pay $x.", "$x. PAY"),
    ],
)
def test_a_placeholder_that_touches_a_word_moves_with_it(text: str, expected: str) -> None:
    document = read_document(text.encode(), format_named("txt"))
    assert done(document, REVERSED).data.decode() == expected


def test_a_placeholder_between_two_words_keeps_them_apart_also_behind_a_tag() -> None:
    found = done(read_html(b"<p>A <b>dog</b>{x}cat and dog{y}<i>cow</i></p>"))
    assert re.sub(b"<.*?>", b"", found.data) == b"A DOG{x}CAT AND DOG{y}COW"


def test_the_model_reads_a_word_without_the_placeholder_that_touches_it() -> None:
    class Recorder(WordByWord):
        def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
            asked.extend(each.text for each in texts)
            return super().translate(texts)

    asked: list[str] = []
    document = read_html(b"<p>The <b>{x}dog</b> is &amp;{a&amp;b}big</p>")
    found = done(document, Recorder(str.upper)).data
    assert asked == ["The dog is &big"]
    assert found == b"<p>THE <b>{x}DOG</b> IS &amp;{a&amp;b}BIG</p>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{% if x %}Hello dog{% endif %} and cat", "{% if x %}DOG HELLO{% endif %} CAT AND"),
        ("{{#each x}}The dog{{/each}}", "{{#each x}}DOG THE{{/each}}"),
        ("{{#if a}}A dog{{else}}A cat{{/if}}", "{{#if a}}DOG A{{else}}CAT A{{/if}}"),
        ("A <% if y %>red dog<% end %>", "A <% if y %>DOG RED<% end %>"),
        ("Two car{% if n %}s{% endif %} run", "RUN CARS{% if n %}{% endif %} TWO"),
        ("Two car{% if n %}s{% endif %}.", "CARS{% if n %}{% endif %}. TWO"),
        (
            "Two car{% if n %}s{% endif %} run{% if n %}s{% endif %}!",
            "RUNS{% if n %}{% endif %}! CARS{% if n %}{% endif %} TWO",
        ),
        ("A {# red #} dog", "{# red #} DOG A"),
        ("A {{red}} dog", "DOG {{red}} A"),
        ("see #end of it", "IT OF #end SEE"),
        ("---\nred: dog\n---\n", "---\nDOG RED:\n---\n"),
    ],
)
@pytest.mark.parametrize("name", ["json", "md", "csv"])
def test_statements_of_templates_divide_texts_and_keep_their_order(name: str, text: str, expected: str) -> None:
    if "\n" in text and name != "json":
        return
    options = ReadingOptions(columns=("1",))
    before, after = (json.dumps({"k": each}) if name == "json" else each for each in (text, expected))
    document = read_document(before.encode(), format_named(name), options)
    assert done(document, REVERSED).data.decode() == after


def test_statements_inside_a_paragraph_of_several_lines_divide_it() -> None:
    document = read_html(b"<p>One <b>dog\n and</b> {n} <i>cats</i></p>")
    assert done(document, REVERSED).data == b"<p><i>CATS</i> {n} <b>AND DOG</b> ONE</p>"
    found = done(read_document(b"One dog\n{% if x %} and *red\ncats*{% endif %}\n", format_named("md")), REVERSED)
    assert found.data == b"DOG ONE {% if x %} *CATS RED* AND{% endif %}\n"


def test_a_message_whose_braces_do_not_fit_stays_and_is_named() -> None:
    text = b'{"k": "{n, plural, one {a dog} other {dogs}"}'
    found = done(read_document(text, format_named("json")))
    assert found.data == text
    assert [doubt.reason for doubt in found.doubts] == [BROKEN_MESSAGE]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The {n,choice,0#no dogs|1#one dog|1<{n} dogs} here", "HERE {n,choice,0#DOGS NO|1#DOG ONE|1<DOGS {n}} THE"),
        ("{0, choice, -1#less|0 # a dog|0.5\u2264more dogs}", "{0, choice, -1#LESS|0 # DOG A|0.5\u2264DOGS MORE}"),
        ("{0,choice,0#a {1,choice,0#b dog|1#c} d|1#e}", "{0,choice,0#D {1,choice,0#DOG B|1#C} A|1#E}"),
    ],
)
def test_the_texts_of_a_choice_are_translated(text: str, expected: str) -> None:
    before, after = (json.dumps({"k": each}, ensure_ascii=False) for each in (text, expected))
    found = done(read_document(before.encode(), format_named("json")), REVERSED)
    assert found.data.decode() == after
    assert not found.doubts


@pytest.mark.parametrize("text", ["{0,choice,no limit}", "{0,choice,0#a dog|b}", "{0,choice,0#a dog"])
def test_a_choice_that_is_broken_stays_and_is_named(text: str) -> None:
    data = json.dumps({"k": text}).encode()
    found = done(read_document(data, format_named("json")))
    assert found.data == data
    assert [doubt.reason for doubt in found.doubts] == [BROKEN_MESSAGE]


def test_words_that_are_taken_out_and_added_are_not_read_as_one() -> None:
    found = done(read_html(b"<p>The <del>old</del><ins>new</ins> dog</p>"))
    assert found.data == b"<p>THE <del>OLD</del> <ins>NEW</ins> DOG</p>"


def test_tags_with_numbers_move_with_their_words() -> None:
    document = read_document(b'{"k": "One <1>red dog</1> and <0/> here"}', format_named("json"))
    assert done(document, REVERSED).data == b'{"k": "<0/> HERE AND <1>DOG RED</1> ONE"}'


class NeverAsked(Identity):
    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        raise AssertionError(texts)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "qt",
            '<TS version="2.1" language="fr"><context><message><source>Red</source><translation/></message></context></TS>',
        ),
        (
            "xliff",
            '<xliff version="1.2"><file source-language="en" target-language="fr"><body><trans-unit id="1"><source>Red</source></trans-unit></body></file></xliff>',
        ),
        (
            "xliff",
            '<xliff version="2.0" srcLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f"><unit id="1"><segment><source>Red</source></segment></unit></file></xliff>',
        ),
        ("xcstrings", '{"sourceLanguage": "de", "strings": {"Red": {}}, "version": "1.0"}'),
    ],
)
def test_a_document_in_other_languages_is_refused_before_it_is_translated(name: str, text: str) -> None:
    document = read_document(text.encode(), format_named(name))
    assert document.segments
    with pytest.raises(DataError, match="but the model translates from en into"):
        translate_document(document, NeverAsked())


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("json", '["One dog\\tbig cats"]', '["DOG ONE\\tCATS BIG"]'),
        ("json", '["<b>Name:</b>\\tbig cats"]', '["<b>NAME:</b>\\tCATS BIG"]'),
        ("yaml", 'a: "\\tOne dog\\t\\tbig cats"', 'a: "\\tDOG ONE\\t\\tCATS BIG"'),
        ("strings", '"a" = "One dog\\tbig cats";', '"a" = "DOG ONE\\tCATS BIG";'),
        ("properties", "a=One dog\\tbig cats", "a=DOG ONE\\tCATS BIG"),
        ("txt", "One dog\tbig cats\n", "DOG ONE\tCATS BIG\n"),
    ],
)
def test_a_tab_divides_two_texts_and_stays(name: str, text: str, expected: str) -> None:
    found = done(read_document(text.encode(), format_named(name)), REVERSED)
    assert found.data.decode() == expected


@pytest.mark.parametrize("name", ["json", "strings"])
def test_a_tab_inside_of_code_divides_nothing(name: str) -> None:
    text = '"a" = "Open `a\\tb` now\\tbig cats";' if name == "strings" else '["Open `a\\tb` now\\tbig cats"]'
    found = done(read_document(text.encode(), format_named(name)), UPPER)
    assert found.data.decode() == text.replace("Open", "OPEN").replace("now", "NOW").replace("big cats", "BIG CATS")


@pytest.mark.parametrize(
    ("html", "target", "expected"),
    [
        ("DOG\u3002<b>CAT\u3002</b>", "en", "dog. <b>cat.</b>"),
        ("<b>DOG\uff01CAT\u3002</b>DOG\u3002", "en", "<b>dog. cat.</b> dog."),
        ("DOG\u3002<img src='x'>CAT\uff1f", "en", "dog.<img src='x'> cat."),
        ("DOG. <b>CAT.</b>", "en", "dog. <b>cat.</b>"),
        ("DOG\u3002<b>CAT\u3002</b>", "ja", "dog.<b>cat.</b>"),
    ],
)
def test_sentences_of_chinese_with_markup_between_them_get_a_space_where_the_target_has_one(
    html: str, target: str, expected: str
) -> None:
    class Chinese(WordByWord):
        def sentences(self, text: str) -> list[Sentence]:
            return split_sentences(text, "zh")

        def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
            return [AnsweredText(re.sub("[\u3002\uff01\uff1f]", ".", asked.text).lower()) for asked in texts]

    found = translated(read_html(f"<p>{html}</p>".encode()), Chinese(languages=Direction("zh", target)))
    assert found == f"<p>{expected}</p>"
