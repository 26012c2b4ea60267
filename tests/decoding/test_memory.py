"""Translations that are known already are reused, in the place of those of the model."""

import csv
import io
import json
import logging
import zipfile
from pathlib import Path

import pytest

from transformer_cli.commands.translate import translate_command
from transformer_cli.decoding.memory import MemoryPair, TranslationMemory
from transformer_cli.extensions.corpora.commands.import_pairs import import_command
from transformer_cli.extensions.corpora.importing import read_memory
from transformer_cli.process.errors import DataError, MissingInputError, UsageError

ROOT = Path(__file__).parents[2]
RUN = [str(ROOT / "docs" / "run")]

TMX = """<?xml version="1.0"?>
<tmx version="1.4"><header srclang="en-GB"/><body>
<tu><tuv xml:lang="en-GB"><seg>Where is the station?</seg></tuv><tuv xml:lang="it-IT"><seg>Dove si trova la stazione?</seg></tuv></tu>
<tu><tuv xml:lang="en-GB"><seg>Good morning.</seg></tuv><tuv xml:lang="de"><seg>Guten Morgen.</seg></tuv></tu>
</body></tmx>
"""
XLIFF = """<?xml version="1.0"?><xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="it" original="a" datatype="plaintext"><body><trans-unit id="1">
<source>Where is the station?</source><target>Dove si trova la stazione?</target></trans-unit></body></file></xliff>
"""
CSV = "English,Italian\nWhere is the station?,Dove si trova la stazione?\nThe cat is here.,\n"


def memory_of(*pairs: tuple[str, str]) -> TranslationMemory:
    given = [MemoryPair(*pair, f"m.csv:{number}") for number, pair in enumerate(pairs, 1)]
    return TranslationMemory.of(given, lambda text: text.replace("\xad", ""), "m.csv")


def test_a_text_is_found_as_a_whole_whatever_its_white_space_and_what_the_model_does_not_see() -> None:
    memory = memory_of(("Good morning.", "Buondì."))
    for text, expected in {
        "Good morning.": "Buondì.",
        "  Good   mor\xadning.\r": "  Buondì.\r",
        "\tGood morning.": "\tBuondì.",
    }.items():
        found = memory.recall(text)
        assert found is not None
        assert (found.source, found.text, found.is_from_memory) == (text, expected, True)
    assert "  Good   mor\xadning.\r" in memory
    for text in ("good morning.", "Good morning", "Good morning. Good morning.", "", " "):
        assert text not in memory
        assert memory.recall(text) is None


def test_of_several_translations_the_last_counts_and_the_text_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        memory = memory_of(("Yes.", "Sì."), ("Yes.", "Sì."), ("Yes.", "Certo."))
    found = memory.recall("Yes.")
    assert found is not None
    assert found.text == "Certo."
    assert "m.csv:3: another translation of Yes.: the last counts" in caplog.text
    assert "m.csv has 1 translation: each is used where" in caplog.text


def test_the_report_names_the_first_sources_that_were_no_text_of_the_input(caplog: pytest.LogCaptureFixture) -> None:
    memory = memory_of(*((f"Text {number}.", "Testo.") for number in range(8)))
    assert memory.recall(" Text  1. ")
    assert memory.recall("Text 9.") is None
    caplog.set_level(logging.INFO)
    memory.report(1)
    named = " | ".join(f"Text {number}." for number in (0, 2, 3, 4, 5))
    assert caplog.messages[-1] == f"m.csv: 7 of its 8 sources are no whole text of the input: {named} | and 2 more"
    for number in range(7):
        memory.recall(f"Text {number}.")
    memory.report(8)
    assert caplog.messages[-1] == "m.csv: 1 of its 8 sources are no whole text of the input: Text 7."
    memory.recall("Text 7.")
    caplog.clear()
    memory.report(9)
    assert caplog.messages == ["memory: translations from m.csv: 9"]


