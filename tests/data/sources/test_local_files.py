import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import zstandard
from pyarrow import parquet

from transformer_cli.config.data import FilesData
from transformer_cli.data.pairs import ReadingReport
from transformer_cli.data.sources.local_files import (
    CorpusFiles,
    find_files,
    fingerprint_files,
    read_pair_files,
)
from transformer_cli.process.errors import DataError, MissingInputError

PAIRS = [("The sea.", "Il mare."), ("The sky.", "Il cielo è blu.")]
SOURCE = b"The sea.\nThe sky.\n"
TARGET = "Il mare.\nIl cielo è blu.\n".encode()


def _data(root: Path, **corpus: Any) -> FilesData:
    return FilesData.model_validate({"source": "files", "root": str(root), "corpora": [corpus]})


def _read(root: Path, **corpus: Any) -> list[tuple[str, str]]:
    return list(read_pair_files(_data(root, **corpus), 0, ReadingReport()))


def _write(folder: Path, **contents: bytes | str) -> None:
    for name, content in contents.items():
        file = folder / name.replace("__", "/").replace("_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


TEXTS: dict[str, str] = {
    "tsv": "The sea.\tIl mare.\nThe sky.\tIl cielo è blu.\n",
    "csv": 'The sea.;"Il mare."\nThe sky.;Il cielo è blu.\n',
    "jsonl": '{"en": "The sea.", "it": "Il mare."}\n{"en": "The sky.", "it": "Il cielo è blu."}\n',
}
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("kind", TEXTS)
def test_the_format_and_the_compression_are_read_off_the_name(kind: str, suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"a.{kind}{suffix}").write_bytes(COMPRESS[suffix](TEXTS[kind].encode()))
    assert _read(tmp_path, path=f"a.{kind}{suffix}") == PAIRS


@pytest.mark.parametrize("suffix", COMPRESS)
def test_two_plain_text_files_are_read_whatever_their_names(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"a{suffix}").write_bytes(COMPRESS[suffix](SOURCE))
    (tmp_path / "b.csv").write_bytes(TARGET)
    assert _read(tmp_path, source_path=f"a{suffix}", target_path="b.csv") == PAIRS


def test_a_parquet_file_is_read(tmp_path: Path) -> None:
    rows = [{"en": source, "it": target} for source, target in PAIRS]
    parquet.write_table(pyarrow.table({"translation": rows}), tmp_path / "a.parquet")
    assert _read(tmp_path, path="a.parquet") == PAIRS


def test_the_config_says_the_format_where_the_name_does_not(tmp_path: Path) -> None:
    _write(tmp_path, a_txt=TEXTS["tsv"])
    assert _read(tmp_path, path="a.txt", format="tsv") == PAIRS
    with pytest.raises(DataError, match=r"a\.txt: its name does not tell its format") as caught:
        _read(tmp_path, path="a.txt")
    assert "tfm data import makes text files of a spreadsheet" in str(caught.value.hint)


def test_a_folder_gives_its_tables_and_its_pairs_of_text_and_nothing_else(tmp_path: Path) -> None:
    _write(
        tmp_path,
        b_en=b"b\n",
        b_it=b"B\n",
        b_de=b"x\n",
        a_tsv=b"a\tA\n",
        c_IT_gz=gzip.compress(b"C\n"),
        c_en=b"c\n",
        README_md=b"notes",
        deeper__d_tsv=b"d\tD\n",
    )
    (tmp_path / ".e.tsv").write_bytes(b"e\tE\n")
    assert _read(tmp_path, path=".") == [("a", "A"), ("b", "B"), ("c", "C")]
    assert _read(tmp_path, path=".", format="tsv") == [("a", "A")]
    assert _read(tmp_path, path=".", format="text") == [("b", "B"), ("c", "C")]


def test_a_glob_gives_tables_and_pairs_of_text(tmp_path: Path) -> None:
    _write(tmp_path, x__b_en=b"b\n", x__b_it=b"B\n", y__b_en=b"c\n", y__b_it=b"C\n", y__d_tsv=b"d\tD\n")
    assert _read(tmp_path, path="*/*") == [("b", "B"), ("c", "C"), ("d", "D")]


def test_globs_of_both_sides_are_matched_in_sorted_order(tmp_path: Path) -> None:
    _write(tmp_path, b_en=b"b\n", a_en=b"a\n", b_it=b"B\n", a_it=b"A\n")
    assert _read(tmp_path, source_path="*.en", target_path="*.it") == [("a", "A"), ("b", "B")]
    (tmp_path / "b.it").unlink()
    with pytest.raises(DataError, match=r"\*\.en names 2 files, \*\.it names 1"):
        _read(tmp_path, source_path="*.en", target_path="*.it")


@pytest.mark.parametrize(
    ("source", "target", "counts"),
    [
        (b"a\nb\nc\n", b"A\nB\n", "a.en has 3 lines, .*a.it has 2"),
        (b"a\nb\n", b"A\nB\nC\nD", "a.en has 2 lines, .*a.it has 4"),
        (b"", b"A\n", "a.en has 0 lines, .*a.it has 1"),
        (b"a\n", b"", "a.en has 1 line, .*a.it has 0"),
        (b"a\n\n", b"A\n", "a.en has 2 lines, .*a.it has 1"),
        (b"a\n" * 1200, b"A\n" * 1100, "a.en has 1,200 lines, .*a.it has 1,100"),
    ],
)
def test_unequal_line_counts_stop_with_both_counts(source: bytes, target: bytes, counts: str, tmp_path: Path) -> None:
    _write(tmp_path, a_en=source, a_it=target)
    with pytest.raises(DataError, match=counts) as caught:
        _read(tmp_path, path=".")
    assert caught.value.exit_code == 65


def test_a_last_line_without_its_end_counts(tmp_path: Path) -> None:
    _write(tmp_path, a_en=SOURCE.removesuffix(b"\n"), a_it=TARGET)
    assert _read(tmp_path, path=".") == PAIRS


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_an_empty_file_is_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=rf"data\.corpora\.0 is empty: no sentence pair in .*{name}"):
        _read(tmp_path, path=name)


