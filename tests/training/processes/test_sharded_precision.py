"""`runtime.sharding: full` on GPUs: weights travel in the precision of products, gradients are added up in float32."""

from typing import Any

import pytest
import torch

from transformer_cli.training.process_group import Processes, shard

from ...model.samples import small_model


@pytest.mark.long
@pytest.mark.parametrize(
    ("device", "precision", "expected"),
    [
        ("cuda", torch.bfloat16, (torch.bfloat16, torch.float32)),
        ("cuda", torch.float32, (None, None)),
        ("cpu", torch.bfloat16, (None, None)),
    ],
)
def test_whole_weights_are_in_the_precision_of_products_on_a_gpu(
    device: str,
    precision: torch.dtype,
    expected: tuple[torch.dtype | None, torch.dtype | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torch.distributed import device_mesh, fsdp  # takes a second

    policies: list[Any] = []
    monkeypatch.setattr(device_mesh, "init_device_mesh", lambda *_: None)
    monkeypatch.setattr(fsdp, "fully_shard", lambda part, *, mesh, mp_policy: policies.append(mp_policy))
    monkeypatch.setattr(fsdp, "register_fsdp_forward_method", lambda *_: None)
    model = small_model(torch.float32)
    shard(model, torch.device(device), Processes(size=2), precision)
    assert len(policies) == 2 + 2 + 1
    assert {(one.param_dtype, one.reduce_dtype) for one in policies} == {expected}