def test_cells_of_several_lines_are_known_line_by_line(tmp_path: Path) -> None:
    """A document with such a cell is translated line by line."""
    path = tmp_path / "m.csv"
    path.write_text('en,it\n"A dog.\n\nA cat.","Un cane.\nUn gatto."\n"A car.\nA red car.",Una macchina.\n', "utf-8")
    assert [(one.source, one.target) for one in read_memory(path, "en", "it")] == [
        ("A dog. A cat.", "Un cane. Un gatto."),
        ("A dog.", "Un cane."),
        ("A cat.", "Un gatto."),
        ("A car. A red car.", "Una macchina."),
    ]


@pytest.mark.parametrize(("name", "text"), [("m.csv", CSV), ("m.tmx", TMX)])
def test_pairs_are_read_from_tables_and_memories(name: str, text: str, tmp_path: Path) -> None:
    if name.endswith("tmx"):
        pytest.importorskip("lxml", reason="the extra corpora")
    path = tmp_path / name
    path.write_text(text)
    [pair] = read_memory(path, "en", "it")
    assert pair[:2] == ("Where is the station?", "Dove si trova la stazione?")
    assert pair.place.startswith(str(path))


def test_a_memory_that_is_missing_empty_or_in_other_languages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"nowhere\.csv: no such file"):
        read_memory(tmp_path / "nowhere.csv", "en", "it")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError):
        read_memory(tmp_path / "empty.csv", "en", "it")
    pytest.importorskip("lxml", reason="the extra corpora")
    (tmp_path / "m.tmx").write_text(TMX)
    with pytest.raises(DataError, match="no pair in en and fr was found in 2 units"):
        read_memory(tmp_path / "m.tmx", "en", "fr")


@pytest.mark.long
def test_lines_from_a_memory_are_named_and_the_others_are_what_they_were(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "m.csv").write_text(CSV)
    (tmp_path / "in.txt").write_text("Good evening.\n  Where is the station?\n\nThe cat is here.\n")
    translate_command(run=RUN, input_file=tmp_path / "in.txt")
    plain = capsys.readouterr().out.splitlines()
    with caplog.at_level(logging.INFO):
        translate_command(run=RUN, input_file=tmp_path / "in.txt", memory=tmp_path / "m.csv")
    lines = capsys.readouterr().out.splitlines()
    assert lines == [plain[0], "  Dove si trova la stazione?", *plain[2:]]
    assert "memory: translations from" in caplog.text
    options = {"memory": tmp_path / "m.csv", "as_json": True, "alignment": True}
    translate_command(["Where is the station?", "Good evening."], RUN, **options)  # type: ignore[arg-type]
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["memory"] for one in found] == [True, False]
    assert "alignment" not in found[0]
    assert found[1]["alignment"]


@pytest.mark.long
def test_a_line_whose_translation_in_the_memory_lacks_a_placeholder_is_translated_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "m.tsv").write_text("Where is {name}?\tDove si trova?\nWhere is {x}?\tDove si trova {x}?\n")
    with caplog.at_level(logging.INFO):
        translate_command(["Where is {x}?", "Where is {name}?"], RUN, memory=tmp_path / "m.tsv")
    known, other = capsys.readouterr().out.splitlines()
    assert known == "Dove si trova {x}?"
    assert "{name}" in other
    assert "line 2: its translation in the memory was not used, because it lacks {name}" in caplog.text
    assert "m.tsv: 1" in caplog.text


@pytest.mark.long
def test_the_terms_of_a_document_are_counted_as_those_of_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "g.tsv").write_text("dog\tbassotto\n")
    (tmp_path / "a.html").write_text("<p>The dog is here.</p><p>The dog sleeps.</p><p>The cat sleeps.</p>")
    with caplog.at_level(logging.INFO):
        translate_command(
            run=RUN, input_file=tmp_path / "a.html", glossary=tmp_path / "g.tsv", output_file=tmp_path / "b.html"
        )
    assert "glossary: terms found: 2, in 2 of 3 texts; all of them are in the translations" in caplog.text


