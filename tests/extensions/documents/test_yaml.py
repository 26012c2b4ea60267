"""YAML: strings are translated in their own style; keys, comments and anchors stay."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.formats import ReadingOptions
from transformer_cli.extensions.documents.json import read_json
from transformer_cli.extensions.documents.translation import translate_document
from transformer_cli.extensions.documents.yaml import read_yaml
from transformer_cli.process.errors import DataError
from transformer_cli.text.spans import find_spans

from .fake_translators import UPPER, Identity, WordByWord, done, translated

FILE = """\
# a comment
title: &t A red car   # another
also: *t
number: 12
yes: true
when: 2026-01-02
quoted: "say \\"hello\\" now"
single: 'it''s here'
flow: [one, "two", {k: three words}]
long: a plain text
  on two lines
literal: |
  First line.
    indented line

  last line
folded: >-
  one text
  on two lines

  and a paragraph
tag: !!str word
---
second: document
"""
WANTED = """\
# a comment
title: &t A RED CAR   # another
also: *t
number: 12
yes: true
when: 2026-01-02
quoted: "SAY \\"HELLO\\" NOW"
single: 'IT''S HERE'
flow: [ONE, "TWO", {k: THREE WORDS}]
long: A PLAIN TEXT ON TWO LINES
literal: |
  FIRST LINE.
  INDENTED LINE

  LAST LINE
folded: |-
  ONE TEXT ON TWO LINES
  AND A PARAGRAPH
tag: !!str WORD
---
second: DOCUMENT
"""


def test_only_strings_change() -> None:
    assert done(read_yaml(FILE.encode()), UPPER).data.decode() == WANTED


def test_an_identity_translation_gives_identical_bytes() -> None:
    assert translate_document(read_yaml(FILE.encode()), Identity()).data == FILE.encode()


TEXTS = st.text(st.sampled_from("ab c:#-?[]{},&*!|>'\"%@`\n\t\u00e8\u0085"), max_size=10)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def strings_of(value: Any) -> Iterator[str]:
    """The strings of a tree, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings_of(each)


def squeezed(value: Any, *, is_changed: bool) -> Any:
    """A tree without the white space of its strings; `a` and `b` in capitals, if it is changed."""
    if isinstance(value, str):
        value = value.replace("a", "A").replace("b", "B") if is_changed else value
        return "".join(value.split())
    if isinstance(value, list):
        return [squeezed(each, is_changed=is_changed) for each in value]
    if isinstance(value, dict):
        return {key: squeezed(each, is_changed=is_changed) for key, each in value.items()}
    return value


@pytest.mark.long
@given(VALUES, st.sampled_from([None, True, False]), st.sampled_from([None, "'", '"', "|", ">"]))
def test_all_strings_change_and_nothing_else(value: Any, flow: bool | None, style: str | None) -> None:
    # Names and placeholders such as @a and %a are protected, so they do not change.
    assume(not any(find_spans(text) or "%" in text for text in strings_of(value)))
    text = yaml.safe_dump(value, default_flow_style=flow, default_style=style, allow_unicode=True)
    data = text.encode()
    assert translate_document(read_yaml(data), Identity()).data == data
    translator = WordByWord(lambda word: word.replace("a", "A").replace("b", "B"))
    found = yaml.safe_load(done(read_yaml(data), translator).data.decode())
    wanted = yaml.safe_load(text)
    assert squeezed(found, is_changed=False) == squeezed(wanted, is_changed=True)


def test_a_translation_that_would_be_read_as_something_else_is_quoted() -> None:
    document = read_yaml(b"a: word\nb: [word]\n")
    for text in ("yes", "12", "a: b", "x # y", "- z", "[q]", "*p", "null"):
        found = done(document, WordByWord(lambda word, text=text: text)).data.decode()
        assert yaml.safe_load(found) == {"a": text, "b": [text]}


def test_patterns_choose_values() -> None:
    document = read_yaml(b"a: one\nlist:\n- {t: two, u: three}\n", ReadingOptions(values=("list.*.t",)))
    assert done(document, UPPER).data == b"a: one\nlist:\n- {t: TWO, u: three}\n"


def test_what_is_no_yaml_is_refused_with_its_line() -> None:
    with pytest.raises(DataError, match="line 3: no valid YAML"):
        read_yaml(b"a: b\nc: [d\n")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (3, "en:\n    dog: x\n  cat: y\n"),
        (3, "en:\n  dog: x\n    cat: y\n"),
        (3, "en:\n  - a\n - b\n"),
        (4, "en: x\n# c\n\n   dog: y\n"),
        (2, "  en: x\ndog: y\n"),
        (2, "- en: x\n   dog: y\n"),
        (3, "en:\n  'dog': x\n   'cat': y\n"),
    ],
)
def test_a_wrong_indentation_is_named_as_such_with_its_line(line: int, text: str) -> None:
    with pytest.raises(DataError) as refused:
        read_yaml(b"\xef\xbb\xbf" + text.encode())
    what = "the indentation of this line does not fit the lines above it"
    assert refused.value.message == f"line {line}: no valid YAML: {what}"
    assert "settings" not in str(refused.value.hint)


