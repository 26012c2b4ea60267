"""The kernels and bytes of an update and of a step of a search on a GPU stay what they were counted to be (benchmarks/operations.py).

Another version of PyTorch may have other operations, so the numbers hold for one version.
"""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

COUNTED_WITH = "2.13"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not torch.__version__.startswith(COUNTED_WITH),
        reason=f"counted with PyTorch {COUNTED_WITH}",
    ),
]
BEFORE, NOW, COMPILED = 0, -2, -1
"""Stages: commit 52c02d2; what `tfm` does; the same in a long run."""


@pytest.fixture(scope="module")
def operations() -> Iterator[Any]:
    script = Path(__file__).parents[2] / "benchmarks" / "operations.py"
    spec = importlib.util.spec_from_file_location("operations", script)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["operations"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["operations"]


def load(operations: Any, preset: str) -> Any:
    return next(one for one in operations.LOADS if one.preset == preset)


@pytest.mark.parametrize(
    ("preset", "stage", "num_kernels", "gigabytes_beside_products"),
    [
        ("tiny", BEFORE, 946, 4.47),
        ("tiny", NOW, 441, 1.02),
        pytest.param("base", NOW, 621, 34.98, marks=pytest.mark.heavy),
        pytest.param("base", COMPILED, 491, 32.14, marks=pytest.mark.heavy),
    ],
)
def test_an_update_costs_what_was_counted(
    preset: str, stage: int, num_kernels: int, gigabytes_beside_products: float, operations: Any
) -> None:
    costs = operations.STAGES[stage].costs_of_update(load(operations, preset))
    assert costs.num_kernels == pytest.approx(num_kernels, rel=0.1)
    assert costs.bytes_beside_products / 1e9 == pytest.approx(gigabytes_beside_products, rel=0.1)


@pytest.mark.parametrize(
    ("preset", "stage", "num_kernels", "gigabytes"),
    [
        ("tiny", BEFORE, 267, 0.12),
        ("tiny", NOW, 141, 0.092),
        pytest.param("base", NOW, 184, 0.57, marks=pytest.mark.heavy),
    ],
)
def test_a_step_of_a_search_costs_what_was_counted(
    preset: str, stage: int, num_kernels: int, gigabytes: float, operations: Any
) -> None:
    costs = operations.STAGES[stage].costs_of_step(load(operations, preset))
    assert costs.num_kernels == pytest.approx(num_kernels, rel=0.1)
    assert costs.num_bytes / 1e9 == pytest.approx(gigabytes, rel=0.1)


def test_the_flop_of_products_are_those_of_the_formula(operations: Any) -> None:
    """2 for each weight of a matrix and position, three times with the backward pass, and those of attention."""
    tiny = load(operations, "tiny")
    costs = operations.STAGES[NOW].costs_of_update(tiny)
    cells, width, inner = tiny.num_pairs * tiny.length, 128, 256
    of_layers = 4 * (4 * width**2 + 2 * width * inner) + 4 * (8 * width**2 + 2 * width * inner)
    products = 3 * 2 * cells * (of_layers + width * tiny.vocab_size)
    # Two products of S x S positions for each of 12 attentions; backward, five.
    attention = 12 * (2 + 5) * 2 * cells * tiny.length * width
    assert costs.flop == pytest.approx(products + attention, rel=0.01)


def test_joined_kernels_read_and_write_less_and_multiply_as_much(operations: Any) -> None:
    kernel = operations.Kernel
    kernels = [
        kernel("mm", 8.0, {1: 4}, {2: 4}, 1, operations.LAYERS),
        kernel("relu", 0, {2: 4}, {3: 4}, 1, operations.LAYERS),
        kernel("mul", 0, {3: 4, 9: 4}, {4: 4}, 1, operations.LAYERS),
        kernel("mm", 8.0, {4: 4}, {5: 4}, 1, operations.LAYERS),
        kernel("add", 0, {5: 4}, {6: 4}, 1, operations.UPDATE),
    ]
    found = operations.compiled(kernels, (operations.LAYERS,))
    assert [one.name for one in found] == ["mm", "joined relu", "mm", "add"]
    assert (found[1].reads, found[1].writes) == ({2: 4, 9: 4}, {4: 4})
    assert operations.compiled(kernels, ()) == kernels


def test_a_slow_memory_a_slow_unit_or_the_cpu_decides_the_time(operations: Any) -> None:
    card = operations.Card("one", bytes_per_second=1e9, flop_per_second=1e9)
    of_bytes = operations.Costs.of([operations.Kernel("a", 0, {1: 8 * 10**6}, {}, 1)], 5e-6)
    assert of_bytes.seconds_on(card) == pytest.approx(0.01)
    of_flop = operations.Costs.of([operations.Kernel("a", 6e6, {1: 1}, {}, 1)], 5e-6)
    assert of_flop.seconds_on(card) == pytest.approx(0.01)
    of_starts = operations.Costs.of([operations.Kernel("a", 0, {1: 1}, {}, 1)] * 10, 5e-6)
    assert of_starts.seconds_on(card) == pytest.approx(50e-6)
