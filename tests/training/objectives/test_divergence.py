"""The symmetric divergence of two predictions: value and gradient against PyTorch's own functions."""

import pytest
import torch
from torch.nn import functional as F

from transformer_cli.training.objectives import divergence
from transformer_cli.training.objectives.divergence import symmetric_divergence


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


@pytest.mark.parametrize("max_per_thread", [1, 20, 10**6], ids=["one row", "parts", "one part"])
def test_value_and_gradients_are_those_of_pytorchs_kl_divergence(
    monkeypatch: pytest.MonkeyPatch, max_per_thread: int
) -> None:
    monkeypatch.setattr(divergence, "MAX_PER_THREAD", max_per_thread)
    ours, theirs = samples(), samples()
    found, expected = symmetric_divergence(*ours), by_pytorch(*theirs)
    (2.5 * found).backward()
    (2.5 * expected).backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    for one, other in zip(ours[:2], theirs[:2], strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-13)


def test_the_gradient_is_that_of_finite_differences() -> None:
    logits, others, is_real = samples()
    assert torch.autograd.gradcheck(lambda a, b: symmetric_divergence(a, b, is_real), (logits, others))  # fmt: skip


def test_equal_predictions_have_no_divergence_and_no_gradient() -> None:
    logits, _, is_real = samples()
    copy = logits.detach().clone().requires_grad_()
    found = symmetric_divergence(logits, copy, is_real)
    found.backward()
    assert found.item() == 0.0
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-15


def test_bfloat16_logits_are_widened_and_get_a_gradient_of_their_own_type() -> None:
    wide = samples(torch.float32)
    narrow = [one.detach().to(torch.bfloat16).requires_grad_() for one in wide[:2]]
    found = symmetric_divergence(*narrow, wide[2])
    found.backward()
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(by_pytorch(*wide).item(), rel=0.02)
    assert all(one.grad is not None and one.grad.dtype == torch.bfloat16 for one in narrow)