def test_two_empty_sides_and_a_table_with_nothing_but_names_are_errors(tmp_path: Path) -> None:
    _write(tmp_path, a_en=b"", a_it=b"", b_csv=b"en,it\n")
    with pytest.raises(DataError, match=r"no sentence pair in .*a\.en, .*a\.it"):
        _read(tmp_path, source_path="a.en", target_path="a.it")
    with pytest.raises(DataError, match=r"no sentence pair in .*b\.csv"):
        _read(tmp_path, path="b.csv")


def test_a_text_without_its_other_side_is_an_error(tmp_path: Path) -> None:
    _write(tmp_path, a_en=b"a\n", a_de=b"A\n")
    with pytest.raises(DataError, match=r"a\.en: the other side is missing: .*a\.it"):
        _read(tmp_path, path=".")


def test_one_side_twice_is_an_error(tmp_path: Path) -> None:
    _write(tmp_path, a_en=b"a\n", a_en_gz=gzip.compress(b"a\n"), a_it=b"A\n")
    with pytest.raises(DataError, match=r"a\.en and .*a\.en\.gz: two files for the same side"):
        _read(tmp_path, path=".")


def test_a_folder_without_a_corpus_says_what_is_in_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no corpus in this folder, it is empty"):
        _read(tmp_path, path=".")
    _write(tmp_path, notes_txt=b"", picture_png=b"")
    with pytest.raises(DataError, match=r"found notes\.txt, picture\.png") as caught:
        _read(tmp_path, path=".")
    assert "NAME.en and NAME.it" in str(caught.value.hint)


def test_a_folder_as_one_side_is_an_error(tmp_path: Path) -> None:
    _write(tmp_path, a_en=b"a\n", b__c=b"")
    with pytest.raises(DataError, match=r"/b: a folder, where a file is expected"):
        _read(tmp_path, source_path="a.en", target_path="b")


