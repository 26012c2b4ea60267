"""`tfm translate --replace-unknown --dictionary FILE`."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from transformer_cli.commands.translate import run_translation
from transformer_cli.commands.translating.dictionary import read_dictionary
from transformer_cli.commands.translating.wishes import Wishes
from transformer_cli.process.errors import DataError, MissingInputError, TfmError, UsageError

from ...decoding.test_details import copier, tokenizer_of

GIVEN: dict[str, Any] = {"run": None, "overrides": (), "as_json": False}


def of_kind(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = SimpleNamespace(translator=copier(tokenizer_of(kind)))
    monkeypatch.setattr("transformer_cli.commands.translate.load_run", lambda *_, **__: loaded)


def test_unknown_words_are_shown_or_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    of_kind("wordlevel", monkeypatch)
    path = tmp_path / "words.tsv"
    path.write_text("zut\tcat\n\nzot \t dog\nzut\tthe second line does not count\n")
    assert read_dictionary(path) == {"zut": "cat", "zot": "dog"}
    for wishes, expected in (
        (Wishes(), "Il [UNK] [UNK]"),
        (Wishes(replace_unknown=True), "Il zut zat"),
        (Wishes(replace_unknown=True, dictionary=path), "Il cat zat"),
    ):
        run_translation(["Il zut zat"], None, wishes=wishes, **GIVEN)
        assert capfd.readouterr().out == f"{expected}\n"


@pytest.mark.parametrize("line", ["zut", "zut\t", "\tcat", "a\tb\tc"])
def test_a_line_without_two_columns_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(f"a\tb\n{line}\n")
    with pytest.raises(DataError, match=r"words\.tsv:2: \d columns"):
        read_dictionary(path)


@pytest.mark.parametrize(
    ("kind", "wishes", "problem", "error"),
    [
        ("bpe", Wishes(replace_unknown=True), "this model writes every word in pieces", UsageError),
        ("wordlevel", Wishes(dictionary=Path("a")), "--dictionary works only with --replace", UsageError),
        ("wordlevel", Wishes(replace_unknown=True, dictionary=Path("a")), "no such file", MissingInputError),
    ],
)  # fmt: skip
def test_wishes_without_effect_are_refused(
    kind: str,
    wishes: Wishes,
    problem: str,
    error: type[TfmError],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_kind(kind, monkeypatch)
    with pytest.raises(error, match=problem):
        run_translation(["Il zut"], None, wishes=wishes, **GIVEN)
