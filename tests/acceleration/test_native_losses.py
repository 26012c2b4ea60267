"""The losses in C are the formulas, as PyTorch computes them in double precision."""

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_cli.acceleration import native_kernels
from transformer_cli.acceleration.native_kernels import Labels, native_loss
from transformer_cli.config.schema import SmoothedOver
from transformer_cli.model.loss import SmoothedLabels

pytestmark = pytest.mark.usefixtures("kernels")

PAD_ID = 1
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 4e-3}  # relative to the largest gradient, 1


@pytest.fixture(autouse=True)
def _same_numbers_each_time() -> None:
    """Rounding differs from draw to draw: one of three draws of the same test was a little above its bound."""
    torch.manual_seed(1)


def label_probabilities(ids: Tensor, width: int, epsilon: float, over: SmoothedOver) -> Tensor:
    """(N, V) in double precision, by the definitions of both kinds of smoothing."""
    truth = F.one_hot(ids, width).double()
    if over == "vocabulary":
        return (1 - epsilon) * truth + epsilon / width
    others = torch.ones(len(ids), width, dtype=torch.float64) - truth
    others[:, PAD_ID] = 0.0
    return (1 - epsilon) * truth + epsilon / (width - 2) * others


def labels_for(ids: Tensor, width: int, epsilon: float, over: SmoothedOver) -> Labels:
    return Labels(ids, *SmoothedLabels.of(width, PAD_ID, epsilon, over))


def computed(
    predictions: Sequence[Tensor],
    bias: Tensor | None,
    of_bias: Tensor | None,
    labels: Labels,
    factor: float | None = None,
) -> tuple[Tensor, Tensor]:
    found = native_loss(predictions, bias, of_bias, labels, factor)
    assert found is not None
    return found


