"""Keys that a file has twice in one mapping: they are named, and the text of both is translated."""

from dataclasses import replace

import pytest

from transformer_cli.extensions.documents.formats import DEFAULTS, format_named, read_document

from .fake_translators import translated

TWICE = {
    "json": '{"a": {"title": "the dog",\n "x": "y"},\n "title": "the cat",\n "title": "the car"}\n',
    "yaml": "a:\n  title: the dog\ntitle: the cat\ntitle: the car\n",
    "properties": "! a\ntitle=the cat\n\ntitle : the car\n",
    "strings": '/* a */\n"title" = "the cat";\n\n"title" = "the car";\n',
    "stringsdict": "<plist><dict>\n<key>title</key><string>the cat</string>\n<key>a</key><dict><key>title</key></dict>\n"
    "<key>title</key><string>the car</string></dict></plist>\n",
    "android": '<resources>\n<string name="title">the cat</string>\n<string name="title" product="tablet">the bus</string>\n'
    '<plurals name="title"/><string name="title">the car</string></resources>\n',
    "resx": '<root>\n<data name="title"><value>the cat</value></data>\n\n<data name="title"><value>the car</value></data></root>\n',
    "po": 'msgid "title"\nmsgstr ""\n\nmsgctxt "a"\nmsgid "title"\nmsgstr ""\n\nmsgid "title"\nmsgstr ""\n',
}
LINES = {"json": (3, 4), "yaml": (3, 4), "po": (1, 8)}


@pytest.mark.parametrize("name", TWICE)
def test_a_key_that_stands_twice_is_named_with_its_lines(name: str, caplog: pytest.LogCaptureFixture) -> None:
    document = read_document(TWICE[name].encode(), format_named(name))
    first, second = LINES.get(name, (2, 4))
    assert caplog.messages == [
        f"lines {first} and {second}: the key title is there twice; "
        "both texts are translated, but programs may read only one of them"
    ]
    found = translated(document)
    assert all(text in found for text in (("THE CAT", "THE CAR") if name != "po" else ("TITLE",)))


@pytest.mark.parametrize("name", TWICE)
def test_a_file_that_is_read_again_names_its_keys_once(name: str, caplog: pytest.LogCaptureFixture) -> None:
    read_document(TWICE[name].encode(), format_named(name), replace(DEFAULTS, is_repeated=True))
    assert not caplog.messages


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("json", '{"a": {"b": "the dog"}, "c": {"b": "the cat"}, "b": "the car"}'),
        ("json", '[{"b": "the dog"}, {"b": "the cat"}]'),
        ("json", '{"b": "the dog"}\n{"b": "the cat"}\n'),
        ("json", '{"//": "the dog", "//": "the cat", "_comment": "a", "_comment": "b"}'),
        ("yaml", "- b: the dog\n- b: the cat\n---\n- b: the cat\n"),
        ("yaml", "b: {c: the dog}\nd: {c: the cat}\n<<: *x\n<<: *y\n"),
        ("po", 'msgid "a"\nmsgstr ""\n\n#~ msgid "a"\n#~ msgstr "b"\n'),
        ("properties", "b = the dog\nB = the cat\n# b = the car\n"),
    ],
)
def test_equal_keys_in_different_places_are_not_named(name: str, text: str, caplog: pytest.LogCaptureFixture) -> None:
    read_document(text.encode(), format_named(name))
    assert not caplog.messages


def test_of_many_keys_that_stand_twice_the_first_are_named(caplog: pytest.LogCaptureFixture) -> None:
    text = "{" + ",\n".join(f'"k{at % 8}": "the dog"' for at in range(16)) + "}"
    read_document(text.encode(), format_named("json"))
    assert len(caplog.messages) == 6
    assert caplog.messages[-1] == "and 3 more keys that are there twice"
