"""The loss equals those of PyTorch and of a tutorial, and padding does not change it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from transformer_cli.acceleration import losses
from transformer_cli.acceleration.losses import sum_loss_in_parts
from transformer_cli.config.schema import SmoothedOver
from transformer_cli.model.loss import LossSums, SmoothedLabels, SumLoss, sum_loss

PAD_ID = 1
FORMS = pytest.mark.parametrize("form", [sum_loss, sum_loss_in_parts], ids=["plain", "in parts"])


def summed(
    form: SumLoss,
    logits: torch.Tensor,
    target_ids: torch.Tensor,
    label_smoothing: float = 0.1,
    smoothed_over: SmoothedOver = "vocabulary",
) -> LossSums:
    labels = SmoothedLabels.of(logits.size(-1), PAD_ID, label_smoothing, smoothed_over)
    return form(logits, target_ids, labels)


@pytest.mark.long
@FORMS
@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**31),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(2, 9)),
    label_smoothing=st.sampled_from([0.0, 0.1, 0.5, 0.99]),
)
def test_the_loss_is_pytorchs_cross_entropy_in_value_and_gradient(
    form: SumLoss, seed: int, shape: tuple[int, int, int], label_smoothing: float
) -> None:
    torch.manual_seed(seed)
    logits = (5 * torch.randn(shape, dtype=torch.float64)).requires_grad_()
    target_ids = torch.randint(shape[-1], shape[:2])
    sums = summed(form, logits, target_ids, label_smoothing=label_smoothing)
    expected, likelihood = (
        F.cross_entropy(
            logits.flatten(0, 1),
            target_ids.flatten(),
            ignore_index=PAD_ID,
            label_smoothing=smoothing,
            reduction="sum",
        )
        for smoothing in (label_smoothing, 0.0)
    )
    torch.testing.assert_close(sums.objective, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(sums.negative_log_likelihood, likelihood.detach(), rtol=1e-12, atol=1e-12)
    found = torch.autograd.grad(sums.objective, logits)[0]
    torch.testing.assert_close(found, torch.autograd.grad(expected, logits)[0], rtol=1e-12, atol=1e-12)


@FORMS
def test_without_smoothing_the_objective_is_the_likelihood(form: SumLoss) -> None:
    sums = summed(form, torch.randn(2, 3, 5), torch.tensor([[2, 3, 1], [4, 1, 1]]), label_smoothing=0.0)
    assert torch.equal(sums.objective, sums.negative_log_likelihood)


@FORMS
def test_padding_does_not_change_the_loss(form: SumLoss) -> None:
    torch.manual_seed(1)
    logits, target_ids = torch.randn(2, 5, 7, dtype=torch.float64), torch.randint(2, 7, (2, 5))
    target_ids[:, 3:] = PAD_ID
    logits[:, 3:] = 1e3 * torch.randn(2, 2, 7)
    padded = summed(form, logits, target_ids, label_smoothing=0.1)
    cut = summed(form, logits[:, :3], target_ids[:, :3], label_smoothing=0.1)
    torch.testing.assert_close(padded, cut, rtol=1e-12, atol=0)


@FORMS
def test_sums_over_parts_of_a_batch_add_up(form: SumLoss) -> None:
    torch.manual_seed(1)
    logits, target_ids = torch.randn(4, 3, 7, dtype=torch.float64), torch.randint(0, 7, (4, 3))
    whole = summed(form, logits, target_ids, label_smoothing=0.1)
    parts = [summed(form, logits[i : i + 1], target_ids[i : i + 1], label_smoothing=0.1) for i in range(4)]
    torch.testing.assert_close(whole.objective, sum(part.objective for part in parts))


@FORMS
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_no_tokens_cost_nothing(form: SumLoss, label_smoothing: float) -> None:
    logits = torch.randn(2, 3, 5, requires_grad=True)
    sums = summed(form, logits, torch.full((2, 3), PAD_ID), label_smoothing=label_smoothing)
    sums.objective.backward()
    assert sums.objective.item() == sums.negative_log_likelihood.item() == 0.0
    assert torch.equal(logits.grad, torch.zeros(2, 3, 5))


@FORMS
def test_bfloat16_logits_are_summed_in_float32(form: SumLoss) -> None:
    torch.manual_seed(1)
    logits = torch.randn(8, 16, 1000).bfloat16()
    target_ids = torch.randint(2, 1000, (8, 16))
    found = summed(form, logits, target_ids, label_smoothing=0.1)
    exact = summed(form, logits.double(), target_ids, label_smoothing=0.1)
    assert found.objective.dtype == torch.float32
    assert found.objective.item() == pytest.approx(exact.objective.item(), rel=1e-6)


@FORMS
def test_only_the_objective_has_a_gradient(form: SumLoss) -> None:
    sums = summed(
        form,
        torch.randn(1, 2, 5, requires_grad=True),
        torch.tensor([[2, 3]]),
        label_smoothing=0.1,
    )
    assert sums.objective.requires_grad
    assert not sums.negative_log_likelihood.requires_grad


def smoothed_as_in_the_walk_through(
    logits: torch.Tensor, target_ids: torch.Tensor, label_smoothing: float
) -> torch.Tensor:
    """KL divergence from labels in which padding has no mass, row by row: The Annotated Transformer's formula."""
    vocab_size = logits.shape[-1]
    labels = torch.full_like(logits, label_smoothing / (vocab_size - 2)).detach()
    labels.scatter_(-1, target_ids.unsqueeze(-1), 1 - label_smoothing)
    labels[..., PAD_ID] = 0.0
    labels[target_ids == PAD_ID] = 0.0
    return F.kl_div(logits.log_softmax(-1), labels, reduction="sum")


