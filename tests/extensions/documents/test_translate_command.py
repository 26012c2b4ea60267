"""`tfm translate` for documents: which files are documents, what is refused, what is written and told."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from transformer_cli.cli import app
from transformer_cli.commands.translate_lines import TranslateOptions
from transformer_cli.decoding.translation import Estimate
from transformer_cli.extensions.documents import ModelTranslator, read_document
from transformer_cli.extensions.documents.formats import Document, Format, ReadingOptions, format_named
from transformer_cli.extensions.documents.translate_command import (
    MAX_SHOWN_DOUBTS,
    ChosenDocument,
    _report,
    check_output_of_text,
    chosen_document,
    translate_document_file,
)
from transformer_cli.extensions.documents.translation import Doubt, TranslatedDocument
from transformer_cli.process.errors import DataError, MissingInputError, UsageError

from ...decoding.small_translators import tokenizer_of_words, translator

PAGE = '<html lang="en"><p>uno <b>due tre</b> {name} quattro. <code>x</code></p><!-- uno --><p>42</p>\n'


def chosen(name: str | None, format_name: str | None = None, **options: object):  # type: ignore[no-untyped-def]
    given = {"columns": None, "values": [], "has_text": False, **options}
    return chosen_document(None if name is None else Path(name), format_name, **given)


@pytest.mark.parametrize("name", ["in.txt", "in", "in.log", "in.html.gz", "in.en", "-", None])
def test_other_files_stay_lines(name: str | None) -> None:
    assert chosen(name) is None


@pytest.mark.parametrize(
    ("name", "found"), [("a.md", "md"), ("a.HTM", "html"), ("b.po", "po"), ("c.tsv", "tsv"), ("d.yml", "yaml")]
)
def test_the_ending_of_a_name_chooses_the_format(name: str, found: str) -> None:
    assert chosen(name).format.name == found


def test_a_format_overrides_the_ending() -> None:
    assert chosen("a.html", "txt") is None
    assert chosen("a.txt", "html").format.name == "html"
    assert chosen(None, "md").path is None


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("a.md", "doc"), "there is no document format doc"),
        (("a.txt", None, {"columns": "1"}), "--columns has no effect on the format txt"),
        (("a.md", None, {"values": ["x"]}), "--values has no effect on the format md"),
        ((None, "md", {"has_text": True}), "--format is for a file"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: tuple, wanted: str) -> None:  # type: ignore[type-arg]
    options = arguments[2] if len(arguments) > 2 else {}
    with pytest.raises(UsageError, match=wanted):
        chosen(*arguments[:2], **options)


@pytest.fixture
def of_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run with the eight words of `small_translators`, and a page beside it."""
    loaded = SimpleNamespace(translator=translator(tokenizer_of_words()), overridden=frozenset(), members=())
    place = "transformer_cli.commands.translate_lines.load_run"
    monkeypatch.setattr(place, lambda *_, **__: loaded)
    monkeypatch.chdir(tmp_path)
    Path("page.html").write_text(PAGE)


def translate(name: str, output: str | None, **options: object) -> None:
    path = None if output is None else Path(output)
    translate_document_file(chosen(name), path, TranslateOptions(**options))  # type: ignore[arg-type]


@pytest.mark.usefixtures("of_words")
def test_a_page_is_written_with_its_markup_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        translate("page.html", "pagina.html")
    found = Path("pagina.html").read_text()
    for kept in ('<html lang="it"><p>', "<b>", "</b>", "{name}", "<code>x</code>", "</p><!-- uno --><p>42</p>\n"):
        assert found.count(kept) == 1
    assert found != PAGE
    assert caplog.messages[-1].endswith(
        "page.html: segments with words to translate: 1; segments that a person should look at: 1"
    )


@pytest.mark.usefixtures("of_words")
def test_a_part_in_another_language_than_that_of_the_model_stays() -> None:
    Path("page.html").write_text('<p>uno due</p><p lang="de">uno due</p>')
    translate("page.html", "pagina.html")
    found = Path("pagina.html").read_text()
    assert found.endswith('<p lang="de">uno due</p>')
    assert not found.startswith("<p>uno due</p>")


@pytest.mark.usefixtures("of_words")
def test_the_output_may_be_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    translate("page.html", None)
    assert capfdbinary.readouterr().out.startswith(b'<html lang="it"><p>')


