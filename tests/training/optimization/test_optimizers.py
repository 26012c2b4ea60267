"""The adapter of optimizers: its state by name, and updates that a bad gradient must not reach."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import nn

from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.errors import DataError
from transformer_cli.model.transformer import Transformer
from transformer_cli.training.fitting import state_bytes
from transformer_cli.training.optimization.conditional_step import Way, way_to_skip
from transformer_cli.training.optimization.optimizers import Optimizer


def training(**settings: object) -> TrainingConfig:
    return TrainingConfig.model_validate({"max_steps": 100, "batch_sentences": 2, **settings})


GOOD = torch.tensor(True)


def stepped(optimizer_name: str) -> tuple[nn.Linear, Optimizer]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = Optimizer(model, training(optimizer=optimizer_name))
    optimizer.learning_rate = 0.1
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).square().sum().backward()
        optimizer.step_if(GOOD)
    return model, optimizer


def transformer(tying: str = "none") -> Transformer:
    torch.manual_seed(0)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1}
    return Transformer(ModelConfig.model_validate({**sizes, "tie_embeddings": tying}), 9, 9).eval()


def gradients_of(model: Transformer, number: int) -> None:
    """Gradients that differ at each update."""
    model.zero_grad()
    ids = torch.tensor([[4 + number % 5, 5, 3]])
    model(ids, torch.ones_like(ids, dtype=torch.bool), ids).square().sum().backward()


def assert_same(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name, value in one.items() if not torch.equal(value, other[name])] == []


def trained(optimizer_name: str) -> tuple[Transformer, Optimizer]:
    model = transformer()
    optimizer = Optimizer(model, training(optimizer=optimizer_name))
    optimizer.learning_rate = 0.01
    for number in range(3):
        gradients_of(model, number)
        optimizer.step_if(GOOD)
    return model, optimizer


@pytest.mark.parametrize("name", ["adam", "adamw", "adafactor", "muon"])
def test_a_restored_optimizer_makes_the_same_next_update(name: str) -> None:
    model, optimizer = trained(name)
    twin = transformer()
    twin.load_state_dict(model.state_dict())
    twin_optimizer = Optimizer(twin, training(optimizer=name))
    twin_optimizer.restore(optimizer.state())
    for one, its_optimizer in ((model, optimizer), (twin, twin_optimizer)):
        its_optimizer.learning_rate = 0.05
        gradients_of(one, 9)
        its_optimizer.step_if(GOOD)
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True)
    )


def test_without_its_moments_the_next_update_differs() -> None:
    model, _ = stepped("adam")
    weights = model.weight.detach().clone()
    fresh = Optimizer(model, training())
    fresh.learning_rate = 0.05
    model(torch.ones(4, 3)).sum().backward()
    fresh.step_if(GOOD)
    kept_model, kept = stepped("adam")
    kept.learning_rate = 0.05
    kept_model(torch.ones(4, 3)).sum().backward()
    kept.step_if(GOOD)
    assert not torch.equal(model.weight, kept_model.weight)
    assert not torch.equal(model.weight, weights)


def test_weight_decay_touches_matrices_only() -> None:
    model = nn.Linear(3, 2)
    optimizer = Optimizer(model, training(optimizer="adamw", weight_decay=0.5)).torch_optimizers[0]
    decayed = {id(p) for g in optimizer.param_groups if g["weight_decay"] for p in g["params"]}
    assert decayed == {id(model.weight)}


def test_foreign_tensors_are_refused() -> None:
    _, optimizer = stepped("adam")
    with pytest.raises(DataError, match=r"other\.weight\.exp_avg does not belong"):
        optimizer.restore({"other.weight.exp_avg": torch.zeros(2, 3)})
    with pytest.raises(DataError, match=r"weight\.exp_avg does not belong"):
        optimizer.restore({"weight.exp_avg": torch.zeros(9)})


@pytest.fixture
def metal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fused kernels that accept `found_inf` and ignore it, as those of PyTorch for Apple GPUs."""
    for name in ("_fused_adam_", "_fused_adamw_"):
        kernel = getattr(torch, name)

        def ignoring(*tensors: object, kernel: Any = kernel, **settings: object) -> None:
            kernel(*tensors, **{**settings, "found_inf": None})

        monkeypatch.setattr(torch, name, ignoring)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_a_kernel_that_ignores_found_inf_is_noticed(
    name: str, request: pytest.FixtureRequest
) -> None:
    """D1; tried, not looked up, so that it holds for every device and version of PyTorch."""
    assert Optimizer(nn.Linear(3, 2), training(optimizer=name)).ways_to_skip == ["kernel"]
    request.getfixturevalue("metal")
    assert Optimizer(nn.Linear(3, 2), training(optimizer=name)).ways_to_skip == ["read"]


