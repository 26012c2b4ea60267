"""Word dropout: in training, the embeddings of random tokens become zero."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class WordDropout(nn.Module):
    """In training, the embedding of each token becomes zero with probability p, else it is divided by 1 - p.

    It is drawn for each position, on the source side and for what the decoder reads. Positions are added
    afterwards, so the model knows that a token is missing there. Special tokens always stay.

    Args:
        probability: p.
        num_special_tokens: the ids below this number are those of special tokens.
        tag_ids: the ids of tags, which stay too.

    Source: Gal and Ghahramani 2016, who drop word types; Sennrich and Zhang 2019, "Revisiting Low-Resource Neural
        Machine Translation", with 0.1 to 0.3: their toolkit, Nematus, drops positions, as here.
    """

    def __init__(
        self, probability: float, num_special_tokens: int, tag_ids: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.probability = probability
        self.num_special_tokens = num_special_tokens
        self.tag_ids = tuple(tag_ids)

    def forward(self, embedded: Tensor, ids: Tensor) -> Tensor:
        """Embeddings (B, S, D) and their ids (B, S) to embeddings of the same shape."""
        if not self.training:
            return embedded
        kept = F.dropout(torch.ones_like(ids, dtype=embedded.dtype), self.probability)  # (B, S)
        stays = ids < self.num_special_tokens
        for tag_id in self.tag_ids:
            stays = stays | (ids == tag_id)
        return embedded * kept.masked_fill(stays, 1.0).unsqueeze(-1)
