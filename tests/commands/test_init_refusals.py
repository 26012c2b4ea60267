"""`tfm init` refuses what would do harm or cannot work, and says what to do."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.commands.init import init_command
from transformer_cli.config import load_config
from transformer_cli.data.sources.corpus import read_phrasebook
from transformer_cli.extensions.corpora.commands.check import check_command
from transformer_cli.process.errors import CannotCreateError, DataError, UsageError

PAIRS = [(pair.source, pair.target) for pair in read_phrasebook("train", 60)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*paths: str, **options: Any) -> None:
    defaults: dict[str, Any] = {"output": Path("it.yaml"), "force": True}
    init_command([*paths], **defaults | options)


def table(*rows: tuple[str, ...]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("how", ["its name", "a symbolic link", "a hard link"])
@pytest.mark.parametrize("paths", [["z.tsv"], ["z.en", "z.it"], ["corpus"]])
def test_the_config_never_replaces_the_corpus(folder: Path, paths: list[str], how: str, force: bool) -> None:
    (folder / "corpus").mkdir()
    sides = ["".join(pair[side] + "\n" for pair in PAIRS) for side in (0, 1)]
    for name, text in (("z.tsv", table(*PAIRS)), ("z.en", sides[0]), ("z.it", sides[1])):
        (folder / name).write_text(text, encoding="utf-8")
    for name, text in (("a.en", sides[0]), ("a.it", sides[1]), ("a.txt", "mine")):
        (folder / "corpus" / name).write_text(text, encoding="utf-8")
    for given in [folder / "corpus" / "a.txt"] if paths == ["corpus"] else map(Path, paths):
        output = given
        if how != "its name":
            output = folder / f"{given.name}.{how[2:6]}"
            link = os.symlink if how == "a symbolic link" else os.link
            link(given.absolute(), output)
        before = given.read_bytes()
        with pytest.raises(CannotCreateError, match="is a file of the corpus") as refused:
            init(*paths, output=output, force=force)
        assert given.read_bytes() == before
        assert "--force" not in str(refused.value)


def test_a_config_beside_the_files_of_a_folder_can_be_replaced(folder: Path) -> None:
    for side, name in enumerate(("a.en", "a.it")):
        (folder / name).write_text("".join(pair[side] + "\n" for pair in PAIRS), encoding="utf-8")
    (folder / "a.yaml").write_text("mine")
    init(".", output=Path("a.yaml"))
    assert "corpora" in (folder / "a.yaml").read_text(encoding="utf-8")


def test_the_run_has_the_name_of_the_config_so_that_it_is_another_one(folder: Path) -> None:
    (folder / "a.tsv").write_text(table(*PAIRS), encoding="utf-8")
    names = []
    for given in ({}, {"output": Path("x/further.yaml")}, {"output": Path("b.yaml"), "name": "mine"}):
        (folder / "x").mkdir(exist_ok=True)
        init_command(["a.tsv"], **given)  # type: ignore[arg-type]
        names.append(load_config(str(given.get("output", "a.yaml"))).name)
    assert names == ["a", "further", "mine"]
    with pytest.raises(
        CannotCreateError, match=r"a\.yaml: exists already, such as from an earlier tfm init"
    ) as refused:
        init_command(["a.tsv"])
    assert "--force replaces it" in str(refused.value)


def test_a_language_is_given_by_code_or_by_name(folder: Path) -> None:
    (folder / "a.tsv").write_text(table(*PAIRS), encoding="utf-8")
    init("a.tsv", source_language="Italian", target_language="English")
    data: Any = load_config("it.yaml").data
    assert (data.source_language, data.target_language) == ("it", "en")
    assert data.corpora[0].source_field == 1
    with pytest.raises(UsageError, match="'Englsh' cannot be used") as refused:
        init("a.tsv", source_language="Englsh")
    assert "a name such as English" in str(refused.value)


def test_the_same_file_twice_is_refused(folder: Path) -> None:
    (folder / "a.en").write_text("".join(f"{en}\n" for en, _ in PAIRS))
    with pytest.raises(DataError, match="are the same file"):
        init("a.en", "./a.en")


def test_a_corpus_of_nul_bytes_is_told_how_to_lose_them(folder: Path) -> None:
    for name in ("n.en", "n.it"):
        (folder / name).write_bytes(b"\0\0\n\0\n")
    with pytest.raises(DataError, match="2 of 2 dropped: a NUL byte") as refusal:
        init("n.en", "n.it")
    assert "tr -d '\\000' < FILE > NEW" in str(refusal.value.hint)


def test_a_corpus_without_a_usable_pair_says_what_was_dropped(folder: Path) -> None:
    (folder / "a.tsv").write_text(table(*((en, en) for en, _ in PAIRS)))
    with pytest.raises(DataError, match="60 of 60 dropped: the source equals the target"):
        init("a.tsv")
    for name in ("a.en", "a.it"):
        (folder / name).write_text("".join(f"{en}\n" for en, _ in PAIRS))
    with pytest.raises(DataError, match="60 of 60 dropped") as refused:
        init("a.en", "a.it")
    assert "--source-field" not in str(refused.value)


@pytest.mark.long
@pytest.mark.parametrize(
    ("start", "between", "end", "indent"),
    [
        ("[", ", ", "]", None),
        ("[\n", ",\n", "\n]\n", None),
        ("", "\n", "\n", None),
        ("", "\n\n", "", None),
        ("[\n", ",\n", "]", 2),
        (" \n[", "\n,", "]", None),
    ],
    ids=["one line", "an object a line", "JSON Lines", "blank lines, no end of line", "indented", "leading commas"],
)
def test_every_shape_of_json_gives_the_same_config(
    folder: Path, start: str, between: str, end: str, indent: int | None
) -> None:
    items = [json.dumps({"id": i, "en": en, "it": it}, indent=indent) for i, (en, it) in enumerate(PAIRS)]
    (folder / "a.json").write_text(start + between.join(items) + end, encoding="utf-8")
    init("a.json")
    data: Any = load_config("it.yaml").data
    assert (data.corpora[0].source_field, data.corpora[0].target_field) == ("en", "it")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"data": [{"en": en, "it": it} for en, it in PAIRS]}, "its field data holds a list of 60"),
        ({f"{en} {i}": it for i, (en, it) in enumerate(PAIRS * 4)}, "it has 240 fields"),
    ],
)
def test_one_json_object_around_all_pairs_is_named(folder: Path, content: Any, told: str, indent: int | None) -> None:
    (folder / "a.json").write_text(json.dumps(content, indent=indent))
    with pytest.raises(DataError, match="the whole file is one JSON object") as refused:
        init("a.json")
    assert told in str(refused.value)
    assert len(str(refused.value)) < 700


def test_line_ends_of_old_macs_are_named_once(folder: Path) -> None:
    text = table(*PAIRS).replace("\n", "\r").encode()
    for name in ("a.csv", "a.tsv", "a.txt", "a.en", "a.it"):
        (folder / name).write_bytes(text)
    for paths in (["a.csv"], ["a.tsv"], ["a.txt"], ["a.en", "a.it"]):
        with pytest.raises(DataError, match="a carriage return alone ends its lines") as refused:
            init(*paths)
        assert "tr '\\r' '\\n'" in str(refused.value)
    assert not Path("it.yaml").exists()


def test_a_file_of_one_column_is_named_with_the_separators_that_are_known(folder: Path) -> None:
    (folder / "a.csv").write_text("".join(f"{en}|{it}\n" for en, it in PAIRS), encoding="utf-8")
    (folder / "b.csv").write_text("My phrases\n" + table(*PAIRS), encoding="utf-8")
    with pytest.raises(DataError, match="it has one column, where two are needed") as refused:
        init("a.csv")
    assert "a vertical bar (|) may be meant" in str(refused.value)
    assert "a comma, a semicolon or a tab separates" in str(refused.value)
    assert "--source-field" not in str(refused.value)
    (folder / "c.csv").write_text('en|it\nHi|Ciao\n"The ""sea"""|"Il ""mare"""\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"c\.csv:3: a quote opens a field here") as refused:
        init("c.csv")
    assert "a vertical bar (|) may be meant" in str(refused.value)
    with pytest.raises(DataError, match=r"its first row has 1 column \(My phrases\)"):
        init("b.csv")


