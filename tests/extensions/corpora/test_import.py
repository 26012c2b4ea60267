"""`tfm data import`: translation memories, spreadsheets, archives and tables as text files."""

import gzip
import json
import re
import tarfile
import zipfile
from datetime import datetime
from pathlib import Path
from xml.sax.saxutils import escape

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.data.unknown_files import GivenFacts
from transformer_cli.extensions.corpora import translation_memories
from transformer_cli.extensions.corpora.archives import extract, is_archive, unpacked_corpus
from transformer_cli.extensions.corpora.importing import import_pairs
from transformer_cli.extensions.corpora.pairs import ImportReport, one_line
from transformer_cli.extensions.corpora.spreadsheets import sheet_as_tsv
from transformer_cli.extensions.corpora.translation_memories import pairs_of_tmx, pairs_of_xliff
from transformer_cli.process.errors import DataError, TryAgainError, UsageError
from transformer_cli.text.languages import best_match

from ...launcher import Finished, Tfm

TMX = """\
<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
<header creationtool="x" segtype="sentence" srclang="en-US" adminlang="en" datatype="html" o-tmf="x"/>
<body>
<tu><tuv xml:lang="en-US"><seg>The <bpt i="1">&lt;b&gt;</bpt>red<ept i="1">&lt;/b&gt;</ept> car.</seg></tuv>
<tuv xml:lang="it-IT"><seg>La macchina
  <hi type="b">rossa</hi>.</seg></tuv></tu>
<tu><tuv xml:lang="EN-us"><seg>Tea &amp; coffee</seg></tuv><tuv xml:lang="it"><seg>Tè e caffè</seg></tuv>
<tuv xml:lang="it-CH"><seg>Tè, caffè</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Only English</seg></tuv></tu>
<tu><tuv lang="en"><seg>Empty</seg></tuv><tuv lang="it"><seg> </seg></tuv></tu>
</body></tmx>
"""
XLIFF = """\
<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="f" source-language="en-GB" target-language="it" datatype="plaintext"><body>
<group><trans-unit id="1"><source>Press <g id="1">OK</g><x id="2"/>.</source>
<target>Premi <g id="1">OK</g><x id="2"/>.</target>
<alt-trans><source>NO</source><target>NO</target></alt-trans></trans-unit></group>
<trans-unit id="2"><source>One. Two.</source>
<seg-source><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk></seg-source>
<target><mrk mtype="seg" mid="1">Uno.</mrk> <mrk mtype="seg" mid="2">Due.</mrk></target></trans-unit>
<trans-unit id="3"><source>Not yet</source></trans-unit>
<trans-unit id="4"><source>New</source><target state="needs-translation">New</target></trans-unit>
</body></file></xliff>
"""


def imported(tfm: Tfm, *arguments: str) -> Finished:
    return tfm("data", "import", *arguments, "--output", "out.tsv", "--force", "--json")


def pairs(tfm: Tfm) -> list[tuple[str, ...]]:
    text = (tfm.folder / "out.tsv").read_text(encoding="utf-8")
    return [tuple(line.split("\t")) for line in text.removesuffix("\n").split("\n")]


def test_a_device_and_a_folder_are_told_as_what_they_are(tmp_path: Path) -> None:
    for path, kind in ((Path("/dev/null"), "a pipe or device"), (tmp_path, "a folder")):
        with pytest.raises(DataError, match=kind):
            import_pairs([path], GivenFacts(), sheet=None, output=lambda _: ())


def import_here(path: Path) -> list[str]:
    """The lines of the TSV file that an import writes."""
    output = path.with_name("out.tsv")
    import_pairs(
        [path],
        GivenFacts(source_language="en", target_language="it"),
        sheet=None,
        output=lambda _: (output,),
    )
    return output.read_text(encoding="utf-8").splitlines()