@pytest.mark.parametrize(
    ("name", "ways"),
    [
        *(("adam", [way]) for way in ("kernel", "undone", "read")),
        *(("adamw", [way]) for way in ("kernel", "undone", "read")),
        ("adafactor", ["read"]),
        ("muon", ["undone", "kernel"]),
        ("muon", ["undone", "undone"]),
        ("muon", ["read", "kernel"]),
    ],
)
def test_an_update_with_a_bad_gradient_changes_nothing(name: str, ways: list[Way]) -> None:
    """D1; and a good one changes the same in every way."""
    model, optimizer = trained(name)
    optimizer.ways_to_skip = ways
    before = {name: value.clone() for name, value in model.state_dict().items()}
    moments = {name: value.clone() for name, value in optimizer.state().items()}
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, float("nan"))
    optimizer.step_if(torch.tensor(False))
    assert_same(before, model.state_dict())
    assert_same(moments, optimizer.state())
    undisturbed, its_optimizer = trained(name)
    for one, of_one in ((model, optimizer), (undisturbed, its_optimizer)):
        gradients_of(one, 4)
        of_one.step_if(GOOD)
    assert not torch.equal(before["output.weight"], model.output.weight)
    assert_same(undisturbed.state_dict(), model.state_dict())
    assert_same(its_optimizer.state(), optimizer.state())


@pytest.mark.parametrize("way", ["kernel", "undone"])
@pytest.mark.parametrize("name", ["adam", "muon"])
def test_a_bad_gradient_of_the_first_update_leaves_moments_of_zero(name: str, way: Way) -> None:
    model = transformer()
    optimizer = Optimizer(model, training(optimizer=name))
    optimizer.ways_to_skip = [way] if name == "adam" else ["undone", way]
    optimizer.learning_rate = 0.1
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, float("inf"))
    optimizer.step_if(torch.tensor(False))
    assert_same(before, model.state_dict())
    assert optimizer.state().keys() == optimizer.expected_state().keys()
    assert not any(value.any() for value in optimizer.state().values())


@pytest.mark.parametrize(
    ("device", "kind", "way"),
    [
        ("cpu", torch.optim.Muon, "read"),
        ("cpu", torch.optim.Adam, "kernel"),
        ("meta", torch.optim.Muon, "undone"),
        ("meta", torch.optim.Adam, "undone"),
        ("meta", torch.optim.Adafactor, "read"),
    ],
)
def test_only_on_a_cpu_the_host_decides_where_no_kernel_does(
    device: str, kind: type[torch.optim.Optimizer], way: str
) -> None:
    """The meta device stands for a GPU whose fused Adam ignores `found_inf`, as those of Apple."""
    assert way_to_skip(kind, torch.device(device)) == way


@pytest.mark.parametrize("tying", ["none", "target-output", "all"])
@pytest.mark.parametrize("kind", ["adam", "adamw", "adafactor", "muon"])
def test_the_state_has_exactly_the_tensors_that_are_expected(kind: str, tying: str) -> None:
    """What a resumed run expects of a checkpoint is what PyTorch's optimizer really has."""
    model = transformer(tying)
    optimizer = Optimizer(model, training(optimizer=kind))
    gradients_of(model, 0)
    optimizer.step_if(GOOD)
    found, expected = optimizer.state(), optimizer.expected_state()
    assert {name: (tensor.shape, tensor.dtype) for name, tensor in found.items()} == {
        name: (tensor.shape, tensor.dtype) for name, tensor in expected.items()
    }


