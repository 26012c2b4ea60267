import gc
import json
import threading
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.order import Budget, EpochOrder, Indices, UpdateSize
from transformer_cli.data.updates import Batch, Position, Share, StoredUpdates, Updates, collate
from transformer_cli.process.errors import DataError
from transformer_cli.text.token_ids import Padded
from transformer_cli.text.tokenizer import SequenceFormat, Tokenizer

from .pair_list import PairList

SOS, PAD, EOS = Tokenizer.sos_id, Tokenizer.pad_id, Tokenizer.eos_id
NUMBERS = np.random.default_rng(1)


def some_pairs(num_pairs: int) -> PairList:
    """Pairs that a test can identify: the first source token is the number of the pair."""
    sides = NUMBERS.integers(1, 9, (num_pairs, 2)).tolist()
    return PairList(
        TokenPair([10 + number, *[5] * source, EOS], [*[6] * target, EOS])
        for number, (source, target) in enumerate(sides)
    )


PAIRS = some_pairs(60)


def updates(
    pairs: PairList = PAIRS,
    *,
    accumulate: int = 1,
    position: tuple[int, int] = (0, 0),
    share: Share = Share(),  # noqa: B008 - immutable
) -> Updates:
    order = EpochOrder(pairs.lengths, pairs.corpus_sizes, [1.0], Budget(tokens=40), seed=3)
    return Updates(StoredUpdates(pairs, order, UpdateSize(accumulate), share=share), Position(*position))


def content(update: list[Batch]) -> list[list[list[int]]]:
    return [
        [tensor.tolist() for tensor in (batch.source_ids, batch.decoder_input_ids, batch.target_ids)]
        for batch in update
    ]


def seen_pairs(update: list[Batch]) -> list[int]:
    return [int(first) - 10 for batch in update for first in batch.source_ids[:, 0]]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    if any(thread.name == "batches" for thread in threading.enumerate()):
        gc.collect()  # an iterator that is garbage stops its thread; this takes long beside all imported modules
    for thread in threading.enumerate():
        if thread.name == "batches":
            thread.join(timeout=5)
            assert not thread.is_alive()


# --- one batch ---


def test_a_batch_is_what_the_pairs_say() -> None:
    batch = collate(
        [TokenPair([5, 6, EOS], [7, EOS]), TokenPair([8, EOS], [9, 4, 4, EOS])],
        sos_id=SOS,
        pad_id=PAD,
    )
    assert batch.source_ids.tolist() == [[5, 6, EOS], [8, EOS, PAD]]
    assert batch.source_mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.decoder_input_ids.tolist() == [[SOS, 7, PAD, PAD], [SOS, 9, 4, 4]]
    assert batch.target_ids.tolist() == [[7, EOS, PAD, PAD], [9, 4, 4, EOS]]
    assert (batch.num_source_tokens, batch.num_target_tokens, batch.pad_id) == (5, 6, PAD)
    assert batch.source_ids.dtype == batch.decoder_input_ids.dtype == batch.target_ids.dtype == torch.int64
    assert batch.source_mask.dtype == torch.bool


IDS = st.lists(st.integers(3, 60_000), min_size=1, max_size=9)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(st.lists(st.builds(TokenPair, IDS, IDS), min_size=1, max_size=6), st.booleans())
def test_a_batch_equals_the_one_that_a_loop_over_tokens_makes(pairs: list[TokenPair], as_arrays: bool) -> None:
    given_pairs = [TokenPair(*(np.array(side, np.uint16) for side in pair)) for pair in pairs] if as_arrays else pairs
    batch = collate(given_pairs, sos_id=SOS, pad_id=PAD)
    for row, pair in enumerate(pairs):
        source, target = list(pair.source_ids), list(pair.target_ids)
        num_source, num_target = batch.source_ids.shape[1], batch.target_ids.shape[1]
        assert batch.source_ids[row].tolist() == source + [PAD] * (num_source - len(source))
        assert batch.source_mask[row].tolist() == [place < len(source) for place in range(num_source)]
        assert batch.target_ids[row].tolist() == target + [PAD] * (num_target - len(target))
        shifted = [SOS, *target[:-1]]
        assert batch.decoder_input_ids[row].tolist() == shifted + [PAD] * (num_target - len(target))
    assert batch.source_ids.shape[1] == max(len(pair.source_ids) for pair in pairs)
    assert batch.num_source_tokens == sum(len(pair.source_ids) for pair in pairs)
    assert batch.num_target_tokens == sum(len(pair.target_ids) for pair in pairs)


