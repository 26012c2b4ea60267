"""The adapter of optimizers: its state by name, and updates that a bad gradient must not reach."""

from typing import Any

import pytest
import torch
from torch import nn

from transformer_cli.acceleration import optimizers as muon_of_tfm
from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.errors import DataError
from transformer_cli.training import optimizers
from transformer_cli.training.optimizers import Optimizer


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
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


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
def test_a_kernel_that_ignores_found_inf_is_noticed(name: str, request: pytest.FixtureRequest) -> None:
    """D1; tried, not looked up, so that it holds for every device and version of PyTorch."""
    assert Optimizer(nn.Linear(3, 2), training(optimizer=name)).decides_on_device
    request.getfixturevalue("metal")
    assert not Optimizer(nn.Linear(3, 2), training(optimizer=name)).decides_on_device


@pytest.mark.long
@pytest.mark.parametrize("is_metal", [False, True])
@pytest.mark.parametrize("name", ["adam", "adamw", "adafactor", "muon"])
def test_an_update_with_a_bad_gradient_changes_nothing(
    name: str, is_metal: bool, request: pytest.FixtureRequest
) -> None:
    """D1; where the kernel ignores `found_inf`, as on Apple GPUs, the host decides."""
    if is_metal:
        request.getfixturevalue("metal")
    model, optimizer = trained(name)
    assert optimizer.decides_on_device is (name != "adafactor" and not is_metal)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    moments = {name: value.clone() for name, value in optimizer.state().items()}
    gradients_of(model, 3)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, float("nan"))
    optimizer.step_if(torch.tensor(False))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(torch.equal(moments[name], value) for name, value in optimizer.state().items())
    gradients_of(model, 4)
    optimizer.step_if(GOOD)
    assert not torch.equal(before["output.weight"], model.output.weight)


@pytest.mark.long
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
    of_torch = [values for one in optimizer.torch_optimizers for values in one.state.values()]
    assert sum(map(len, of_torch)) == len(expected)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["adam", "adamw", "adafactor", "muon"])
def test_a_state_of_skipped_updates_alone_can_be_restored_and_changes_no_later_update(
    kind: str,
) -> None:
    """In float16 the first updates are often skipped, and a run may be stopped just then."""

    def after_a_skipped_update() -> tuple[Transformer, Optimizer]:
        model = transformer()
        optimizer = Optimizer(model, training(optimizer=kind))
        gradients_of(model, 0)
        optimizer.step_if(torch.tensor(False))
        return model, optimizer

    whole, stopped = after_a_skipped_update(), after_a_skipped_update()
    state = stopped[1].state()
    assert state.keys() == stopped[1].expected_state().keys()
    resumed = transformer()
    resumed_optimizer = Optimizer(resumed, training(optimizer=kind))
    resumed_optimizer.restore(state)
    for model, optimizer in (whole, (resumed, resumed_optimizer)):
        for seed in (1, 2):
            optimizer.learning_rate = 1e-2
            gradients_of(model, seed)
            optimizer.step_if(GOOD)
    for name, value in whole[0].state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_muon_changes_hidden_matrices_and_adamw_all_other_parameters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same as PyTorch's two optimizers, each with its share of the parameters."""
    monkeypatch.setattr(muon_of_tfm, "precision_of_muon", lambda _: torch.bfloat16)  # as PyTorch
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
    adamw = torch.optim.AdamW(groups, lr=0.02, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.1, fused=True)
    optimizer.learning_rate = 0.02
    for number in range(5):
        for one in (model, twin):
            gradients_of(one, number)
        optimizer.step_if(GOOD)
        muon_of_tfm.step(muon)
        muon_of_tfm.step(adamw)
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
        sizes[kind] = sum(tensor.nbytes for tensor in optimizer.expected_state().values())
        gradients_of(model, 0)
        optimizer.step_if(GOOD)
        assert sum(tensor.nbytes for tensor in optimizer.state().values()) == sizes[kind]
    assert sizes["adafactor"] < sizes["muon"] < sizes["adam"]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("kind", ["adam", "adamw"])
@pytest.mark.parametrize("max_norm", [None, 1e-3, 1e3])
def test_clipping_within_the_update_is_clipping_before_it(
    device: str, kind: str, max_norm: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on CUDA, whose kernel divides the gradients; that of a CPU can do it too."""
    found = []
    for is_within in (False, True):
        monkeypatch.setattr(optimizers, "_divides_gradients", lambda *_, is_one=is_within: is_one)
        torch.manual_seed(1)
        model = nn.Linear(5, 3).to(device)
        settings = {"max_steps": 3, "batch_sentences": 1, "optimizer": kind}
        optimizer = Optimizer(model, TrainingConfig.model_validate(settings))
        optimizer.learning_rate = 0.1
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(7, 5).to(device)).square().sum().backward()
            norm = optimizer.measure_and_clip(max_norm)
            optimizer.step_if(torch.isfinite(norm))
        gradients = [one.grad for one in model.parameters()]
        found.append([norm, *model.parameters(), *gradients, *optimizer.state().values()])
    for before, within in zip(*found, strict=True):
        torch.testing.assert_close(within, before)
