"""Translations that are known already are reused, in the place of those of the model."""

import json
import logging
import zipfile
from pathlib import Path

import pytest

from transformer_cli.commands.translate import translate_command
from transformer_cli.decoding.memory import MemoryPair, TranslationMemory
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
CSV = "English,Italian\nWhere is the station?,Dove si trova la stazione?\nThe cat is here.,\n"


def memory_of(*pairs: tuple[str, str]) -> TranslationMemory:
    given = [MemoryPair(*pair, f"m.csv:{number}") for number, pair in enumerate(pairs, 1)]
    return TranslationMemory.of(given, lambda text: text.replace("\xad", ""), "m.csv")


def test_a_text_is_found_as_a_whole_whatever_its_white_space_and_what_the_model_does_not_see() -> (
    None
):
    memory = memory_of(("Good morning.", "Buondì."))
    for text, expected in {
        "Good morning.": "Buondì.",
        "  Good   mor\xadning.\r": "  Buondì.\r",
        "\tGood morning.": "\tBuondì.",
    }.items():
        found = memory.recall(text)
        assert found is not None
        assert (found.source, found.text, found.is_from_memory) == (text, expected, True)
    for text in ("good morning.", "Good morning", "Good morning. Good morning.", "", " "):
        assert memory.recall(text) is None
    assert memory.num_recalled == 3


def test_of_several_translations_the_last_counts_and_the_text_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        memory = memory_of(("Yes.", "Sì."), ("Yes.", "Sì."), ("Yes.", "Certo."))
    found = memory.recall("Yes.")
    assert found is not None
    assert found.text == "Certo."
    assert "m.csv:3: another translation of Yes.: the last counts" in caplog.text
    assert "m.csv: 1 translations are reused" in caplog.text


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
def test_a_corrected_line_is_printed_where_only_trusted_ones_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tsv").write_text("Where is the station?\tDove si trova la stazione?\n")
    memory = tmp_path / "m.tsv"
    translate_command(["Where is the station?"], RUN, memory=memory, mark=True)
    assert capsys.readouterr().out == "Dove si trova la stazione?\tmemory\t\n"
    translate_command(["Where is the station?"], RUN, memory=memory, only_green=True)
    assert capsys.readouterr().out == "Dove si trova la stazione?\n"
    translate_command(["Where is the station?"], RUN, memory=memory, prefix="Dov'è")
    assert capsys.readouterr().out == "Dov'è la stazione?\n"


@pytest.mark.long
def test_paragraphs_of_documents_are_found_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.csv").write_text(CSV)
    (tmp_path / "page.html").write_text("<p>Where is the station?</p><p>Good evening.</p>")
    output = tmp_path / "pagina.html"
    translate_command(
        run=RUN, input_file=tmp_path / "page.html", output_file=output, memory=tmp_path / "m.csv"
    )
    assert "<p>Dove si trova la stazione?</p>" in output.read_text()


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
