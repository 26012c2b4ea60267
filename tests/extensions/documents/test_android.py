"""The strings.xml of Android: what is text in it, and the escapes that aapt needs in a translation."""

import pytest
from lxml import etree

from transformer_cli.extensions.documents.android import read_android
from transformer_cli.extensions.documents.formats import ReadingOptions
from transformer_cli.process.errors import DataError

from .fake_translators import REVERSED, Identity, WordByWord, done, translated

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
SPACES = 'xmlns:tools="http://schemas.android.com/tools" xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2"'


def resources(*elements: str, head: str = HEAD, attributes: str = "") -> str:
    body = "".join(f"    {element}\n" for element in elements)
    return f"{head}<resources {SPACES}{attributes}>\n    <!-- Don't touch -->\n{body}</resources>\n"


def string(content: str, attributes: str = "") -> str:
    return f'<string name="a"{attributes}>{content}</string>'


CONTENTS = [
    (r"Don\'t go", r"DON\'T GO"),
    (r"She said \"yes\"", r"SHE SAID \"YES\""),
    (r"One line.\nA second one.", r"ONE LINE.\nA SECOND ONE."),
    ("\n        A long text\n        in two lines\n    ", "\n        A LONG TEXT IN TWO LINES\n    "),
    ('"  It\'s   here "', r'"  IT\'S HERE "'),
    (r"\@home is here", r"\@home IS HERE"),
    (r"\u0041 door in\u00ADside", r"A DOOR IN\u00ADSIDE"),
    (r"\ud83d\ude00 is a face", "\U0001f600 IS A FACE"),
    ("%1$s has %2$d letters, 100%% sure", "%1$s HAS %2$d LETTERS, 100%% SURE"),
    ("The <b>red</b> car\\'s door", "THE <b>RED</b> CAR\\'S DOOR"),
    ('You <annotation font="x">really</annotation> go', 'YOU <annotation font="x">REALLY</annotation> GO'),
    (
        'You have <xliff:g id="n" example="5">%1$d</xliff:g> cats',
        'YOU HAVE <xliff:g id="n" example="5">%1$d</xliff:g> CATS',
    ),
    ("<ul><li>One dog</li><li>Two cats</li></ul>and more", "<ul><li>ONE DOG</li><li>TWO CATS</li></ul>AND MORE"),
    ("One <!-- two --> three", "ONE <!-- two --> THREE"),
    ("Click &lt;b>here&lt;/b> &amp; go", "CLICK &lt;b&gt;HERE&lt;/b&gt; &amp; GO"),
    (
        '<![CDATA[<p>Hello <a href="x">dear</a>, it\\\'s late</p>]]>',
        '<![CDATA[<p>HELLO <a href="x">DEAR</a>, IT\\\'S LATE</p>]]>',
    ),
    ("Before<![CDATA[<b>bold</b> text]]>behind", "BEFORE<![CDATA[<b>BOLD</b> TEXT]]>BEHIND"),
    ("@string/app_name", None),
    ("@android:string/ok", None),
    ("?attr/title", None),
    ("pref_dark_mode", None),
    ("12:30", None),
    ("", None),
]


@pytest.mark.parametrize(("content", "wanted"), CONTENTS)
def test_a_string_is_written_with_the_escapes_that_android_needs(content: str, wanted: str | None) -> None:
    text = resources(string(content))
    assert translated(read_android(text.encode())) == resources(string(content if wanted is None else wanted))


def test_an_apostrophe_of_the_translation_is_escaped() -> None:
    italian = WordByWord(lambda word: {"water": "l'acqua", "the": "@"}.get(word, word))
    found = translated(read_android(resources(string("water"), string("the water")).encode()), italian)
    assert r">l\'acqua<" in found
    assert r">\@ l\'acqua<" in found  # a first @ would name a resource


def test_spaces_that_android_would_leave_out_stay_spaces() -> None:
    text = resources(string(r"\u0020red\u0020\u0020car\u0020"))
    assert r">\u0020RED CAR\u0020<" in translated(read_android(text.encode()))


def test_tags_move_with_their_words() -> None:
    text = resources(string('The <b>red</b> car of <xliff:g id="n">%s</xliff:g>'))
    wanted = '<xliff:g id="n">%s</xliff:g> OF CAR <b>RED</b> THE'
    assert translated(read_android(text.encode()), REVERSED) == resources(string(wanted))


def test_only_texts_for_people_are_translated() -> None:
    elements = (
        string("Red Car", ' translatable="false"'),
        '<plurals name="p"><item quantity="one">%d file</item><item quantity="other">%d files</item></plurals>',
        '<string-array name="q"><item>Red</item><item>@string/b</item></string-array>',
        '<string-array name="r" translatable="false"><item>Red</item></string-array>',
        '<item type="string" name="i">Blue</item>',
        '<color name="red">red car</color>',
        '<style name="x"><item name="font">some font</item></style>',
    )
    found = translated(read_android(resources(*elements).encode()))
    changed = {
        1: '<plurals name="p"><item quantity="one">%d FILE</item><item quantity="other">%d FILES</item></plurals>',
        2: '<string-array name="q"><item>RED</item><item>@string/b</item></string-array>',
        4: '<item type="string" name="i">BLUE</item>',
    }
    assert found == resources(*(changed.get(at, one) for at, one in enumerate(elements)))


