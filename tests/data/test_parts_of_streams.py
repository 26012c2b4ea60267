"""`data.stream_parts`: the updates of a stream in parts, for any number of processes."""

import threading
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.data.test_streamed import config_of, open_at, sentence, sentences_of, write
from transformer_cli.config import Config
from transformer_cli.data import streaming
from transformer_cli.data.order import UpdateSize
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.data.sources.local_files import CorpusPart
from transformer_cli.data.updates import AnyPosition, Batch, Position, Share, StreamPosition
from transformer_cli.process.errors import ConfigError, DataError

FOUR = UpdateSize(4)
NUMBERS = [*range(61), *range(100, 130)]
"""The sentences of the corpora of `folder`, of which 7 is held out too."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of two files, one of a single file, and held-out pairs."""
    write(tmp_path / "a-1.tsv", range(40))
    write(tmp_path / "a-2.tsv", range(40, 61))
    write(tmp_path / "b.tsv", range(100, 130))
    write(tmp_path / "held-out.tsv", [7, 900, 901])
    monkeypatch.setattr(streaming, "BUFFER_PAIRS", 10)
    return tmp_path


Steps = list[tuple[list[Batch], AnyPosition]]


def steps_of(
    config: Config,
    data: PreparedData,
    count: int,
    *,
    position: AnyPosition = Position(),  # noqa: B008 - immutable
    share: Share = Share(),  # noqa: B008 - immutable
    size: UpdateSize = FOUR,
) -> Steps:
    with open_at(config, data, position, size, share) as stream:
        return [(next(stream), stream.position) for _ in range(count)]


def known_to_all(positions: list[AnyPosition]) -> StreamPosition:
    """The position that a checkpoint records, from those of all processes."""
    numbers = [one.numbers() for one in positions if isinstance(one, StreamPosition)]
    assert len(numbers) == len(positions)
    return StreamPosition(0, 0, ()).known_to_all(lambda *_: list(map(max, *numbers, numbers[0])))


def assert_equal(ours: list[Batch], theirs: list[Batch]) -> None:
    ours, theirs = ([b for b in update if b.num_target_tokens] for update in (ours, theirs))
    assert [batch.number for batch in ours] == [batch.number for batch in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one.source_ids, other.source_ids)
        assert torch.equal(one.target_ids, other.target_ids)


@pytest.mark.parametrize("num_parts", [2, 4])
def test_the_parts_have_each_pair_once_per_epoch(folder: Path, num_parts: int) -> None:
    config = config_of(folder, stream_parts=num_parts)
    data = prepare_data(config, folder / "data")
    length = 3 + 2 * 2  # of the position in one part
    seen: list[str] = []
    epochs = [0] * num_parts
    with open_at(config, data, Position(), FOUR) as stream:
        while min(epochs) == 0:
            update = [batch for batch in next(stream) if batch.num_target_tokens]
            assert isinstance(stream.position, StreamPosition)
            # A position tells the epoch of the last update, also where that was the last one of the epoch.
            epochs = list(stream.position.stream[::length])
            first_epoch = [b for b in update if epochs[b.number % num_parts] == 0]
            seen += sentences_of([first_epoch], data)
    assert sorted(seen) == sorted(sentence(n) for n in NUMBERS if n != 7)


@pytest.mark.long
@pytest.mark.parametrize(("num_parts", "num_processes"), [(2, 2), (4, 2), (2, 4), (4, 4)])
def test_the_updates_are_the_same_for_any_number_of_processes(folder: Path, num_parts: int, num_processes: int) -> None:
    config = config_of(folder, stream_parts=num_parts)
    data = prepare_data(config, folder / "data")
    whole = steps_of(config, data, 30)
    is_short = [sum(b.num_target_tokens > 0 for b in update) < 4 for update, _ in whole]
    assert any(is_short) == (num_parts == 2), "the last update of a buffer"
    shares = [steps_of(config, data, 30, share=Share(rank, num_processes)) for rank in range(num_processes)]
    for step, (update, position) in enumerate(whole):
        for rank, share in enumerate(shares):
            assert len(share[step][0]) == 4 // num_processes, "all make equally many passes"
            expected = [b for b in update if b.number % num_processes == rank]
            assert_equal(share[step][0], expected)
        assert known_to_all([share[step][1] for share in shares]) == position


@pytest.mark.long
@pytest.mark.parametrize("num_processes", [1, 2, 4])
def test_a_stream_in_parts_resumes_with_another_number_of_processes(folder: Path, num_processes: int) -> None:
    config = config_of(folder, stream_parts=2)
    data = prepare_data(config, folder / "data")
    whole = steps_of(config, data, 24)
    for done in (1, 4, 9, 15):
        shares = [steps_of(config, data, done, share=Share(rank, 2)) for rank in range(2)]
        saved = known_to_all([share[-1][1] for share in shares])
        resumed = StreamPosition.of(saved.numbers())
        for rank in range(num_processes):
            share = Share(rank, num_processes)
            rest = steps_of(config, data, 6, position=resumed, share=share)
            for (ours, _), (theirs, _) in zip(rest, whole[done : done + 6], strict=True):
                assert_equal(ours, [b for b in theirs if b.number % num_processes == rank])


