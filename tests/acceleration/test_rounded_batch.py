"""Batches in tensors of few shapes: what is copied, and what is padding."""

import pytest
import torch

from transformer_cli.acceleration.recorded_passes import (
    RoundedShape,
    empty_batch,
    fill,
    rounded_up,
)
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.updates import Batch, collate

PAD, SOS, EOS = 1, 2, 3
CPU = torch.device("cpu")


def batch(*lengths: tuple[int, int]) -> Batch:
    pairs = [TokenPair([7] * (source - 1) + [EOS], [8] * (target - 1) + [EOS]) for source, target in lengths]
    return collate(pairs, sos_id=SOS, pad_id=PAD)


def test_sizes_are_rounded_up_by_less_than_a_quarter() -> None:
    rounded = [rounded_up(size) for size in range(1, 10_000)]
    assert all(size <= one < 1.25 * size for size, one in enumerate(rounded, start=1))
    assert rounded == sorted(rounded)
    assert [rounded_up(one) for one in rounded] == rounded
    assert len(set(rounded)) < 55


@pytest.mark.parametrize(
    ("lengths", "max_length", "shape"),
    [
        ([(3, 9)] * 11, 256, (12, 10)),
        ([(17, 9)] * 2, 256, (2, 20)),
        ([(17, 9)] * 2, 18, (2, 18)),  # the model has no further positions
        ([(19, 9)] * 2, 18, (2, 19)),  # too long for the model, which says so itself
    ],
)
def test_the_shape_of_a_batch(lengths: list[tuple[int, int]], max_length: int, shape: tuple[int, int]) -> None:
    assert RoundedShape.of(batch(*lengths), max_length) == (*shape, True)


def test_a_batch_with_an_empty_source_has_a_shape_of_its_own() -> None:
    """Its recording sets to zero what such a source gives; the others leave that out."""
    empty = collate([TokenPair([], [8, EOS]), TokenPair([7, EOS], [EOS])], sos_id=SOS, pad_id=PAD)
    assert RoundedShape.of(empty, 16) == (2, 2, False)
    assert not empty_batch(RoundedShape.of(empty, 16), PAD, CPU).sources_have_tokens


def test_each_batch_replaces_all_of_the_one_before() -> None:
    rounded = empty_batch(RoundedShape(4, 6), PAD, CPU)
    for one in (batch((6, 5), (4, 6), (3, 3), (1, 1)), batch((2, 5), (4, 3))):
        fill(rounded, one)
    assert rounded.source_ids.tolist() == [
        [7, EOS, PAD, PAD, PAD, PAD],
        [7, 7, 7, EOS, PAD, PAD],
        *[[PAD] * 6] * 2,
    ]
    assert rounded.decoder_input_ids.tolist() == [
        [SOS, 8, 8, 8, 8, PAD],
        [SOS, 8, 8, PAD, PAD, PAD],
        *[[PAD] * 6] * 2,
    ]
    assert rounded.target_ids.tolist() == [
        [8, 8, 8, 8, EOS, PAD],
        [8, 8, EOS, PAD, PAD, PAD],
        *[[PAD] * 6] * 2,
    ]
    assert rounded.source_mask.int().tolist() == [
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        *[[1, 0, 0, 0, 0, 0]] * 2,  # attention over no position would be NaN
    ]
    assert rounded.padding_mask is rounded.source_mask
