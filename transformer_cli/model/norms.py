"""Normalisation: the vector of each position is scaled to a common size, then multiplied by learned gains; at least in float32."""

import torch
from torch import Tensor, nn

from transformer_cli.config import ModelConfig


def at_least_float32(x: Tensor) -> Tensor:
    """float16 and bfloat16 become float32; float32 and float64 stay."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class RMSNorm(nn.Module):
    """g x / sqrt(mean(x^2) + eps), in float32 at least (Zhang and Sennrich 2019).

    nn.RMSNorm multiplies in another order, so runs of older versions would get other bits; it also warns
    if the input is bfloat16 and the gain is float32.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to the same."""
        precise = at_least_float32(x)
        mean_square = precise.square().mean(-1, keepdim=True)
        return (self.weight * precise * torch.rsqrt(mean_square + self.eps)).to(x.dtype)


class StdLayerNorm(nn.Module):
    """g (x - mean) / (std + eps) + b, where std divides by the width minus one.

    The gain g and the bias b are vectors, or, where `is_scalar`, one number each.
    """

    def __init__(self, width: int, eps: float, *, is_scalar: bool = False) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(1 if is_scalar else width))
        self.bias = nn.Parameter(torch.zeros(1 if is_scalar else width))

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to the same."""
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True, unbiased=True)
        return self.weight * (x - mean) / (std + self.eps) + self.bias


def build_norm(config: ModelConfig) -> nn.Module:
    """The norm that the config names."""
    match config.norm:
        case "layernorm":
            return nn.LayerNorm(config.d_model, config.norm_eps)
        case "rmsnorm":
            return RMSNorm(config.d_model, config.norm_eps)
        case "std_layernorm" | "scalar_std_layernorm":
            is_scalar = config.norm == "scalar_std_layernorm"
            return StdLayerNorm(config.d_model, config.norm_eps, is_scalar=is_scalar)
