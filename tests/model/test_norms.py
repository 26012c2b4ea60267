"""Normalisation layers equal their formulas, also in low precision."""

import statistics

import pytest
import torch

from transformer_cli.config import ModelConfig
from transformer_cli.config.schema import Norm
from transformer_cli.model.layers import RMSNorm, at_least_float32, build_norm

NORMS: tuple[Norm, ...] = ("layernorm", "rmsnorm", "std_layernorm", "scalar_std_layernorm")


def config_of(norm: Norm, eps: float) -> ModelConfig:
    return ModelConfig(d_model=6, num_heads=1, norm=norm, norm_eps=eps)


@pytest.mark.parametrize("norm", NORMS)
def test_each_norm_is_its_formula(norm: Norm) -> None:
    torch.manual_seed(1)
    module = build_norm(config_of(norm, 0.01)).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    gain = module.weight.expand(6).tolist()
    bias = module.bias.expand(6).tolist() if norm != "rmsnorm" else [0.0] * 6
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    for vector, found in zip(x.flatten(0, 1).tolist(), module(x).flatten(0, 1).tolist(), strict=True):
        mean = 0.0 if norm == "rmsnorm" else statistics.fmean(vector)
        if norm == "rmsnorm":
            size = (statistics.fmean(v**2 for v in vector) + 0.01) ** 0.5
        elif norm == "layernorm":
            size = (statistics.pvariance(vector) + 0.01) ** 0.5
        else:
            size = statistics.stdev(vector) + 0.01
        expected = [g * (v - mean) / size + b for g, v, b in zip(gain, vector, bias, strict=True)]
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_gains_start_at_one_and_biases_at_zero(norm: Norm) -> None:
    state = build_norm(config_of(norm, 1e-5)).state_dict()
    shape = (1,) if norm == "scalar_std_layernorm" else (6,)
    torch.testing.assert_close(state.pop("weight"), torch.ones(shape))
    if norm != "rmsnorm":
        torch.testing.assert_close(state.pop("bias"), torch.zeros(shape))
    assert not state


@pytest.mark.parametrize("norm", ["std_layernorm", "scalar_std_layernorm"])
def test_an_unbiased_std_of_one_number_is_refused(norm: Norm) -> None:
    with pytest.raises(ValueError, match=f"norm: {norm} needs a d_model of 2 or more"):
        ModelConfig(d_model=1, num_heads=1, positions="none", norm=norm)


def test_rmsnorm_computes_bfloat16_in_float32() -> None:
    torch.manual_seed(1)
    x = (300 * torch.randn(5, 64)).bfloat16()
    found = RMSNorm(64, 1e-5).bfloat16()(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, RMSNorm(64, 1e-5)(x.float()).bfloat16(), rtol=0, atol=0)


@pytest.mark.parametrize("norm", NORMS)
def test_under_autocast_each_norm_is_computed_in_float32(norm: Norm) -> None:
    """A vector far from zero: in bfloat16 alone, its mean would lose what the norm is about."""
    torch.manual_seed(1)
    module = build_norm(ModelConfig(d_model=512, num_heads=1, norm=norm))
    x = (20 + 3 * torch.randn(4, 512)).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        found = module(x)
    torch.testing.assert_close(found, module(x.float()).to(found.dtype), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_a_module_in_bfloat16_stays_in_bfloat16(norm: Norm) -> None:
    module = build_norm(config_of(norm, 1e-5)).bfloat16()
    assert module(torch.randn(2, 6).bfloat16()).dtype == torch.bfloat16


def test_rmsnorm_of_float16_does_not_overflow() -> None:
    found = RMSNorm(4, 1e-5).half()(torch.full((1, 4), 1000.0).half())
    torch.testing.assert_close(found, torch.ones(1, 4).half())


def test_at_least_float32_widens_and_never_narrows() -> None:
    widened = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert at_least_float32(torch.ones(1, dtype=dtype)).dtype == widened.get(dtype, dtype)
