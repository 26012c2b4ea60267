"""Files of which nothing is known but their names and content: which of them are a corpus."""

import shlex
from pathlib import Path

import pytest

from transformer_cli.data.unknown_files import GivenFacts, find_corpus
from transformer_cli.process.errors import DataError, UsageError

ENGLISH = "The cat is on the table.\nI do not know what they have done.\n"
ITALIAN = "Il gatto \xe8 sul tavolo.\nNon so che cosa hanno fatto.\n"


def test_a_folder_with_texts_in_two_languages_is_a_corpus_of_them(tmp_path: Path) -> None:
    (tmp_path / "train.en").write_text(ENGLISH, encoding="utf-8")
    (tmp_path / "train.it").write_text(ITALIAN, encoding="utf-8")
    (tmp_path / "table.tsv").write_text("a\tb\n", encoding="utf-8")
    found = find_corpus([str(tmp_path)], GivenFacts())
    [corpus] = found.data.corpora
    sides = {
        found.data.source_language: corpus.source_path,
        found.data.target_language: corpus.target_path,
    }
    assert {language: Path(str(path)).name for language, path in sides.items()} == {
        "en": "train.en",
        "it": "train.it",
    }
    assert found.left_out == ["table.tsv"]


@pytest.mark.parametrize(
    ("given", "languages", "source"),
    [
        (("it", None), ("it", "en"), "train.it"),
        (("eng", None), ("en", "it"), "train.en"),
        (("it-IT", "en-GB"), ("it-IT", "en-GB"), "train.it"),
        ((None, "English"), ("it", "en"), "train.it"),
        (("fr", None), None, ""),
        (("it", "it"), None, ""),
    ],
)
def test_the_languages_of_a_folder_are_those_that_the_user_gives(
    tmp_path: Path,
    given: tuple[str | None, str | None],
    languages: tuple[str, str] | None,
    source: str,
) -> None:
    (tmp_path / "train.en").write_text("The sea is blue.\n", encoding="utf-8")
    (tmp_path / "train.it").write_text("Il mare è blu.\n", encoding="utf-8")
    facts = GivenFacts(source_language=given[0], target_language=given[1])
    if languages is None:
        with pytest.raises(UsageError, match="are in en and it, where"):
            find_corpus([str(tmp_path)], facts)
        return
    data = find_corpus([str(tmp_path)], facts).data
    assert (data.source_language, data.target_language) == languages
    assert data.corpora[0].source_path == str(tmp_path / source)


def test_a_column_is_found_by_a_code_of_three_letters(tmp_path: Path) -> None:
    table = tmp_path / "a.tsv"
    rows = [("Il mare è blu e la casa è rossa.", "The sea is blue and it is not red.")] * 30
    table.write_text("".join(f"{n} {one}\t{n} {two}\n" for n, (one, two) in enumerate(rows)), encoding="utf-8")
    [corpus] = find_corpus([str(table)], GivenFacts(source_language="eng")).data.corpora
    assert (corpus.source_field, corpus.target_field) == (1, 0)


def test_fields_of_plain_text_and_the_encoding_of_a_parquet_file_are_refused(
    tmp_path: Path,
) -> None:
    for name in ("train.en", "train.it", "a.parquet"):
        (tmp_path / name).write_text("a\n", encoding="utf-8")
    fields = GivenFacts(source_field="1")
    both = [str(tmp_path / "train.en"), str(tmp_path / "train.it")]
    for paths, facts in (
        (both, fields),
        ([str(tmp_path)], fields),
        ([str(tmp_path / "a.parquet")], GivenFacts(encoding="cp1252")),
    ):
        with pytest.raises(UsageError, match=r"--(source-field|encoding) .*(are|is) for"):
            find_corpus(paths, facts)


def test_text_in_utf_8_that_shall_be_read_as_another_encoding_is_a_doubt(tmp_path: Path) -> None:
    for name in ("train.en", "train.it"):
        (tmp_path / name).write_text("It is.\n" if name == "train.en" else "È.\n", encoding="utf-8")
    found = find_corpus([str(tmp_path)], GivenFacts(encoding="windows-1252"))
    assert any("train.it: looks like UTF-8" in doubt for doubt in found.doubts)
    (tmp_path / "train.it").write_text("È.\n", encoding="cp1252")
    assert find_corpus([str(tmp_path)], GivenFacts(encoding="windows-1252")).doubts == []


@pytest.mark.parametrize(("ending", "language"), [("en-GB", "en-GB"), ("en_US", "en_US"), ("eng", "en")])
def test_names_of_files_may_have_a_region_or_a_code_of_three_letters(
    tmp_path: Path, ending: str, language: str
) -> None:
    (tmp_path / f"train.{ending}").write_text(ENGLISH, encoding="utf-8")
    (tmp_path / "train.it").write_text(ITALIAN, encoding="utf-8")
    data = find_corpus([str(tmp_path)], GivenFacts(target_language="it")).data
    assert (data.source_language, data.target_language) == (language, "it")


def test_a_folder_with_texts_in_one_language_is_no_corpus(tmp_path: Path) -> None:
    (tmp_path / "train.en").write_text(ENGLISH, encoding="utf-8")
    with pytest.raises(DataError, match=r"no corpus in this folder, found train\.en"):
        find_corpus([str(tmp_path)], GivenFacts())


@pytest.mark.parametrize("names", [("foo.en", "bar.it"), ("en", "it.dat"), ("one.xyz", "two.xyz")])
def test_a_folder_whose_texts_do_not_fit_together_names_its_files_and_their_lengths(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    (tmp_path / names[0]).write_text("A dog.\nA cat.\n", encoding="utf-8")
    (tmp_path / names[1]).write_text("Un cane.\n", encoding="utf-8")
    with pytest.raises(DataError) as refused:
        find_corpus([str(tmp_path)], GivenFacts())
    first, second = sorted([f"{names[0]} (2 lines)", f"{names[1]} (1 line)"])
    assert refused.value.message == f"{tmp_path}: no corpus in this folder, found {first}, {second}"
    paths = sorted(str(tmp_path / name) for name in names)
    assert str(refused.value.hint).endswith(f"two other files can be given by name: tfm init {shlex.join(paths)}")
