from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from transformer_cli.config import Config, FilesData
from transformer_cli.data.pairs import CleaningReport, ReadingReport, SentencePair, pair_digest
from transformer_cli.data.preparation import prepare_data
from transformer_cli.data.selection import (
    MAX_DRAWN_TO_VALIDATE,
    all_held_out_pairs,
    held_out_digests,
    held_out_pairs,
    pairs_to_validate,
)
from transformer_cli.data.sources.corpus import (
    HeldOutSplit,
    HeldOutSplits,
    KeptPairs,
    read_held_out,
    read_pairs,
)
from transformer_cli.process.errors import DataError


def config_of(data: dict[str, Any]) -> Config:
    training = {"max_steps": 1, "batch_sentences": 2}
    return Config.model_validate({"name": "a", "data": data, "training": training})


def write(folder: Path, name: str, rows: list[tuple[str, str]]) -> dict[str, Any]:
    text = "".join(f"{source}\t{target}\n" for source, target in rows)
    (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    return {"path": f"{name}.tsv"}


ROWS = [
    ("Cafe\u0301.", "Coffee."),
    ("ciao", "ciao"),
    ("ciao", "ciao"),
    ("", "nothing"),
    ("uno", "one " * 300),
]


def test_a_corpus_that_is_a_split_keeps_all_but_empty_pairs(tmp_path: Path) -> None:
    corpora = [
        write(tmp_path, "train", [("a", "b")]),
        write(tmp_path, "val", ROWS) | {"split": "validation"},
    ]
    config = config_of({"source": "files", "root": str(tmp_path), "corpora": corpora})
    found = all_held_out_pairs(config)["validation"]
    assert held_out_pairs(config, "validation") == found.pairs
    assert found.pairs == [
        SentencePair("Caf\u00e9.", "Coffee.", 1),
        SentencePair("ciao", "ciao", 1),
        SentencePair("ciao", "ciao", 1),
        SentencePair("uno", ("one " * 300).strip(), 1),
    ]
    assert found.cleaning.dropped["drop_empty"].count == 1


@pytest.mark.parametrize("max_bytes", [64 << 20, 9000, 0])
def test_kept_pairs_are_those_of_a_second_reading(tmp_path: Path, max_bytes: int) -> None:
    rows = [(f"one {n}", f"uno {n}") for n in range(300)]
    corpora = [
        write(tmp_path, "a", [*rows, ("\0", "nul")]),
        write(tmp_path, "val", ROWS) | {"split": "validation"},
        write(tmp_path, "more", rows[:7]) | {"split": "train"},
        write(tmp_path, "b", rows[:90]),
    ]
    settings = {"root": str(tmp_path), "corpora": corpora, "both_directions": True}
    shares = {"validation_share": 0.2, "test_share": 0.1}
    languages = {"source_language": "en", "target_language": "it"}
    data = TypeAdapter(FilesData).validate_python({"source": "files", **settings, **shares, **languages})
    kept, expected, report = KeptPairs(max_bytes), ReadingReport(), ReadingReport()
    held_out = read_held_out(data, ["validation", "test"], seed=1, kept=kept)
    assert sorted(kept.readings) == {64 << 20: [0, 3], 9000: [3], 0: []}[max_bytes]
    for split, found in held_out.items():
        alone = ReadingReport()
        assert found.pairs == list(read_pairs(data, split, seed=1, report=alone))
        merged = ReadingReport(split)
        merged.add(found.reading)
        merged.add(found.drawn_reading)
        assert sorted(merged.table()) == sorted(alone.table())
    pairs = list(read_pairs(data, "train", seed=1, report=expected))
    if max_bytes == 64 << 20:  # nothing is left to be read but what is training data alone
        (tmp_path / "a.tsv").unlink()
        (tmp_path / "b.tsv").unlink()
    assert list(read_pairs(data, "train", seed=1, report=report, kept=kept)) == pairs
    assert report.table() == expected.table()


def test_a_drawn_share_of_a_large_corpus_is_not_validated_on_as_a_whole(tmp_path: Path) -> None:
    """All given pairs are used, and a fixed number of drawn ones from the whole of the corpus, in order."""
    corpora = [{"path": "all.tsv"}, {"path": "given.tsv", "split": "validation"}]
    config = config_of({"source": "files", "root": str(tmp_path), "corpora": corpora})
    drawn = [SentencePair(f"s{n}", f"t{n}", 0) for n in range(MAX_DRAWN_TO_VALIDATE * 7 + 3)]
    given = [SentencePair(f"g{n}", f"t{n}", 1) for n in range(MAX_DRAWN_TO_VALIDATE + 5)]
    used = pairs_to_validate(config, [*drawn, *given])
    is_used = set(used)
    assert used == [pair for pair in [*drawn, *given] if pair in is_used]
    assert used[MAX_DRAWN_TO_VALIDATE:] == given
    numbers = [int(pair.source[1:]) for pair in used[:MAX_DRAWN_TO_VALIDATE]]
    gaps = {after - before for before, after in pairwise(numbers)}
    assert gaps <= {7, 8}, "evenly spread"
    assert (numbers[0], len(drawn) - numbers[-1] < 9) == (0, True)


def test_a_small_drawn_split_and_a_number_that_is_set_are_kept(tmp_path: Path) -> None:
    config = config_of({"source": "files", "root": str(tmp_path), "corpora": [{"path": "a.tsv"}]})
    drawn = [SentencePair(f"s{n}", f"t{n}", 0) for n in range(MAX_DRAWN_TO_VALIDATE + 1)]
    assert pairs_to_validate(config, drawn[1:]) == drawn[1:]
    for number in (2, len(drawn)):
        settings = config.validation.model_copy(update={"max_sentences": number})
        asked = config.model_copy(update={"validation": settings})
        assert pairs_to_validate(asked, drawn) == drawn[:number], "the first ones, however many"


def test_drawn_pairs_are_cleaned_like_training_pairs(tmp_path: Path) -> None:
    corpora = [write(tmp_path, "all", [*ROWS, *((f"s{n}", f"t{n}") for n in range(200))])]
    data = {"source": "files", "root": str(tmp_path), "corpora": corpora, "validation_share": 0.5}
    pairs = held_out_pairs(config_of(data), "validation")
    assert 50 < len(pairs) < 150
    assert not any(pair.source == pair.target or len(pair.target) > 1000 for pair in pairs)


def test_a_split_that_the_config_does_not_have_is_an_error(tmp_path: Path) -> None:
    corpora = [write(tmp_path, "train", [("a", "b")]) | {"split": "train"}]
    config = config_of({"source": "files", "root": str(tmp_path), "corpora": corpora})
    with pytest.raises(DataError, match="no test pairs") as refusal:
        held_out_pairs(config, "test")
    # No pair is drawn from a corpus with a split, so raising a share does not help.
    assert refusal.value.hint == "add a corpus with split: test under data.corpora"


DIFFERENT = [(f"s{number}", f"t{number}") for number in range(50)]


@pytest.mark.parametrize(
    ("rows", "shares", "hint"),
    [
        (DIFFERENT, {"validation_share": 0.0}, "raise data.validation_share (now 0) so that"),
        (DIFFERENT, {"validation_share": 1e-9}, "raise data.validation_share (now 1e-09) so that"),
        (DIFFERENT[:1] * 50, {}, "too few different pairs to draw this split from: 1; equal pairs"),
        (DIFFERENT[:3], {"validation_share": 1e-9}, "to draw this split from: 3; equal"),
        (
            [("", f"t{number}") for number in range(50)],
            {"validation_share": 0.5},
            "every pair drawn for this split was dropped; look at the rules under data.cleaning",
        ),
    ],
)
def test_the_hint_for_an_empty_drawn_split_names_the_cause(
    rows: list[tuple[str, str]], shares: dict[str, float], hint: str, tmp_path: Path
) -> None:
    files = {"source": "files", "root": str(tmp_path), "corpora": [write(tmp_path, "all", rows)]}
    with pytest.raises(DataError, match="no validation pairs") as refusal:
        all_held_out_pairs(config_of(files | shares))
    assert hint in str(refusal.value.hint)
    assert "add a corpus with split: validation" in str(refusal.value.hint)
    is_raising_told = "raise data.validation_share" in str(refusal.value.hint)
    assert is_raising_told == ("to draw this split from" not in hint)


def test_all_held_out_splits_are_those_that_the_config_has(tmp_path: Path) -> None:
    corpora = [
        write(tmp_path, "train", [("a", "b")]),
        write(tmp_path, "val", [("c", "d"), ("", "")]) | {"split": "validation"},
        write(tmp_path, "test", [("e", "f")]) | {"split": "test"},
    ]
    shares = {"validation_share": 0.0, "test_share": 0.0}
    data = {"source": "files", "root": str(tmp_path), "corpora": corpora} | shares
    found = all_held_out_pairs(config_of(data))
    assert {split: one.pairs for split, one in found.items()} == {
        "validation": [SentencePair("c", "d", 1)],
        "test": [SentencePair("e", "f", 2)],
    }
    assert found["validation"].cleaning.dropped["drop_empty"].count == 1
    assert set(all_held_out_pairs(config_of(data | {"corpora": corpora[:2]}))) == {"validation"}
    with pytest.raises(DataError, match="no validation pairs"):
        all_held_out_pairs(config_of(data | {"corpora": corpora[::2]}))


def test_digests_mark_held_out_pairs_unless_the_task_is_to_memorise(tmp_path: Path) -> None:
    pairs = [SentencePair("c", "d"), SentencePair("Caf\u00e9", "f")]
    held_out: HeldOutSplits = {
        split: HeldOutSplit([pair], ReadingReport(), ReadingReport(), CleaningReport())
        for split, pair in zip(("validation", "test"), pairs, strict=True)
    }
    for data in ({"source": "files", "corpora": [{"path": "a.tsv"}]}, {"source": "phrasebook"}):
        assert held_out_digests(config_of(data), held_out) == {pair_digest(pair) for pair in pairs}
    memorised = config_of({"source": "sequences", "task": "memorise"})
    assert held_out_digests(memorised, held_out) == set()


def test_a_small_corpus_may_have_no_test_pair(tmp_path: Path) -> None:
    """If no test pair was drawn, training continues; only a request for the test split is an error."""
    train = write(tmp_path, "a", [("a b", "x y"), ("c d", "z w")])
    validation = write(tmp_path, "v", [("e f", "u v")]) | {"split": "validation"}
    shares = {"validation_share": 0.0, "test_share": 1e-9}
    files = {"source": "files", "root": str(tmp_path), "corpora": [train, validation]}
    config = config_of(files | shares)
    found = all_held_out_pairs(config)
    assert [len(found[split].pairs) for split in ("validation", "test")] == [1, 0]
    with pytest.raises(DataError, match="no test pairs"):
        held_out_pairs(config, "test")


def test_pairs_that_reading_skips_are_reported_for_held_out_splits_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The report explains why only 998 sentences of a file with 1,000 lines are scored."""
    good = [(f"s{n}", f"t{n}") for n in range(3)]
    corpora = [
        write(tmp_path, "train", good) | {"split": "train"},
        write(tmp_path, "val", [("v", "w"), ("a\0b", "c")]) | {"split": "validation"},
        write(tmp_path, "test", [("x", "y"), ("p\0", "q"), ("\0", "r")]) | {"split": "test"},
    ]
    config = config_of({"source": "files", "root": str(tmp_path), "corpora": corpora})
    found = all_held_out_pairs(config)
    for split, count, line in (("validation", 1, 2), ("test", 2, 2)):
        path = tmp_path / f"{'val' if split == 'validation' else split}.tsv"
        assert ("skipped: a NUL byte", count, f"{path}:{line}") in found[split].table()
    assert len(held_out_pairs(config, "test")) == 1
    assert f"test split: skipped: a NUL byte: 2, first at {tmp_path}/test.tsv:2" in caplog.text
    report = prepare_data(config, tmp_path / "run" / "data").report
    told = "\n".join(report.lines())
    assert "reading and cleaning the validation split:" in told
    assert f"skipped: a NUL byte          1  {tmp_path}/val.tsv:2" in told


def test_the_error_for_an_empty_split_says_why_its_pairs_were_lost(tmp_path: Path) -> None:
    corpora = [
        write(tmp_path, "train", [("a", "b")]),
        write(tmp_path, "val", [("", ""), ("\0", "")]) | {"split": "validation"},
    ]
    shares = {"validation_share": 0.0}
    config = config_of({"source": "files", "root": str(tmp_path), "corpora": corpora} | shares)
    with pytest.raises(DataError, match=r"no validation pairs; skipped: a NUL byte: 1; .*empty: 1") as refusal:
        all_held_out_pairs(config)
    assert str(refusal.value.hint).startswith("data.corpora.1 has no usable pair")


def test_rows_of_a_corpus_whose_splits_are_drawn_are_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Pairs for three splits are drawn from these rows, but a skipped row must be reported only once."""
    rows = [(f"s{n}", f"t{n}") for n in range(400)]
    rows[7], rows[9], rows[11] = ("a\0b", "c"), ("x" * (1 << 21), "y"), ("d\re", "f")
    corpora = [
        write(tmp_path, "all", rows),
        write(tmp_path, "val", [("v", "w"), ("a\0b", "c")]) | {"split": "validation"},
    ]
    shares = {"validation_share": 0.05, "test_share": 0.05}
    files = {"source": "files", "root": str(tmp_path), "corpora": corpora}
    config = config_of(files | shares)
    report = prepare_data(config, tmp_path / "run" / "data").report
    told = report.lines()
    for where, times in (("all.tsv:8", 1), ("all.tsv:10", 1), ("all.tsv:12", 1), ("val.tsv:2", 1)):
        assert sum(f"{tmp_path}/{where}" in line for line in told) == times, where
    assert ("skipped: a NUL byte", 1, f"{tmp_path}/val.tsv:2") in report.held_out["validation"]
    counts = {what: count for what, count, _ in report.reading}
    num_drawn = counts["drawn for validation"], counts["drawn for test"]
    assert num_drawn == (report.num_pairs["validation"] - 1, report.num_pairs["test"])
    assert min(num_drawn) > 5
    assert [what for what in counts if "drawn" in what] == [
        "drawn for validation",
        "drawn for test",
    ]
    num_skipped = sum(count for what, count in counts.items() if what.startswith("skipped"))
    assert num_skipped == 2
    pairs_read = dict(row[:2] for row in report.cleaning)["pairs read"]
    assert counts["rows read"] == 400 == num_skipped + sum(num_drawn) + pairs_read
    caplog.clear()
    held_out_pairs(config, "test")
    assert not caplog.records, "none of the rows that were skipped was a test pair"
