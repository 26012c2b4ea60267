"""A computation of a kernel in parts, one for each thread."""

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import torch

# Multiplications of a part: waking a thread costs about as much time as a fifth of them.
_SMALLEST_PART = 10_000_000


def in_parts(size: int, work: int, compute: Callable[[int, int], int]) -> None:
    """Call `compute(first, end)` for parts of range(size), in as many threads as PyTorch uses, if they are worth it.

    Args:
        size: the number of rows, or of other things that are computed independently of each other.
        work: the number of multiplications of all of them.
        compute: calls a kernel, which lets other threads run, and returns 0, or 1 if there was no memory.

    Raises:
        MemoryError: there was no memory.
    """
    num_parts = work // _SMALLEST_PART
    if num_parts > 1:
        num_parts = min(num_parts, size, torch.get_num_threads())
    if num_parts < 2:
        codes = [compute(0, size)]
    else:
        ends = [part * size // num_parts for part in range(num_parts + 1)]
        others = [
            _threads(num_parts - 1).submit(compute, first, end) for first, end in pairwise(ends[1:])
        ]
        codes = [compute(0, ends[1]), *(one.result() for one in others)]
    if any(codes):
        raise MemoryError("no memory for a translation")


@functools.cache
def _threads(num_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(num_threads, thread_name_prefix="tfm-kernels")


if hasattr(os, "register_at_fork"):  # a forked process has no threads but its own
    os.register_at_fork(after_in_child=_threads.cache_clear)
