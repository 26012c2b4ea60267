from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.config import Config
from transformer_cli.data import streaming as streaming_module
from transformer_cli.data.order import UpdateSize, epoch_order
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.data.streaming import open_stream
from transformer_cli.data.updates import AnyPosition, Batch, Position, Share, StreamPosition, Updates
from transformer_cli.process.errors import DataError

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TWO = UpdateSize(2)


def sentence(number: int) -> str:
    return " ".join(WORDS[int(digit)] for digit in str(number))


def write(path: Path, numbers: Iterator[int] | range) -> None:
    lines = (f"{sentence(number)}\t{sentence(number)} done\n" for number in numbers)
    path.write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three training files of two corpora, and held-out pairs, one of which is a training pair too."""
    write(tmp_path / "a-1.tsv", range(40))
    write(tmp_path / "a-2.tsv", range(40, 61))
    write(tmp_path / "b.tsv", range(100, 130))
    write(tmp_path / "held-out.tsv", [7, 900, 901])
    monkeypatch.setattr(streaming_module, "BUFFER_PAIRS", 16)
    return tmp_path


def config_of(folder: Path, *, tokenizer: dict[str, Any] | None = None, **data: Any) -> Config:
    corpora = [
        {"split": "train", "path": "a-*.tsv"},
        {"split": "train", "path": "b.tsv"},
        {"split": "validation", "path": "held-out.tsv"},
    ]
    given = {"source": "files", "root": str(folder), "corpora": corpora, "streaming": True}
    return Config.model_validate(
        {
            "name": "a",
            "data": given | data,
            "tokenizer": tokenizer or {},
            "training": {"batch_tokens": 24, "max_steps": 9, "accumulate": 2},
        }
    )


def open_at(
    config: Config,
    data: PreparedData,
    position: AnyPosition,
    size: UpdateSize = TWO,
    share: Share = Share(),  # noqa: B008 - immutable
) -> Updates:
    order = epoch_order(data.train.lengths, data.train.corpus_sizes, config)
    return open_stream(config, data.tokenizers, order, size=size, position=position, share=share)


def sentences_of(updates: list[list[Batch]], data: PreparedData) -> list[str]:
    return [
        data.source_tokenizer.decode(ids) for update in updates for batch in update for ids in batch.source_ids.tolist()
    ]


def first_tokens(updates: list[list[Batch]], data: PreparedData, number: int) -> list[str]:
    """The first tokens of each source."""
    return [
        " ".join(data.source_tokenizer.tokens(ids[:number]))
        for update in updates
        for batch in update
        for ids in batch.source_ids.tolist()
    ]


def until_epoch(stream: Updates, epoch: int) -> list[list[Batch]]:
    """The updates before the first of this epoch."""
    found: list[list[Batch]] = []
    while True:
        update = next(stream)
        if stream.position.epoch >= epoch:
            return found
        found.append(update)


def test_each_pair_is_read_once_per_epoch_and_held_out_pairs_never(folder: Path) -> None:
    config = config_of(folder)
    data = prepare_data(config, folder / "data")
    with open_at(config, data, Position()) as stream:
        seen = sentences_of(until_epoch(stream, 1), data)
    expected = [sentence(n) for n in (*range(61), *range(100, 130)) if n != 7]
    assert sorted(seen) == sorted(expected)
    assert seen != expected, "they are shuffled"
    first_buffers = set(seen[:16])
    assert first_buffers & set(map(sentence, range(61)))
    assert first_buffers & set(map(sentence, range(100, 130))), "corpora are mixed"


@pytest.mark.long
def test_a_stream_resumed_after_any_update_gives_the_same_batches(folder: Path) -> None:
    config = config_of(folder)
    data = prepare_data(config, folder / "data")
    with open_at(config, data, Position()) as stream:
        steps = [(next(stream), stream.position) for _ in range(25)]
    assert steps[-1][1].epoch >= 1, "the resumed ones cross the end of an epoch"
    for done in (1, 2, 5, 11, 16, 20):
        position = steps[done - 1][1]
        assert isinstance(position, StreamPosition)
        numbers = position.numbers()
        assert all(type(number) is int for number in numbers), "a checkpoint stores them"
        with open_at(config, data, StreamPosition.of(numbers)) as resumed:
            for update, position in steps[done:]:
                for ours, theirs in zip(next(resumed), update, strict=True):
                    assert torch.equal(ours.source_ids, theirs.source_ids)
                    assert torch.equal(ours.target_ids, theirs.target_ids)
                assert resumed.position == position


def test_rows_that_cannot_be_read_do_not_shift_a_resumed_stream(folder: Path) -> None:
    text = (folder / "a-1.tsv").read_bytes().replace(b"three done\n", b"\xff done\n")
    (folder / "a-1.tsv").write_bytes(text)
    config = config_of(folder, undecodable="skip")
    data = prepare_data(config, folder / "data")
    with open_at(config, data, Position()) as stream:
        steps = [(next(stream), stream.position) for _ in range(12)]
    for done in (2, 6):
        with open_at(config, data, steps[done - 1][1]) as resumed:
            rest = sentences_of([next(resumed) for _ in steps[done:]], data)
        assert rest == sentences_of([update for update, _ in steps[done:]], data)


@pytest.mark.long
def test_a_data_set_of_the_library_resumes_too(folder: Path) -> None:
    import datasets  # takes half a second, also where these tests are only collected

    pairs = {"source": [sentence(n) for n in range(50)], "target": [f"to {n}" for n in range(50)]}
    datasets.Dataset.from_dict(pairs).to_parquet(str(folder / "train.parquet"))
    datasets.Dataset.from_dict({"source": ["x"], "target": ["y"]}).to_parquet(str(folder / "held-out.parquet"))
    corpora = [
        {"split": split, "dataset": "parquet", "data_files": f"{name}.parquet"}
        for split, name in (("train", "train"), ("validation", "held-out"))
    ]
    config = config_of(folder, source="hub", corpora=corpora)
    data = prepare_data(config, folder / "data")
    with open_at(config, data, Position()) as stream:
        steps = [(next(stream), stream.position) for _ in range(8)]
    with open_at(config, data, steps[3][1]) as resumed:
        rest = sentences_of([next(resumed) for _ in range(4)], data)
    assert rest == sentences_of([update for update, _ in steps[4:]], data)


def test_the_tokenizers_are_learned_from_the_first_pairs_of_each_corpus(folder: Path) -> None:
    data = prepare_data(config_of(folder, tokenizer_pairs=6), folder / "data")
    assert data.train.corpus_sizes == [3, 3, 0]
    shown = data.report.examples["train"]
    assert [pair.source for pair in shown] == [sentence(n) for n in (0, 1, 2, 100, 101, 102)]


def test_duplicates_are_dropped_within_a_buffer(folder: Path) -> None:
    write(folder / "b.tsv", [100] * 8 + [100])
    config = config_of(folder)
    data = prepare_data(config, folder / "data")
    with open_at(config, data, Position()) as stream:
        seen = sentences_of(until_epoch(stream, 1), data)
    assert seen.count(sentence(100)) == 2


def test_a_position_of_other_corpora_is_refused(folder: Path) -> None:
    config = config_of(folder)
    data = prepare_data(config, folder / "data")
    with pytest.raises(DataError, match="2 corpora are streamed"):
        open_at(config, data, StreamPosition(0, 1, (0, 0, 0)))


def test_a_stream_of_which_cleaning_keeps_nothing_is_an_error_and_no_endless_loop(
    folder: Path,
) -> None:
    config = config_of(folder)
    data = prepare_data(config, folder / "data")
    for name in ("a-1.tsv", "a-2.tsv", "b.tsv"):
        (folder / name).write_text("same\tsame\n")
    with open_at(config, data, Position()) as stream, pytest.raises(DataError, match="no pair"):
        list(islice(stream, 3))


@pytest.mark.long
@pytest.mark.parametrize("size", [UpdateSize(2), UpdateSize(target_tokens=60)])
@pytest.mark.parametrize("num_processes", [2, 3])
def test_the_processes_share_out_each_update_of_a_stream(folder: Path, size: UpdateSize, num_processes: int) -> None:
    """Batch i of an update of one process goes to rank i mod n, and all ranks are at the same position."""
    config = config_of(folder)
    data = prepare_data(config, folder / "data")
    with open_at(config, data, Position(), size) as alone:
        whole = [(next(alone), alone.position) for _ in range(25)]
    assert any(len(update) < num_processes for update, _ in whole), "a rank has nothing to do"
    assert any(len(update) > 1 for update, _ in whole)
    for rank in range(num_processes):
        with open_at(config, data, Position(), size, Share(rank, num_processes)) as share:
            for update, position in whole:
                own, expected = next(share), update[rank::num_processes]
                assert share.position == position
                if not expected:
                    assert [batch.num_target_tokens for batch in own] == [0]
                    continue
                own = [batch for batch in own if batch.num_target_tokens]
                assert [batch.number for batch in own] == list(range(len(update)))[rank::num_processes]
                for ours, theirs in zip(own, expected, strict=True):
                    assert torch.equal(ours.source_ids, theirs.source_ids)
                    assert torch.equal(ours.target_ids, theirs.target_ids)


def test_an_update_of_a_stream_has_about_the_target_tokens_that_are_asked_for(folder: Path) -> None:
    config = config_of(folder)
    data = prepare_data(config, folder / "data")
    with open_at(config, data, Position(), UpdateSize(target_tokens=60)) as stream:
        found = []
        for _ in range(12):
            update = next(stream)
            assert isinstance(stream.position, StreamPosition)
            is_last_of_buffer = stream.position.batch == 0
            found += [] if is_last_of_buffer else [sum(b.num_target_tokens for b in update)]
    assert found
    assert all(60 - 12 <= count <= 60 + 12 for count in found), "half a batch of 24 tokens"


@pytest.mark.long
def test_a_stream_in_both_directions_has_each_pair_and_its_reverse_and_resumes(
    folder: Path,
) -> None:
    config = config_of(folder, both_directions=True, tokenizer={"shared": True})
    data = prepare_data(config, folder / "data")
    with open_at(config, data, Position()) as stream:
        updates = until_epoch(stream, 1)
    seen = sentences_of(updates, data)
    numbers = [n for n in (*range(61), *range(100, 130)) if n != 7]
    both = [text for n in numbers for text in (sentence(n), f"{sentence(n)} done")]
    assert sorted(seen) == sorted(both)
    tags = first_tokens(updates, data, 1)
    assert {*zip(tags, (text.endswith("done") for text in seen), strict=True)} == {
        ("<2it>", False),
        ("<2en>", True),
    }
    with open_at(config, data, Position()) as stream:
        steps = [(next(stream), stream.position) for _ in range(20)]
    for done in (3, 9):
        with open_at(config, data, steps[done - 1][1]) as resumed:
            rest = sentences_of([next(resumed) for _ in steps[done:]], data)
        assert rest == sentences_of([update for update, _ in steps[done:]], data)


def test_the_sources_of_a_streamed_corpus_begin_with_its_tag(folder: Path) -> None:
    corpora = [
        {"split": "train", "path": "a-*.tsv"},
        {"split": "train", "path": "b.tsv", "tag": "<BT>"},
        {"split": "validation", "path": "held-out.tsv"},
    ]
    config = config_of(folder, corpora=corpora)
    data = prepare_data(config, folder / "data")
    with open_at(config, data, Position()) as stream:
        updates = until_epoch(stream, 1)
    texts = sentences_of(updates, data)
    firsts = first_tokens(updates, data, 1)
    assert len(texts) == 90
    for text, first in zip(texts, firsts, strict=True):
        # The second corpus has the numbers of three digits. The text of ids leaves tags out.
        assert (first == "<BT>") == (len(text.split()) == 3)
