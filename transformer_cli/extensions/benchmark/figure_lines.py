"""Figures as lines for people: a name, a value, and its spread."""

from collections.abc import Iterator, Mapping

from transformer_cli.extensions.benchmark.measuring.matrix_products import ProductSpeed
from transformer_cli.extensions.benchmark.measuring.peak_memory import PeakMemory
from transformer_cli.extensions.benchmark.measuring.phases import Phase
from transformer_cli.extensions.benchmark.measuring.spread import Spread

NAME, VALUE = 32, 14


def heading(note: str) -> str:
    """The head of a table."""
    return f"{'':{NAME}}{'median':>{VALUE}}   {note}"


def line(name: str, value: str, note: str = "") -> str:
    """One figure."""
    return f"{name:{NAME}}{value:>{VALUE}}   {note}".rstrip()


def spread_line(name: str, spread: Spread, note: str = "") -> str:
    """A figure with its spread."""
    low, median, high = (_number(value) for value in (spread.low, spread.median, spread.high))
    return line(name, median, f"{low} to {high}{note}")


def phase_lines(name: str, whole: Spread, phases: Mapping[str, Phase]) -> Iterator[str]:
    """The time of an update or a batch, and of its phases."""
    yield spread_line(name, whole)
    for phase, found in phases.items():
        yield spread_line(f"  {phase}", found.milliseconds, f"   {found.share:.1%}")


def memory_lines(memory: PeakMemory) -> Iterator[str]:
    """The peaks of memory."""
    for name, used, usable in (
        ("peak memory, resident", memory.resident, memory.usable),
        ("peak memory, device", memory.device, memory.device_usable),
    ):
        if used is not None:
            of = f"{used / usable:.0%} of {usable / 1e6:,.0f} MB" if usable else ""
            yield line(name, f"{used / 1e6:,.0f} MB", of)


def peak_lines(
    products: tuple[ProductSpeed, ...], peak: ProductSpeed, machine: str
) -> Iterator[str]:
    """The speed of each shape of matrix product; the fastest is the peak."""
    unit = "GFLOP per CPU-second" if machine.startswith("CPU") else "GFLOP per second"
    yield f"matrix products, {unit}"
    for product in products:
        shape = " x ".join(f"{size:,}" for size in product.shape)
        note = f"{shape}{', the peak' if product == peak else ''}"
        yield line(f"  {product.what}", f"{product.flop_per_second.median / 1e9:,.0f}", note)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
