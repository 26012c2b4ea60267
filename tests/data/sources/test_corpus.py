from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from transformer_cli.config import DataConfig
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.sources.corpus import has_split, read_pairs, source_digests
from transformer_cli.process.errors import DataError


def _config(**settings: Any) -> DataConfig:
    return TypeAdapter[DataConfig](DataConfig).validate_python(settings)


def _files(root: Path, *corpora: dict[str, Any], **settings: Any) -> DataConfig:
    return _config(source="files", root=str(root), corpora=list(corpora), **settings)


def _pairs(data: DataConfig, split: Any = "train", report: ReadingReport | None = None) -> list[SentencePair]:
    return list(read_pairs(data, split, seed=1, report=report))


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    for name, num_pairs in (("big", 2000), ("small", 30), ("held", 7)):
        rows = (f"{name} {number}\t{name.upper()} {number}\n" for number in range(num_pairs))
        (tmp_path / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")
    return tmp_path


def test_pairs_know_their_corpus(corpora: Path) -> None:
    data = _files(
        corpora,
        {"path": "small.tsv", "split": "train"},
        {"path": "held.tsv", "split": "test"},
        {"path": "held.tsv", "split": "train", "weight": 2.0},
    )
    assert [pair.corpus for pair in _pairs(data)] == [0] * 30 + [2] * 7
    assert [pair.corpus for pair in _pairs(data, "test")] == [1] * 7


def test_given_splits_are_taken_as_they_are(corpora: Path) -> None:
    data = _files(corpora, {"path": "big.tsv", "split": "train"}, {"path": "held.tsv", "split": "validation"})
    assert len(_pairs(data)) == 2000
    assert len(_pairs(data, "validation")) == 7


def test_drawn_splits_share_out_every_pair_once(corpora: Path) -> None:
    data = _files(corpora, {"path": "big.tsv"}, validation_share=0.1, test_share=0.2)
    splits = [_pairs(data, split) for split in ("train", "validation", "test")]
    assert [len(pairs) > 100 for pairs in splits] == [True, True, True]
    together = sorted(pair for pairs in splits for pair in pairs)
    everything = sorted(_pairs(_files(corpora, {"path": "big.tsv", "split": "train"})))
    assert together == everything


@pytest.mark.long
def test_adding_data_moves_no_pair_to_another_split(corpora: Path) -> None:
    before = _files(corpora, {"path": "big.tsv"}, validation_share=0.2, test_share=0.2)
    splits = {split: set(_pairs(before, split)) for split in ("train", "validation", "test")}
    content = (corpora / "big.tsv").read_text(encoding="utf-8")
    (corpora / "big.tsv").write_text("new\tnuovo\n" + content + "other\taltro\n", encoding="utf-8")
    after = _files(corpora, {"path": "big.tsv"}, {"path": "small.tsv"}, validation_share=0.2, test_share=0.2)
    for split, pairs in splits.items():
        assert pairs <= set(_pairs(after, split))


def test_drawn_splits_do_not_depend_on_the_seed(corpora: Path) -> None:
    data = _files(corpora, {"path": "small.tsv"}, validation_share=0.5)
    assert list(read_pairs(data, "validation", seed=1)) == list(read_pairs(data, "validation", seed=2))


def test_reading_streams(corpora: Path) -> None:
    (corpora / "big.tsv").write_bytes(b"a\tb\n" * 5 + b"no second column\n")
    report = ReadingReport()
    pairs = read_pairs(_files(corpora, {"path": "big.tsv", "split": "train"}), "train", seed=1, report=report)
    assert next(pairs) == SentencePair("a", "b", 0)
    assert report.num_rows == 1
    with pytest.raises(DataError, match=r"big\.tsv:6"):
        list(pairs)


def test_a_side_of_numbers_gives_one_warning_with_the_settings_that_choose_columns(
    corpora: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [f"{number}\tsentence\t{number * 7}\tfrase {number}\n" for number in range(150)]
    (corpora / "tatoeba.tsv").write_text("".join(rows), encoding="utf-8")
    ids, text = {"source_field": 0, "target_field": 2}, {"source_field": 1, "target_field": 3}
    for split in ("train", "validation"):
        _pairs(_files(corpora, {"path": "tatoeba.tsv", **ids}), split)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2
    assert "data.corpora.0 (tatoeba.tsv): the source is a number in 100 of the first 100" in warnings[0]
    assert "the target is a number" in warnings[1]
    assert "set source_field and target_field" in warnings[1]
    caplog.clear()
    _pairs(_files(corpora, {"path": "tatoeba.tsv", **text}))
    _pairs(_files(corpora, {"path": "small.tsv"}))
    assert not caplog.records


def test_a_split_that_is_not_drawn_reads_no_corpus_without_a_split(corpora: Path) -> None:
    held_out = {"path": "held.tsv", "split": "test"}
    data = _files(corpora, {"path": "gone.tsv"}, held_out, test_share=0.0)
    assert len(_pairs(data, "test")) == 7


def test_a_split_that_the_config_does_not_have_is_an_error_that_says_what_to_do(
    corpora: Path,
) -> None:
    with pytest.raises(DataError, match="the config has no train split") as caught:
        _pairs(_files(corpora, {"path": "held.tsv", "split": "test"}))
    assert "split: train under data.corpora" in str(caught.value.hint)
    data = _files(corpora, {"path": "held.tsv"}, test_share=0.0)
    with pytest.raises(DataError, match="the config has no test split") as caught:
        _pairs(data, "test")
    assert "data.test_share" in str(caught.value.hint)


def test_the_built_in_corpus_is_read_like_any_other() -> None:
    data = _config(source="phrasebook", num_pairs=20)
    report = ReadingReport()
    pairs = _pairs(data, report=report)
    assert len(set(pairs)) == report.num_read == 20


SPLITS = ("train", "validation", "test")
SEQUENCES = {"source": "sequences", "num_pairs": 50}


@pytest.mark.parametrize(
    ("settings", "splits"),
    [
        ({"source": "phrasebook"}, SPLITS),
        (SEQUENCES, SPLITS),
        ({"source": "files", "corpora": [{"path": "a"}]}, SPLITS),
        (
            {"source": "files", "corpora": [{"path": "a"}], "test_share": 0.0},
            ("train", "validation"),
        ),
        ({"source": "files", "corpora": [{"path": "a", "split": "train"}]}, ("train",)),
        (
            {
                "source": "files",
                "corpora": [{"path": "a", "split": "train"}, {"path": "b", "split": "test"}],
            },
            ("train", "test"),
        ),
        (
            {
                "source": "hub",
                "corpora": [{"dataset": "a"}, {"dataset": "b", "split": "validation"}],
                "validation_share": 0.0,
                "test_share": 0.0,
            },
            ("train", "validation"),
        ),
        ({"source": "hub", "corpora": [{"dataset": "a", "split": "test"}]}, ("test",)),
    ],
)
def test_a_split_exists_where_the_config_says_what_it_is_made_of(
    settings: dict[str, Any], splits: tuple[str, ...]
) -> None:
    data = _config(**settings)
    assert tuple(split for split in SPLITS if has_split(data, split)) == splits  # type: ignore[arg-type]


def test_sequences_are_read_like_any_corpus_and_do_not_leak() -> None:
    data = _config(**SEQUENCES)
    report = ReadingReport()
    pairs = _pairs(data, report=report)
    assert len(pairs) == report.num_read == 50
    assert pairs[0].source == pairs[0].target


def test_fingerprints_are_sha_256_and_change_with_what_they_name(corpora: Path) -> None:
    data = _files(corpora, {"path": "small.tsv"}, {"path": "held.tsv", "split": "test"})
    before = source_digests(data, seed=1)
    assert list(before) == ["small.tsv", "held.tsv"]
    assert all(len(digest) == 64 for digest in before.values())
    assert source_digests(data, seed=2) == before
    (corpora / "held.tsv").write_bytes(b"a\tb\n")
    after = source_digests(data, seed=1)
    assert after["small.tsv"] == before["small.tsv"]
    assert after["held.tsv"] != before["held.tsv"]


def test_fingerprints_of_what_is_generated_change_with_the_seed() -> None:
    sequences = _config(**SEQUENCES)
    assert list(source_digests(sequences, seed=1)) == ["sequences: copy"]
    assert source_digests(sequences, seed=1) != source_digests(sequences, seed=2)
    hub = _config(source="hub", corpora=[{"dataset": "a/b", "config": "en-it"}])
    assert list(source_digests(hub, seed=1)) == ["a/b en-it train"]