def random_logits(num_rows: int, width: int, dtype: torch.dtype) -> Tensor:
    """Of every size: some rows are almost even, and others almost sure of one symbol."""
    return (torch.randn(num_rows, width) * torch.linspace(0.1, 30, num_rows)[:, None]).to(dtype)


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("width", [3, 16, 31, 64, 1000])
@pytest.mark.parametrize("has_bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize(("epsilon", "over"), [(0.0, "vocabulary"), (0.1, "vocabulary"), (0.2, "others")])
def test_the_loss_and_its_gradient_are_the_formula(
    dtype: torch.dtype,
    width: int,
    has_bias: bool,
    epsilon: float,
    over: SmoothedOver,
) -> None:
    logits, bias = random_logits(9, width, dtype), torch.randn(width) if has_bias else None
    ids = torch.arange(9) % (width - 2) + 2  # no label is [PAD]
    labels = label_probabilities(ids, width, epsilon, over)
    wide = logits.double().requires_grad_()
    log_probabilities = (wide if bias is None else wide + bias.double()).log_softmax(-1)
    expected = -(labels * log_probabilities).sum(-1)
    expected.sum().backward()  # type: ignore[no-untyped-call]
    assert wide.grad is not None

    of_bias = None if bias is None else torch.ones(width)
    losses, likelihoods = computed([logits], bias, of_bias, labels_for(ids, width, epsilon, over))
    torch.testing.assert_close(losses.double(), expected.detach(), atol=2e-5, rtol=2e-6)
    of_truth = -log_probabilities.detach().gather(-1, ids[:, None]).squeeze(-1)
    torch.testing.assert_close(likelihoods.double(), of_truth, atol=2e-5, rtol=2e-6)
    torch.testing.assert_close(logits.double(), wide.grad, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    if of_bias is not None:  # summed before the gradients are rounded
        torch.testing.assert_close(of_bias.double(), 1.0 + wide.grad.sum(0), atol=2e-5, rtol=2e-6)


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("width", [3, 16, 31, 1000])
@pytest.mark.parametrize("has_bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("over", ["vocabulary", "others"])
def test_the_objective_of_r_drop_and_its_gradient_are_the_formula(
    dtype: torch.dtype, width: int, has_bias: bool, over: SmoothedOver
) -> None:
    twins = [random_logits(9, width, dtype) / 4 for _ in range(2)]
    bias = torch.randn(width) if has_bias else None
    ids, factor = torch.arange(9) % (width - 2) + 2, 2.5
    labels = label_probabilities(ids, width, 0.1, over)
    wide = [one.double().requires_grad_() for one in twins]
    p, q = ((one if bias is None else one + bias.double()).log_softmax(-1) for one in wide)
    divergences = (p.exp() * (p - q)).sum(-1) + (q.exp() * (q - p)).sum(-1)
    expected = -(labels * (p + q)).sum(-1) + factor * divergences
    expected.sum().backward()  # type: ignore[no-untyped-call]

    of_bias = None if bias is None else torch.zeros(width)
    objectives, likelihoods = computed(twins, bias, of_bias, labels_for(ids, width, 0.1, over), factor)
    torch.testing.assert_close(objectives.double(), expected.detach(), atol=1e-4, rtol=1e-5)
    of_truth = -0.5 * (p + q).detach().gather(-1, ids[:, None]).squeeze(-1)
    torch.testing.assert_close(likelihoods.double(), of_truth, atol=2e-5, rtol=2e-6)
    for found, one in zip(twins, wide, strict=True):
        assert one.grad is not None
        largest = float(one.grad.abs().max())
        torch.testing.assert_close(found.double(), one.grad, atol=TOLERANCE[dtype] * largest, rtol=TOLERANCE[dtype])
    if of_bias is not None:
        sums = sum(one.grad.sum(0) for one in wide if one.grad is not None)
        torch.testing.assert_close(of_bias.double(), sums, atol=2e-4, rtol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_row_that_is_not_finite_gets_such_a_gradient_and_changes_no_other_row(dtype: torch.dtype, bad: float) -> None:
    labels = labels_for(torch.full((6,), 5), 40, 0.1, "vocabulary")
    good = random_logits(6, 40, dtype)
    spoilt = good.clone()
    spoilt[2, 39] = bad  # in the last, shorter group of lanes
    spoilt[4, 3] = bad
    for logits in (good, spoilt):
        computed([logits], None, None, labels)
    is_bad = torch.tensor([False, False, True, False, True, False])
    assert spoilt[is_bad].isnan().all()
    assert torch.equal(spoilt[~is_bad], good[~is_bad])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_gradients_are_rounded_as_pytorch_rounds(dtype: torch.dtype) -> None:
    """Of one symbol out of two, the gradient is a probability: both kinds of logits give the same, rounded or not."""
    scores = torch.linspace(-20, 20, 4001)
    logits = torch.stack([scores.bfloat16().float(), torch.zeros(4001)], dim=1)
    exact, rounded = logits.clone(), logits.to(dtype)
    labels = Labels(torch.zeros(4001, dtype=torch.int64), 1, 0.0, 0.0, 0.0)
    for one in (exact, rounded):
        computed([one], None, None, labels)
    assert torch.equal(rounded, exact.to(dtype))


def test_a_bias_may_be_in_the_precision_of_the_logits() -> None:
    bias = torch.randn(40).bfloat16()
    labels = labels_for(torch.full((6,), 5), 40, 0.1, "vocabulary")
    logits = random_logits(6, 40, torch.bfloat16)
    found = [computed([logits.clone()], one, torch.zeros(40), labels)[0] for one in (bias, bias.float())]
    assert torch.equal(*found)


def test_rows_without_a_label_stay_as_they_are() -> None:
    logits = torch.randn(8, 20)
    before = logits.clone()
    computed([logits], None, None, labels_for(torch.full((5,), 3), 20, 0.1, "vocabulary"))
    assert torch.equal(logits[5:], before[5:])
    assert not torch.equal(logits[:5], before[:5])


@pytest.mark.parametrize("is_twin", [False, True], ids=["one", "twins"])
def test_threads_share_the_rows(is_twin: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, bias = torch.randn(2, 41, 50), torch.randn(50)
    labels = labels_for(torch.arange(41) + 2, 50, 0.1, "vocabulary")

    def found() -> list[Tensor]:
        first, second = scores.clone().unbind()
        of_bias = torch.zeros(50)
        if is_twin:
            sums = computed((first, second), bias, of_bias, labels, 2.0)
        else:
            sums = computed([first], bias, of_bias, labels)
        return [*sums, first, second, of_bias]

    *expected, of_bias = found()
    monkeypatch.setattr(native_kernels, "_SMALLEST_PART", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    for _ in range(3):  # which thread ends first decides nothing
        *rows, sums = found()
        assert all(map(torch.equal, rows, expected))
        torch.testing.assert_close(sums, of_bias)
    assert torch.equal(sums, found()[-1])


def test_other_numbers_are_left_to_pytorch() -> None:
    labels = labels_for(torch.full((2,), 2), 4, 0.1, "vocabulary")
    for dtype in (torch.float64, torch.float16):
        assert native_loss([torch.zeros(2, 4, dtype=dtype)], None, None, labels) is None
    assert native_loss([torch.zeros(4, 2).T], None, None, labels) is None
