"""A batch: sentence pairs as padded tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from transformer_cli.data.batches.encoded import TokenPair
from transformer_cli.process.memory import to_device
from transformer_cli.text import SequenceFormat
from transformer_cli.text.token_arrays import Padded, pad_ids


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentence pairs as tensors; each side is padded at its end to its longest sentence."""

    source_ids: Tensor  # (B, S) int64
    source_mask: Tensor  # (B, S) bool, True where there is a token
    decoder_input_ids: Tensor  # (B, T) int64, in the ordinary format begins with [SOS]
    target_ids: Tensor  # (B, T) int64, in the ordinary format ends with [EOS]
    num_source_tokens: int  # padding excluded
    num_target_tokens: int  # padding excluded
    pad_id: int
    number: int = (
        0  # its index among the micro-batches of an update; halves of a batch have the same number
    )

    @property
    def num_cells(self) -> int:
        """Number of positions on the longer side, padding included, as `training.batch_tokens` counts them."""
        return len(self.target_ids) * max(self.source_ids.size(1), self.target_ids.size(1))

    @property
    def padding_mask(self) -> Tensor | None:
        """`source_mask`, or None if the source has no padding; the count of tokens tells, without a wait."""
        return None if self.num_source_tokens == self.source_ids.numel() > 0 else self.source_mask

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device; the CPU does not wait for copies to a GPU."""
        return self._map(lambda tensor: to_device(tensor, torch.device(device)))

    def pin_memory(self) -> "Batch":
        """The same batch in pinned (page-locked) memory, from which copies to a GPU are fast."""
        return self._map(Tensor.pin_memory)

    def halves(self) -> list["Batch"]:
        """Two batches with half of the sentences each; a batch of one sentence is returned alone."""
        num_first = len(self.target_ids) // 2
        if not num_first:
            return [self]
        return [self._part(slice(num_first)), self._part(slice(num_first, None))]

    def without_targets(self) -> "Batch":
        """A batch that adds nothing to losses, gradients and counts."""
        nothing = torch.full_like(self.target_ids, self.pad_id)
        return replace(self, target_ids=nothing, num_source_tokens=0, num_target_tokens=0)

    def _part(self, rows: slice) -> "Batch":
        part = self._map(lambda tensor: tensor[rows])
        return replace(
            part,
            num_source_tokens=int(part.source_mask.sum()),
            num_target_tokens=int((part.target_ids != part.pad_id).sum()),
        )

    def _map(self, function: Any) -> "Batch":
        values = [getattr(self, field.name) for field in fields(self)]
        return Batch(*(function(value) if isinstance(value, Tensor) else value for value in values))


def collate(
    pairs: Sequence[TokenPair],
    *,
    sos_id: int,
    pad_id: int,
    sequence_format: SequenceFormat = SequenceFormat(),  # noqa: B008 - immutable
) -> Batch:
    """A padded batch of one or more pairs.

    Args:
        pairs: B pairs; each side is padded to its longest sentence.
        sos_id: the id of [SOS], the first token that the decoder reads in the ordinary format.
        pad_id: the id of [PAD].
        sequence_format: how decoder input ids are made from target ids.
    """
    sides = (pad_ids([pair[side] for pair in pairs], pad_id) for side in (0, 1))
    return collate_padded(*sides, sos_id=sos_id, pad_id=pad_id, sequence_format=sequence_format)


def collate_padded(
    source: Padded,
    target: Padded,
    *,
    sos_id: int,
    pad_id: int,
    sequence_format: SequenceFormat = SequenceFormat(),  # noqa: B008 - immutable
) -> Batch:
    """The batch of `collate`, from pairs whose two sides are padded already."""
    (source_ids, source_mask), (target_ids, target_mask) = source, target
    decoder_input_ids = sequence_format.decoder_inputs(
        target_ids, target_mask, sos_id=sos_id, pad_id=pad_id
    )
    return Batch(
        source_ids=torch.from_numpy(source_ids),
        source_mask=torch.from_numpy(source_mask),
        decoder_input_ids=torch.from_numpy(decoder_input_ids),
        target_ids=torch.from_numpy(target_ids),
        num_source_tokens=int(source_mask.sum()),
        num_target_tokens=int(target_mask.sum()),
        pad_id=pad_id,
    )