def test_rows_with_more_cells_than_the_first_are_named_before_their_columns_are_judged(folder: Path) -> None:
    rows = [f"Come here {number}, please,Komm her {number}, bitte\n" for number in range(40)]
    (folder / "a.csv").write_text("English,Deutsch\n" + "".join(rows), encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.csv:2: 4 columns, where the first row has 2") as refused:
        init("a.csv")
    assert "a comma inside a sentence" in str(refused.value)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.jsonl"])
def test_binary_data_is_named_as_such_before_its_line_ends_and_encoding_are_judged(folder: Path, name: str) -> None:
    program = b"\x7fELF\2\1\1" + bytes(9) + b"\3\0>\0\1\r\r\r\0\xd0\xf0\xdb, \t" * 100
    (folder / name).write_bytes(program)
    with pytest.raises(DataError, match="binary data, where text in UTF-8 is expected"):
        init(name)


def test_a_wrong_column_is_refused_with_the_one_that_is_meant(folder: Path) -> None:
    (folder / "a.csv").write_text(table(("Inglese", "Italian"), *PAIRS), encoding="utf-8")
    for field in ("inglese", "Ingelse"):
        with pytest.raises(DataError, match=f"no column {field}") as refused:
            init("a.csv", source_field=field)
        assert "did you mean Inglese?" in str(refused.value)
    with pytest.raises(DataError, match="no column 9") as refused:
        init("a.csv", source_field="9")
    assert "its number from 0" in str(refused.value)
    with pytest.raises(DataError, match="are the same column, Italian"):
        init("a.csv", source_field="Italian", target_field="Italian")


def test_only_the_first_of_very_many_columns_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = tuple(f"note{i}" for i in range(300))
    rows = [("English", "Italian", *names), *((*pair, *("7" for _ in names)) for pair in PAIRS)]
    (folder / "a.tsv").write_text(table(*rows), encoding="utf-8")
    init("a.tsv")
    out = capsys.readouterr().out
    assert "  and 282 more" in out
    assert out.count("\n") < 50


def test_columns_of_dates_and_of_gaps_are_called_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        ("English", "Italian", "day", "note"),
        *((*pair, f"2024-01-{i % 28 + 1:02}", "A note." * (i % 7 == 0)) for i, pair in enumerate(PAIRS)),
    ]
    (folder / "a.tsv").write_text(table(*rows), encoding="utf-8")
    init("a.tsv")
    out = capsys.readouterr().out
    assert "day      dates" in out
    assert "note     gaps" in out


