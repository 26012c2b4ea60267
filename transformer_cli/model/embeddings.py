"""Embeddings, positional encodings, and the initial values of all parameters."""

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_cli.config import ModelConfig
from transformer_cli.process.errors import DataError


class Embedding(nn.Embedding):
    """A table of embeddings, (V, D).

    A table on the meta device has a shape but no numbers, so nothing is drawn for it. PyTorch would import its compiler for
    that, which takes 1.5 seconds.
    """

    def reset_parameters(self) -> None:
        """Draw the table from N(0, 1)."""
        if not self.weight.is_meta:
            super().reset_parameters()


@torch.no_grad()
def initialize(model: nn.Module, config: ModelConfig) -> None:
    """Initialise all matrices and embeddings by `config.init`; gains and biases keep PyTorch's defaults.

    Source: Glorot and Bengio 2010; for deep stacks Radford et al. 2019, section 2.3.
    """
    if config.init == "pytorch":
        return
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            continue
        nn.init.xavier_uniform_(parameter)
        if config.init == "small" and name.endswith(("attention.output.weight", "down.weight")):
            # The residual connections of a stack add up this many outputs; their sum keeps its variance.
            is_encoder = name.startswith("encoder.")
            num_added = 2 * config.encoder_layers if is_encoder else 3 * config.decoder_layers
            parameter.div_(math.sqrt(num_added))


# Positional encodings: sinusoids or learned vectors added to embeddings, or rotated queries and keys.


class SinusoidalPositions(nn.Module):
    """x plus sin and cos of position / 10000^(2i / D), for any length.

    The paper interleaves them: sines in even columns, cosines in odd ones. With `in_halves` all
    sines come first. Marian does so, and divides i by D / 2 - 1 (`as_marian`), so that the longest wavelength is 2 pi 10000.

    Source: Vaswani et al. 2017, section 3.5; Marian 1.12, the function SinusoidalPositionEmbeddings.
    """

    def __init__(self, *, in_halves: bool, as_marian: bool = False) -> None:
        super().__init__()
        self.in_halves = in_halves
        self.as_marian = as_marian

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """(B, T, D) to the same shape; the first of the T positions is number `start`."""
        width = x.size(2)
        divisor = max(width - 2, 1) if self.as_marian else width
        sines, cosines = rotation_at(start, x.size(1), width, x, divisor=divisor)
        if self.in_halves:
            return x + torch.cat([sines, cosines], dim=-1)
        return x + torch.stack([sines, cosines], dim=-1).flatten(-2)


class LearnedPositions(nn.Module):
    """x plus a learned vector for each position below `max_length`."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(max_length, d_model))

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """(B, T, D) to the same shape; the first of the T positions is number `start`."""
        end = start + x.size(1)
        if end > self.weight.size(0):
            raise DataError(
                f"a sequence of {end} tokens, but this model has learned only {self.weight.size(0)} positions",
                hint="shorten or split the text, or train with a larger model.max_length or other positions",
            )
        return x + self.weight[start:end]


class NoPositions(nn.Module):
    """No positional encoding: x unchanged."""

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """(B, T, D) to the same shape."""
        return x


def build_positions(config: ModelConfig) -> nn.Module:
    """The module that adds positions to embeddings; it adds nothing if positions are rotary or absent."""
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(in_halves=False)
        case "sinusoidal_halves" | "sinusoidal_marian":
            is_marian = config.positions == "sinusoidal_marian"
            return SinusoidalPositions(in_halves=True, as_marian=is_marian)
        case "learned":
            return LearnedPositions(config.max_length, config.d_model)
        case "rotary" | "none":
            return NoPositions()


class Rotation(NamedTuple):
    """Sines and cosines of angles, one for each position and pair of columns.

    Rotary positions use them for K columns of a head; sinusoidal positions, for D columns of an embedding.
    """

    sines: Tensor  # (T, K / 2) or (T, D / 2)
    cosines: Tensor  # of the same shape


def rotation_at(
    start: int, num_positions: int, width: int, like: Tensor, *, divisor: int | None = None
) -> Rotation:
    """The angles of `num_positions` positions from `start` on, with device and dtype of `like`; `divisor` as of `sines_and_cosines`."""
    end = start + num_positions
    # Rounded up to a power of two, so that the cache holds few different lengths.
    num_cached = max(512, 1 << (end - 1).bit_length())
    sines, cosines = sines_and_cosines(num_cached, width, like.dtype, like.device, divisor or width)
    return Rotation(sines[start:end], cosines[start:end])


def rotate(x: Tensor, rotation: Rotation | None) -> Tensor:
    """(B, H, T, K) to the same shape: columns 2i and 2i + 1 are rotated by position / 10000^(2i / K).

    For queries and keys of self-attention only: their dot product then depends on the distance of two
    positions. Cross-attention is not rotated: a source and a target position have no distance.

    Source: Su et al. 2021, equation 34.
    """
    if rotation is None:
        return x
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    turned_even = even * rotation.cosines - odd * rotation.sines
    turned_odd = odd * rotation.cosines + even * rotation.sines
    return torch.stack([turned_even, turned_odd], dim=-1).flatten(-2).to(x.dtype)


@functools.cache  # without a limit: a CUDA graph reads the tables at their addresses, so they must stay
def sines_and_cosines(
    num_positions: int,
    width: int,
    dtype: torch.dtype,
    device: torch.device,
    divisor: int | None = None,
) -> Rotation:
    """sin and cos of position / 10000^(2i / divisor), (T, width / 2) each, computed in float64; None: divided by `width`."""
    with torch.inference_mode(False), torch.no_grad():  # cached tensors serve training too
        columns = torch.arange(0, width, 2, dtype=torch.float64, device="cpu")
        positions = torch.arange(num_positions, dtype=torch.float64, device="cpu")
        angles = positions[:, None] * 10_000.0 ** (-columns / (divisor or width))
        return Rotation(angles.sin().to(device, dtype), angles.cos().to(device, dtype))
