"""The losses in parts: memory, and the symmetric divergence against PyTorch's own functions (the sums: tests/model/test_loss.py)."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_cli.acceleration import losses
from transformer_cli.acceleration.losses import (
    sum_loss_in_parts,
    symmetric_divergence_in_parts,
)
from transformer_cli.model.loss import Divergence, SmoothedLabels, symmetric_divergence

FORMS = pytest.mark.parametrize(
    "divergence", [symmetric_divergence, symmetric_divergence_in_parts], ids=["plain", "in parts"]
)


def samples(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    logits, others = (3 * torch.randn(3, 5, 7, generator=generator, dtype=dtype) for _ in range(2))
    is_real = torch.ones(3, 5, dtype=torch.bool)
    is_real[1, 3:] = False
    is_real[2, 1:] = False
    return logits.requires_grad_(), others.requires_grad_(), is_real


def by_pytorch(logits: torch.Tensor, others: torch.Tensor, is_real: torch.Tensor) -> torch.Tensor:
    log_p, log_q = (one[is_real].log_softmax(-1) for one in (logits, others))
    there = F.kl_div(log_q, log_p, reduction="sum", log_target=True)
    back = F.kl_div(log_p, log_q, reduction="sum", log_target=True)
    return there + back


@FORMS
@pytest.mark.parametrize("max_per_thread", [1, 20, 10**6], ids=["one row", "parts", "one part"])
def test_value_and_gradients_are_those_of_pytorchs_kl_divergence(
    monkeypatch: pytest.MonkeyPatch, max_per_thread: int, divergence: Divergence
) -> None:
    monkeypatch.setattr(losses, "MAX_PER_THREAD", max_per_thread)
    ours, theirs = samples(), samples()
    found, expected = divergence(*ours), by_pytorch(*theirs)
    (2.5 * found).backward()
    (2.5 * expected).backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    for one, other in zip(ours[:2], theirs[:2], strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-13)


@FORMS
def test_the_gradient_is_that_of_finite_differences(divergence: Divergence) -> None:
    logits, others, is_real = samples()
    assert torch.autograd.gradcheck(lambda a, b: divergence(a, b, is_real), (logits, others))


@FORMS
def test_equal_predictions_have_no_divergence_and_no_gradient(divergence: Divergence) -> None:
    logits, _, is_real = samples()
    copy = logits.detach().clone().requires_grad_()
    found = divergence(logits, copy, is_real)
    found.backward()
    assert found.item() == 0.0
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-15


@FORMS
def test_bfloat16_logits_are_widened_and_get_a_gradient_of_their_own_type(
    divergence: Divergence,
) -> None:
    wide = samples(torch.float32)
    narrow = [one.detach().to(torch.bfloat16).requires_grad_() for one in wide[:2]]
    found = divergence(*narrow, wide[2])
    found.backward()
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(by_pytorch(*wide).item(), rel=0.02)
    assert all(one.grad is not None and one.grad.dtype == torch.bfloat16 for one in narrow)


@pytest.mark.long
def test_no_tensor_beside_the_gradient_is_as_large_as_the_logits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Log-probabilities and their gradients of the whole batch took most of the memory of a step."""
    monkeypatch.setattr(losses, "MAX_PER_THREAD", 300)
    logits = torch.randn(4, 10, 30, requires_grad=True)
    with Sizes() as sizes:
        labels = SmoothedLabels.of(30, 1, 0.1, "vocabulary")
        sum_loss_in_parts(logits, torch.randint(30, (4, 10)), labels).objective.backward()
    assert sum(size >= logits.numel() for size in sizes.of_new) == 1


class Sizes(TorchDispatchMode):
    """Notes how many numbers each new tensor has; a view of another tensor is not new."""

    def __init__(self) -> None:
        super().__init__()
        self.of_new: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        known = {a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)}
        if isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() not in known:
            self.of_new.append(result.untyped_storage().nbytes() // result.element_size())
        return result
