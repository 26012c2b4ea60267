"""A session of training: what it does beside the updates."""

from typing import Any, cast

import pytest
import torch
from torch import nn

from transformer_cli.training.joining import StoppedError
from transformer_cli.training.session import _between_batches


def test_a_validation_is_asked_before_each_batch_whether_it_must_stop() -> None:
    model: Any = nn.Module()
    model.encoder = nn.Identity()
    answers, encoded = [False, False, True, False], []

    def encode_until_stopped() -> None:
        with _between_batches(cast(Any, model), lambda: answers.pop(0)):
            while True:
                encoded.append(model.encoder(torch.zeros(1)))

    with pytest.raises(StoppedError):
        encode_until_stopped()
    assert (len(encoded), answers) == (2, [False])
    model.encoder(torch.zeros(1))
    assert answers == [False], "nobody asks after the block"