def test_a_format_of_tables_does_not_go_with_two_sides(tmp_path: Path) -> None:
    _write(tmp_path, a_en=b"a\n", a_it=b"A\n")
    with pytest.raises(DataError, match=r"data\.corpora\.0\.format: csv needs path"):
        _read(tmp_path, source_path="a.en", target_path="a.it", format="csv")


def test_a_missing_file_exits_with_66(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError) as caught:
        _read(tmp_path, path="a.tsv")
    assert caught.value.exit_code == 66


def test_columns_are_those_of_the_config(tmp_path: Path) -> None:
    _write(tmp_path, a_csv="note,Italian,English\nx,Il mare.,The sea.\n")
    assert _read(tmp_path, path="a.csv", source_field="English", target_field="Italian") == [PAIRS[0]]
    assert _read(tmp_path, path="a.csv", source_field=2, target_field=1, has_header=True) == [PAIRS[0]]


def test_what_was_noticed_names_the_file_and_the_line(tmp_path: Path) -> None:
    _write(tmp_path, a_en=b"a\nb\0\n", a_it=b"A\nB\n")
    report = ReadingReport()
    assert list(read_pair_files(_data(tmp_path, path="."), 0, report)) == [("a", "A")]
    assert report.num_rows == 2
    assert report.skipped["a NUL byte"].example == f"{tmp_path}/a.en:2"


def test_files_are_found_in_the_order_in_which_they_are_read(tmp_path: Path) -> None:
    _write(tmp_path, b_tsv=b"a\tb\n", a_en=b"", a_it=b"")
    assert find_files(_data(tmp_path, path="."), 0) == [
        CorpusFiles("text", tmp_path / "a.en", tmp_path / "a.it"),
        CorpusFiles("tsv", tmp_path / "b.tsv", tmp_path / "b.tsv"),
    ]


def test_the_fingerprint_follows_the_content_and_not_the_place(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        _write(tmp_path / folder, a_en=SOURCE, a_it=TARGET, b_tsv=b"a\tb\n")
    fingerprints = [fingerprint_files(_data(tmp_path / name, path="."), 0) for name in ("one", "two")]
    assert list(fingerprints[0]) == ["a.en", "a.it", "b.tsv"]
    assert fingerprints[0] == fingerprints[1]
    _write(tmp_path / "two", a_it=TARGET + b"\n")
    changed = fingerprint_files(_data(tmp_path / "two", path="."), 0)
    assert {name for name in changed if changed[name] != fingerprints[0][name]} == {"a.it"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a.xlsx", "a spreadsheet: tfm data import makes text files"),
        ("a.tmx", "a translation memory: tfm data import makes text files"),
        ("a.TMX.gz", "a translation memory: tfm data import makes text files"),
        ("ita-eng.zip", "an archive: unpack it"),
        ("a.tar.gz", "an archive: unpack it"),
        ("a.docx", "a document"),
        ("a.dat", "set format to tsv, csv, jsonl or parquet"),
    ],
)
def test_a_file_of_another_program_is_refused_with_what_to_do(name: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(DataError, match="does not tell its format") as refused:
        find_files(_data(tmp_path, path=name), 0)
    assert hint in str(refused.value.hint)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PK\x03\x04....", "tfm data import makes text files"),
        (b"\xd0\xcf\x11\xe0....", "plain text (UTF-8), a spreadsheet as CSV"),
        (b'\xef\xbb\xbf<?xml version="1.0"?><tmx/>', "XML, such as a translation memory"),
        ("sea\tmare\n".encode("utf-16"), "UTF-16 text"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.json"])
def test_a_file_that_is_no_text_is_refused_whatever_its_name(
    name: str, content: bytes, kind: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=r"not text but|UTF-16") as refused:
        list(read_pair_files(_data(tmp_path, path=name), 0, ReadingReport()))
    assert kind in str(refused.value)
    assert DataError.usual_hint not in str(refused.value)


def test_a_json_file_of_one_array_is_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[\n  {"en": "sea", "it": "mare"}\n]\n', encoding="utf-8")
    found = list(read_pair_files(_data(tmp_path, path="a.json"), 0, ReadingReport()))
    assert found == [("sea", "mare")]
