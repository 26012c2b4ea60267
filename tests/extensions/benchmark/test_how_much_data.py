"""benchmarks/how_much_data.py: smaller corpora drawn from a large one."""

import gzip
import sys
from pathlib import Path

import pytest

from .small_benchmarks import script

how_much_data = script("how_much_data")


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of 50 training pairs and 4 others, which the script reads from the present folder."""
    monkeypatch.chdir(tmp_path)
    for language in ("en", "it"):
        for split, number in (("train", 50), ("dev", 4)):
            lines = "".join(f"{language} {split}\u2028{i}\n" for i in range(number))
            with gzip.open(tmp_path / f"{split}.{language}.gz", "wt", encoding="utf-8") as file:
                file.write(lines)
    return tmp_path


def draw(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["how_much_data.py", ".", "--languages", "en", "it", *words])
    how_much_data.main()


def drawn(folder: Path, split: str) -> list[tuple[str, str]]:
    """The pairs, each as the numbers of its two lines."""
    sides = [
        [line.partition("\u2028")[2] for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
        for path in (folder / f"{split}.en", folder / f"{split}.it")
    ]
    return list(zip(*sides, strict=True))


def test_a_smaller_corpus_lies_within_the_larger_one_and_pairs_stay_pairs(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw(monkeypatch, "--pairs", "7", "20", "--seed", "3")
    few, more = (drawn(corpus / name, "train") for name in ("pairs-7-3", "pairs-20-3"))
    assert few == more[:7]
    assert len(set(more)) == 20
    assert all(source == target for source, target in more)
    assert [*map(int, [source for source, _ in more])] != sorted(int(one) for one, _ in more)


def test_every_corpus_has_all_pairs_for_validation_and_a_seed_of_its_own(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in ("1", "2"):
        draw(monkeypatch, "--pairs", "50", "--seed", seed)
    first, second = corpus / "pairs-50-1", corpus / "pairs-50-2"
    for folder in (first, second):
        assert drawn(folder, "dev") == [(str(i), str(i)) for i in range(4)]
        assert sorted(drawn(folder, "train")) == sorted((str(i), str(i)) for i in range(50))
    assert drawn(first, "train") != drawn(second, "train")


def test_more_pairs_than_there_are_end_the_script_before_it_writes(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        draw(monkeypatch, "--pairs", "10", "51")
    assert "the corpus has 50 pairs" in capsys.readouterr().err
    assert not [*corpus.glob("pairs-*")]


def test_files_of_unequal_length_are_refused(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gzip.open(corpus / "train.it.gz", "at", encoding="utf-8") as file:
        file.write("one more\n")
    with pytest.raises(ValueError, match="longer"):
        draw(monkeypatch, "--pairs", "10")
    assert not [*corpus.glob("pairs-*")]