@pytest.mark.long
def test_a_corrected_line_is_printed_where_only_trusted_ones_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tsv").write_text("Where is the station?\tDove si trova la stazione?\n")
    memory = tmp_path / "m.tsv"
    translate_command(["Where is the station?"], RUN, memory=memory, mark=True)
    assert capsys.readouterr().out == "Dove si trova la stazione?\tmemory\t\n"
    (tmp_path / "g.tsv").write_text("dog\tbassotto\n")
    translate_command(["dog"], RUN, glossary=tmp_path / "g.tsv", mark=True)
    assert capsys.readouterr().out == "bassotto\tglossary\t\n"
    translate_command(["Where is the station?"], RUN, memory=memory, only_green=True)
    assert capsys.readouterr().out == "Dove si trova la stazione?\n"
    translate_command(["Where is the station?"], RUN, memory=memory, prefix="Dov'è")
    assert capsys.readouterr().out == "Dov'è la stazione?\n"


@pytest.mark.long
def test_paragraphs_of_documents_are_found_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "m.csv").write_text(CSV + "I have {n} dogs.,Ho dei cani.\n")
    page = "<p>Where is the station?</p><p>Good evening.</p><p>Where is the station?</p><p>I have {n} dogs.</p>"
    (tmp_path / "page.html").write_text(page)
    output = tmp_path / "pagina.html"
    with caplog.at_level(logging.INFO):
        translate_command(run=RUN, input_file=tmp_path / "page.html", output_file=output, memory=tmp_path / "m.csv")
    assert output.read_text().count("<p>Dove si trova la stazione?</p>") == 2
    assert "its translation in the memory was not used, because it lacks {n}" in caplog.text
    assert f"memory: translations from {tmp_path / 'm.csv'}: 2" in caplog.text


def test_a_spreadsheet_is_a_memory_too(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra corpora")
    workbook = openpyxl.Workbook()
    for row in (("English", "Italian"), ("Good morning.", "Buondì.")):
        workbook.active.append(row)
    workbook.save(tmp_path / "m.xlsx")
    assert zipfile.is_zipfile(tmp_path / "m.xlsx")
    [pair] = read_memory(tmp_path / "m.xlsx", "en", "it")
    assert pair[:2] == ("Good morning.", "Buondì.")


def test_a_memory_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises((UsageError, MissingInputError, DataError)):
        translate_command(["Good morning."], RUN, memory=tmp_path)


def saved(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def sides(path: Path, source: str = "en", target: str = "it", encoding: str | None = None) -> list[tuple[str, str]]:
    return [pair[:2] for pair in read_memory(path, source, target, encoding)]


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("English\tGerman", "English (en) and German (de)"),
        ("Deutsch\tEnglish", "German (de) and English (en)"),
        ("English\tGerman\tComment", "English (en) and German (de)"),
        ("de\tfr", "German (de) and French (fr)"),
    ],
)
def test_a_table_whose_columns_are_named_after_other_languages_is_refused(
    header: str, found: str, tmp_path: Path
) -> None:
    row = "\t".join(["Good morning."] * (header.count("\t") + 1))
    path = saved(tmp_path / "m.tsv", f"{header}\n{row}\n")
    with pytest.raises(DataError) as refused:
        read_memory(path, "en", "it")
    assert f"{path}: its columns are in {found}" in refused.value.message
    assert "where English (en) and Italian (it) are expected" in refused.value.message


def test_columns_are_found_by_the_names_of_their_languages(tmp_path: Path) -> None:
    expected = [("Good morning.", "Buondì.")]
    for header, row in {
        "Italian,English": "Buondì.,Good morning.",
        "German,Italiano,en-GB": "Guten Morgen.,Buondì.,Good morning.",
        "English,Translation": "Good morning.,Buondì.",
        "Source,Target": "Good morning.,Buondì.",
        "Nr,English,Italian": "7,Good morning.,Buondì.",
    }.items():
        assert sides(saved(tmp_path / "m.csv", f"{header}\n{row}\n")) == expected
    assert sides(saved(tmp_path / "m.csv", "Good morning.,Buondì.\n")) == expected


