"""Files of which nothing is known but their names and content: which of them are a corpus."""

from pathlib import Path

import pytest

from transformer_cli.data.unknown_files import GivenFacts, find_corpus
from transformer_cli.process.errors import DataError

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


def test_a_folder_with_texts_in_one_language_is_no_corpus(tmp_path: Path) -> None:
    (tmp_path / "train.en").write_text(ENGLISH, encoding="utf-8")
    with pytest.raises(DataError, match=r"no corpus in this folder, found train\.en"):
        find_corpus([str(tmp_path)], GivenFacts())