def encoded_by(rank: int, config: Config, data: PreparedData, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that a process of two encodes for 20 updates, and some more that its thread prepares."""
    encoded: list[str] = []
    encode = streaming.encode_short_pairs

    def noted(rows: Any, *arguments: Any) -> Any:
        encoded.extend(rows.column("source").to_pylist())
        return encode(rows, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(streaming, "encode_short_pairs", noted)
        steps_of(config, data, 20, share=Share(rank, 2))
        for thread in threading.enumerate():
            if thread.name == "batches":
                thread.join(timeout=20)
    return encoded


def test_a_process_encodes_the_pairs_of_its_parts_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "a-1.tsv", range(10, 50))
    write(folder / "a-2.tsv", range(50, 90))
    config = config_of(folder, stream_parts=2)
    data = prepare_data(config, folder / "data")
    found = [set(encoded_by(rank, config, data, monkeypatch)) for rank in range(2)]
    # The first corpus has two files, one for each part; of the single file of the second, each part has every other row.
    assert found[0] == {sentence(n) for n in (*range(10, 50), *range(100, 130, 2))}
    assert found[1] == {sentence(n) for n in (*range(50, 90), *range(101, 130, 2))}


def test_of_files_that_differ_in_size_each_part_has_every_other_row(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part with less text would be read more often than the others."""
    config = config_of(folder, stream_parts=2)
    data = prepare_data(config, folder / "data")
    found = [set(encoded_by(rank, config, data, monkeypatch)) for rank in range(2)]
    for part in range(2):
        rows = (range(n + part, end, 2) for n, end in ((0, 40), (40, 61), (100, 130)))
        assert found[part] == {sentence(n) for n in chain(*rows) if n != 7}


@pytest.mark.heavy
@pytest.mark.parametrize(("num_files", "max_pairs"), [(4, None), (3, None), (3, 17), (4, 17)])
def test_the_parts_of_a_data_set_of_the_library(
    folder: Path, num_files: int, max_pairs: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets  # takes half a second, also where these tests are only collected

    for number in range(num_files):
        numbers = range(200 + 12 * number, 212 + 12 * number)
        pairs = {"source": list(map(sentence, numbers)), "target": [f"to {n}" for n in numbers]}
        datasets.Dataset.from_dict(pairs).to_parquet(str(folder / f"train-{number}.parquet"))
    datasets.Dataset.from_dict({"source": ["x"], "target": ["y"]}).to_parquet(str(folder / "held-out.parquet"))
    train = {"split": "train", "dataset": "parquet", "data_files": "train-*.parquet"}
    held_out = {"split": "validation", "dataset": "parquet", "data_files": "held-out.parquet"}
    corpora = [train | ({"max_pairs": max_pairs} if max_pairs else {}), held_out]
    config = config_of(folder, source="hub", corpora=corpora, stream_parts=2)
    data = prepare_data(config, folder / "data")
    found = [encoded_by(rank, config, data, monkeypatch) for rank in range(2)]
    total = max_pairs or 12 * num_files
    if num_files == 4:
        rows = [[*range(200, 212), *range(224, 236)], [*range(212, 224), *range(236, 248)]]
    else:
        rows = [list(range(200, 236, 2)), list(range(201, 236, 2))]
    for part, numbers in enumerate(rows):
        own = list(map(sentence, numbers))[: CorpusPart(part, 2).num_rows(total)]
        assert set(found[part]) == set(own)
        assert found[part][: len(own)] == own, "an epoch reads each of them once, in order"
    whole = steps_of(config, data, 10)
    rest = steps_of(config, data, 6, position=whole[3][1])
    for (ours, _), (theirs, _) in zip(rest, whole[4:], strict=True):
        assert_equal(ours, theirs)


def test_parts_that_cannot_be_shared_out_are_refused(folder: Path) -> None:
    config = config_of(folder, stream_parts=4)
    data = prepare_data(config, folder / "data")
    with pytest.raises(ConfigError, match="6 batches over all processes, and 4 parts"):
        open_at(config, data, Position(), UpdateSize(6))
    with pytest.raises(ConfigError, match="4 parts cannot be shared out among 3 processes"):
        open_at(config, data, Position(), UpdateSize(12), Share(0, 3))


def test_a_position_of_another_number_of_parts_is_refused(folder: Path) -> None:
    config = config_of(folder, stream_parts=2)
    data = prepare_data(config, folder / "data")
    [(_, position)] = steps_of(config, data, 1)
    for num_parts in (1, 4):
        other = config_of(folder, stream_parts=num_parts)
        with pytest.raises(DataError, match="2 corpora are streamed in"):
            open_at(other, data, position, FOUR)


def test_a_part_without_pairs_is_an_error_that_names_it(folder: Path) -> None:
    half = "same" * ((folder / "a-1.tsv").stat().st_size // 8)
    (folder / "a-2.tsv").write_text(f"{half}\t{half}\n")
    (folder / "b.tsv").write_text("same\tsame\n")
    config = config_of(folder, stream_parts=2)
    data = prepare_data(config, folder / "data")
    with (
        open_at(config, data, Position(), FOUR) as stream,
        pytest.raises(DataError, match="part 2"),
    ):
        list(islice(stream, 3))


@pytest.mark.parametrize(
    ("data", "training", "words"),
    [
        ({"streaming": False, "stream_parts": 2}, {}, "data.stream_parts has no effect"),
        ({"stream_parts": 2}, {"update_tokens": 99}, "no process knows all of them"),
        ({"stream_parts": 0}, {}, "stream_parts"),
    ],
)
def test_settings_that_contradict_parts(
    folder: Path, data: dict[str, Any], training: dict[str, Any], words: str
) -> None:
    whole = config_of(folder).model_dump(exclude_unset=True)
    training = whole["training"] | training
    if "update_tokens" in training:
        del training["accumulate"]
    with pytest.raises(ValueError, match=words):
        Config.model_validate(whole | {"data": whole["data"] | data, "training": training})
