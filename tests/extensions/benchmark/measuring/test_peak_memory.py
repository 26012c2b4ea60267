import sys

import pytest
import torch

from transformer_cli.extensions.benchmark.measuring import peak_memory
from transformer_cli.extensions.benchmark.measuring.peak_memory import PeakMemory

CPU = torch.device("cpu")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forgets an earlier peak")
def test_a_tensor_that_is_gone_counts_until_the_next_start() -> None:
    peak_memory.start_measuring(CPU)
    before = peak_memory.peak_memory(CPU).resident
    torch.ones(100_000_000, dtype=torch.uint8)
    after = peak_memory.peak_memory(CPU).resident
    assert before is not None
    assert after is not None
    assert after > before + 80_000_000
    peak_memory.start_measuring(CPU)
    again = peak_memory.peak_memory(CPU).resident
    assert again is not None
    assert again < after - 80_000_000


def test_the_memory_of_the_device_decides_how_large_a_batch_may_be() -> None:
    assert PeakMemory(10, 100).used_share == 0.1
    assert PeakMemory(10, 100, 50, 100).used_share == 0.5
    assert PeakMemory(None, None).used_share is None