@pytest.mark.parametrize(
    ("text", "what"),
    [("en: a: b\n", "a second colon"), ("a: b\nen: 'The 'dog' is'\n", "there is more behind the end of a value")],
)
def test_marks_inside_a_value_are_no_wrong_indentation(text: str, what: str) -> None:
    with pytest.raises(DataError, match=what):
        read_yaml(text.encode())


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(DataError, match="nested more than 200 deep"):
        read_yaml(b"[" * 300 + b"]" * 300)


@pytest.mark.parametrize("style", ["|", "|-", ">", ">-"])
def test_a_block_keeps_its_line_ends(style: str) -> None:
    text = f"a: {style}\r\n  The dog\r\n  is big.\r\n\r\n  The cat\r\nb: x\r\n"
    found = done(read_yaml(text.encode())).data.decode()
    assert found.count("\r\n") == found.count("\n")
    assert "".join(yaml.safe_load(found)["a"].split()) == "THEDOGISBIG.THECAT"


def test_a_character_that_yaml_does_not_allow_is_named_with_its_line() -> None:
    with pytest.raises(DataError, match=r"^line 2: no valid YAML: it has the character U\+0000"):
        read_yaml(b"a: b\nc: d\0\n")


@pytest.mark.parametrize(
    "line",
    [
        "type: table",
        "align: left",
        "direction: ltr",
        "method: post",
        "role: button",
        "text-align: end",
        "layout: two-columns",
        "rel: noopener",
        "verse_type: verse",
        "item-type: house",
        "itemType: house",
        "icon: fa fa-car",
        "icon: fas fa-home fa-lg",
        "menu_icon: fa-solid fa-house",
        "class: btn btn-red",
        "class: nav-item active",
        "icon: material-icons home",
        "icon: bi house",
        "mod_id: twilightforest",
        "itemId: red-house",
        "twitter: babeljs",
        "github_username: babel",
        "className: nav-link nav-item",
        "id: 100-red-houses",
        "slug: 100-red-houses",
    ],
)
def test_a_small_word_below_a_key_for_programs_stays(line: str) -> None:
    text = f"title: the dog\n{line}\n"
    assert translated(read_yaml(text.encode())) == f"title: THE DOG\n{line}\n"
    key = line.partition(":")[0]
    chosen = read_yaml(text.encode(), ReadingOptions(values=(key,)))
    assert translated(chosen) == text.replace(line, f"{key}: {line.partition(': ')[2].upper()}")


@pytest.mark.parametrize(
    "line",
    [
        "type: Savings account",
        "type: the dog",
        "role: Developer",
        "types: table",
        "format: format",
        "verse_type: type",
        "itemType: Savings account",
        "item_type: red house",
        "prototype: house",
        "first.type: house",
        "class: Second class",
        "class: second class",
        "class: two-door car",
        "class: red house",
        "icon: home sweet home",
        "valid: red house",
        "said: red",
        "twitter: Share it",
        "twitter: twitter",
        "github: source code",
        "class: the well-known house",
        "icon: the red house",
        "iconic: fa fa-car",
        "text: fa fa-car",
        "id: 100 red houses",
        "title: 100-red-houses",
        "type: 2-door",
    ],
)
def test_a_text_below_a_key_for_programs_is_translated(line: str) -> None:
    key, _, value = line.partition(": ")
    assert translated(read_yaml(f"{line}\n".encode())) == f"{key}: {value.upper()}\n"


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("# c\n---\nen:\n  a: one\n  b: {c: two}\n", "# c\n---\nit:\n  a: ONE\n  b: {c: TWO}\n"),
        ('"en-GB": # c\n  a: one\n', '"it": # c\n  a: ONE\n'),
        ("&x en:\n  a: one\n", "&x it:\n  a: ONE\n"),
        ('{"en": {"a": "one"}}', '{"it": {"a": "ONE"}}'),
        ("en:\n  a:\n\nen:\n  b: one\n", "it:\n  a:\n\nit:\n  b: ONE\n"),
        ("en:\n  a: one\nde:\n  a: 1\n", "en:\n  a: ONE\nde:\n  a: 1\n"),
        ("en:\n  a: one\nversion: 1\n", "en:\n  a: ONE\nversion: 1\n"),
        ('{"en": {"a": "one"}, "version": 1}', '{"en": {"a": "ONE"}, "version": 1}'),
        ("en: one\n", "en: ONE\n"),
        ('{"en": ["one"]}', None),
        ("menu:\n  en: one\n", "menu:\n  en: ONE\n"),
        ("end:\n  a: one\n", "end:\n  a: ONE\n"),
        ('{"en": {"a": "one"}}\n{"en": {"a": "two"}}\n', None),
    ],
)
def test_the_only_key_of_a_file_names_the_target_language_if_it_is_the_source_language(
    source: str, written: str | None
) -> None:
    expected = written or re.sub("one|two", lambda word: word[0].upper(), source)
    if source.startswith("{"):
        assert translated(read_json(source.encode())) == expected
    if not source.endswith("}}\n"):
        assert translated(read_yaml(source.encode())) == expected


def test_a_key_that_yaml_would_read_as_a_truth_value_is_quoted() -> None:
    norwegian = WordByWord(str.upper, languages=Direction("en", "no"))
    assert translated(read_yaml(b"en:\n  a: one\n"), norwegian) == '"no":\n  a: ONE\n'
