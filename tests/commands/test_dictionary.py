"""`tfm translate --replace-unknown --dictionary FILE`."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from transformer_cli.commands.translate_lines import (
    TranslateOptions,
    read_dictionary,
    translate_lines,
)
from transformer_cli.process.errors import DataError, MissingInputError, TfmError, UsageError

from ..decoding.test_details import copier, tokenizer_of


def of_kind(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = SimpleNamespace(translator=copier(tokenizer_of(kind)))
    monkeypatch.setattr("transformer_cli.commands.translate_lines.load_run", lambda *_, **__: loaded)


def test_unknown_words_are_shown_or_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    of_kind("wordlevel", monkeypatch)
    path = tmp_path / "words.tsv"
    path.write_text("zut\tcat\n\nzot \t dog\nzut\tthe second line does not count\n")
    assert read_dictionary(path) == {"zut": "cat", "zot": "dog"}
    for options, expected in (
        (TranslateOptions(), "Il [UNK] [UNK]"),
        (TranslateOptions(replace_unknown=True), "Il zut zat"),
        (TranslateOptions(replace_unknown=True, dictionary=path), "Il cat zat"),
    ):
        translate_lines(["Il zut zat"], None, options)
        assert capfd.readouterr().out == f"{expected}\n"


@pytest.mark.parametrize("line", ["zut", "zut\t", "\tcat", "a\tb\tc"])
def test_a_line_without_two_columns_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(f"a\tb\n{line}\n")
    with pytest.raises(DataError, match=r"words\.tsv:2: \d columns"):
        read_dictionary(path)


@pytest.mark.parametrize(
    ("kind", "options", "problem", "error"),
    [
        ("bpe", TranslateOptions(replace_unknown=True), "this model writes every word in pieces", UsageError),
        ("wordlevel", TranslateOptions(dictionary=Path("a")), "--dictionary works only with --replace", UsageError),
        ("wordlevel", TranslateOptions(replace_unknown=True, dictionary=Path("a")), "no such file", MissingInputError),
    ],
)
def test_wishes_without_effect_are_refused(
    kind: str,
    options: TranslateOptions,
    problem: str,
    error: type[TfmError],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_kind(kind, monkeypatch)
    with pytest.raises(error, match=problem):
        translate_lines(["Il zut"], None, options)
