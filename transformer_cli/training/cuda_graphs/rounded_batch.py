"""Batches of few shapes: tensors that stay where they are, into which each batch of about their size is copied."""

from typing import NamedTuple

import torch

from transformer_cli.data.batches.batch import Batch

STEPS_PER_OCTAVE = 4
"""Sizes between a power of two and the next: with 4 of them, rounding up adds less than a quarter to a size."""


class RoundedShape(NamedTuple):
    """The shape of a rounded batch; both sides have the same length, so that there are few shapes."""

    num_pairs: int
    length: int

    @classmethod
    def of(cls, batch: Batch, max_length: int) -> "RoundedShape":
        """The smallest of the few shapes that can hold a batch.

        Args:
            batch: to be copied.
            max_length: positions that the model has; no length is rounded up above it.
        """
        length = max(batch.source_ids.size(1), batch.target_ids.size(1))
        return cls(
            rounded_up(len(batch.target_ids)), max(length, min(rounded_up(length), max_length))
        )


def rounded_up(size: int) -> int:
    """The next of the numbers 1 to 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48 ..."""
    step: int = 1 << max(0, (size - 1).bit_length() - STEPS_PER_OCTAVE.bit_length())
    return -(-size // step) * step


def empty_batch(shape: RoundedShape, pad_id: int, device: torch.device) -> Batch:
    """A batch of padding, for `fill`."""
    size = shape.num_pairs, shape.length
    ids = [torch.full(size, pad_id, device=device) for _ in range(3)]
    return Batch(
        source_ids=ids[0],
        source_mask=torch.zeros(size, dtype=torch.bool, device=device),
        decoder_input_ids=ids[1],
        target_ids=ids[2],
        # Not those of the batches that are copied into it. 0 says that there is padding, so that all have a mask.
        num_source_tokens=0,
        num_target_tokens=0,
        pad_id=pad_id,
    )


def fill(larger: Batch, batch: Batch) -> None:
    """Copy a batch into the first rows and columns of a larger one, on the same device; the rest becomes padding."""
    num_pairs = len(batch.target_ids)
    for into, what, rest in (
        (larger.source_ids, batch.source_ids, batch.pad_id),
        (larger.decoder_input_ids, batch.decoder_input_ids, batch.pad_id),
        (larger.target_ids, batch.target_ids, batch.pad_id),
        (larger.source_mask, batch.source_mask, False),
    ):
        into.fill_(rest)
        into[:num_pairs, : what.size(1)].copy_(what)
    # A softmax over no position at all would be NaN, so a row without a sentence reads its first [PAD].
    larger.source_mask[num_pairs:, :1].fill_(True)
