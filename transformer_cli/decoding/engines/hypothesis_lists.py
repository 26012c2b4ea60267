"""The hypotheses of a search as lists, without padding."""

from collections.abc import Iterator

import torch

from transformer_cli.decoding.engine import Hypothesis
from transformer_cli.decoding.search.hypotheses import Hypotheses


def hypothesis_lists(hypotheses: Hypotheses) -> Iterator[list[Hypothesis]]:
    """The hypotheses of each sentence, without padding."""
    fields = (hypotheses.ids, hypotheses.lengths, hypotheses.scores)
    for of_sentence in zip(*(field.tolist() for field in fields), strict=True):
        yield [
            Hypothesis(tuple(ids[:length]), score)
            for ids, length, score in zip(*of_sentence, strict=True)
            if score > -torch.inf
        ]
