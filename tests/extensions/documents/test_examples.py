"""The documents of examples/documents, which hold tables, links, nested tags and hostile content."""

import io
import re
import zipfile
from pathlib import Path

import pytest

from transformer_cli.extensions.documents import format_of, read_document, translate_document
from transformer_cli.extensions.documents.formats import ReadingOptions

from .fake_translators import UPPER, Identity, done

FOLDER = Path(__file__).parents[3] / "examples" / "documents"
EXAMPLES = sorted(path for path in FOLDER.iterdir() if path.is_file())
OPTIONS = ReadingOptions(columns=("name", "description"))
FORMATS = {
    "md",
    "html",
    "po",
    "srt",
    "vtt",
    "csv",
    "json",
    "yaml",
    "docx",
    "odt",
    "epub",
    "xliff",
    "tmx",
    "android",
    "strings",
    "stringsdict",
    "xcstrings",
    "properties",
    "resx",
    "qt",
}


def read(path: Path):  # type: ignore[no-untyped-def]
    document_format = format_of(path)
    assert document_format is not None
    options = OPTIONS if document_format.name == "csv" else ReadingOptions()
    return read_document(path.read_bytes(), document_format, options)


def test_every_format_has_an_example() -> None:
    assert {format_of(path).name for path in EXAMPLES if format_of(path)} >= FORMATS  # type: ignore[union-attr]


WITHOUT_TARGETS = [path for path in EXAMPLES if path.suffix not in (".xlf", ".ts")]


@pytest.mark.long
@pytest.mark.parametrize("path", WITHOUT_TARGETS, ids=lambda path: path.name)
def test_an_identity_translation_gives_identical_bytes(path: Path) -> None:
    assert translate_document(read(path), Identity()).data == path.read_bytes()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("app.xlf", r"\s*<target.*?</target>"),
        ("app-2.xlf", r'\s*<target.*?</target>| state="[^"]*"'),
        ("program.ts", r"<translation.*?</translation>"),
    ],
)
def test_only_targets_and_their_states_change(name: str, changes: str) -> None:
    path = FOLDER / name
    texts = path.read_text(encoding="utf-8"), done(read(path), UPPER).data.decode()
    before, after = (re.sub(changes, "", text, flags=re.DOTALL) for text in texts)
    assert before == after


@pytest.mark.long
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_translation_has_as_many_segments_and_no_doubts(path: Path) -> None:
    document = read(path)
    found = done(document, UPPER)
    assert found.num_segments > 0
    assert found.doubts == ()
    assert found.data != path.read_bytes()


@pytest.mark.parametrize("name", ["house.docx", "house.odt", "house.epub"])
def test_every_part_of_an_archive_without_text_stays(name: str) -> None:
    found = done(read(FOLDER / name), UPPER).data
    with zipfile.ZipFile(FOLDER / name) as before, zipfile.ZipFile(io.BytesIO(found)) as after:
        assert before.namelist() == after.namelist()
        changed = {one for one in before.namelist() if before.read(one) != after.read(one)}
    of_text = (
        r"word/(document|footnotes|styles)\.xml|(content|styles)\.xml|EPUB/(content\.opf|nav\.xhtml|toc\.ncx|text/.*)"
    )
    assert changed
    assert [one for one in changed if not re.fullmatch(of_text, one)] == []