@pytest.mark.usefixtures("of_words")
def test_an_error_leaves_the_old_output(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pagina.html").write_text("old")

    def fail(*_: object) -> None:
        raise DataError("broken")

    monkeypatch.setattr(ModelTranslator, "translate", fail)
    with pytest.raises(DataError, match="broken"):
        translate("page.html", "pagina.html")
    assert Path("pagina.html").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["page.html", "pagina.html"]


@pytest.mark.usefixtures("of_words")
@pytest.mark.parametrize("name", ["a.wiki", "a.mediawiki", "a.textile", "a.asciidoc", "a.asc", "a.mdx"])
def test_a_format_of_text_that_is_not_read_is_refused_instead_of_read_as_lines(name: str) -> None:
    with pytest.raises(UsageError, match="a format that is not read") as refused:
        chosen_document(Path(name), None, columns=None, values=[], has_text=False)
    assert ".md" in str(refused.value.hint)


@pytest.mark.usefixtures("of_words")
@pytest.mark.parametrize(
    ("name", "what", "remedy"),
    [
        ("a.php", "a page with code", ".html"),
        ("a.vue", "a page with code", ".html"),
        ("a.html.twig", "a template", ".html"),
        ("a.mjml", "a template", ".html"),
        ("a.markdoc", "Markdown with tags", ".md"),
        ("a.jsonc", "JSON with comments", ".json"),
        ("a.dita", "DITA", ".html"),
        ("a.docbook", "DocBook", ".html"),
        ("a.xlb", "texts of a program", ".xlf"),
        ("a.txml", "a file of Wordfast", ".xlf"),
        ("a.TTX", "a file of Trados", ".sdlxliff"),
        ("a.tbx", "a collection of terms", ".csv"),
        ("a.opml", "an outline", ".html"),
        ("a.fodt", "a document of OpenDocument", ".odt"),
    ],
)
def test_a_file_that_is_not_read_is_refused_by_its_name(name: str, what: str, remedy: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: {what}.*a format that is not read") as refused:
        chosen_document(Path(name), None, columns=None, values=[], has_text=False)
    assert remedy in str(refused.value.hint)


def test_options_for_lines_are_refused() -> None:
    for options in ({"num_best": 2}, {"alignment": True}, {"prefix": "x"}, {"resume": True}):
        with pytest.raises(UsageError, match="is for lines, but the input is a document"):
            translate("page.html", "out.html", **options)


@pytest.mark.usefixtures("of_words")
def test_the_input_is_never_the_output() -> None:
    with pytest.raises(UsageError, match="this output is the same file as the input"):
        translate("page.html", "page.html")
    assert Path("page.html").read_text() == PAGE


@pytest.mark.usefixtures("of_words")
def test_a_missing_or_broken_document_is_named() -> None:
    with pytest.raises(MissingInputError, match=r"none\.html: no such file"):
        translate("none.html", "out.html")
    Path("bad.json").write_text('{"a": ')
    with pytest.raises(DataError, match=r"bad\.json: line 1: no valid JSON"):
        translate("bad.json", "out.json")
    assert not Path("out.json").exists()
    Path("a.xliff").write_text(
        '<xliff version="1.2"><file source-language="xx" target-language="yy"><trans-unit id="1"><source>uno'
        "</source></trans-unit></file></xliff>"
    )
    with pytest.raises(DataError, match=r'^a\.xliff: the file has source-language="xx"'):
        translate("a.xliff", "out.xliff")
    Path("t.csv").write_text("id,name\n1,uno due\n")
    with pytest.raises(UsageError, match=r"t\.csv: which columns are to be translated") as refused:
        translate("t.csv", "out.csv")
    assert str(refused.value.hint).startswith("the table has 2 columns: id, name; name one or more")


@pytest.mark.usefixtures("of_words")
def test_subtitles_are_read_in_the_language_of_the_model_and_named_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    languages: list[str | None] = []

    def reading(data: bytes, document_format: Format, options: ReadingOptions) -> Document:
        languages.append(options.language)
        return read_document(data, document_format, options)

    monkeypatch.setattr(f"{translate_document_file.__module__}.read_document", reading)
    Path("a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nuno due\n\n2\n--> 5\ntre\n")
    translate("a.srt", "b.srt")
    assert languages[0] is None
    assert languages[1:] == ["en"]
    assert sum("it is no line of two times" in message for message in caplog.messages) == 1


@pytest.mark.long
@pytest.mark.usefixtures("of_words")
def test_a_long_sentence_is_marked_and_refused_if_strict(caplog: pytest.LogCaptureFixture) -> None:
    Path("page.html").write_text("<p>uno</p>\n<p>" + "uno due " * 20 + "</p>")
    translate("page.html", "out.html")
    assert any(message.startswith("line 2: a sentence was too long") for message in caplog.messages)
    with pytest.raises(DataError, match=r"page\.html: line 2: a sentence of more than 12 tokens"):
        translate("page.html", "strict.html", is_strict=True)
    assert not Path("strict.html").exists()


@pytest.mark.long
@pytest.mark.usefixtures("of_words")
def test_the_command_line_passes_columns_and_values() -> None:
    Path("t.csv").write_text("id,name\n1,uno due\n")
    Path("v.json").write_text('{"a": "uno due", "b": "tre"}')
    runner = CliRunner()
    for arguments in (
        ["--input", "t.csv", "--output", "t2.csv", "--columns", "name"],
        ["--input", "v.json", "--output", "v2.json", "--values", "a"],
    ):
        result = runner.invoke(app, ["translate", *arguments], catch_exceptions=False)
        assert result.exit_code == 0
    assert Path("t2.csv").read_text().startswith("id,name\n1,")
    assert Path("v2.json").read_text().endswith('"b": "tre"}')
    assert "uno due" not in Path("v2.json").read_text()


def test_a_document_is_not_written_into_a_file_of_another_format(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>uno</p>")
    with pytest.raises(UsageError, match=r"has the ending of md") as refused:
        translate_document_file(chosen(str(page)), tmp_path / "page.md", TranslateOptions())
    assert "documents are not converted" in str(refused.value.hint)
    assert not (tmp_path / "page.md").exists()


@pytest.mark.parametrize("ending", ["pdf", "rtf", "doc", "xlsx", "tex"])
def test_a_document_is_not_written_under_the_name_of_a_format_that_is_not_written(tmp_path: Path, ending: str) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>uno</p>")
    with pytest.raises(UsageError, match=f"has the ending of {ending}"):
        translate_document_file(chosen(str(page)), tmp_path / f"page.{ending}", TranslateOptions())


@pytest.mark.parametrize("ending", ["pdf", "xlsx", "docx"])
def test_lines_are_not_written_under_the_name_of_another_format(ending: str) -> None:
    with pytest.raises(UsageError, match=f"has the ending of {ending}"):
        check_output_of_text(Path(f"letter.{ending}"))
    check_output_of_text(Path("letter.tex"))  # the lines may be those of such a text


def test_any_format_of_xml_is_written_into_a_file_with_the_ending_xml(tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text("<tmx><header/></tmx>")
    with pytest.raises(MissingInputError, match="none: no such run"):  # not the ending
        translate_document_file(chosen(str(tmp_path / "a.tmx")), tmp_path / "b.xml", TranslateOptions(run="none"))


@pytest.mark.parametrize("ending", ["docx", "odt", "EPUB"])
def test_plain_text_is_not_written_into_a_file_with_the_ending_of_an_archive(tmp_path: Path, ending: str) -> None:
    made = CliRunner().invoke(app, ["translate", "Hello.", "--output", str(tmp_path / f"a.{ending}")])
    assert isinstance(made.exception, UsageError)
    assert "the input is plain text" in made.exception.message


def test_an_archive_is_not_written_to_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True))
    given = chosen(str(tmp_path / "letter.docx"))
    with pytest.raises(UsageError, match="cannot be shown in a terminal") as caught:
        translate_document_file(given, None, TranslateOptions())
    assert caught.value.hint == "name a file for the translation: --output NAME.docx"


LEGACY = {
    "a.srt": "1\n00:00:01,000 --> 00:00:02,000\nuno due café\n\n2\n00:00:03,000 --> 00:00:04,000\ntre quattro\n",
    "a.vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\nuno due café\n",
    "a.md": "# uno\n\ndue café\n",
    "a.html": "<p>uno</p><p>due café</p>\n",
    "a.json": '{"a": "uno due café"}\n',
    "a.yaml": "a: uno due café\n",
    "a.csv": "uno,due café\n",
    "a.po": 'msgid "uno due"\nmsgstr ""\n\n# café\nmsgid "café tre"\nmsgstr ""\n',
    "a.txt": "uno due café\ntre quattro\n",
}


def translate_in(name: str, encoding: str | None) -> None:
    columns = "2" if name.endswith("csv") else None
    given = chosen(name, "txt" if name.endswith("txt") else None, encoding=encoding, columns=columns)
    translate_document_file(given, Path("out"), TranslateOptions())


@pytest.mark.heavy
@pytest.mark.usefixtures("of_words")
@pytest.mark.parametrize("encoding", ["windows-1252", "cp850", "utf-16"])
@pytest.mark.parametrize("name", LEGACY)
def test_a_document_is_read_and_written_in_the_given_encoding(name: str, encoding: str) -> None:
    Path(name).write_text(LEGACY[name], encoding="utf-8", newline="")
    translate_in(name, "utf-8")
    wanted = Path("out").read_bytes().decode()
    Path(name).write_bytes(LEGACY[name].encode(encoding))
    translate_in(name, encoding)
    assert Path("out").read_bytes().decode(encoding) == wanted


@pytest.mark.usefixtures("of_words")
@pytest.mark.parametrize("name", sorted(set(LEGACY) - {"a.txt"}))
def test_a_document_in_a_legacy_encoding_is_refused_before_it_is_translated(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ModelTranslator, "translate", lambda *_: pytest.fail("it was translated"))
    Path(name).write_bytes(LEGACY[name].encode("windows-1252"))
    with pytest.raises(DataError, match="this is not UTF-8; it can be read as windows-1252: café") as refused:
        translate_in(name, None)
    assert "--encoding windows-1252" in str(refused.value.hint)
    assert not Path("out").exists()


@pytest.mark.usefixtures("of_words")
def test_letters_that_the_encoding_lacks_are_named_before_anything_is_translated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ModelTranslator, "translate", lambda *_: pytest.fail("it was translated"))
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=windows-1251\\n"\n\n'
    Path("a.po").write_bytes(f'{header}# комментарий\nmsgid "uno due"\nmsgstr ""\n'.encode("cp1251"))
    with pytest.raises(DataError, match="cp1251, lacks letters of Italian: è à ù"):
        translate_in("a.po", None)


@pytest.mark.parametrize("given", ["ascii", "shift_jis"])
def test_an_encoding_that_is_named_for_a_file_in_utf_8_is_the_fault(given: str) -> None:
    data = "The dog.\nCaf\u00e9 \u2013 \u20ac 5\n".encode()
    with pytest.raises(DataError, match=f"is no text in {given}") as refused:
        read_document(data, format_named("txt"), ReadingOptions(encoding=given))
    assert refused.value.hint == "the file is UTF-8: leave out --encoding"


@pytest.mark.usefixtures("of_words")
def test_a_byte_that_is_no_text_in_the_given_encoding_is_named() -> None:
    Path("a.md").write_bytes(b"uno\n\ndue \x81\n")
    with pytest.raises(DataError, match="line 3: byte 0x81 is no text in windows-1252"):
        translate_in("a.md", "windows-1252")
    Path("a.md").write_bytes(b"\xef\xbb\xbfuno\n")
    with pytest.raises(DataError, match="byte-order mark of utf-8, and --encoding says windows-1252"):
        translate_in("a.md", "windows-1252")


@pytest.mark.parametrize(
    ("name", "options", "wanted"),
    [
        ("a.docx", {"encoding": "cp1252"}, "--encoding has no effect on the format docx"),
        ("a.xlf", {"encoding": "cp1252"}, "--encoding has no effect on the format xliff"),
        ("a.md", {"encoding": "klingon"}, "--encoding klingon: no such encoding is known"),
        (None, {"encoding": "cp1252", "has_text": True}, "--encoding is for a file"),
        ("a.txt.gz", {"encoding": "cp1252"}, "with --encoding, a compressed file is not read"),
    ],
)
def test_an_encoding_that_does_not_fit_is_refused(name: str | None, options: dict[str, object], wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted):
        chosen(name, **options)


def test_lines_in_an_encoding_are_a_document() -> None:
    assert chosen("a.txt", encoding="cp1252").format.name == "txt"
    assert chosen(None, encoding="cp1252").path is None


@pytest.mark.parametrize(
    "name",
    [
        "film.ass",
        "film.sbv",
        "a.ftl",
        "guide.rst",
        "page.mdx",
        "a.xtb",
        "a.rtf",
    ],
)
def test_a_file_of_a_format_that_is_not_read_is_no_file_of_lines(name: str) -> None:
    with pytest.raises(UsageError, match="a format that is not read") as refused:
        chosen(name)
    assert "--format txt" in str(refused.value.hint)
    assert chosen(name, "txt") is None


@pytest.mark.parametrize(
    ("name", "way"), [("a.xlsx", "CSV"), ("a.XLS", "CSV"), ("a.pptx", ".odp"), ("a.doc", ".docx"), ("a.pdf", ".docx")]
)
def test_a_file_of_an_office_program_that_is_not_read_says_how_to_save_it(name: str, way: str) -> None:
    for columns in (None, "English"):
        with pytest.raises(UsageError, match="a format that is not read") as refused:
            chosen_document(Path(name), None, columns=columns, values=[], has_text=False)
        assert way in str(refused.value.hint)
        assert "--format" not in str(refused.value.hint)


@pytest.mark.parametrize(
    ("name", "found"),
    [("a.arb", "json"), ("a.sdlxliff", "xliff"), ("a.mqxliff", "xliff"), ("a.docm", "docx"), ("a.dotx", "docx")],
)
def test_other_endings_of_a_format_are_known(name: str, found: str) -> None:
    assert chosen(name).format.name == found


def test_an_ending_is_a_name_of_its_format() -> None:
    assert chosen("a", "xlf").format.name == "xliff"
    assert chosen("a", "yml").format.name == "yaml"


@pytest.mark.usefixtures("of_words")
@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.po", 'msgid "uno"\nmsgstr "one"\n', "every message has a translation"),
        ("a.tmx", "<tmx><header/><body/></tmx>", "no unit is in the source language alone"),
        ("a.html", "<p>42</p>", "no text to translate was found"),
    ],
)
def test_a_file_without_anything_to_translate_is_told_with_the_reason(
    name: str, text: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    Path(name).write_text(text)
    translate(name, f"new-{name}")
    assert why in caplog.text


@pytest.mark.usefixtures("of_words")
@pytest.mark.parametrize(
    ("name", "data"), [("a.md", b"%PDF-1.7"), ("a.html", b"\x89PNG\r\n"), ("a.srt", b"PK\x03\x04")]
)
def test_another_file_with_the_ending_of_a_text_is_refused(name: str, data: bytes) -> None:
    Path(name).write_bytes(data)
    with pytest.raises(DataError, match="not a document of the format"):
        translate(name, f"new-{name}")


@pytest.mark.usefixtures("of_words")
def test_the_last_message_is_true_where_a_person_should_look_at_more_than_is_translated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Path("names.json").write_text('{"a": "[[station]]", "b": "[[dog]]"}')
    with caplog.at_level("INFO"):
        translate("names.json", "nomi.json")
    wanted = "names.json: segments with words to translate: 0; segments that a person should look at: "
    assert caplog.messages[-1].startswith(wanted)


def test_the_number_of_green_segments_is_told_with_those_that_no_model_has_translated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    estimates = Estimate(0.9, is_green=True), Estimate(0.1, is_green=False)
    chosen = ChosenDocument(Path("in.csv"), format_named("csv"), ReadingOptions())
    caplog.set_level("INFO")
    for known in ({}, {"memory": 3, "glossary": 1}):
        found = TranslatedDocument(b"", 2 + sum(known.values()), (), estimates, num_without_model=known)
        _report(found, chosen, TranslateOptions(mark=True))
    assert [one for one in caplog.messages if "green" in one] == [
        "in.csv: green: 1 of 2 segments",
        "in.csv: green: 1 of 2 segments that the model has translated; from the memory: 3; from the glossary: 1",
    ]


@pytest.mark.parametrize(
    ("name", "told"), [("po", "the translated file marks all of them"), ("md", "--mark names all of them")]
)
def test_a_message_that_leaves_doubts_out_says_where_all_of_them_are(
    name: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    doubts = tuple(Doubt(f"line {number}", "a reason", "uno") for number in range(MAX_SHOWN_DOUBTS + 2))
    found = TranslatedDocument(b"", 30, doubts)
    _report(found, ChosenDocument(None, format_named(name), ReadingOptions()), TranslateOptions())
    [last] = [each for each in caplog.messages if "more of this kind" in each]
    assert last.startswith("and 2 more of this kind; ")
    assert told in last