def test_a_config_is_no_corpus(folder: Path) -> None:
    (folder / "uk.yaml").write_text("name: uk\n", encoding="utf-8")
    for command in (
        lambda: init_command(["uk.yaml"]),
        lambda: check_command(["uk.yaml"]),
        lambda: init_command(["a.en", "uk.yaml"]),
    ):
        with pytest.raises(UsageError, match=r"uk\.yaml: a config, where the files") as refused:
            command()
        assert "--config uk.yaml" in str(refused.value.hint)
    for command in (
        lambda: init_command(["en-it.yaml"]),
        lambda: check_command(["en-it.yaml"]),
        lambda: check_command(["uk.yaml"], overrides=["data.validation_share=0.1"]),
    ):
        with pytest.raises(UsageError, match=r"\.yaml: a config, where the files"):
            command()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a.tmx", "a translation memory: tfm data import makes text files"),
        ("a.ods", "a spreadsheet: tfm data import"),
        ("a.docx", "a document: save its sentences"),
        ("a.dat", "put a tab between the two sentences"),
    ],
)
def test_a_file_of_another_program_is_refused_with_what_to_do(folder: Path, name: str, hint: str) -> None:
    (folder / name).write_text("<a>\n", encoding="utf-8")
    with pytest.raises(DataError, match="its name does not tell its format") as refused:
        init(name)
    assert hint in str(refused.value.hint)
