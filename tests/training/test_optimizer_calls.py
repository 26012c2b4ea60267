"""Optimizers without the import of a tracer: the same updates, and the same hooks."""

from typing import Any

import pytest
import torch
from torch import nn

from transformer_cli.acceleration.optimizers import step


@pytest.mark.long  # the method imports the tracer
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.Adam, {"fused": True}),
        (torch.optim.AdamW, {"fused": True, "weight_decay": 0.1}),
        (torch.optim.Adafactor, {}),
        (torch.optim.Muon, {"adjust_lr_fn": "match_rms_adamw"}),
    ],
)
def test_an_update_is_that_of_the_method_step(kind: Any, options: dict[str, Any]) -> None:
    weights = []
    for update in (step, lambda optimizer: optimizer.step()):
        torch.manual_seed(0)
        parameter = nn.Parameter(torch.randn(6, 4))
        optimizer = kind([parameter], lr=0.01, **options)
        calls: list[object] = []
        optimizer.register_step_post_hook(lambda *_, calls=calls: calls.append(None))
        for _ in range(4):
            parameter.grad = torch.randn(6, 4)
            update(optimizer)
        assert len(calls) == 4
        assert parameter.requires_grad
        weights.append(parameter.detach())
    assert torch.equal(*weights)