def test_without_the_shift_the_decoder_reads_the_token_that_it_must_predict() -> None:
    pairs = PairList([TokenPair([5, 6], [7, 8, 9]), TokenPair([8], [9])])
    batch = collate(pairs, sos_id=SOS, pad_id=PAD, sequence_format=SequenceFormat(is_shifted=False))
    assert torch.equal(batch.decoder_input_ids, batch.target_ids)
    assert batch.target_ids.tolist() == [[7, 8, 9], [9, PAD, PAD]]
    order = EpochOrder(pairs.lengths, pairs.corpus_sizes, [1.0], Budget(sentences=2), seed=3)
    for is_shifted in (True, False):
        with Updates(StoredUpdates(pairs, order, sequence_format=SequenceFormat(is_shifted=is_shifted))) as made:
            [of_stream] = next(made)
        is_same = torch.equal(of_stream.decoder_input_ids, of_stream.target_ids)
        assert is_same != is_shifted


def test_a_batch_moves_with_everything_in_it() -> None:
    batch = collate([TokenPair([5, EOS], [7, EOS])], sos_id=SOS, pad_id=PAD).to("meta")
    assert {
        tensor.device.type
        for tensor in (
            batch.source_ids,
            batch.source_mask,
            batch.target_ids,
            batch.decoder_input_ids,
        )
    } == {"meta"}
    assert batch.num_target_tokens == 2


# --- one update after the other ---


def test_an_epoch_sees_every_pair_once_and_then_comes_the_next() -> None:
    with updates() as stream:
        for epoch in range(3):
            seen = []
            while stream.position.epoch == epoch:
                seen += seen_pairs(next(stream))
            assert sorted(seen) == list(range(60))


def test_the_number_of_batches_of_the_epoch_is_known() -> None:
    with updates() as stream:
        for epoch in range(2):
            expected = stream.num_updates
            counted = 0
            while stream.position.epoch == epoch:
                counted += len(next(stream))
            assert counted == expected


