"""Reading a glossary: what is accepted, and what each refusal says."""

import gzip
from pathlib import Path

import pytest

from transformer_cli.config import Direction
from transformer_cli.decoding.glossary import Glossary, GlossaryEntry
from transformer_cli.decoding.glossary_files import read_glossary
from transformer_cli.process.errors import DataError, MissingInputError


def written(tmp_path: Path, content: bytes, name: str = "terms.tsv") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def test_each_line_is_an_entry(tmp_path: Path) -> None:
    content = "\ufeffdog\tHund\r\n\nTurkey \t Türkei\tcase\nhouse\tHaus\tform=Hauses\t\tform= Häuser"
    path = written(tmp_path, content.encode())
    assert read_glossary(path) == Glossary(
        (
            GlossaryEntry("dog", "Hund", place=f"{path}:1"),
            GlossaryEntry("Turkey", "Türkei", keeps_case=True, place=f"{path}:3"),
            GlossaryEntry("house", "Haus", ("Hauses", "Häuser"), place=f"{path}:4"),
        )
    )


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(b"dog\tHund\n"), "terms.tsv.gz")
    assert [entry.target for entry in read_glossary(path).entries] == ["Hund"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"dog", r"terms\.tsv:2: no target term: dog"),
        (b"dog\t ", r"terms\.tsv:2: no target term: dog"),
        (b"\tHund", r"terms\.tsv:2: no source term"),
        (b"dog\tHund\tCase", r"terms\.tsv:2: 'Case' is not a column of a glossary"),
        (b"dog\tHund\tform=", r"terms\.tsv:2: 'form=' is not a column"),
        ("Bär\tbear\n".encode() * 11 + b"dog\tH\xfcnd", r"terms\.tsv:13: byte 6 of the line \(0xFC\) is not UTF-8"),
        (b"dog\t" + b"x" * (1 << 20), r"terms\.tsv:2: a line of more than 1,048,576 bytes"),
        ("dog\tHund".encode("utf-16"), r"not UTF-8"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path: Path, line: bytes, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        read_glossary(written(tmp_path, b"cat\tKatze\n" + line + b"\n"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"nowhere\.tsv"):
        read_glossary(tmp_path / "nowhere.tsv")


TERMS = "dog\tHündin\nbear, brown\tBraunbär\ncat\tKatze\tcase\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("terms.csv", 'dog,Hündin\n"bear, brown",Braunbär\ncat,Katze,case\n'.encode()),
        ("terms.csv", "dog;Hündin;\r\nbear, brown;Braunbär;\r\ncat;Katze;case\r\n".encode("utf-8-sig")),
        ("terms.csv", "dog;Hündin;\r\nbear, brown;Braunbär;\r\ncat;Katze;case\r\n".encode("windows-1252")),
        ("terms.txt", TERMS.encode("windows-1252")),
        ("terms.txt", TERMS.encode("utf-16")),
        ("terms.txt", 'dog\tHündin\t\n"bear, brown"\tBraunbär\t\ncat\tKatze\tcase\n'.encode("utf-16")),
    ],
)
def test_a_table_of_a_spreadsheet_is_a_glossary(tmp_path: Path, name: str, content: bytes) -> None:
    assert [
        (one.source, one.target, one.keeps_case) for one in read_glossary(written(tmp_path, content, name)).entries
    ] == [
        ("dog", "Hündin", False),
        ("bear, brown", "Braunbär", False),
        ("cat", "Katze", True),
    ]


def test_a_given_encoding_is_that_of_a_glossary_that_is_not_utf_8(tmp_path: Path) -> None:
    for encoding in ("windows-1250", "utf-8"):
        path = written(tmp_path, "dog\tpejsek\nstation\tzastávka\n".encode(encoding))
        assert read_glossary(path, "windows-1250").entries[1].target == "zastávka"


def test_a_sheet_is_a_glossary(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    for row in (("dog", "Hündin"), (None, None), ("cat", "Katze", "case")):
        workbook.active.append(row)
    workbook.save(path := tmp_path / "terms.xlsx")
    assert read_glossary(path).entries == (
        GlossaryEntry("dog", "Hündin", place=f"{path}:1"),
        GlossaryEntry("cat", "Katze", keeps_case=True, place=f"{path}:3"),
    )
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"terms\.xlsx: cannot be read as an XLSX workbook"):
        read_glossary(path)


def test_a_missing_glossary_is_looked_for_in_the_current_folder_alone(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="no such file") as missing:
        read_glossary(tmp_path / "terms.tsv")
    assert str(missing.value).endswith("check the path: a relative path starts in the current folder")


def test_a_glossary_without_a_term_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read_glossary(written(tmp_path, b"\n")).entries == ()
    assert "terms.tsv: no term is in this glossary" in caplog.text


