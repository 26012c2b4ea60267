"""How a model of an ensemble reads a source that is given as token ids of another model's tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import torch
from torch import Tensor

from transformer_cli.decoding.engine import TokenIds
from transformer_cli.process.memory import to_device
from transformer_cli.text import Tokenizer
from transformer_cli.text.padding import pad_ids


@dataclass(frozen=True, slots=True)
class SourceReading:
    """Token ids of one tokenizer to those of another one, for the same text."""

    given: Tokenizer
    """Of the ids that come in; it can encode every text, and so gives every text back."""
    own: Tokenizer
    """Of the model that reads."""
    max_length: int
    """The largest number of tokens that the model can read, [EOS] and tags included."""

    def ids(self, given_ids: TokenIds) -> TokenIds:
        """The ids of the same text, with the same tags before it, and with [EOS] if it has one."""
        is_tag = self.given.tag_ids.__contains__
        names = self.given.tokens(takewhile(is_tag, given_ids))
        tags = [self.own.tag_id(name) for name in names]
        end = [self.own.eos_id] if given_ids[-1:] == (self.given.eos_id,) else []
        most = max(0, self.max_length - len(tags) - len(end))
        return (*tags, *self.own.encode(self.given.decode(given_ids))[:most], *end)

    def batch(self, source_ids: Tensor, source_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The same for padded sources.

        Args:
            source_ids: (B, S) int64.
            source_mask: (B, S) bool, True for a token; None: all are tokens.

        Returns:
            (B, S') int64 and (B, S') bool, on the device of `source_ids`.
        """
        mask = torch.ones_like(source_ids, dtype=torch.bool) if source_mask is None else source_mask
        rows = zip(source_ids.tolist(), mask.sum(1).tolist(), strict=True)
        read = [self.ids(tuple(row[:num_tokens])) for row, num_tokens in rows]
        ids, is_real = map(torch.from_numpy, pad_ids(read, self.own.pad_id))
        return to_device(ids, source_ids.device), to_device(is_real, source_ids.device)


def read_by_all(
    readings: Sequence[SourceReading | None], source_ids: Tensor, source_mask: Tensor | None
) -> list[tuple[Tensor, Tensor | None]]:
    """The sources as each model of an ensemble reads them: None stands for a model that reads the given ids."""
    return [
        (source_ids, source_mask) if one is None else one.batch(source_ids, source_mask)
        for one in readings
    ]
