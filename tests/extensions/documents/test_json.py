"""JSON: strings are translated; keys, numbers and white space stay."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.extensions.documents.formats import ReadingOptions
from transformer_cli.extensions.documents.json import read_json
from transformer_cli.extensions.documents.translation import NOT_TEXT, translate_document
from transformer_cli.extensions.documents.translator import AnsweredText, AskedText
from transformer_cli.extensions.documents.yaml import read_yaml
from transformer_cli.process.errors import DataError

from .fake_translators import REVERSED, UPPER, Identity, WordByWord, done, translated

KEYS = st.text(st.sampled_from('ab".\\'), max_size=3)
# A backslash before a letter is a path of Windows, and a dash before one an option or a name for programs: these stay.
TEXTS = st.text(st.sampled_from('ab c"\\\n-\u00e8\U0001f600'), max_size=8).filter(
    lambda text: not re.search(r"[\\-][^\W\d_]", text)
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)


def squeezed(value: Any) -> Any:
    """A tree without the white space of its strings, which the translator of the tests makes regular."""
    if isinstance(value, str):
        return "".join(value.split())
    if isinstance(value, list):
        return [squeezed(each) for each in value]
    return {key: squeezed(each) for key, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.long
@given(VALUES, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_all_strings_change_and_nothing_else(value: Any, is_ascii: bool, indent: int | str | None) -> None:
    data = json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode()
    assert translate_document(read_json(data), Identity()).data == data
    found = done(read_json(data), WordByWord(lambda word: word.replace("a", "A").replace("b", "B")))
    assert squeezed(json.loads(found.data)) == squeezed(_changed(value))


def _changed(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("a", "A").replace("b", "B")
    if isinstance(value, list):
        return [_changed(each) for each in value]
    return {key: _changed(each) for key, each in value.items()} if isinstance(value, dict) else value


def test_a_string_with_half_a_character_stays_and_is_named() -> None:
    """The file is ASCII: to name another encoding for it would help nobody."""
    data = rb'{"a": "one \ud800 dog", "b": "the car"}'
    result = done(read_json(data))
    assert result.data == data.replace(b"the car", b"THE CAR")
    assert [doubt.reason for doubt in result.doubts] == [NOT_TEXT]


def test_patterns_choose_values() -> None:
    text = '{"id": "red car", "items": [{"title": "one", "kind": "car"}, {"title": "two"}]}'
    document = read_json(text.encode(), ReadingOptions(values=("items.*.title",)))
    assert done(document, UPPER).data.decode() == text.replace("one", "ONE").replace("two", "TWO")
    document = read_json(text.encode(), ReadingOptions(values=("**.title", "id")))
    assert len(document.segments) == 3


def test_patterns_that_choose_nothing_are_refused() -> None:
    options = ReadingOptions(values=("nope.x", "title"))
    with pytest.raises(DataError, match=r"no text has the keys that --values names: nope\.x, title"):
        read_json(b'{"a": "one"}', options)
    with pytest.raises(DataError, match="no text has the keys"):
        read_yaml(b"a: one\n", options)
    assert not read_json(b"{}").segments


def test_a_file_that_escapes_letters_gets_escaped_letters() -> None:
    document = read_json(b'{"a": "caf\\u00e9 now"}')
    assert done(document, UPPER).data == b'{"a": "CAF\\u00c9 NOW"}'


def test_lines_of_json_are_read() -> None:
    assert done(read_json(b'{"a": "one"}\n{"a": "two"}\n'), UPPER).data == b'{"a": "ONE"}\n{"a": "TWO"}\n'


@pytest.mark.parametrize("text", ["{", '{"a": 1,}', "[1 2]", "hello", "", '{"a": "x"} {', "{]"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="line 1: no valid JSON"):
        read_json(text.encode())


def test_deep_nesting_is_refused_with_its_line() -> None:
    with pytest.raises(DataError, match="line 2: nested more than 200 deep"):
        read_json(b"\n" + b"[" * 100_000 + b"]" * 100_000)


def test_the_branches_of_a_plural_are_texts_of_their_own() -> None:
    source = '{"a": "{n, plural, offset:1 =0 {no file} one {# \\u00e9 file} other {# files in {place}}} here"}'
    assert translated(read_json(source.encode())) == (
        '{"a": "{n, plural, offset:1 =0 {NO FILE} one {# \\u00c9 FILE} other {# FILES IN {place}}} HERE"}'
    )


def test_branches_inside_branches_are_found_and_quoted_braces_stay() -> None:
    source = """{"a": "{g, select, male {He has {n, plural, one {# dog} other {# dogs}}} other {It''s '{x}'}}"}"""
    assert translated(read_json(source.encode())) == (
        """{"a": "{g, select, male {HE HAS {n, plural, one {# DOG} other {# DOGS}}} other {IT'S '{x}'}}"}"""
    )


def test_an_apostrophe_before_a_brace_is_doubled_because_it_would_quote() -> None:
    source = '{"a": "{n, plural, other {of {name}}}"}'
    italian = WordByWord(lambda word: "dell'" if word == "of" else word, joins="")
    assert translated(read_json(source.encode()), italian) == ("""{"a": "{n, plural, other {dell''{name}}}"}""")


OF_HOUSE = WordByWord(lambda word: "dell'" if word == "of" else word, joins="")
ARGUMENT, BRANCHES = '"a": "of {name}"', '"b": "{n, plural, one {file} other {files}}"'


@pytest.mark.parametrize(
    ("others", "written"),
    [
        (BRANCHES, "dell''{name}"),
        ("\"b\": \"key ''{key}''\"", "dell''{name}"),
        ('"b": "key {key}"', "dell'{name}"),  # nothing says that ICU reads it
        (f'{BRANCHES}, "@@locale": "en"', "dell'{name}"),  # Flutter quotes nothing by itself
        ('"b": "key \'\'{key}\'\'", "@@locale": "en"', "dell''{name}"),
        (f'{BRANCHES}, "c": "owner\'{{key}}"', "dell'{name}"),  # the file does not quote
        (f'{BRANCHES}, "c": "of {{{{name}}}}"', "dell''{name}"),
    ],
)
def test_an_apostrophe_before_an_argument_is_doubled_where_the_file_has_messages_of_icu(
    others: str, written: str
) -> None:
    source = f"{{{ARGUMENT}, {others}}}".encode()
    for document in (read_json(source), *([] if "@@" in others else [read_yaml(source)])):
        page = json.loads(translated(document, OF_HOUSE))
        assert page["a"] == written
        assert page.get("c") in (None, "owner'{key}", "dell'{{name}}")


@pytest.mark.parametrize(
    ("others", "message", "written"),
    [
        ('"@@locale": "en"', "of {name}", "dell'{name}"),
        ('"@@locale": "en", "b": "key \'\'{key}\'\'"', "of {name}", "dell''{name}"),
        ('"c": "x"', "of {name}", "dell''{name}"),
        ('"c": "owner\'{key}"', "of {name}", "dell'{name}"),
    ],
)
def test_an_apostrophe_in_a_branch_is_written_as_the_program_reads_it(others: str, message: str, written: str) -> None:
    source = f'{{"a": "{{n, plural, other {{{message}}}}}", {others}}}'
    for document in (read_json(source.encode()), *([] if "@@" in others else [read_yaml(source.encode())])):
        page = json.loads(translated(document, OF_HOUSE))
        assert page["a"] == f"{{n, plural, other {{{written}}}}}"


def test_a_message_that_quotes_a_brace_keeps_its_apostrophes() -> None:
    text = '{"a": "write \'{x}\' of {name}", "b": "key \'\'{key}\'\'"}'
    assert translated(read_json(text.encode()), WordByWord(lambda word: word)) == text


def test_a_message_whose_braces_do_not_fit_stays() -> None:
    source = '{"a": "{n, plural, one {# file} other {# files}"}'
    assert translated(read_json(source.encode())) == source


def test_blocks_of_html_in_a_string_are_translated_one_by_one() -> None:
    source = '{"a": "<p>One <b>red</b> car</p><p>two<br>cars</p>"}'
    assert translated(read_json(source.encode()), REVERSED) == ('{"a": "<p>CAR <b>RED</b> ONE</p><p>TWO<br>CARS</p>"}')


@pytest.mark.parametrize("tag", [" <br> ", "<br>", "<br/> ", " <br>", "</p> <p>"])
def test_a_line_break_keeps_the_spaces_on_its_sides(tag: str) -> None:
    start, end = ("<p>", "</p>") if "p>" in tag else ("", "")
    source = f'{{"a": "{start}one car{tag}two cars{end}"}}'
    for order, first, second in ((UPPER, "ONE CAR", "TWO CARS"), (REVERSED, "CAR ONE", "CARS TWO")):
        written = f'{{"a": "{start}{first}{tag}{second}{end}"}}'
        assert translated(read_json(source.encode()), order) == written


def test_a_message_shows_a_text_with_a_line_break_in_it_without_signs_of_this_program() -> None:
    found = done(read_json(b'{"a": "The dog <br> is [big](u)<br>Stop"}'), Loses())
    assert [doubt.text for doubt in found.doubts] == ["The dog is big Stop"]


class Loses(WordByWord):
    """Leaves each text as it is, with a doubt."""

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        return [AnsweredText(asked.text, doubts=("lost",)) for asked in texts]


@pytest.mark.parametrize(
    ("message", "written"),
    [
        (
            "It has $1 {{PLURAL:$1|field|big fields|0=no fields}}.",
            "{{PLURAL:$1|FIELD|FIELDS BIG|0=FIELDS NO}}. $1 HAS IT",
        ),
        ("{{GENDER:$1|He|She}} left", "LEFT {{GENDER:$1|HE|SHE}}"),
        ("<b>{{PLURAL:$1|this|these}}</b> now", "NOW <b>{{PLURAL:$1|THIS|THESE}}</b>"),
        ("{{PLURAL:$1|one day|$1 days}}", "{{PLURAL:$1|DAY ONE|DAYS $1}}"),
        ("$1 file{{PLURAL:$1||s}} here", "HERE {{PLURAL:$1|FILE|FILES}} $1"),
        (
            "a red{{PLURAL:$1|0=less dog|-dog|dogs}}like day",
            "DAY {{PLURAL:$1|0=DOGLIKE REDLESS|RED-DOGLIKE|REDDOGSLIKE}} A",
        ),
        ("$1{{PLURAL:$1|day|days}} here", "HERE $1{{PLURAL:$1|day|days}}"),
        ("see [[$2|the page]]", "[[$2|PAGE THE]] SEE"),
        ("see [[Special:Search|the page]]", "[[Special:Search|PAGE THE]] SEE"),
        ("see [[doku>wiki:syntax|the page]]", "[[doku>wiki:syntax|PAGE THE]] SEE"),
        ("see [[price|currency]]", "[[price|currency]] SEE"),
        ("see [[ a:b | upper ]]", "SEE [[ a:b | upper ]]"),
        ("see {{SITENAME}}", "{{SITENAME}} SEE"),
    ],
)
def test_forms_and_labels_of_wikis_are_texts(message: str, written: str) -> None:
    found = json.loads(translated(read_json(json.dumps({"a": message}).encode()), REVERSED))
    assert found == {"a": written}


def test_endings_of_wikis_that_are_not_translated_keep_their_form() -> None:
    source = '["$1 file{{PLURAL:$1||s}} here", "sub-categor{{PLURAL:$1|y|ies}}"]'
    assert translated(read_json(source.encode()), Identity()) == source


def test_formats_of_dates_and_names_of_other_messages_stay() -> None:
    source = '["%Y-%m-%d", "DD/MM/YYYY", "%b %d, %H:%M", "$t(menu.open) @:menu.file"]'
    assert translated(read_json(source.encode())) == source
    assert translated(read_json(b'["%d mad dads"]')) == '["%d MAD DADS"]'
    # A pattern with many ways to read this would never end.
    assert read_json(f'["{"MMM" * 5000} man"]'.encode()).segments


@pytest.mark.long
@pytest.mark.parametrize("word", ["Add", "add", "Adds", "mass", "daddy", "Mammy", "hmm", "Add!"])
def test_words_of_the_letters_of_formats_of_dates_are_texts(word: str) -> None:
    assert translated(read_json(f'["{word}"]'.encode())) == f'["{word.upper()}"]'


@pytest.mark.parametrize(
    "form",
    ["yyyy", "EEEE", "HH:mm", "h:mma", "HHmmss", "yyyyMMdd", "EEE, d MMM yyyy", "MM/dd/yyyy hh:mm a"],
)
def test_formats_of_dates_with_a_letter_for_each_field_stay(form: str) -> None:
    assert not read_json(f'["{form}"]'.encode()).segments


def test_what_describes_a_message_for_programs_stays() -> None:
    text = '{"@@locale": "en", "hello": "Good day", "@hello": {"description": "A greeting", "placeholders": {"name": {"type": "String"}}}}'
    of_target = text.replace('"en"', '"it"')
    assert translated(read_json(text.encode())) == of_target.replace("Good day", "GOOD DAY")
    chosen = read_json(text.encode(), ReadingOptions(values=("@hello.description",)))
    assert translated(chosen) == of_target.replace("A greeting", "A GREETING")


@pytest.mark.parametrize(("given", "written"), [("en_US", "it"), ("de", "de"), ("", "")])
def test_the_language_of_a_file_of_flutter_is_that_of_the_translation(given: str, written: str) -> None:
    text = '{"@@locale": "%s", "hello": "Good day", "inner": {"@@locale": "en"}}'
    assert translated(read_json((text % given).encode())) == (text % written).replace("Good day", "GOOD DAY")


def test_links_of_html_that_touch_are_not_one_word() -> None:
    text = '{"a": "<a>Home</a><a>My garden</a>"}'
    assert translated(read_json(text.encode())) == '{"a": "<a>HOME</a><a>MY GARDEN</a>"}'


def test_code_stays_whole_among_other_tags() -> None:
    text = '{"b": "Open <code>%s now</code> and <b>the car</b> <kbd>Enter</kbd> now."}'
    assert translated(read_json(text.encode()), REVERSED) == (
        '{"b": "NOW. <kbd>Enter</kbd> <b>CAR THE</b> AND <code>%s now</code> OPEN"}'
    )


def test_a_number_of_thousands_of_digits_stays() -> None:
    text = f'{{"a": {"9" * 5000}, "b": 1e999, "c": "the house"}}'
    assert translated(read_json(text.encode())) == text.replace("the house", "THE HOUSE")


def test_a_paragraph_of_html_on_a_line_of_its_own_stays_around_its_words() -> None:
    text = '{"a": "<p>The <b>red</b> car.</p>\\n <p>The dog</p>\\n<p>A cat</p>"}'
    assert translated(read_json(text.encode()), REVERSED) == (
        '{"a": "<p>CAR. <b>RED</b> THE</p>\\n <p>DOG THE</p>\\n<p>CAT A</p>"}'
    )


def test_names_of_files_with_a_star_stay() -> None:
    filters = "Text files (*.txt)|*.txt|All files (*.*)|*.*"
    found = json.loads(translated(read_json(json.dumps([filters, "Required *"]).encode())))
    assert found == ["TEXT FILES (*.txt)|*.txt|ALL FILES (*.*)|*.*", "REQUIRED *"]


def test_names_for_programs_below_id_stay() -> None:
    text = b'{"id": "settings", "name": "settings", "parts": [{"id": "The dog"}], "ids": ["low-salt", "salt"]}'
    found = translated(read_json(text))
    assert json.loads(found) == {
        "id": "settings",
        "name": "SETTINGS",
        "parts": [{"id": "THE DOG"}],
        "ids": ["low-salt", "salt"],
    }


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        (
            '{"a": {"message": "The dog of $name$", "description": "A button", "placeholders": {"name": {"content": "$1", "example": "Anna"}}},'
            ' "b": {"message": "The cat"}}',
            {"The dog of": "THE DOG OF", "The cat": "THE CAT"},
        ),
        ('{"a": {"defaultMessage": "The dog", "description": "A title"}}', {"The dog": "THE DOG"}),
        ('[{"id": "a.b", "description": "A title", "defaultMessage": "The dog"}]', {"The dog": "THE DOG"}),
        ('{"a": {"string": "The dog", "developer_comment": "A title", "character_limit": 9}}', {"The dog": "THE DOG"}),
        # Texts that stand beside each other on a page.
        ('{"a": {"title": "The dog", "description": "A cat"}}', {"The dog": "THE DOG", "A cat": "A CAT"}),
        (
            '{"a": {"message": "The dog", "description": "A cat"}, "b": "Hi"}',
            {"The dog": "THE DOG", "A cat": "A CAT", "Hi": "HI"},
        ),
    ],
)
def test_notes_for_translators_beside_a_message_stay(given: str, changes: dict[str, str]) -> None:
    expected = given
    for before, after in changes.items():
        expected = expected.replace(before, after)
    assert translated(read_json(given.encode())) == expected
