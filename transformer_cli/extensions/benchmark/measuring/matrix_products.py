"""How fast this machine multiplies matrices: the peak with which a model is compared."""

import time
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_cli.extensions.benchmark.measuring.spread import Spread
from transformer_cli.extensions.benchmark.measuring.stopwatch import (
    Stopwatch,
    seconds_between,
    wait_for,
)
from transformer_cli.process.device import Machine

# (m, k, n) of square products: on a CPU 1.5 MB of bfloat16 and 24 MB, on a GPU 6 MB and 400 MB.
SIDES = {"cpu": (512, 2048), "cuda": (1024, 8192), "mps": (1024, 4096)}
SECONDS_PER_SHAPE = 0.5
NUM_WARM_UPS, MIN_PRODUCTS = 3, 5


@dataclass(frozen=True, slots=True)
class ProductSpeed:
    """The speed of one shape of matrix product."""

    what: str
    shape: tuple[int, int, int]
    """m, k, n: (m, k) times (k, n)."""
    flop_per_second: Spread
    """On a CPU per CPU-second, so that other programs disturb less; on a GPU per second."""


def measure_products(
    machine: Machine, own_shape: tuple[int, int, int], *, seconds: float = SECONDS_PER_SHAPE
) -> list[ProductSpeed]:
    """The speeds of a product that fits into caches, a large one, and one of the model's own shape.

    Args:
        machine: the device and the precision.
        own_shape: m, k, n of the largest product of the model.
        seconds: time for each shape.
    """
    small, large = SIDES[machine.device.type]
    shapes = {
        "fits into caches": (small, small, small),
        "large": (large, large, large),
        "of this model": own_shape,
    }
    return [
        ProductSpeed(what, shape, _flop_per_second(machine, shape, seconds))
        for what, shape in shapes.items()
    ]


def _flop_per_second(machine: Machine, shape: tuple[int, int, int], seconds: float) -> Spread:
    m, k, n = shape
    device, dtype = machine.device, machine.precision
    rows = torch.randn(m, k, device=device, dtype=dtype)
    weights = torch.randn(n, k, device=device, dtype=dtype)
    with torch.inference_mode():
        for _ in range(NUM_WARM_UPS):
            F.linear(rows, weights)
        wait_for(machine.device)
        timed = _on_cpu if machine.device.type == "cpu" else _on_gpu
        found = timed(rows, weights, seconds)
    return Spread.of(2 * m * k * n / one for one in found)


def _on_cpu(rows: Tensor, weights: Tensor, seconds: float) -> list[float]:
    """CPU seconds of each product."""
    found: list[float] = []
    started_at = time.perf_counter()
    while len(found) < MIN_PRODUCTS or time.perf_counter() - started_at < seconds:
        cpu_started_at = time.process_time()
        F.linear(rows, weights)
        found.append(time.process_time() - cpu_started_at)
    return found


def _on_gpu(rows: Tensor, weights: Tensor, seconds: float) -> list[float]:
    """Seconds of each product; ten at a time, so that the device does not wait for the CPU."""
    found: list[float] = []
    stopwatch = Stopwatch(rows.device)
    started_at = time.perf_counter()
    while len(found) < MIN_PRODUCTS or time.perf_counter() - started_at < seconds:
        start = stopwatch.now()
        for _ in range(10):
            F.linear(rows, weights)
        end = stopwatch.now()
        wait_for(rows.device)
        found.append(seconds_between(start, end) / 10)
    return found
