"""`tfm likelihood`: two columns for each pair of lines, in their order."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from transformer_cli.commands.likelihood import likelihood_command
from transformer_cli.decoding.given_pairs import pair_likelihoods
from transformer_cli.process.errors import DataError, MissingInputError, UsageError

from ..decoding.small_translators import tokenizer_of_words, translator


@pytest.fixture(autouse=True)
def _run_of_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = SimpleNamespace(translator=translator(tokenizer_of_words()))
    monkeypatch.setattr("transformer_cli.decoding.loading.load_run", lambda *_, **__: loaded)
    Path("a.en").write_text("uno due\n\ntre\n")
    Path("a.it").write_text("tre\nuno\nquattro cinque\n")


def test_each_pair_of_lines_gives_one_line(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    expected = pair_likelihoods(
        translator(tokenizer_of_words()),
        [("uno due", "tre"), ("", "uno"), ("tre", "quattro cinque")],
    )
    likelihood_command(Path("a.en"), Path("a.it"))
    rows = [line.split("\t") for line in capfdbinary.readouterr().out.decode().splitlines()]
    assert [int(row[1]) for row in rows] == [one.num_tokens for one in expected] == [2, 2, 3]
    values = [one.log_probability for one in expected]
    assert [float(row[0]) for row in rows] == pytest.approx(values, abs=1e-5)
    likelihood_command(Path("a.en"), Path("a.it"), as_json=True)
    objects = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [one["num_tokens"] for one in objects] == [2, 2, 3]
    assert [one["log_probability"] for one in objects] == pytest.approx(values, abs=1e-5)


def test_one_side_may_come_through_standard_input(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    likelihood_command(Path("a.en"), Path("a.it"))
    expected = capfdbinary.readouterr().out
    with Path("a.it").open() as file:
        monkeypatch.setattr("os.read", lambda number, size: _read(file, size))
        likelihood_command(Path("a.en"), Path("-"))
    assert capfdbinary.readouterr().out == expected
    with pytest.raises(UsageError, match="name the same input"):
        likelihood_command(Path("-"), Path("-"))


def _read(file: io.TextIOBase, size: int) -> bytes:
    return file.read(size).encode()


@pytest.mark.parametrize(
    ("lines", "message"),
    [(2, r"a\.it has 2 lines, but a\.en has more"), (4, r"a\.en has 3 lines, but a\.it has more")],
)
def test_different_numbers_of_lines_are_an_error(lines: int, message: str) -> None:
    Path("a.it").write_text("uno\n" * lines)
    with pytest.raises(DataError, match=message):
        likelihood_command(Path("a.en"), Path("a.it"))


def test_a_file_that_is_not_there_is_named_with_its_option() -> None:
    with pytest.raises(MissingInputError, match=r"b\.it: no such file") as refusal:
        likelihood_command(Path("a.en"), Path("b.it"))
    assert str(refusal.value.hint).startswith("--target takes a text file")


def test_empty_files_are_an_error_that_says_so() -> None:
    Path("a.en").write_text("")
    Path("a.it").write_text("")
    with pytest.raises(DataError, match=r"a\.en is empty, so there is no pair"):
        likelihood_command(Path("a.en"), Path("a.it"))
