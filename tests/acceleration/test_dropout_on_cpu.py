"""The probability distribution of dropout on a CPU."""

import pytest
import torch

from transformer_cli.acceleration.cpu_training import DropoutOnCpu as Dropout


@pytest.mark.long
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_share_is_dropped_and_the_mean_stays(share: float, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    dropped = Dropout(share)(torch.ones(400_003, dtype=dtype))
    is_zero = dropped == 0
    deviation = (share * (1 - share) / 400_003) ** 0.5
    assert abs(is_zero.double().mean().item() - share) < 5 * deviation
    kept = dropped[~is_zero].unique()
    assert kept.numel() == 1
    assert kept.item() == pytest.approx(1 / (1 - share), rel=1e-2 if dtype == torch.bfloat16 else 1e-3)


def test_each_of_four_neighbours_is_dropped_alike_and_on_its_own() -> None:
    torch.manual_seed(1)
    kept = (Dropout(0.5)(torch.ones(100_000, 4)) > 0).double()
    torch.testing.assert_close(kept.mean(0), torch.full((4,), 0.5).double(), rtol=0, atol=0.01)
    centred = kept - kept.mean(0)
    correlations = centred.T @ centred / 100_000
    torch.testing.assert_close(correlations, torch.eye(4).double() / 4, rtol=0, atol=0.01)


def test_the_gradient_passes_where_the_number_passed() -> None:
    torch.manual_seed(1)
    x = torch.rand(50, 3, requires_grad=True)
    dropped = Dropout(0.4)(x)
    dropped.sum().backward()
    torch.testing.assert_close(x.grad, (dropped / x).detach())
    assert set(x.grad.unique().tolist()) == {0.0, x.grad.max().item()}


def test_the_same_seed_drops_the_same() -> None:
    x = torch.ones(3, 7)
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(Dropout(0.5)(x))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_no_share_and_no_training_leave_numbers_and_random_state_alone() -> None:
    x = torch.rand(3, 3)
    state = torch.get_rng_state()
    assert Dropout(0.0)(x) is x
    assert Dropout(0.5).eval()(x) is x
    assert torch.equal(torch.get_rng_state(), state)


def test_extreme_shares_stay_finite() -> None:
    assert Dropout(1 - 1e-9)(torch.ones(1000)).isfinite().all()
    assert Dropout(1e-9)(torch.ones(1000)).mean() == 1.0


def test_layout_and_emptiness_do_not_matter() -> None:
    assert Dropout(0.5)(torch.ones(4, 6).T).shape == (6, 4)
    assert Dropout(0.5)(torch.ones(0, 6)).shape == (0, 6)
