"""The seam: twins stand in for plain modules and losses, and everything else stays as it is."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_cli.acceleration import accelerate, accelerated_loss, plain_class
from transformer_cli.acceleration.accelerate import (
    TWINS_ON_CPU,
    TWINS_ON_GPU,
    FusedAttention,
    with_cast_layers,
)
from transformer_cli.acceleration.losses import sum_loss_in_parts
from transformer_cli.model.loss import SmoothedLabels, likelihood_loss, r_drop_loss

from ..model.samples import results, sample, small_model

CPU, OTHER = torch.device("cpu"), torch.device("meta")
VARIANTS = [
    {},
    {"positions": "rotary", "norm": "rmsnorm", "activation": "swiglu", "num_kv_heads": 1},
    {"norm_placement": "post", "tie_embeddings": "target-output", "embedding_norm": True},
    {"decoder_layer": "ssru"},
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
    model = nn.ModuleList(small_model(decoder_layer=one) for one in ("attention", "ssru"))
    plain = [type(module) for module in model.modules()]
    twins = TWINS_ON_CPU if device == CPU else TWINS_ON_GPU
    assert set(twins) <= set(plain)
    for one in model:
        accelerate(one, device)
    assert [type(one) for one in model.modules()] == [twins.get(kind, kind) for kind in plain]
    assert [plain_class(one) for one in model.modules()] == plain


@pytest.mark.parametrize(("version", "is_fused"), [("2.11.0", False), ("2.12.1+cpu", True)])
def test_an_apple_gpu_takes_plain_attention_where_the_fused_one_is_wrong(
    version: str, is_fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    model = accelerate(small_model(), torch.device("mps"))
    assert any(type(one) is FusedAttention for one in model.modules()) == is_fused


def test_a_model_can_be_accelerated_for_another_device() -> None:
    model = small_model()
    plain = [type(module) for module in model.modules()]
    accelerate(accelerate(model, CPU), OTHER)
    expected = [TWINS_ON_GPU.get(kind, kind) for kind in plain]
    assert [type(one) for one in model.modules()] == expected


@pytest.mark.long
@pytest.mark.parametrize("device", [CPU, OTHER], ids=str)
@pytest.mark.parametrize("r_drop", [None, 5.0])
def test_the_loss_of_each_device_is_the_plain_one(device: torch.device, r_drop: float | None) -> None:
    torch.manual_seed(1)
    plain = likelihood_loss if r_drop is None else r_drop_loss
    loss = accelerated_loss(plain, device)
    assert loss is not plain
    ids, output = torch.randint(9, (3, 4)), nn.Linear(5, 9).double()
    decoded = torch.randn(3 if r_drop is None else 6, 4, 5, dtype=torch.float64)
    labels = SmoothedLabels.of(9, 1, 0.1, "others")
    given = (output, decoded, ids, labels, *([] if r_drop is None else [r_drop]))
    torch.testing.assert_close(loss(*given), plain(*given), rtol=1e-12, atol=0)


@pytest.mark.parametrize("device", [CPU, OTHER], ids=str)
def test_a_loss_without_a_twin_is_no_other_loss(device: torch.device) -> None:
    with pytest.raises(KeyError):
        accelerated_loss(sum_loss_in_parts, device)


class CastsOfMatrices(TorchDispatchMode):
    """Counts the matrices of weights that are cast to another precision."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.weights = {one.data_ptr() for one in model.parameters() if one.dim() == 2}
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.name() in ("aten::_to_copy", "aten::to.dtype", "aten::to.dtype_layout"):
            self.count += args[0].data_ptr() in self.weights
        return func(*args, **(kwargs or {}))


@pytest.mark.long
@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_cast_layers_give_the_results_of_autocast_without_a_cast_of_weights(
    settings: dict[str, object], precision: torch.dtype
) -> None:
    torch.manual_seed(1)
    # Other numbers of outputs would be copied into aligned matrices, which this counter does not see.
    sizes: dict[str, object] = {"d_model": 16, "d_ff": 8}
    model = accelerate(small_model(**sizes | settings).float().eval(), OTHER)
    cast = with_cast_layers(model, precision)
    source, mask, *_ = batch = sample()[:3]
    found, counts = [], []
    for one in (model, cast):
        with (
            torch.inference_mode(),
            torch.autocast("cpu", precision),
            CastsOfMatrices(one) as casts,
        ):
            logits = one(*batch)
            state = one.start_decoding(one.encode(source, mask), mask)
            steps = [state.advance(torch.full((len(source),), 5)) for _ in range(3)]
        found.append((logits, *steps))
        counts.append(casts.count)
    assert all(map(torch.equal, *found))
    assert counts[0] > 3 * len(model.decoder.layers)
    assert counts[1] == 0
    shared = [one for one in cast.parameters() if one.dtype == torch.float32]
    assert shared
    assert all(any(one is other for other in model.parameters()) for one in shared)
    assert {one.dtype for one in model.parameters()} == {torch.float32}, "the model stays as it is"
