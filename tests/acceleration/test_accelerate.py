"""The seam: twins stand in for plain modules and losses, and everything else stays as it is."""

import copy

import pytest
import torch
from torch import nn

from transformer_cli.acceleration import accelerate, accelerated_loss, plain_class
from transformer_cli.acceleration.accelerate import TWINS_ON_CPU, TWINS_ON_GPU
from transformer_cli.model.loss import SmoothedLabels, likelihood_loss, r_drop_loss

from ..model.samples import results, sample, small_model

CPU, OTHER = torch.device("cpu"), torch.device("meta")
VARIANTS = [
    {},
    {"positions": "rotary", "norm": "rmsnorm", "activation": "swiglu", "num_kv_heads": 1},
    {"norm_placement": "post", "tie_embeddings": "target-output", "embedding_norm": True},
]


@pytest.mark.long
@pytest.mark.parametrize("device", [CPU, OTHER], ids=str)
@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_an_accelerated_model_has_the_logits_and_gradients_of_the_plain_one(
    device: torch.device, settings: dict[str, object]
) -> None:
    torch.manual_seed(1)
    model, batch = small_model(**settings), sample()
    twin = accelerate(copy.deepcopy(model), device)
    assert list(twin.state_dict()) == list(model.state_dict())
    found, expected = results(twin, batch), results(model, batch)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("device", [CPU, OTHER], ids=str)
def test_each_module_with_a_twin_is_replaced_and_the_others_stay(device: torch.device) -> None:
    model = small_model(norm="layernorm")
    plain = [type(module) for module in model.modules()]
    twins = TWINS_ON_CPU if device == CPU else TWINS_ON_GPU
    assert set(twins) <= set(plain)
    accelerate(model, device)
    assert [type(one) for one in model.modules()] == [twins.get(kind, kind) for kind in plain]
    assert [plain_class(one) for one in model.modules()] == plain


def test_a_model_can_be_accelerated_for_another_device() -> None:
    model = small_model()
    plain = [type(module) for module in model.modules()]
    accelerate(accelerate(model, CPU), OTHER)
    expected = [TWINS_ON_GPU.get(kind, kind) for kind in plain]
    assert [type(one) for one in model.modules()] == expected


@pytest.mark.long
@pytest.mark.parametrize("device", [CPU, OTHER], ids=str)
@pytest.mark.parametrize("r_drop", [None, 5.0])
def test_the_loss_of_each_device_is_the_plain_one(
    device: torch.device, r_drop: float | None
) -> None:
    torch.manual_seed(1)
    plain = likelihood_loss if r_drop is None else r_drop_loss
    loss = accelerated_loss(plain, device)
    assert loss is not plain
    ids, output = torch.randint(9, (3, 4)), nn.Linear(5, 9).double()
    decoded = torch.randn(3 if r_drop is None else 6, 4, 5, dtype=torch.float64)
    labels = SmoothedLabels.of(9, 1, 0.1, "others")
    given = (output, decoded, ids, labels, *([] if r_drop is None else [r_drop]))
    torch.testing.assert_close(loss(*given), plain(*given), rtol=1e-12, atol=0)