def test_errors_of_formulas_are_no_text_and_a_day_has_no_hour(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    rows = [
        ("English", "Italian"),
        ("Good morning.", "Buongiorno."),
        ("The train is late.", "#N/A"),
        ("#REF!", "Il treno è in ritardo."),
        (datetime(2020, 1, 2), "2 gennaio"),
    ]
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert import_here(tmp_path / "a.xlsx") == [
        "Good morning.\tBuongiorno.",
        "2020-01-02\t2 gennaio",
    ]


@pytest.mark.parametrize("kind", ["xlsx", "zip"])
def test_an_error_about_an_unpacked_file_names_the_one_that_was_given(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    rows = [
        ("Glossary of the hotel", None),
        ("English", "Italian"),
        ("The car is red.", "La macchina è rossa."),
        ("Good morning.", "Buongiorno."),
        ("The hotel is small.", "L'albergo è piccolo."),
    ]
    if kind == "xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            text = "".join("\t".join(filter(None, row)) + "\n" for row in rows)
            archive.writestr("inside.tsv", text)
    with pytest.raises(DataError) as refusal:
        import_here(path)
    named = f"{path}: " if kind == "xlsx" else f"{path}: inside.tsv: "
    assert refusal.value.message.startswith(f"{named}its first row has 1 column (Glossary of the hotel)")


def test_a_memory_without_a_complete_unit_is_told_what_a_unit_needs(tmp_path: Path) -> None:
    unit = '<tu><tuv xml:lang="en"/><tuv xml:lang="it"><seg>Ciao</seg></tuv></tu>'
    (tmp_path / "a.tmx").write_text(f'<tmx version="1.4"><header srclang="en"/><body>{unit}</body></tmx>')
    with pytest.raises(DataError, match="an empty side: 1") as refusal:
        import_here(tmp_path / "a.tmx")
    assert str(refusal.value.hint).startswith("each unit must have text in both languages")


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "ISO-8859-1"])
def test_a_translation_memory_gives_its_pairs_without_tags(tfm: Tfm, encoding: str) -> None:
    (tfm.folder / "a.tmx").write_bytes(TMX.format(encoding=encoding).encode(encoding))
    finished = imported(tfm, "a.tmx")
    assert finished.exit_code == 0, finished.talk
    assert pairs(tfm) == [("The red car.", "La macchina rossa."), ("Tea & coffee", "Tè e caffè")]
    facts = json.loads(finished.text)
    assert (facts["source_language"], facts["target_language"]) == ("en", "it")
    assert facts["skipped"] == {"no text in it": 1, "an empty side": 1}
    assert facts["num_units"] == 4


def test_the_region_of_a_language_decides_where_it_is_given(tfm: Tfm) -> None:
    with gzip.open(tfm.folder / "a.tmx.gz", "wb") as file:
        file.write(TMX.format(encoding="UTF-8").encode())
    languages = ("--source-language", "it_ch", "--target-language", "en")
    assert imported(tfm, "a.tmx.gz", *languages).exit_code == 0
    assert pairs(tfm)[1] == ("Tè, caffè", "Tea & coffee")


def test_segments_of_xliff_become_pairs_and_other_translations_do_not(tfm: Tfm) -> None:
    (tfm.folder / "a.xlf").write_text(XLIFF, encoding="utf-8")
    finished = imported(tfm, "a.xlf")
    assert finished.exit_code == 0, finished.talk
    assert pairs(tfm) == [("Press OK.", "Premi OK."), ("One.", "Uno."), ("Two.", "Due.")]
    assert json.loads(finished.text)["skipped"] == {
        "not translated": 1,
        "not translated (state needs-translation)": 1,
    }