@pytest.mark.parametrize(
    ("name", "part", "kept"),
    [
        (
            "house.docx",
            "word/document.xml",
            [
                "<w:delText>This was deleted.</w:delText>",
                " PAGE ",
                "%d LETTERS",
                "{name}",
                'w:author="Anna"',
                "tom@example.org",
                "12 €",
            ],
        ),
        (
            "house.odt",
            "content.xml",
            [
                "<text:p>This comment stays.</text:p>",
                "<text:line-break/>",
                "<text:tab/>",
                '<text:bookmark text:name="here"/>',
                "%d LETTERS",
                "{name}",
            ],
        ),
        (
            "house.epub",
            "EPUB/text/ch001.xhtml",
            [
                "<!-- This comment stays. -->",
                "  this   stays\n  as it is",
                '<span xml:lang="it">Buongiorno</span>',
                "<code>a_b()</code>",
                "%d LETTERS",
                "a=1&amp;b=2",
            ],
        ),
    ],
)
def test_what_is_no_text_stays_in_archives(name: str, part: str, kept: list[str]) -> None:
    found = done(read(FOLDER / name), UPPER).data
    with zipfile.ZipFile(io.BytesIO(found)) as archive:
        text = archive.read(part).decode()
    for each in kept:
        assert each in text, each


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "kept"),
    [
        (
            "app.xlf",
            [
                '<target state="final">Buona notte!</target>',
                "<note>Keep it short &amp; polite.</note>",
                '<x id="3" ctype="image"/>',
                '<trans-unit id="4" translate="no"><source>tfm --help</source></trans-unit>',
                "{name}",
            ],
        ),
        (
            "memory.tmx",
            [
                "<seg>Buona notte.</seg>",
                "Ein anderes Land.",
                '<prop type="x-file">letters.txt</prop>',
                '<ph x="1"/>',
                "%d LETTERS",
                "{name}",
            ],
        ),
        (
            "app-2.xlf",
            [
                "<target>Buona notte!</target>",
                '<segment state="final">',
                "<note>Keep it short &amp; polite.</note>",
                "<source>tfm --help</source>\n        </segment>",
                '<data id="d3">%d</data>',
                'YOU HAVE <ph id="2" dataRef="d3"/> LETTERS',
                "{name}</mrk>",
            ],
        ),
        (
            "strings.xml",
            [
                'translatable="false">Tom\\\'s House<',
                "Don't translate this comment",
                "WHERE\\'S THE STATION?\\nIT",
                'example="Anna">%1$s</xliff:g>',
                '"  THE RED CAR  "',
                '<a href="https://example.org/dogs">TWO DOGS</a> &amp; A CAT',
                "@string/welcome",
                "HH:mm",
                'tools:locale="it"',
            ],
        ),
        (
            "app.strings",
            [
                '"station.question" = "WHERE IS THE STATION?\\nIT IS \\"VERY\\" BIG."',
                "%1$@",
                "%2$lld",
                '"caf\\U00E9" = "WE',
                "yyyy-MM-dd",
                '// A "question" = "with a name";',
            ],
        ),
        (
            "books.stringsdict",
            ["%#@books@", "<key>one</key>", "<string>d</string>", "NSStringPluralRuleType", "BOOKS &amp; MORE"],
        ),
        (
            "Localizable.xcstrings",
            [
                '"value" : "%lld B\u00fccher"',
                '"value" : "I have %lld book."',
                '"value" : "I HAVE %lld BOOK."',
                '"shouldTranslate" : false',
                '"value" : "Buona notte!"',
            ],
        ),
        (
            "app.properties",
            [
                "# The texts of a small program: this comment stays.",
                "{1,number}",
                "IT''S {0} O''CLOCK.",
                "C:\\\\temp\\\\a_b.txt",
                "CAF\\u00C9",
                "= en_US",
                "&FILE",
            ],
        ),
        (
            "Program.resx",
            [
                "text/microsoft-resx",
                "stays short",
                "<value>Red Car</value>",
                "75, 23",
                "<value>button</value>",
                "&amp;FILE",
                "{0}",
            ],
        ),
        (
            "program.ts",
            [
                "<translation>Buona notte!</translation>",
                "this comment stays",
                "&amp;OPEN",
                "<numerusform>YOU HAVE %n",
                "&lt;b&gt;%1&lt;/b&gt;",
            ],
        ),
        (
            "letter.md",
            [
                'title: "A LETTER: FROM THE SEA"',
                "draft: false",
                '(https://example.org/map?a=1&b=2 "THE MAP")',
                "`tom --hungry`",
                '# This comment stays: "Hello world"',
                "    neither this block",
                "<p>THIS BLOCK OF HTML IS TEXT, TOO.</p>",
                "anna@example.org",
                "`C:\\temp\\a_b.txt`",
                "[^1].  \n",
                '[book]: https://example.org/book "A BOOK"',
                "|:---------|:",
            ],
        ),
        (
            "page.html",
            [
                'var text = "<p>Do not translate me</p>";',
                "<!-- <p>This comment stays.</p> -->",
                'lang="it">\n<head>',
                '<span lang="it">buongiorno</span>',
                "{name}",
                "<code>open_door()</code>",
                "Via Roma 12, 00100 Roma",
                "  keep   this as   it is\n",
                "&amp;b=2",
                "<wrong></wrong>",
                '<sup><a href="#n1">1</a></sup>',
            ],
        ),
        ("messages.po", ['msgstr "apri"', 'msgstr "Dove sei tu?"', '#~ msgstr "Buona notte."', '"Language: it\\n"']),
        ("film.srt", ["00:00:12,000 --> 00:00:13,200 X1:40 X2:600 Y1:20 Y2:50\n{\\an8}", "\u266a \u266a"]),
        ("talk.vtt", ["This note stays.", "::cue(b) { color: lime }", "align:start position:10%", "<v Anna>"]),
        ("products.csv", ["\ufeffid;name;description;price\r\n", ";12,50\r\n", "<b>THE BLUE CAR</b>"]),
        (
            "app.json",
            [
                '"version": 1.20',
                '"locale":   ',
                '"https://example.org/?q=a&b"',
                '"a\\"b": [',
                "{name}",
                "<b>%d LETTERS</b>",
            ],
        ),
        (
            "site.yaml",
            [
                "# The texts of a small site.",
                "&title ",
                "*title",
                "open: yes",
                "since: 2026-08-01",
                "{email}",
                "beds: 0",
            ],
        ),
    ],
)
def test_what_is_no_text_stays(name: str, kept: list[str]) -> None:
    found = done(read(FOLDER / name), UPPER).data.decode()
    for each in kept:
        assert each in found
