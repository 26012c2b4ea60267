# ruff: noqa: RUF001 - letters of many scripts
"""Corpora that are not UTF-8: read in the encoding that they name, and never guessed by a training."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from transformer_cli.config.data import FileCorpus, FilesData
from transformer_cli.data import preparation
from transformer_cli.data.pairs import ReadingReport
from transformer_cli.data.sources.local_files import read_pair_files
from transformer_cli.data.unknown_files import encoding_of
from transformer_cli.process.errors import DataError, UsageError

PAIRS = {
    "windows-1252": [("The café.", "Le café."), ("A “quote”;", "Où est l'été ?\tnon"), ("x", "naïf €")],
    "windows-1250": [("The boat.", "Żółta łódź"), ("Good day.", "Dzień dobry, proszę.")],
    "windows-1251": [("Good morning.", "Доброе утро."), ("The town.", "Большой город")],
    "shift_jis": [
        ("The station.", "駅はどこですか。"),
        ("A table, a chart.", "表とソの能力"),
    ],  # second bytes are | and \\
    "euc-kr": [("Hello.", "안녕하세요.")],
    "gb18030": [("Hello.", "你好吗？")],
    "utf-16": [("Hello.", "Perché 你 🙂")],
}


def quoted(text: str) -> str:
    return f'"{text}"'


def contents(pairs: list[tuple[str, str]]) -> dict[str, str]:
    rows = [{"en": source, "xx": target} for source, target in pairs]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    plain = [(source, target.replace("\t", " ")) for source, target in pairs]
    return {
        "a.csv": "".join(f"{quoted(source)};{quoted(target)}\r\n" for source, target in pairs),
        "a.tsv": "".join(f"{source}\t{target}\n" for source, target in plain),
        "a.jsonl": "".join(f"{line}\n" for line in lines),
        "a.json": f"[{', '.join(lines)}]\n",
        "a.en": "".join(f"{source}\n" for source, _ in plain),
        "a.xx": "".join(f"{target}\n" for _, target in plain),
    }


def read(folder: Path, undecodable: str = "error", **corpus: Any) -> list[tuple[str, str]]:
    corpora = [corpus]
    data = FilesData.model_validate(
        {"source": "files", "root": str(folder), "corpora": corpora, "undecodable": undecodable}
    )
    return list(read_pair_files(data, 0, ReadingReport()))


@pytest.mark.parametrize("encoding", PAIRS)
def test_each_format_gives_the_pairs_that_it_gives_in_utf_8(tmp_path: Path, encoding: str) -> None:
    for name, text in contents(PAIRS[encoding]).items():
        (tmp_path / name).write_bytes(text.encode(encoding))
        (tmp_path / f"utf8.{name}").write_bytes(text.encode())
    for name in ("a.csv", "a.tsv", "a.jsonl", "a.json"):
        wanted = read(tmp_path, path=f"utf8.{name}")
        assert len(wanted) == len(PAIRS[encoding])
        assert read(tmp_path, path=name, encoding=encoding) == wanted
    wanted = read(tmp_path, source_path="utf8.a.en", target_path="utf8.a.xx")
    assert read(tmp_path, source_path="a.en", target_path="a.xx", encoding=encoding) == wanted


def test_a_training_never_guesses_and_its_hint_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes("sea\tété\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"0xE9\) is not UTF-8") as refusal:
        read(tmp_path, path="a.tsv")
    assert "encoding: windows-1252 under data.corpora" in str(refusal.value.hint)


def test_bytes_that_the_encoding_does_not_have_follow_the_setting_for_them(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"sea\tcaf\xe9\nsky\tb\x81d\n")
    with pytest.raises(DataError, match=r"a\.tsv:2: character 2 of the sentence is not windows-1252"):
        read(tmp_path, path="a.tsv", encoding="windows-1252")
    assert read(tmp_path, "skip", path="a.tsv", encoding="windows-1252") == [("sea", "café")]
    assert read(tmp_path, "replace", path="a.tsv", encoding="windows-1252")[1] == (
        "sky",
        "b\ufffdd",
    )


def test_damage_in_a_multi_byte_encoding_never_becomes_another_letter(tmp_path: Path) -> None:
    # The second line is UTF-8, which is not valid Shift JIS; it must not be read as UTF-8 either.
    (tmp_path / "a.tsv").write_bytes("sea\t海\n".encode("shift_jis") + "sky\té\n".encode())
    found = read(tmp_path, "replace", path="a.tsv", encoding="shift_jis")
    assert found[0] == ("sea", "海")
    assert "é" not in found[1][1]


def test_an_unknown_encoding_and_one_for_parquet_are_refused() -> None:
    for settings in ({"encoding": "latin-99"}, {"encoding": "rot13"}):
        with pytest.raises(ValidationError, match="no such encoding is known"):
            FileCorpus(path="a.csv", **settings)
    with pytest.raises(ValidationError, match="always UTF-8"):
        FileCorpus(path="a.parquet", format="parquet", encoding="windows-1252")


def test_data_that_were_prepared_before_the_setting_existed_are_still_right() -> None:
    now = {"data.corpora": json.dumps([{"path": "a"}]), "data.corpora.0.encoding": "null"}
    before = {"data.corpora": json.dumps([{"path": "a"}])}
    assert preparation.changes(before, now) == []


def test_files_are_found_in_one_encoding_or_refused(tmp_path: Path) -> None:
    german, polish = "Die Mädchen hören schöne Lieder.\n", "Żółta łódź płynie. Dzień dobry.\n"
    paths = [tmp_path / "a.de", tmp_path / "a.pl"]
    for path, text in zip(paths, (german, polish), strict=True):
        path.write_bytes(text.encode("windows-1250"))
    found = encoding_of(paths, None)
    assert found.name == "windows-1250"  # of the German file alone, windows-1252 gives the same text
    assert found.doubt is not None
    paths[0].write_bytes("Доброе утро, как ваши дела?\n".encode("windows-1251"))
    with pytest.raises(DataError, match=r"in different encodings|can be read in"):
        encoding_of(paths, None)
    paths[0].write_text(german, encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.de is UTF-8, and .*a\.pl is not"):
        encoding_of(paths, None)
    paths[1].write_text("plain ASCII\n")
    assert encoding_of(paths, None) == (None, None)
    assert encoding_of(paths, "UTF8").name is None
    with pytest.raises(UsageError, match="--encoding klingon: no such encoding"):
        encoding_of(paths, "klingon")


def test_lines_of_both_kinds_in_one_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(("sea\tété\n" * 5).encode() + ("sky\tété\n" * 5).encode("cp1252"))
    with pytest.raises(DataError, match="some of its lines are UTF-8, and others are not"):
        encoding_of([path], None)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_an_encoding_whose_mark_is_missing_is_refused(tmp_path: Path, name: str, encoding: str) -> None:
    (tmp_path / name).write_text(contents(PAIRS["windows-1252"])[name], encoding="utf-8")
    with pytest.raises(DataError, match=f"{name}: the encoding {encoding.replace('-', '.')} needs a byte-order mark"):
        read(tmp_path, path=name, encoding=encoding, source_field="en", target_field="xx")
