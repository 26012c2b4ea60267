"""The resident memory of a process does not grow with the number of steps or of lines."""

import gc
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch

from transformer_cli.process.device import return_freed_memory

from ..decoding.small_translators import WORDS, tokenizer_of_words, translator
from .tiny_world import experiment, settings

# Caches of PyTorch may still fill a little after the first round. 70 KB kept in each step would be noticed.
MAX_GROWTH_BYTES = 12 << 20
STATUS = Path("/proc/self/status")

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="only Linux tells the resident size")


def resident_bytes() -> int:
    gc.collect()
    return_freed_memory()
    found = re.search(r"VmRSS:\s+(\d+) kB", STATUS.read_text())
    assert found is not None
    return 1024 * int(found[1])


def growth(work: Callable[[], None]) -> int:
    """Bytes by which the process grows from the end of one round to the end of three more."""
    work()
    before = resident_bytes()
    for _ in range(3):
        work()
    return resident_bytes() - before


@pytest.mark.heavy
def test_training_does_not_grow_with_the_number_of_steps() -> None:
    world = experiment(settings())

    def steps() -> None:
        for _ in range(60):
            world.runner.run(
                world.model,
                world.optimizer,
                world.objective,
                next(world.updates),
                seed=1,
                clip_norm=None,
            )

    with world.updates:
        assert growth(steps) < MAX_GROWTH_BYTES


@pytest.mark.heavy
def test_translating_does_not_grow_with_the_number_of_lines() -> None:
    translate = translator(tokenizer_of_words(), beam_size=4).translate

    def lines() -> None:
        assert sum(1 for _ in translate(map(" ".join, product(WORDS, repeat=2)))) == len(WORDS) ** 2

    assert growth(lines) < MAX_GROWTH_BYTES


@pytest.mark.heavy
def test_what_is_kept_in_each_step_is_noticed() -> None:
    """The negative control."""
    kept: list[torch.Tensor] = []
    assert growth(lambda: kept.extend(torch.ones(25_000) for _ in range(60))) > MAX_GROWTH_BYTES