def test_a_chain_back_into_its_first_language_needs_two_columns_of_it(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.csv", "English,English\nGood day.,Hello.\n")
    # The names of one language twice may be a pair of a word list, and do no harm as one.
    assert sides(path, "en", "en") == [("English", "English"), ("Good day.", "Hello.")]
    path = saved(tmp_path / "m.csv", "English,Simple text\nGood day.,Hello.\n")
    assert sides(path, "en", "en") == [("Good day.", "Hello.")]
    with pytest.raises(DataError, match=r"English \(en\) and Italian \(it\), as their names say"):
        read_memory(saved(tmp_path / "m.csv", CSV), "en", "en")


def test_a_text_in_another_language_is_doubted_where_no_name_tells_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    german = "Das ist nicht der Hund und die Katze ist auch nicht mit dem Hund in dem Haus."
    english = "This is not the dog and the cat is not with the dog in the house, and that is it."
    assert sides(saved(tmp_path / "m.tsv", f"{english}\t{german}\n" * 5))
    assert "column 1 looks like German, where Italian is expected" in caplog.text


@pytest.mark.parametrize("name", ["m.tsv", "m.csv", "m.txt", "m.tab"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_quotes_of_a_text_with_tabs_mean_what_spreadsheets_mean(name: str, encoding: str, tmp_path: Path) -> None:
    rows = [
        ["English", "Italian"],
        ["Good morning.", 'Buondì, "signore"'],
        ["Two\tparts, two\nlines", "Due"],
    ]
    written = io.StringIO()
    csv.writer(written, "excel-tab").writerows(rows)
    path = saved(tmp_path / name, written.getvalue(), encoding)
    assert sides(path) == [("Good morning.", 'Buondì, "signore"'), ("Two parts, two lines", "Due")]


@pytest.mark.parametrize("name", ["m.tsv", "m.csv", "m.txt"])
def test_other_quotes_of_a_text_with_tabs_are_text(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path / name, 'Good morning.\t"Buondì," disse.\n"Yes."\t"Sì."\n')
    assert sides(path) == [("Good morning.", '"Buondì," disse.'), ('"Yes."', '"Sì."')]


def test_quotes_in_a_cell_of_a_spreadsheet_are_text(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra corpora")
    workbook = openpyxl.Workbook()
    for row in (("Italian", "English"), ('"Sì."', "Yes.")):
        workbook.active.append(row)
    workbook.save(tmp_path / "m.xlsx")
    assert sides(tmp_path / "m.xlsx") == [("Yes.", '"Sì."')]


LEGACY = "English,Italian\nGood morning.,Buondì.\nHello.,Perché no\n"


def test_a_table_that_is_not_utf_8_is_read_in_the_encoding_that_is_named(tmp_path: Path) -> None:
    legacy = saved(tmp_path / "l.csv", LEGACY, "cp1252")
    with pytest.raises(DataError) as refused:
        read_memory(legacy, "en", "it")
    assert f"tfm data import {legacy} --encoding NAME --output NEW.tsv" in str(refused.value.hint)
    assert sides(legacy, encoding="windows-1252")[0] == ("Good morning.", "Buondì.")
    for encoding in ("utf-8", "utf-16"):  # of the input; the memory is none of it
        other = saved(tmp_path / "u.csv", LEGACY, encoding)
        assert sides(other, encoding="windows-1252")[0] == ("Good morning.", "Buondì.")
    chinese = saved(tmp_path / "g.csv", "English,Chinese\nGood morning.,早上好。\n", "gbk")
    assert sides(chinese, "en", "zh", "gbk") == [("Good morning.", "早上好。")]
    with pytest.raises(UsageError, match="--encoding no-such: no such encoding"):
        read_memory(legacy, "en", "it", "no-such")


def test_the_way_that_the_hint_about_an_encoding_names_leads_to_a_memory(tmp_path: Path) -> None:
    legacy = saved(tmp_path / "l.csv", LEGACY, "cp1252")
    new = tmp_path / "new.tsv"
    import_command([legacy], new, encoding="windows-1252")
    assert sides(new) == [("Good morning.", "Buondì."), ("Hello.", "Perché no")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.tsv", "English\tItalian\nYes.\tSì.\tno\n"),
        ("m.csv", "one\ntwo\n"),
        ("m.csv", "1,2\n3,4\n"),
        ("m.txt", "Good morning.\n"),
        ("m.csv", "English,Italian\n" + "Yes.,\0\n" * 3),
    ],
)
def test_hints_about_a_memory_name_no_option_of_another_command(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        read_memory(saved(tmp_path / name, text), "en", "it")
    assert "the names of the languages in the first row" in str(refused.value.hint)
    assert "--" not in str(refused.value.hint)


@pytest.mark.parametrize("name", ["nowhere.csv", ".", "-"])
def test_what_is_no_file_is_no_memory_and_the_hint_says_what_is(name: str, tmp_path: Path) -> None:
    path = Path("-") if name == "-" else tmp_path / name
    with pytest.raises((UsageError, MissingInputError)) as refused:
        translate_command(["Good morning."], RUN, memory=path)
    assert "--memory takes a file: a table (CSV, TSV), a spreadsheet" in str(refused.value.hint)


@pytest.mark.long
@pytest.mark.parametrize("has_path", [True, False])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_an_input_that_shows_its_encoding_keeps_it_beside_a_memory_in_another_one(
    encoding: str, has_path: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    legacy = saved(tmp_path / "l.csv", "English,Italian\nThe caf\u00e9.,Il caff\u00e8.\n", "cp1252")
    path, output = saved(tmp_path / "in.txt", "The caf\u00e9.\n", encoding), tmp_path / "out.txt"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    given = path if has_path else None
    translate_command(run=RUN, input_file=given, output_file=output, memory=legacy, encoding="windows-1252")
    assert output.read_text(encoding=encoding) == "Il caff\u00e8.\n"


@pytest.mark.long
def test_the_command_takes_every_kind_of_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra corpora")
    pytest.importorskip("lxml", reason="the extra corpora")
    workbook = openpyxl.Workbook()
    for row in (("English", "Italian"), ("Where is the station?", "Dove si trova la stazione?")):
        workbook.active.append(row)
    workbook.save(tmp_path / "m.xlsx")
    saved(tmp_path / "m.tmx", TMX)
    saved(tmp_path / "m.xlf", XLIFF)
    saved(tmp_path / "m.txt", CSV.replace(",", "\t").replace("\t\n", "\tè\n"), "utf-16")
    for name in ("m.xlsx", "m.tmx", "m.xlf", "m.txt"):
        translate_command(["Where is the station?"], RUN, memory=tmp_path / name)
        assert capsys.readouterr().out == "Dove si trova la stazione?\n"
    saved(tmp_path / "l.csv", "English,Italian\nYes.,Perché sì.\n", "cp1252")
    saved(tmp_path / "in.txt", "Yes.\n")
    legacy = {"memory": tmp_path / "l.csv", "encoding": "windows-1252"}
    translate_command(["Yes."], RUN, **legacy)  # type: ignore[arg-type]
    assert capsys.readouterr().out == "Perché sì.\n"
    output = tmp_path / "out.txt"
    translate_command(
        run=RUN,
        input_file=tmp_path / "in.txt",
        output_file=output,
        **legacy,  # type: ignore[arg-type]
    )
    assert output.read_bytes() == "Perché sì.\n".encode("cp1252")