def test_an_update_has_its_batches_and_the_last_of_an_epoch_what_is_left() -> None:
    num_batches = updates().num_updates
    with updates(accumulate=5) as stream:
        assert num_batches % 5, "the case is about a remainder"
        sizes = []
        while stream.position.epoch == 0:
            sizes.append(len(next(stream)))
    assert sizes == [5] * (num_batches // 5) + [num_batches % 5]


def test_accumulated_updates_hold_the_same_batches_in_the_same_order() -> None:
    with updates() as single, updates(accumulate=3) as grouped:
        for update in islice(grouped, 30):
            assert content(update) == [batch for _ in update for batch in content(next(single))]


@pytest.mark.long
@pytest.mark.parametrize("accumulate", [1, 3])
def test_resuming_anywhere_gives_the_same_next_batches(accumulate: int) -> None:
    with updates(accumulate=accumulate) as stream:
        positions, expected = [stream.position], []
        for _ in range(40):
            expected.append(content(next(stream)))
            positions.append(stream.position)
    assert positions[-1].epoch >= 2, "the case is about several epochs"
    for step, position in enumerate(positions[:-4]):
        saved = json.loads(json.dumps(position))
        with updates(accumulate=accumulate, position=saved) as resumed:
            assert [content(update) for update in islice(resumed, 4)] == expected[step : step + 4]
            assert resumed.position == positions[step + 4]
    # Negative control: any other position gives something else.
    with updates(accumulate=accumulate, position=(0, accumulate)) as shifted:
        assert content(next(shifted)) != expected[0]


def test_a_resumed_run_resumes_again() -> None:
    with updates() as stream:
        expected = [content(next(stream)) for _ in range(30)]
    position, found = Position(), []
    for num_updates in (1, 7, 2, 11, 9):
        with updates(position=position) as stream:
            found += [content(next(stream)) for _ in range(num_updates)]
            position = stream.position
    assert found == expected


def test_the_position_is_that_of_what_was_handed_out() -> None:
    with updates() as stream:
        assert stream.position == (0, 0)
        next(stream)
        for _ in range(200):  # time for the thread to run ahead
            threading.Event().wait(0.001)
        assert stream.position == (0, 1)


def test_after_the_last_update_of_an_epoch_the_position_is_the_next_epoch() -> None:
    with updates() as stream:
        for _ in range(stream.num_updates):
            next(stream)
        assert stream.position == Position(epoch=1, batch=0)


def test_a_closed_iterator_continues_at_its_position() -> None:
    with updates() as whole:
        expected = [content(next(whole)) for _ in range(6)]
    stream, found = updates(), []
    for num_updates in (3, 0, 3):
        with stream:
            found += [content(next(stream)) for _ in range(num_updates)]
    assert found == expected


@pytest.mark.long
def test_a_garbage_collected_iterator_stops_its_thread() -> None:
    before = threading.active_count()
    stream = updates()
    next(stream)
    assert threading.active_count() == before + 1
    del stream
    gc.collect()
    for _ in range(100):
        if threading.active_count() == before:
            return
        threading.Event().wait(0.05)
    pytest.fail("the thread is still there")


@pytest.mark.long
@pytest.mark.parametrize(("num_processes", "accumulate"), [(2, 2), (3, 3), (11, 11), (2, 3), (3, 5)])
def test_the_processes_share_out_each_update(num_processes: int, accumulate: int) -> None:
    """Micro-batch i goes to rank i mod n; a rank with fewer than others gets a batch without targets."""
    whole = list(islice(updates(accumulate=accumulate), 20))
    shares = [
        list(islice(updates(accumulate=accumulate, share=Share(rank, num_processes)), 20))
        for rank in range(num_processes)
    ]
    has_empty = False
    for number, update in enumerate(whole):
        own = [share[number] for share in shares]
        for rank, batches in enumerate(own):
            real = [batch for batch in batches if batch.num_target_tokens]
            has_empty |= not real
            assert [batch.number for batch in real] == list(range(len(update)))[rank::num_processes]
            assert seen_pairs(real) == seen_pairs(update[rank::num_processes])
            assert len(batches) == -(-len(update) // num_processes), "all make as many passes"
        for name in ("num_source_tokens", "num_target_tokens"):
            counts = [getattr(batch, name) for batches in own for batch in batches]
            assert sum(counts) == sum(getattr(batch, name) for batch in update)
    assert has_empty == any(len(update) < num_processes for update in whole)
    assert has_empty or num_processes < 11


def test_a_batch_without_targets_adds_nothing() -> None:
    nothing = collate([TokenPair([4, 5], [6, 7])], sos_id=2, pad_id=1).without_targets()
    assert (nothing.num_source_tokens, nothing.num_target_tokens) == (0, 0)
    assert bool((nothing.target_ids == nothing.pad_id).all())


class Unreadable(PairList):
    def padded(self, indices: Indices, pad_id: int) -> tuple[Padded, Padded]:
        if 50 in indices:
            raise OSError("bad sector")
        return super().padded(indices, pad_id)


def test_an_error_in_the_thread_is_raised_by_the_next_call() -> None:
    pairs = Unreadable(PAIRS[index] for index in range(60))
    with updates(pairs) as stream:
        for _ in range(2):
            with pytest.raises(OSError, match="bad sector"):
                list(islice(stream, 100))


def test_one_pair_is_enough() -> None:
    with updates(some_pairs(1), accumulate=4) as stream:
        assert [seen_pairs(next(stream)) for _ in range(3)] == [[0], [0], [0]]
        assert stream.position == Position(epoch=3, batch=0)


def test_no_pair_is_an_error_and_no_endless_loop() -> None:
    with updates(PairList([])) as stream, pytest.raises(DataError, match="no training pair"):
        next(stream)


@pytest.mark.parametrize("num_sentences", [2, 3, 5])
def test_halves_of_a_batch_are_its_sentences_in_two_batches(num_sentences: int) -> None:
    pairs = [TokenPair([4] * (n + 1), [5] * (2 * n + 1)) for n in range(num_sentences)]
    whole = collate(pairs, sos_id=2, pad_id=1)
    halves = whole.halves()
    assert [len(half.source_ids) for half in halves] == [num_sentences // 2, -(-num_sentences // 2)]
    for name in ("source_ids", "source_mask", "decoder_input_ids", "target_ids"):
        joined = torch.cat([getattr(half, name) for half in halves])
        assert torch.equal(joined, getattr(whole, name))
    for name in ("num_source_tokens", "num_target_tokens"):
        assert sum(getattr(half, name) for half in halves) == getattr(whole, name)
    assert halves[0].num_target_tokens < halves[1].num_target_tokens


def test_a_single_sentence_has_no_halves() -> None:
    alone = collate([TokenPair([4, 5], [6])], sos_id=2, pad_id=1)
    assert alone.halves() == [alone]


@pytest.mark.parametrize("epoch", [0, 3])
def test_the_updates_of_all_epochs_follow_the_weights_of_each(epoch: int) -> None:
    """So does the plan of a run with a curriculum, also where it goes on in a later epoch."""

    def weights(epoch: int) -> list[float]:
        return [1.0] if epoch == 0 else [0.1] if epoch < 3 else [0.5]

    order = EpochOrder(PAIRS.lengths, PAIRS.corpus_sizes, weights, Budget(tokens=40), seed=3)
    with Updates(StoredUpdates(PAIRS, order), Position(epoch, 0)) as stream:
        found = stream.num_updates_in_all(5)
    counted, seen = 0, Updates(StoredUpdates(PAIRS, order))
    with seen:
        while seen.position.epoch < 5:
            next(seen)
            counted += 1
    assert found == counted
    assert found < 4 * Updates(StoredUpdates(PAIRS, order)).num_updates


def test_the_updates_of_small_epochs_are_counted_as_their_lengths_differ() -> None:
    """A fine-tuning on few pairs said *step 26/24*: each epoch draws other pairs of the corpus with a weight of 0.2."""
    order = EpochOrder(PAIRS.lengths, PAIRS.corpus_sizes, [0.2], Budget(tokens=20), seed=3)
    each = [sum(1 for _ in order.batches(epoch)) for epoch in range(20)]
    assert len({*each}) > 1, "the case is about epochs that differ"
    assert Updates(StoredUpdates(PAIRS, order)).num_updates_in_all(20) == sum(each)