def test_muon_changes_hidden_matrices_and_adamw_all_other_parameters() -> None:
    """The same as PyTorch's two optimizers, each with its share of the parameters."""
    settings = training(optimizer="muon", weight_decay=0.1, betas=(0.8, 0.9), epsilon=1e-6)
    model, twin = transformer("target-output"), transformer("target-output")
    optimizer = Optimizer(model, settings)
    hidden, tables, vectors = [], [], []
    for name, parameter in twin.named_parameters():
        is_table = "embedding" in name or name == "output.weight"
        (tables if is_table else hidden if parameter.ndim == 2 else vectors).append(parameter)
    assert len(hidden) == 4 + 2 + 8 + 2
    assert len(tables) == 2
    muon = torch.optim.Muon(hidden, lr=0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    groups = [{"params": tables}, {"params": vectors, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(
        groups, lr=0.02, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.1, fused=True
    )
    optimizer.learning_rate = 0.02
    for number in range(5):
        for one in (model, twin):
            gradients_of(one, number)
        optimizer.step_if(GOOD)
        muon.step()
        adamw.step()
    for (name, one), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert torch.equal(one, other), name


def test_an_update_of_muon_is_as_large_as_one_of_adamw() -> None:
    """So one learning rate serves both: about 0.2 per number, whatever the shape (Liu et al. 2025)."""
    model = transformer()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = Optimizer(model, training(optimizer="muon", weight_decay=0.0))
    optimizer.learning_rate = 1.0
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step_if(GOOD)
    for name, value in model.state_dict().items():
        if name.endswith(("up.weight", "down.weight")):
            size = (value - before[name]).square().mean().sqrt().item()
            assert 0.1 < size < 0.3, name


def test_an_update_of_adafactor_is_its_formula() -> None:
    """Shazeer and Stern 2018, algorithms 4 and 5, in float64; `torch.optim.Adafactor` divides by the row mean."""
    model = transformer()
    weight, bias = model.encoder.layers[0].feed_forward.up.parameters()
    optimizer = Optimizer(model, training(optimizer="adafactor"))
    optimizer.learning_rate = 0.02
    rows, columns, squares = (torch.zeros(n, dtype=torch.float64) for n in (16, 8, 16))
    expected = [weight.detach().double(), bias.detach().double()]
    for step in range(1, 6):
        gradients_of(model, step)
        kept = 1 - step**-0.8
        of_weight, of_bias = (p.grad.double() for p in (weight, bias) if p.grad is not None)
        rows = kept * rows + (1 - kept) * of_weight.square().mean(1)
        columns = kept * columns + (1 - kept) * of_weight.square().mean(0)
        squares = kept * squares + (1 - kept) * of_bias.square()
        means = rows[:, None] * columns / rows.mean(), squares
        rate = min(0.02, step**-0.5)
        for number, (gradient, mean) in enumerate(zip((of_weight, of_bias), means, strict=True)):
            change = gradient / mean.sqrt().clamp(min=torch.finfo(torch.float32).eps)
            change /= max(1.0, change.square().mean().sqrt().item())
            size = max(1e-3, expected[number].square().mean().sqrt().item())
            expected[number] = expected[number] - rate * size * change
        optimizer.step_if(GOOD)
    torch.testing.assert_close(weight.double(), expected[0], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(bias.double(), expected[1], rtol=1e-4, atol=1e-6)


def test_parameters_without_a_gradient_have_no_state() -> None:
    for kind in ("adam", "adamw", "adafactor", "muon"):
        model = transformer()
        model.encoder.requires_grad_(False)
        optimizer = Optimizer(model, training(optimizer=kind))
        gradients_of(model, 0)
        optimizer.step_if(GOOD)
        assert optimizer.state().keys() == optimizer.expected_state().keys()
        assert not any(name.startswith("encoder.") for name in optimizer.state())


def test_the_state_in_memory_is_that_of_the_optimizer() -> None:
    """The estimate of memory before a run counts what the optimizer allocates at its first update."""
    sizes = {}
    for kind in ("adam", "adafactor", "muon"):
        model = transformer()
        optimizer = Optimizer(model, training(optimizer=kind))
        sizes[kind] = state_bytes(optimizer)
        gradients_of(model, 0)
        optimizer.step_if(GOOD)
        assert sum(tensor.nbytes for tensor in optimizer.state().values()) == sizes[kind]
    assert sizes["adafactor"] < sizes["muon"] < sizes["adam"]
