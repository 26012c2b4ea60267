import pytest
import torch

from transformer_cli.extensions.benchmark.measuring import matrix_products
from transformer_cli.extensions.benchmark.measuring.matrix_products import measure_products
from transformer_cli.process.device import Machine


def test_three_shapes_are_measured_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_products, "SIDES", {"cpu": (32, 64)})
    machine = Machine(torch.device("cpu"), torch.float32)
    found = measure_products(machine, (8, 16, 24), seconds=0.0)
    assert [(one.what, one.shape) for one in found] == [
        ("fits into caches", (32, 32, 32)),
        ("large", (64, 64, 64)),
        ("of this model", (8, 16, 24)),
    ]
    assert all(0.0 < one.flop_per_second.low <= one.flop_per_second.high for one in found)