ENTITIES = '<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
EXTERNAL = '<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
PARAMETER = '<!DOCTYPE tmx [<!ENTITY % a SYSTEM "http://127.0.0.1:9/x.dtd"> %a;]>'
BODY = (
    '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>{}</seg></tuv>'
    '<tuv xml:lang="it"><seg>x</seg></tuv></tu></body></tmx>'
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (ENTITIES + BODY.format("&b;"), "declares entities"),
        (EXTERNAL + BODY.format("&a;"), "declares entities"),
        (PARAMETER + BODY.format("x"), "declares entities"),
        (BODY.format("&nothing;"), "not well-formed"),
        (BODY.format("a")[:-20], "not well-formed"),
        ("<html/>", "its root is <html>"),
        (BODY.format("<hi>" * 300 + "x" + "</hi>" * 300), "not well-formed"),
        ("no xml at all", "not well-formed"),
    ],
)
def test_dangerous_and_damaged_files_are_refused_and_leave_no_output(tfm: Tfm, text: str, problem: str) -> None:
    (tfm.folder / "a.tmx").write_text(text, encoding="utf-8")
    finished = imported(tfm, "a.tmx", "--source-language", "en", "--target-language", "it")
    assert finished.exit_code == 65
    assert problem in finished.talk
    assert sorted(path.name for path in tfm.folder.iterdir()) == ["a.tmx"]


