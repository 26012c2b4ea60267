"""Reading a glossary: what is accepted, and what each refusal says."""

import gzip
from pathlib import Path

import pytest

from transformer_cli.decoding.glossary import Glossary, GlossaryEntry, read_glossary
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
        (b"dog\tH\xfcnd", r"terms\.tsv:2: byte 6 of the line \(0xFC\) is not UTF-8"),
        (b"dog\t" + b"x" * (1 << 20), r"terms\.tsv:2: a line of more than 1,048,576 bytes"),
        ("dog\tHund".encode("utf-16"), r"is not UTF-8"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path: Path, line: bytes, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        read_glossary(written(tmp_path, b"cat\tKatze\n" + line + b"\n"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"nowhere\.tsv"):
        read_glossary(tmp_path / "nowhere.tsv")