@pytest.mark.parametrize(
    ("header", "is_header"),
    [
        ("English\tItalian", True),
        ("english\tItaliano", True),
        ("EN\tit-IT", True),
        ("Source\tTarget", True),
        ("Italian\tEnglish", True),
        ("English\tInglese", False),
        ("Turkish delight\tPolish", False),
        ("it\tes", False),
        ("station\tfermata", False),
    ],
)
def test_the_names_of_the_columns_are_no_term(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, header: str, is_header: bool
) -> None:
    caplog.set_level("INFO")
    glossary = read_glossary(written(tmp_path, f"{header}\ndog\tcane\n".encode()))
    left = glossary.without_header(Direction("en", "it"))
    assert [one.source for one in left.entries] == [*([] if is_header else [header.split("\t")[0]]), "dog"]
    assert is_header == ("terms.tsv:1" in caplog.text)
    assert ("but the translation goes from en into it" in caplog.text) == (header == "Italian\tEnglish")


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("English\tGerman", "English (en) and German (de)"),
        ("Englisch\tDeutsch", "English (en) and German (de)"),
        ("german\titaliano", "German (de) and Italian (it)"),
        ("Nr\tEnglish\tGerman", "English (en) and German (de)"),
    ],
)
def test_columns_of_other_languages_are_refused(tmp_path: Path, header: str, found: str) -> None:
    row = "\t".join(["dog"] * (header.count("\t") + 1))
    glossary = read_glossary(written(tmp_path, f"{header}\n{row}\n".encode()))
    with pytest.raises(DataError) as refused:
        glossary.without_header(Direction("en", "it"))
    assert f"terms.tsv:1: its columns are in {found}, as their names say" in refused.value.message
    assert "where English (en) and Italian (it) are expected" in refused.value.message


@pytest.mark.parametrize("ending", [".tsv", ".csv"])
def test_the_line_ends_of_old_macs_are_read(tmp_path: Path, ending: str) -> None:
    terms = ("dog,Hündin\rcat,Katze\r" if ending == ".csv" else "dog\tHündin\rcat\tKatze\r").encode("windows-1252")
    assert read_glossary(written(tmp_path, terms, f"terms{ending}")) == read_glossary(
        written(tmp_path, terms.replace(b"\r", b"\r\n"), f"terms{ending}")
    )
    packed = written(tmp_path, gzip.compress(terms), f"terms{ending}.gz")
    assert [one.target for one in read_glossary(packed).entries] == ["Hündin", "Katze"]


@pytest.mark.parametrize(
    "table",
    [
        "source\ttarget\tnotes\ndog\tcane\ta pet\ncat\tgatto\t\tform=gatti\n",
        "Source term;Comment;Target term;Form\ndog;a pet;cane\ncat;;gatto;form=gatti\n",
        "id,English,Italian,Part of speech\n1,dog,cane,noun\n2,cat,gatto,form=gatti\n",
        "Note\ten-GB\tit\n\tdog\tcane\nx\tcat\tgatto\tform=gatti\n",
    ],
)
def test_a_first_row_names_the_columns_of_a_table_with_others(tmp_path: Path, table: str) -> None:
    given = Direction("en", "it")
    entries = read_glossary(written(tmp_path, table.encode())).without_header(given).entries
    found = [(one.source, one.target, one.other_forms, one.place[-2:]) for one in entries]
    assert found == [("dog", "cane", (), ":2"), ("cat", "gatto", ("gatti",), ":3")]


def test_what_is_left_out_of_a_table_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    read_glossary(written(tmp_path, b"source\ttarget\tnotes\ndog\tcane\ta pet\n"))
    assert "terms.tsv:1: the terms are in the columns source and target; left out: notes" in caplog.text


@pytest.mark.parametrize("head", ["form", "Form", "form="])
def test_the_columns_of_case_and_forms_are_used_and_not_called_left_out(
    head: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    table = f"source\ttarget\tcase\tnote\t{head}\nTurkey\tTurchia\tcase\ta country\tTurchie\ndog\tcane\t\t\tform=cani\n"
    first, second = read_glossary(written(tmp_path, table.encode())).entries
    assert (first.keeps_case, first.other_forms) == (True, ("Turchie",))
    assert (second.keeps_case, second.other_forms) == (False, ("cani",))
    assert caplog.text.rstrip().endswith("left out: note")


@pytest.mark.parametrize("first", ["dog\tcane\ta pet", "one\ttwo\tthree", "English\tItalian\tGerman", "source\tx\ty"])
def test_a_table_whose_columns_nobody_names_is_refused_with_what_to_do(tmp_path: Path, first: str) -> None:
    with pytest.raises(DataError, match=r"terms\.tsv:1: .* is not a column of a glossary") as refusal:
        read_glossary(written(tmp_path, f"{first}\ncat\tgatto\tx\n".encode()))
    assert "a first line must name two as source and target, or by their languages" in str(refusal.value.hint)


def test_the_languages_behind_each_term_are_those_of_one_direction(tmp_path: Path) -> None:
    same = read_glossary(written(tmp_path, b"dog,cane,EN,it\ncat,gatto,en,it\n", "terms.csv"))
    assert [(one.source, one.target, one.other_forms) for one in same.entries] == [
        ("dog", "cane", ()),
        ("cat", "gatto", ()),
    ]
    with pytest.raises(DataError, match=r"terms\.csv:2: from it into en, where the lines above are from en into it"):
        read_glossary(written(tmp_path, b"dog,cane,en,it\ngatto,cat,it,en\n", "terms.csv"))


def test_terms_that_a_program_gives_have_no_header() -> None:
    glossary = Glossary.of({"English": "Italian"})
    assert glossary.without_header(Direction("en", "it")) == glossary