@pytest.mark.long
@FORMS
@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**31),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(4, 9)),
    label_smoothing=st.sampled_from([0.1, 0.4]),
)
def test_smoothing_over_others_equals_the_walk_throughs_divergence_up_to_a_constant(
    form: SumLoss, seed: int, shape: tuple[int, int, int], label_smoothing: float
) -> None:
    torch.manual_seed(seed)
    logits = (5 * torch.randn(shape, dtype=torch.float64)).requires_grad_()
    target_ids = torch.randint(shape[-1], shape[:2])
    found = summed(
        form,
        logits,
        target_ids,
        label_smoothing=label_smoothing,
        smoothed_over="others",
    ).objective
    expected = smoothed_as_in_the_walk_through(logits, target_ids, label_smoothing)
    # The divergence leaves out the labels' own entropy, which no weight can change.
    others = label_smoothing / (shape[-1] - 2)
    entropy = -(1 - label_smoothing) * math.log(1 - label_smoothing) - label_smoothing * math.log(others)
    num_real = int((target_ids != PAD_ID).sum())
    torch.testing.assert_close(found, expected + num_real * entropy, rtol=1e-12, atol=1e-10)
    gradients = [torch.autograd.grad(loss, logits)[0] for loss in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


@FORMS
def test_both_ways_of_smoothing_agree_where_padding_is_no_choice(form: SumLoss) -> None:
    """Over V - 1 symbols, mass e on the V - 2 others is mass e (V - 1) / (V - 2) on all of them."""
    torch.manual_seed(1)
    vocab_size, label_smoothing = 9, 0.1
    logits = torch.randn(4, 5, vocab_size, dtype=torch.float64)
    target_ids = torch.randint(2, vocab_size, (4, 5))
    logits[..., PAD_ID] = -1e4  # probability 0, but a finite term in the sum
    found = summed(
        form,
        logits,
        target_ids,
        label_smoothing=label_smoothing,
        smoothed_over="others",
    )
    is_no_padding = torch.arange(vocab_size) != PAD_ID
    expected = F.cross_entropy(
        logits[..., is_no_padding].flatten(0, 1),
        (target_ids - 1).flatten(),  # ids above PAD_ID move down by one
        label_smoothing=label_smoothing * (vocab_size - 1) / (vocab_size - 2),
        reduction="sum",
    )
    torch.testing.assert_close(found.objective, expected, rtol=1e-12, atol=1e-9)


@FORMS
def test_both_ways_of_smoothing_differ_elsewhere_and_agree_without_smoothing(form: SumLoss) -> None:
    torch.manual_seed(1)
    logits, target_ids = torch.randn(4, 5, 9), torch.randint(2, 9, (4, 5))
    for label_smoothing in (0.1, 0.0):
        of_all, of_others = (
            summed(
                form,
                logits,
                target_ids,
                label_smoothing=label_smoothing,
                smoothed_over=over,
            )
            for over in ("vocabulary", "others")
        )
        assert torch.equal(of_all.objective, of_others.objective) == (label_smoothing == 0.0)
        assert torch.equal(of_all.negative_log_likelihood, of_others.negative_log_likelihood)


@FORMS
@pytest.mark.parametrize("smoothed_over", ["vocabulary", "others"])
@pytest.mark.parametrize("numbers_per_part", [1, 5 * 37, 2**20])
def test_in_parts_of_any_size_value_and_gradient_are_those_of_autograd(
    form: SumLoss,
    numbers_per_part: int,
    smoothed_over: SmoothedOver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(1)
    monkeypatch.setattr(losses, "MAX_PER_THREAD", numbers_per_part)
    logits, target_ids = 5 * torch.randn(3, 11, 37).double(), torch.randint(2, 37, (3, 11))
    target_ids[1:, 7:] = PAD_ID
    logits.requires_grad_()
    sums = summed(form, logits, target_ids, label_smoothing=0.1, smoothed_over=smoothed_over)
    log_probabilities = logits.log_softmax(-1)
    is_real = target_ids != PAD_ID
    of_truth = log_probabilities.gather(-1, target_ids.unsqueeze(-1)).squeeze(-1)
    of_all, num_symbols = log_probabilities.sum(-1), 37
    if smoothed_over == "others":
        of_all, num_symbols = of_all - of_truth - log_probabilities[..., PAD_ID], 35
    likelihood = of_truth[is_real].sum()
    expected = -0.9 * likelihood - 0.1 / num_symbols * of_all[is_real].sum()
    torch.testing.assert_close(sums.objective, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(sums.negative_log_likelihood, -likelihood.detach(), rtol=1e-12, atol=0)
    found, wanted = (torch.autograd.grad(objective / 29, logits)[0] for objective in (sums.objective, expected))
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-15)


@FORMS
@pytest.mark.parametrize("smoothed_over", ["vocabulary", "others"])
def test_the_gradient_is_that_of_finite_differences(form: SumLoss, smoothed_over: SmoothedOver) -> None:
    torch.manual_seed(1)
    logits, target_ids = torch.randn(2, 3, 5).double(), torch.tensor([[2, 0, 1], [4, 1, 1]])

    def objective(logits: torch.Tensor) -> torch.Tensor:
        return summed(form, logits, target_ids, label_smoothing=0.1, smoothed_over=smoothed_over).objective

    assert torch.autograd.gradcheck(objective, logits.requires_grad_())


@FORMS
def test_the_gradient_of_bfloat16_logits_is_rounded_once(form: SumLoss) -> None:
    torch.manual_seed(1)
    logits = (5 * torch.randn(3, 11, 37)).bfloat16()
    target_ids = torch.randint(2, 37, (3, 11))
    found, exact = (
        torch.autograd.grad(summed(form, given, target_ids, label_smoothing=0.1).objective / 29, given)[0]
        for given in (logits.requires_grad_(), logits.detach().double().requires_grad_())
    )
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), exact, rtol=2**-8, atol=1e-8)


@FORMS
def test_logits_stay_as_they_are(form: SumLoss) -> None:
    logits = torch.randn(2, 3, 5, requires_grad=True)
    before = logits.detach().clone()
    summed(form, logits, torch.tensor([[2, 3, 1], [4, 1, 1]]), label_smoothing=0.1)[0].backward()
    assert torch.equal(logits, before)