@pytest.mark.parametrize("encoding", ["hex", "zlib", "rot13", "idna", "undefined", "no-such"])
def test_an_encoding_that_is_none_of_texts_is_refused_as_one_that_is_not_known(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.tmx").write_text(f'<?xml version="1.0" encoding="{encoding}"?><tmx/>')
    with pytest.raises(DataError, match=f"not well-formed XML: Unsupported encoding: {encoding}"):
        list(pairs_of_tmx(tmp_path / "a.tmx", "en", "it", ImportReport()))


def test_a_later_version_of_xliff_is_named(tfm: Tfm) -> None:
    (tfm.folder / "a.xlf").write_text('<xliff version="2.0"><file/></xliff>', encoding="utf-8")
    finished = imported(tfm, "a.xlf")
    assert (finished.exit_code, "XLIFF 2.0, where XLIFF 1.2" in finished.talk) == (65, True)


def workbook(path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Phrases"
    for row in [
        ("Id", "English", "Italian"),
        (1, "The sea is blue.", "Il mare è blu."),
        (2, "Good morning to\nall of you", "Buongiorno a\ttutti"),
        (3, None, "vuoto"),
        (4, "I have read the book.", "Ho letto il libro."),
    ]:
        sheet.append(row)
    book.create_sheet("Other").append(("x", "y"))
    book.save(path)


def test_the_columns_of_a_spreadsheet_are_found(tfm: Tfm) -> None:
    workbook(tfm.folder / "a.xlsx")
    finished = imported(tfm, "a.xlsx")
    assert finished.exit_code == 0, finished.talk
    assert pairs(tfm) == [
        ("The sea is blue.", "Il mare è blu."),
        ("Good morning to all of you", "Buongiorno a tutti"),
        ("I have read the book.", "Ho letto il libro."),
    ]
    turned = imported(tfm, "a.xlsx", "--source-field", "Italian", "--target-field", "English")
    assert turned.exit_code == 0, turned.talk
    assert pairs(tfm)[0] == ("Il mare è blu.", "The sea is blue.")


@pytest.mark.parametrize("stated", [b'<dimension ref="A1:B2"/>', b'<dimension ref="A1"/>', b""])
def test_the_size_that_a_sheet_states_hides_no_cells(tmp_path: Path, stated: bytes) -> None:
    """Some programs write a wrong one, or none; the first row has no name for its last column."""
    book = openpyxl.Workbook()
    rows = [("Id", "English"), *((n, f"It is {n} o'clock.", f"Sono le {n}.") for n in range(9))]
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "whole.xlsx")
    with (
        zipfile.ZipFile(tmp_path / "whole.xlsx") as whole,
        zipfile.ZipFile(tmp_path / "a.xlsx", "w") as changed,
    ):
        for name in whole.namelist():
            content = re.sub(rb"<dimension[^>]*>", stated, whole.read(name))
            changed.writestr(name, content)
    sheet_as_tsv(tmp_path / "a.xlsx", tmp_path / "a.tsv", None)
    table = (tmp_path / "a.tsv").read_text(encoding="utf-8").splitlines()
    assert table == ["Id\tEnglish\t", *("\t".join(map(str, row)) for row in rows[1:])]


@pytest.mark.parametrize(
    ("arguments", "content", "problem"),
    [
        (["--sheet", "Missing"], None, "no sheet 'Missing', found 'Phrases', 'Other'"),
        ([], b"no workbook", "cannot be read as an XLSX workbook"),
    ],
)
def test_a_spreadsheet_that_cannot_be_read_is_refused(
    tfm: Tfm, arguments: list[str], content: bytes | None, problem: str
) -> None:
    workbook(tfm.folder / "a.xlsx")
    if content is not None:
        (tfm.folder / "a.xlsx").write_bytes(content)
    finished = imported(tfm, "a.xlsx", *arguments)
    assert (finished.exit_code, problem in finished.talk) == (65, True), finished.talk


@pytest.mark.long
def test_a_workbook_that_unpacks_beyond_measure_is_refused(tfm: Tfm) -> None:
    with zipfile.ZipFile(tfm.folder / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * (110 << 20))
    finished = imported(tfm, "a.xlsx")
    assert (finished.exit_code, "no ordinary workbook" in finished.talk) == (65, True)


def archive(path: Path, members: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        for name, text in members.items():
            written.writestr(name, text)


def test_the_text_files_of_a_zip_archive_are_found_by_their_languages(tfm: Tfm) -> None:
    members = {
        "../Books.en-it.en": "The house is big.\n",
        "../Books.en-it.it": "La casa è grande.\n",
    }
    archive(tfm.folder / "en-it.txt.zip", members | {"README": "x", "LICENSE": "y"})
    finished = imported(tfm, "en-it.txt.zip")
    assert finished.exit_code == 0, finished.talk
    assert pairs(tfm) == [("The house is big.", "La casa è grande.")]
    assert not (tfm.folder.parent / "Books.en-it.en").exists()


@pytest.mark.parametrize(
    ("members", "taken"),
    [
        (["t/a.en", "t/a.it", "__MACOSX/t/._a.en", "__MACOSX/t/._a.it"], ["a.en", "a.it"]),  # packed on a Mac
        (["a.tmx", "__MACOSX/._a.tmx"], ["a.tmx"]),
        (["a.en-it.en", "a.en-it.it", "a.en-it.xml", "README"], ["a.en-it.en", "a.en-it.it"]),  # packed by OPUS
        (["a.tmx", "a.txt", "README.md", "README.txt"], ["a.tmx"]),
        (["a.src", "a.tgt"], ["a.src", "a.tgt"]),
    ],
)
def test_what_lies_beside_the_texts_of_an_archive_is_no_further_corpus(
    tmp_path: Path, members: list[str], taken: list[str]
) -> None:
    archive(tmp_path / "a.zip", dict.fromkeys(members, "a b c\n"))
    found = unpacked_corpus(tmp_path / "a.zip", tmp_path, (None, None))
    assert [path.name for path in found] == taken


def test_an_archive_that_ends_too_early_is_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("a b c\n" * 99)
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as whole:
        whole.add(tmp_path / "a.en", "a.en")
    content = (tmp_path / "a.tgz").read_bytes()
    for size in (20, 60, len(content) // 2):
        (tmp_path / "a.tgz").write_bytes(content[:size])
        assert is_archive(tmp_path / "a.tgz")
        with pytest.raises(DataError, match=r"a\.tgz: the archive is damaged"):
            extract(tmp_path / "a.tgz", ["*.en"], tmp_path)


def test_an_archive_of_several_corpora_is_refused_with_their_names(tfm: Tfm) -> None:
    members = {f"{name}.{side}": "a b c\n" for name in ("one", "two") for side in ("en", "it")}
    archive(tfm.folder / "a.zip", members)
    finished = imported(tfm, "a.zip")
    assert (finished.exit_code, "several corpora" in finished.talk) == (65, True)
    assert "one.en" in finished.talk


def test_two_text_files_become_two_text_files_without_empty_pairs(tfm: Tfm) -> None:
    (tfm.folder / "a.en").write_text("One.\n\nThree.\n", encoding="utf-8")
    (tfm.folder / "a.it").write_text("Uno.\nDue.\nTre.\n", encoding="utf-8")
    arguments = ("a.en", "a.it", "--source-language", "en", "--target-language", "it")
    finished = tfm("data", "import", *arguments, "--output", "out")
    assert finished.exit_code == 0, finished.talk
    assert (tfm.folder / "out.en").read_text(encoding="utf-8") == "One.\nThree.\n"
    assert (tfm.folder / "out.it").read_text(encoding="utf-8") == "Uno.\nTre.\n"
    assert "source_path: out.en" in finished.text
    again = tfm("data", "import", *arguments, "--output", "out")
    assert (again.exit_code, "exists already" in again.talk) == (73, True)


def test_unequal_text_files_are_refused_and_leave_no_output(tfm: Tfm) -> None:
    (tfm.folder / "a.en").write_text("One.\nTwo.\n", encoding="utf-8")
    (tfm.folder / "a.it").write_text("Uno.\n", encoding="utf-8")
    finished = imported(tfm, "a.en", "a.it")
    assert (finished.exit_code, "a.en has 2 lines, a.it has 1 line" in finished.talk) == (65, True)
    assert not (tfm.folder / "out.tsv").exists()


@pytest.mark.parametrize("chunk", [5, 64, 1 << 16])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_a_character_that_xml_forbids_costs_no_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, chunk: int
) -> None:
    monkeypatch.setattr(translation_memories, "_CHUNK_BYTES", chunk)
    monkeypatch.setattr(translation_memories, "_FIRST_BYTES", 150)
    path = tmp_path / "a.tmx"
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?>\n<tmx version="1.4"><header/><body><tu>\n'
        '<tuv xml:lang="en"><seg>a\x0bb &#x1F;&#0;&#xE9; <![CDATA[&#0;\x1f]]> &#xD800;c</seg></tuv>\n'
        f'<tuv xml:lang="it"><seg>&#{"9" * 30};d\x00</seg></tuv></tu></body></tmx>'
    )
    path.write_bytes(text.encode(encoding))
    report = ImportReport()
    [pair] = pairs_of_tmx(path, "en", "it", report)
    assert pair[1:] == ("ab é &#0; c", "d")
    [(what, found)] = report.noticed.items()
    assert what == "characters that XML does not allow, left out"
    assert (found.count, found.example) == (7, f"{path}:3")


def test_two_varieties_of_one_language_are_one_text_of_each(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    variants = "".join(f'<tuv xml:lang="{code}"><seg>{code}</seg></tuv>' for code in ("sr", "sr-Cyrl", "it", "it-CH"))
    path.write_text(f'<tmx version="1.4"><header srclang="sr"/><body><tu>{variants}</tu></body></tmx>')
    report = ImportReport()
    assert [pair[1:] for pair in pairs_of_tmx(path, "sr", "sr-Cyrl", report)] == [("sr", "sr-Cyrl")]
    assert not report.noticed
    assert [pair[1:] for pair in pairs_of_tmx(path, "sr", "it", report)] == [("sr", "it")]
    assert [*report.noticed] == ["several texts in it, of which one is taken"]


def test_a_control_character_of_xliff_is_left_out_and_broken_xml_stays_an_error(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.xlf"
    path.write_text(XLIFF.replace("Press", "Pre\x0bss"), encoding="utf-8")
    report = ImportReport()
    assert next(pairs_of_xliff(path, "en", "it", report)).source == "Press OK."
    path.write_text(XLIFF.replace("</body>", "\x0b"), encoding="utf-8")
    with pytest.raises(DataError, match="not well-formed XML"):
        list(pairs_of_xliff(path, "en", "it", report))


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=30)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=8), st.sampled_from(["utf-8", "utf-16"]))
def test_what_is_written_to_a_translation_memory_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, str]], encoding: str
) -> None:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{escape(one)}</seg></tuv><tuv xml:lang="it"><seg>{escape(other)}</seg></tuv></tu>'
        for one, other in written
    )
    path = tmp_path_factory.mktemp("tmx") / "a.tmx"
    text = f'<?xml version="1.0" encoding="{encoding}"?><tmx version="1.4"><header/><body>{units}</body></tmx>'
    path.write_bytes(text.encode(encoding))
    report = ImportReport()
    found = [segment[1:] for segment in pairs_of_tmx(path, "en", "it", report)]
    assert found == [(one_line(one), one_line(other)) for one, other in written]
    assert report.num_units == len(written)


