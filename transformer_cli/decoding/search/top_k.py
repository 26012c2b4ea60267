"""The k largest numbers of a row; of equal numbers, the first one comes first.

The row is cut into blocks. The maximum of each block is fast to compute, and the k blocks with the largest
maxima contain the k largest numbers; only these blocks are searched. On a CPU, `torch.topk` over a whole
vocabulary takes three to six times as long, and it does not define which of several equal numbers it returns.
A compiled kernel finds the same in one pass over float32 scores on a CPU, if there is one (kernels/top_k.c).
"""

import torch
from torch import Tensor

from transformer_cli.acceleration.native_kernels import Kernels, find_kernels, native_top_k

BLOCK_WIDTH = 64


def top_k(scores: Tensor, offsets: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest numbers of `scores + offsets`, over all W rows of a sentence.

    Args:
        scores: (B, W, V).
        offsets: (B, W), added to each number of a row.
        k: at most W * V.

    Returns:
        Values (B, k), largest first, and their positions among the W * V numbers, (B, k) int64.
    """
    kernels = _kernels_for(scores)
    if kernels is not None and offsets.dtype == torch.float32:
        return native_top_k(kernels, scores, offsets, k)
    num_rows, width = scores.shape[1:]
    num_blocks = width // BLOCK_WIDTH
    if num_rows * num_blocks <= 2 * k:
        return _stable_top_k((scores + offsets.unsqueeze(-1)).flatten(1), k)
    positions = _positions_of_best_blocks(scores, offsets, k)  # (B, P)
    values = scores.flatten(1).gather(1, positions) + offsets.gather(1, positions // width)
    best, chosen = _stable_top_k(values, k)
    return best, positions.gather(1, chosen)


def largest(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The largest number of each row of (R, V) and its position: (R,), and (R,) int64."""
    kernels = _kernels_for(scores)
    if kernels is not None:
        values, positions = native_top_k(kernels, scores.unsqueeze(1), None, 1)
        return values.squeeze(1), positions.squeeze(1)
    # Of equal numbers, `max` returns the first.
    width = scores.shape[1]
    num_blocks = width // BLOCK_WIDTH
    if num_blocks < 2:
        return scores.max(1)
    blocks = scores[:, : num_blocks * BLOCK_WIDTH].unflatten(1, (num_blocks, BLOCK_WIDTH))
    best_block = blocks.amax(-1).argmax(1, keepdim=True)  # (R, 1)
    block = blocks.gather(1, best_block.unsqueeze(-1).expand(-1, 1, BLOCK_WIDTH)).squeeze(1)
    values, within = block.max(1)
    positions = best_block.squeeze(1) * BLOCK_WIDTH + within
    if num_blocks * BLOCK_WIDTH < width:
        rest, within = scores[:, num_blocks * BLOCK_WIDTH :].max(1)
        is_larger = rest > values
        values = rest.where(is_larger, values)
        positions = (num_blocks * BLOCK_WIDTH + within).where(is_larger, positions)
    return values, positions


def _kernels_for(scores: Tensor) -> Kernels | None:
    """The compiled kernels, if they can read these scores."""
    is_readable = (
        scores.device.type == "cpu" and scores.dtype == torch.float32 and scores.is_contiguous()
    )
    return find_kernels() if is_readable else None


def _positions_of_best_blocks(scores: Tensor, offsets: Tensor, k: int) -> Tensor:
    """(B, P) ascending positions; the k largest numbers are among them."""
    num_rows, width = scores.shape[1:]
    num_blocks = width // BLOCK_WIDTH
    blocks = scores[..., : num_blocks * BLOCK_WIDTH].unflatten(-1, (num_blocks, BLOCK_WIDTH))
    block_maxima = blocks.amax(-1) + offsets.unsqueeze(-1)  # (B, W, number of blocks)
    best_blocks = _stable_top_k(block_maxima.flatten(1), k)[1]
    starts = best_blocks // num_blocks * width + best_blocks % num_blocks * BLOCK_WIDTH
    within = torch.arange(BLOCK_WIDTH, device=scores.device)
    positions = (starts.unsqueeze(-1) + within).flatten(1)
    if num_blocks * BLOCK_WIDTH < width:
        rest = torch.arange(num_blocks * BLOCK_WIDTH, width, device=scores.device)
        rows = torch.arange(num_rows, device=scores.device).unsqueeze(-1)
        rest_of_rows = (rows * width + rest).flatten().expand(len(scores), -1)
        positions = torch.cat([positions, rest_of_rows], dim=1)
    return positions.sort(dim=1).values


def _stable_top_k(numbers: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The first k numbers of a stable descending sort, and their positions, without sorting all numbers."""
    size = numbers.shape[1]
    smallest_in = numbers.topk(k).values[:, -1:]
    earliness = torch.arange(size, 0, -1, device=numbers.device, dtype=torch.int32)
    priority = (numbers >= smallest_in) * earliness + (numbers > smallest_in) * size
    chosen = priority.topk(k).indices  # all above the k-th number, then the first of its equals
    values, order = numbers.gather(1, chosen).sort(dim=1, descending=True, stable=True)
    return values, chosen.gather(1, order)
