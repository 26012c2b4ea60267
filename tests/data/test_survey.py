"""How many pairs each split will have, counted before a run."""

from pathlib import Path

import pytest

from transformer_cli.config.loading import check_settings
from transformer_cli.config.recipe import CorpusSize, recipe
from transformer_cli.data.survey import num_pairs_by_split, survey
from transformer_cli.data.unknown_files import GivenFacts


def test_pairs_of_a_held_out_split_do_not_count_for_training(tmp_path: Path) -> None:
    lines = [f"one {number}\tuno {number}\n" for number in range(9)]
    (tmp_path / "train.tsv").write_text("".join([*lines, " \t \n"]), encoding="utf-8")
    (tmp_path / "held.tsv").write_text("".join(lines[:2]) + "other\taltro\n", encoding="utf-8")
    corpora = [
        {"path": str(tmp_path / "train.tsv"), "split": "train"},
        {"path": str(tmp_path / "held.tsv"), "split": "validation"},
    ]
    data = {"source": "files", "source_language": "en", "target_language": "it", "corpora": corpora}
    settings = {"name": "n", "data": data, "training": {"max_steps": 1, "batch_tokens": 100}}
    config = check_settings(settings, "test")
    assert num_pairs_by_split(config) == {"train": 7, "validation": 3}
    assert list(num_pairs_by_split(config)) == ["train", "validation"]


def test_empty_pairs_of_a_given_split_are_not_counted_as_usable(tmp_path: Path) -> None:
    for split, number in (("train", 30), ("dev", 5)):
        for language, word in (("en", "the house"), ("it", "la casa")):
            lines = [f"{word} {one}\n" for one in range(number)]
            text = "".join([*lines, "\n", "\n", lines[0]])
            (tmp_path / f"{split}.{language}").write_text(text, encoding="utf-8")
    found = survey([str(tmp_path)], GivenFacts())
    assert found.num_pairs == {"train": 30, "validation": 6}
    assert found.dropped["a side is empty (data.cleaning.drop_empty)"] == 4


@pytest.mark.parametrize(
    ("factor", "expected"), [(1, 3.0), (3, 9.0)], ids=["alike", "one language is three times as long"]
)
def test_the_limit_of_the_ratio_of_lengths_fits_the_languages(factor: int, expected: float, tmp_path: Path) -> None:
    """Else a third of the pairs of more than 160 characters of English would be dropped from a corpus in Japanese."""
    long = "the long sentence of a report about many things " * 2
    rows = [(f"{number} {long * factor}", f"{number} {'x' * len(long)}") for number in range(20)]
    (tmp_path / "a.en").write_text("".join(f"{source}\n" for source, _ in rows), encoding="utf-8")
    (tmp_path / "a.ja").write_text("".join(f"{target}\n" for _, target in rows), encoding="utf-8")
    found = survey(
        [str(tmp_path / "a.en"), str(tmp_path / "a.ja")],
        GivenFacts(source_language="en", target_language="ja"),
    )
    assert found.data.cleaning.max_length_ratio == expected
    assert found.num_pairs == {"train": 20}
    size = CorpusSize(20, 100.0, 100.0, (50, 50), (50, 50), True, False)
    text = recipe("a", found.data, size, origin="tfm init")
    assert ("max_length_ratio: 9" in text) is (factor == 3)