@pytest.mark.parametrize(
    ("wanted", "codes", "index"),
    [
        ("en", ["it", "EN_us"], 1),
        ("en-US", ["en-GB", "en-us"], 1),
        ("en-US", ["en-GB"], 0),
        ("en", ["it"], None),
        ("pt-BR", ["pt-PT", "pt-BR"], 1),
    ],
)
def test_a_language_matches_exactly_or_without_its_region(wanted: str, codes: list[str], index: int | None) -> None:
    assert best_match(wanted, codes) == index


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_is_no_damage_of_a_file_that_is_unpacked(tmp_path: Path) -> None:
    workbook(tmp_path / "a.xlsx")
    text = "The sea is blue.\n" * 100_000
    archive(tmp_path / "a.zip", {"a.en": text, "a.it": text})
    for name in ("member-0-0", "a.en", "a.tsv"):
        (tmp_path / name).symlink_to("/dev/full")
    for unpack in (
        lambda: extract(tmp_path / "a.zip", ["*.en"], tmp_path),
        lambda: unpacked_corpus(tmp_path / "a.zip", tmp_path, ("en", "it")),
        lambda: sheet_as_tsv(tmp_path / "a.xlsx", tmp_path / "a.tsv", None),
    ):
        with pytest.raises(TryAgainError, match="No space left on device"):
            unpack()


