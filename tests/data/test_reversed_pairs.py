"""`data.reversed_epochs`: the first epochs read each training pair the other way round, too."""

from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import Config
from transformer_cli.config.loading import check_settings
from transformer_cli.data.order import epoch_order
from transformer_cli.data.preparation import PreparedData, fingerprint, num_corpora, prepare_data
from transformer_cli.process.errors import ConfigError
from transformer_cli.training.advice import Plan

from .test_directions import write

FIRST = [(f"a cat of {n} years", f"un gatto di {n} anni") for n in range(40)]
SECOND = [("a dog", "un cane"), ("a bird", "un uccello")]
HELD_OUT = [("the dog", "il cane")]
TOKENIZER = {"kind": "wordlevel", "shared": True}


def config(root: Path, tokenizer: dict[str, Any] = TOKENIZER, training: Any = None, **data: Any) -> Config:
    corpora = [
        write(root / "a.tsv", FIRST) | {"split": "train"},
        write(root / "b.tsv", SECOND) | {"split": "train", "weight": 2, "tag": "<B>"},
        write(root / "dev.tsv", HELD_OUT) | {"split": "validation"},
    ]
    given = {"source": "files", "root": str(root), "corpora": corpora, "test_share": 0.0, **data}
    training = {"max_steps": 1, "batch_sentences": 2, "best_metric": "loss"} | (training or {})
    return check_settings({"name": "a", "data": given, "tokenizer": tokenizer, "training": training}, "test")


def texts(data: PreparedData, index: int) -> tuple[str, str]:
    pair = data.train[index]
    return data.source_tokenizer.decode(pair.source_ids), data.target_tokenizer.decode(pair.target_ids)


def test_reversed_pairs_follow_all_written_ones_behind_a_tag(tmp_path: Path) -> None:
    data = prepare_data(config(tmp_path, reversed_epochs=3), tmp_path / "data")
    num_pairs = len(FIRST) + len(SECOND)
    assert data.train.corpus_sizes == [len(FIRST), len(SECOND), 0] * 2
    assert data.report.num_pairs["train"] == num_pairs
    for index, (source, target) in enumerate([*FIRST, *SECOND]):
        assert texts(data, index) == (source, target)
        assert texts(data, num_pairs + index) == (target, source)
    tag, of_corpus = (data.source_tokenizer.id_of(name) for name in ("<REVERSED>", "<B>"))
    first = [data.train[index].source_ids[0] for index in range(2 * num_pairs)]
    assert [one == tag for one in first] == [index >= num_pairs for index in range(2 * num_pairs)]
    assert [one == of_corpus for one in first[:num_pairs]] == [False] * len(FIRST) + [True] * len(SECOND)
    assert [(pair.source, pair.target) for pair in data.validation] == HELD_OUT


def test_only_the_first_epochs_visit_them_as_often_as_the_written_ones(tmp_path: Path) -> None:
    settings = config(tmp_path, reversed_epochs=3)
    data = prepare_data(settings, tmp_path / "data")
    order = epoch_order(data.train.lengths, data.train.corpus_sizes, settings)
    num_pairs = len(FIRST) + len(SECOND)
    for epoch in range(5):
        visits = [index for batch in order.batches(epoch) for index in batch.tolist()]
        written = [*range(len(FIRST)), *2 * [*range(len(FIRST), num_pairs)]]
        turned = [num_pairs + index for index in written] if epoch < 3 else []
        assert sorted(visits) == sorted(written + turned)


def test_the_plan_knows_the_target_tokens_of_the_first_epoch(tmp_path: Path) -> None:
    settings = config(tmp_path, reversed_epochs=3)
    data = prepare_data(settings, tmp_path / "data")
    order = epoch_order(data.train.lengths, data.train.corpus_sizes, settings)
    lengths = [data.train.lengths(batch)[1].sum() for batch in order.batches(0)]
    plan = Plan.of(settings, data, order, 1, 10)
    assert plan.num_target_tokens == pytest.approx(
        sum(lengths), rel=0.05
    )  # pairs of a weight of 2 are not longer than others


def test_without_it_the_ids_and_the_fingerprint_are_those_of_before(tmp_path: Path) -> None:
    plain, turned = config(tmp_path), config(tmp_path, reversed_epochs=1)
    assert "data.reversed_epochs" not in fingerprint(plain)
    assert fingerprint(turned)["data.reversed_epochs"] == "1"
    one, other = (prepare_data(each, tmp_path / str(number)) for number, each in enumerate((plain, turned)))
    assert one.train.corpus_sizes == [len(FIRST), len(SECOND), 0]
    assert one.seen_words == other.seen_words
    for index in range(len(one.train)):
        assert texts(one, index) == texts(other, index)


def test_what_asks_for_the_written_pairs_sees_no_reversed_ones(tmp_path: Path) -> None:
    settings = config(tmp_path, reversed_epochs=1)
    assert num_corpora(settings) == 6
    assert num_corpora(settings, with_reversed=False) == 3


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"tokenizer": {"kind": "wordlevel"}}, "both sides need one vocabulary"),
        ({"both_directions": True}, "data.both_directions: true reads all pairs the other way round"),
        ({"streaming": True}, "data.streaming: true stores no pairs"),
    ],
)
def test_where_it_cannot_work_it_is_refused(tmp_path: Path, changed: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        config(tmp_path, reversed_epochs=2, **changed)