DOCTYPE = f'{HEAD}<!DOCTYPE resources [\n  <!ENTITY app "Red Car">\n]>\n'


def test_a_reference_to_an_entity_of_the_file_stays_and_moves_with_its_words() -> None:
    text = resources(string("Welcome to &app; &amp; more"), head=DOCTYPE)
    assert translated(read_android(text.encode())) == resources(string("WELCOME TO &app; &amp; MORE"), head=DOCTYPE)
    assert ">&app; TO WELCOME<" in translated(
        read_android(resources(string("Welcome to &app;"), head=DOCTYPE).encode()), REVERSED
    )


@pytest.mark.parametrize(
    "entity",
    [
        '<!ENTITY b "xx"><!ENTITY c "&b;&b;">',
        '<!ENTITY b SYSTEM "file:///etc/passwd">',
        '<!ENTITY % b "xx">',
        f'<!ENTITY b "{"x" * 2000}">',
    ],
)
def test_other_entities_are_refused(entity: str) -> None:
    text = resources(string("a"), head=f"<!DOCTYPE resources [{entity}]>")
    with pytest.raises(DataError, match="line 1: the XML declares an entity"):
        read_android(text.encode())


def test_the_language_that_the_file_names_becomes_that_of_the_translation() -> None:
    text = resources(string("Red"), attributes=' tools:locale="en"')
    assert ' tools:locale="it">' in translated(read_android(text.encode()))
    other = resources(string("Red"), attributes=' tools:locale="fr"')
    assert ' tools:locale="fr">' in translated(read_android(other.encode()))


def test_a_translator_that_changes_nothing_gives_the_same_bytes() -> None:
    head = DOCTYPE.replace("utf-8", "utf-16")
    text = resources(*(string(content) for content, _ in CONTENTS), head=head)
    data = text.replace("\n", "\r\n").encode("utf-16")
    document = read_android(data)
    assert document.segments
    assert done(document, Identity()).data == data


def test_a_translation_is_well_formed_and_is_read_again() -> None:
    text = resources(*(string(content) for content, _ in CONTENTS))
    found = done(read_android(text.encode()), REVERSED)
    assert found.doubts == ()
    etree.fromstring(found.data)
    assert len(read_android(found.data).segments) == len(read_android(text.encode()).segments)


def test_other_xml_is_refused_with_what_to_do() -> None:
    with pytest.raises(DataError, match="its root is <svg>") as caught:
        read_android(b"<svg><text>Hello</text></svg>")
    assert ".html" in str(caught.value.hint)
    with pytest.raises(DataError, match="its root is <xliff>") as caught:
        read_android(b'<xliff version="1.2"/>')
    assert str(caught.value.hint).endswith("--format xliff")


def test_a_language_inside_the_value_of_another_attribute_stays() -> None:
    inside = " a=' tools:locale=\"en\"'"
    text = resources(string("Red"), attributes=inside)
    assert inside in translated(read_android(text.encode()))
    both = resources(string("Red"), attributes=f"{inside} tools:locale = 'en'")
    assert f"{inside} tools:locale = 'it'>" in translated(read_android(both.encode()))


def test_plurals_that_lack_forms_of_the_target_language_are_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plural = '<plurals name="p"><item quantity="one">A dog</item><item quantity="other">Dogs</item></plurals>'
    text = resources(plural, plural.replace('"p"', '"q"'), string("Red"))
    read_android(text.encode(), ReadingOptions(target_language="ru"))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "2 plural(s) lack forms of the language ru, which has few, many, one, other" in caplog.text


def test_a_plural_without_forms_lacks_none(caplog: pytest.LogCaptureFixture) -> None:
    read_android(b'<resources><plurals name="x"/></resources>', ReadingOptions(target_language="it"))
    assert not caplog.text


@pytest.mark.parametrize(
    ("name", "items", "expected"),
    [
        ("theme_values", ("light", "dark", "follow_system"), ("light", "dark", "follow_system")),
        ("sortEntryValues", ("NAME", "DATE"), ("NAME", "DATE")),
        ("sort_keys", ("by name", "date"), ("BY NAME", "DATE")),
        ("our_values", ("Trust", "care"), ("TRUST", "CARE")),
        ("theme_entries", ("light", "dark"), ("LIGHT", "DARK")),
        ("monkeys", ("gorilla", "baboon"), ("GORILLA", "BABOON")),
    ],
)
def test_the_values_of_choices_stay_beside_their_texts(
    name: str, items: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    def file(texts: tuple[str, ...]) -> str:
        inner = "".join(f"<item>{each}</item>" for each in texts)
        return f'<resources><string-array name="{name}">{inner}</string-array></resources>'

    assert translated(read_android(file(items).encode())) == file(expected)