@pytest.mark.parametrize(
    ("given", "languages"),
    [
        (("en-US", None), ("en-US", "it")),
        (("English", None), ("en", "it")),
        (("eng", "ita"), ("eng", "ita")),
        ((None, "Italian"), ("en", "it")),
        (("it", None), ("it", "en")),
    ],
)
def test_the_languages_of_a_memory_are_given_by_codes_or_names(
    tmp_path: Path, given: tuple[str | None, str | None], languages: tuple[str, str]
) -> None:
    (tmp_path / "a.tmx").write_text(TMX.format(encoding="utf-8"), encoding="utf-8")
    facts = GivenFacts(source_language=given[0], target_language=given[1])
    found = import_pairs([tmp_path / "a.tmx"], facts, sheet=None, output=lambda _: (tmp_path / "a.tsv",))
    assert found.direction == languages
    assert found.report.num_written == 2


@pytest.mark.parametrize(
    ("name", "facts", "problem"),
    [
        ("a.tmx", GivenFacts(encoding="cp1252"), "--encoding is for text"),
        ("a.xlsx", GivenFacts(encoding="cp1252"), "--encoding is for text"),
        ("a.tmx", GivenFacts(target_field="1"), "are for tables"),
    ],
)
def test_facts_without_effect_are_refused(tmp_path: Path, name: str, facts: GivenFacts, problem: str) -> None:
    workbook(tmp_path / "a.xlsx")
    (tmp_path / "a.tmx").write_text(TMX.format(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(UsageError, match=problem):
        import_pairs([tmp_path / name], facts, sheet=None, output=lambda _: (tmp_path / "out.tsv",))
    assert not (tmp_path / "out.tsv").exists()


FRENCH = [
    ("The coffee is ready.", "Le café est prêt."),
    ("Where is my father?", "Où est mon père ?"),
    ("The boy eats pâté.", "Le garçon mange du pâté."),
    ("The dog sleeps.", "Le chien dort."),
]


def csv_of(rows: list[tuple[str, str]], encoding: str) -> bytes:
    return "".join(f'"{one}";"{other}"\r\n' for one, other in rows).encode(encoding)


@pytest.mark.parametrize("encoding", ["windows-1252", "mac_roman", "utf-16", "utf-8-sig"])
def test_no_letter_of_a_table_from_a_spreadsheet_program_is_lost(tfm: Tfm, encoding: str) -> None:
    (tfm.folder / "a.csv").write_bytes(csv_of([("English", "French"), *FRENCH], encoding))
    finished = imported(tfm, "a.csv")
    assert finished.exit_code == 0, finished.talk
    assert pairs(tfm) == FRENCH
    told = json.loads(finished.text)["doubts"]
    assert bool(told) is not encoding.startswith("utf")
    assert all(f"read as {encoding}: café, " in doubt for doubt in told)


def test_an_import_refuses_where_two_readings_are_close_and_takes_the_named_one(tfm: Tfm) -> None:
    rows = [("English", "Slovenian"), ("Please.", "Prosim č.")] * 3
    (tfm.folder / "a.csv").write_bytes(csv_of(rows, "windows-1250"))
    refused = imported(tfm, "a.csv")
    assert refused.exit_code == 65
    assert "windows-1250: č" in refused.talk
    assert "windows-1252: è" in refused.talk
    assert "--encoding windows-1250" in refused.talk
    assert not (tfm.folder / "out.tsv").exists()
    finished = imported(tfm, "a.csv", "--encoding", "windows-1250")
    assert finished.exit_code == 0, finished.talk
    assert ("Please.", "Prosim č.") in pairs(tfm)


def test_no_import_leaves_out_more_than_a_stated_share(tfm: Tfm) -> None:
    good = csv_of([("English", "French"), *FRENCH[:3] * 8], "utf-8")
    (tfm.folder / "a.csv").write_bytes(good + b'"bad";"caf\xe9 one"\r\n"bad";"\xff\xfe"\r\n')
    refused = imported(tfm, "a.csv")
    assert refused.exit_code == 65
    assert "2 of 26 units are damaged (not UTF-8, first a.csv:26)" in refused.talk
    assert "--max-dropped-share" in refused.talk
    assert not (tfm.folder / "out.tsv").exists()
    finished = imported(tfm, "a.csv", "--max-dropped-share", "0.1")
    assert json.loads(finished.text)["skipped"] == {"not UTF-8": 2}
    assert pairs(tfm) == FRENCH[:3] * 8


@pytest.mark.parametrize("name", ["a.zip", "a.xlsx"])
def test_a_damaged_archive_is_refused_with_its_name(tfm: Tfm, name: str) -> None:
    """Damage inside a compressed part is told by other exceptions than damage of the table of contents."""
    lines = "".join(f"The house number {number} is red\n" for number in range(99))
    archive(tfm.folder / "a.zip", {"a.en": lines, "a.it": lines})
    workbook = openpyxl.Workbook()
    assert workbook.active is not None
    for number in range(99):
        workbook.active.append([f"The red house {number}", f"La casa rossa {number}"])
    workbook.save(tfm.folder / "a.xlsx")
    whole = (tfm.folder / name).read_bytes()
    with zipfile.ZipFile(tfm.folder / name) as opened:
        largest = max(opened.infolist(), key=lambda member: member.compress_size)
    place = largest.header_offset + 30 + len(largest.filename) + 10
    (tfm.folder / name).write_bytes(whole[:place] + bytes(range(40)) + whole[place + 40 :])
    finished = imported(tfm, name)
    assert finished.exit_code == 65
    assert f"{name}: cannot be read as" in finished.talk
