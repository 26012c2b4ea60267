"""Gradients are summed over all processes, and the first of them while the backward pass still runs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transformer_cli.training import process_group as module
from transformer_cli.training.process_group import GradientSums, Processes

WIDTH = 4


@dataclass(frozen=True, slots=True)
class Doubles(Processes):
    """This process and another one that has the same gradients; a sum arrives when somebody waits for it."""

    size: int = 2
    is_other_outdated: bool = False
    events: list[str] = field(default_factory=list)

    def begin_sum(self, tensor: Tensor) -> Callable[[], None]:
        self.events.append("sent")
        return partial(tensor.mul_, 2)

    def any_of(self, *claims: bool) -> list[bool]:
        self.events.append("agreed")
        return [*claims[:-1], claims[-1] or self.is_other_outdated]


@pytest.fixture(autouse=True)
def _small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    # One linear layer fills a bucket.
    monkeypatch.setattr(module, "LEAST_BUCKET_BYTES", 4 * (WIDTH * WIDTH + WIDTH))
    monkeypatch.setattr(module, "NUM_BUCKETS", 1000)


def model_of(num_layers: int = 3) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(num_layers)))


def loss_of(model: nn.Module, seed: int) -> Tensor:
    x = torch.randn(5, WIDTH, generator=torch.Generator().manual_seed(seed))
    return (model(x) ** 2).sum()


def gradients_of(model: nn.Module) -> list[Tensor | None]:
    return [parameter.grad for parameter in model.parameters()]


def plain(model: nn.Module, *seeds: int) -> list[Tensor]:
    """The gradients of the sum of the losses, by PyTorch alone."""
    total = torch.stack([loss_of(model, seed) for seed in seeds]).sum()
    return list(torch.autograd.grad(total, list(model.parameters())))


def test_gradients_and_losses_are_sums() -> None:
    model = model_of()
    sums = GradientSums(list(model.parameters())[::-1], Doubles())
    sums.begin(2)
    loss_of(model, 1).backward()
    loss_of(model, 2).backward()
    losses = sums.finish([torch.tensor(3.0), torch.tensor(0.5)])
    for found, expected in zip(gradients_of(model), plain(model, 1, 2), strict=True):
        torch.testing.assert_close(found, 2 * expected)
    assert [loss.tolist() for loss in losses] == [6.0, 1.0]


def test_buckets_leave_while_the_last_backward_pass_runs() -> None:
    model, processes = model_of(), Doubles()
    sums = GradientSums(list(model.parameters())[::-1], processes)
    assert len(sums.buckets) == 3
    for number, layer in enumerate(model):
        assert isinstance(layer, nn.Linear)
        layer.bias.register_hook(lambda _, number=number: processes.events.append(f"layer {number}"))
    sums.begin(2)
    loss_of(model, 1).backward()
    assert "sent" not in processes.events
    processes.events.clear()
    loss_of(model, 2).backward()
    during = processes.events.copy()
    assert during.count("sent") == 2  # the last bucket waits for the losses
    assert during.index("sent") < during.index("layer 0")
    sums.finish([torch.tensor(1.0)])
    assert processes.events[len(during) :] == ["sent", "agreed"]


@pytest.mark.parametrize("who", ["this process", "another one"])
def test_gradients_that_were_computed_again_are_sent_again(who: str) -> None:
    model = model_of()
    processes = Doubles(is_other_outdated=who == "another one")
    sums = GradientSums(list(model.parameters())[::-1], processes)
    if who == "this process":
        sums.begin(1)
        out_of_memory = model[0].register_full_backward_pre_hook(_raise)
        with pytest.raises(MemoryError):
            loss_of(model, 1).backward()
        assert "sent" in processes.events
        out_of_memory.remove()
        model.zero_grad()
    sums.begin(2)
    for seed in (2, 3):
        loss_of(model, seed).backward()
    [loss] = sums.finish([torch.tensor(5.0)])
    assert processes.events[-4:] == ["agreed", "sent", "sent", "sent"]
    for found, expected in zip(gradients_of(model), plain(model, 2, 3), strict=True):
        torch.testing.assert_close(found, 2 * expected)
    assert loss.item() == 10.0


def _raise(*_: Any) -> None:
    raise MemoryError


def test_a_parameter_that_no_process_used_keeps_no_gradient() -> None:
    model = model_of()
    extra = nn.Parameter(torch.ones(3))
    for place in (0, 3, 6):
        parameters = list(model.parameters())[::-1]
        parameters.insert(place, extra)
        model.zero_grad()
        sums = GradientSums(parameters, Doubles())
        sums.begin(1)
        loss_of(model, 1).backward()
        sums.finish([])
        assert extra.grad is None
        for found, expected in zip(gradients_of(model), plain(model, 1), strict=True):
            torch.testing.assert_close(found, 2 * expected)


def test_a_parameter_that_only_another_process_used_gets_its_gradient() -> None:
    @dataclass(frozen=True, slots=True)
    class Uses(Doubles):
        def any_of(self, *claims: bool) -> list[bool]:
            return [True] * (len(claims) - 1) + [False]

    model, extra = model_of(), nn.Parameter(torch.ones(3))
    sums = GradientSums([*list(model.parameters())[::-1], extra], Uses())
    sums.begin(1)
    loss_of(model, 1).backward()
    sums.finish([])
    assert extra.grad is not None
    assert extra.grad.tolist() == [0, 0, 0]  # this process sent zeros, and so did the other one


def test_the_second_update_is_summed_like_the_first() -> None:
    model, processes = model_of(), Doubles()
    sums = GradientSums(list(model.parameters())[::-1], processes)
    for seeds in ((1, 2), (3,)):
        model.zero_grad()
        processes.events.clear()
        sums.begin(len(seeds))
        for seed in seeds:
            loss_of(model, seed).backward()
        sums.finish([])
        assert processes.events == ["sent", "sent", "sent", "agreed"]
        for found, expected in zip(gradients_of(model), plain(model, *seeds), strict=True):
            torch.testing.assert_close(found, 2 * expected)
