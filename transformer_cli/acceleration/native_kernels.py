"""The kernels in C (kernels/), if this installation has them and this processor can run them, as functions of tensors.

They are compiled when the package is installed; without them PyTorch computes the same.
"""

import copy
import ctypes
import functools
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_cli.process import plain_form

logger = logging.getLogger(__name__)

SWITCH = "TFM_NATIVE"
"""An environment variable: 0, false, no or off turns the kernels off, so that PyTorch computes everything."""
PRICE_OF_NONE = (
    "without them, one Zen 4 core took 4 to 26 times as long in int8, 1.2 to 1.6 times in float32 (docs/installing.md)"
)
_LIBRARY = Path(__file__).parent / "kernels" / "kernels.bin"

_VERSION = 5  # of the functions; the same as tfm_version in processor.c
_LEVELS = {1: "avx2", 2: "avx512"}
_POINTER, _SIZE, _FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
# name: the arguments, then the result
_FUNCTIONS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "linear": ((_POINTER, _SIZE, _SIZE, *[_POINTER] * 3, _SIZE, _SIZE, _SIZE, _FLAG, _POINTER), _FLAG),
    "choose_outputs": ((_POINTER, _SIZE, _POINTER, _SIZE, _POINTER), None),
    "attend": ((_POINTER, *[_SIZE] * 5, *[_POINTER, _SIZE] * 3, _POINTER, _POINTER, _POINTER), _FLAG),
    "layer_norm": ((_POINTER, _SIZE, _SIZE, _POINTER, _POINTER, ctypes.c_float, _POINTER), None),
    "log_softmax": ((_POINTER, _SIZE, _SIZE), None),
    "recurrence": ((_POINTER, _SIZE, _SIZE, _POINTER, _FLAG, _POINTER), None),
    "search": ((_POINTER, _POINTER), _FLAG),
    "loss": ((_POINTER, _FLAG, _SIZE, _SIZE, *[_POINTER] * 3, _SIZE, *[ctypes.c_float] * 3, *[_POINTER] * 3), None),
    "twin_loss": (
        (*[_POINTER] * 2, _FLAG, _SIZE, _SIZE, *[_POINTER] * 3, _SIZE, *[ctypes.c_float] * 4, *[_POINTER] * 3),
        None,
    ),
    "top_k": ((_POINTER, *[_SIZE] * 3, _POINTER, _SIZE, _POINTER, _POINTER), None),
}


@dataclass(frozen=True, slots=True)
class Kernels:
    """The functions of one level of instructions. A call releases the lock of the interpreter."""

    level: str
    """avx2, or avx512, which includes VNNI."""
    weight_offset: int
    """What is added to each weight of 8 bits when weights are packed."""
    linear: Any
    """See tfm_linear in linear.c."""
    choose_outputs: Any
    """See tfm_choose_outputs in linear.c."""
    attend: Any
    """See tfm_attend in attention.c."""
    layer_norm: Any
    """See tfm_layer_norm in rows.c."""
    log_softmax: Any
    """See tfm_log_softmax in rows.c."""
    recurrence: Any
    """See tfm_recurrence in rows.c."""
    search: Any
    """See tfm_search in search.c."""
    loss: Any
    """See tfm_loss in losses.c."""
    twin_loss: Any
    """See tfm_twin_loss in losses.c."""
    top_k: Any
    """See tfm_top_k in top_k.c."""


def find_kernels(path: Path = _LIBRARY) -> Kernels | None:
    """The kernels of a library for this processor; None: there are none (the log says why), or the environment variable TFM_NATIVE or TFM_PLAIN turns them off."""
    if plain_form.IS_PLAIN or os.environ.get(SWITCH, "").lower() in plain_form.OFF:
        return None
    found = _loaded(path)
    return None if isinstance(found, str) else found


def why_no_kernels() -> str | None:
    """Why `find_kernels` finds none; None if it finds some."""
    if find_kernels() is not None:
        return None
    if os.environ.get(SWITCH, "").lower() in plain_form.OFF:
        return f"the environment variable {SWITCH} turns them off"
    if plain_form.IS_PLAIN:
        return f"the environment variable {plain_form.SWITCH} turns them off"
    return str(_loaded(_LIBRARY))


def kernel_level() -> str | None:
    """The instructions that the kernels use, avx2 or avx512; None: there are no kernels."""
    kernels = find_kernels()
    return kernels.level if kernels else None


@functools.cache
def _loaded(path: Path, level: str | None = None) -> Kernels | str:
    """The kernels of a library, or why there are none.

    Args:
        path: of the library.
        level: of instructions that the processor has; None: the best of them.
    """
    found: Kernels | str
    try:
        library = ctypes.CDLL(str(path)) if path.exists() else None
        if library is None:
            found = "no C compiler was found when the package was installed"
        elif library.tfm_version() != _VERSION:
            found = f"{path.name} is of another version; install again"
        elif (chosen := level or _LEVELS.get(library.tfm_level())) is None:
            found = "this processor has no AVX2"
        else:
            functions = {}
            for name, (arguments, result) in _FUNCTIONS.items():
                function = functions[name] = getattr(library, f"tfm_{name}_{chosen}")
                function.argtypes, function.restype = arguments, result
            found = Kernels(chosen, getattr(library, f"tfm_weight_offset_{chosen}")(), **functions)
    except (OSError, AttributeError) as error:  # built for another system, or damaged
        found = f"{path.name} cannot be used: {type(error).__name__}"
    if isinstance(found, str):
        logger.debug("no compiled kernels: %s", found)
    else:
        logger.debug("compiled kernels: %s", found.level)
    return found


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
        others = [_threads(num_parts - 1).submit(compute, first, end) for first, end in pairwise(ends[1:])]
        codes = [compute(0, ends[1]), *(one.result() for one in others)]
    if any(codes):
        raise MemoryError("no memory for a translation")


@functools.cache
def _threads(num_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(num_threads, thread_name_prefix="tfm-kernels")


if hasattr(os, "register_at_fork"):  # a forked process has no threads but its own
    os.register_at_fork(after_in_child=_threads.cache_clear)


_PANEL, _SIDE_BY_SIDE = 64, 4  # as in linear.c
_ROWS_OF_PARTS = 64  # from which on threads share the rows; else they share the outputs


class NativeLinear:
    """(N, D) float32 to (N, outputs) float32; see `prepare_quantised`, which gives the same bits without a kernel."""

    def __init__(self, kernels: Kernels, integers: Tensor, scales: Tensor, bias: Tensor, *, has_relu: bool) -> None:
        """
        Args:
            kernels: of this processor.
            integers: (outputs, D) int8, from -127 to 127: the weights.
            scales: (outputs,) of the weights.
            bias: (outputs,).
            has_relu: whether negative results become zero.
        """
        self._kernels = kernels
        self.num_outputs, self.width = integers.shape
        self.has_relu = has_relu
        self._hold(pack_weights(integers, kernels.weight_offset), scales, bias)

    def _hold(self, packed: Tensor, scales: Tensor, bias: Tensor) -> None:
        missing = -self.num_outputs % _PANEL
        self._weights, self._num_panels = packed, len(packed)
        self._scales, self._bias = (F.pad(one, (0, missing)).contiguous() for one in (scales, bias))
        tensors = self._weights, self._scales, self._bias
        self.addresses = [one.data_ptr() for one in tensors]
        """Of the packed weights, their scales and the bias, which live as long as this object."""

    def with_outputs(self, ids: Tensor) -> "NativeLinear":
        """The layer of some of the outputs, with the numbers `ids`, (C,) int64."""
        found = copy.copy(self)
        found.num_outputs = len(ids)
        _, fours, *sizes = self._weights.shape
        packed = torch.empty(-(-len(ids) // _PANEL), fours, *sizes, dtype=torch.uint8)
        chosen = ids.contiguous()
        self._kernels.choose_outputs(self._weights.data_ptr(), fours, chosen.data_ptr(), len(ids), packed.data_ptr())
        found._hold(packed, self._scales[ids], self._bias[ids])
        return found

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply and scale the rows of x; a row of the result depends on its own row only."""
        rows = x.float().contiguous()
        num_rows, width = rows.shape
        assert width == self.width
        found = torch.empty(num_rows, self.num_outputs)
        inputs, results = rows.data_ptr(), found.data_ptr()

        def compute(first_row: int, end_row: int, first_panel: int, end_panel: int) -> int:
            return self._kernels.linear(
                inputs + first_row * width * 4,
                end_row - first_row,
                width,
                *self.addresses,
                self.num_outputs,
                first_panel,
                end_panel,
                self.has_relu,
                results + first_row * self.num_outputs * 4,
            )

        work = num_rows * self.num_outputs * width
        if num_rows >= _ROWS_OF_PARTS:
            in_parts(num_rows, work, lambda first, end: compute(first, end, 0, self._num_panels))
        else:
            in_parts(self._num_panels, work, lambda first, end: compute(0, num_rows, first, end))
        return found


def pack_weights(integers: Tensor, offset: int) -> Tensor:
    """(outputs, D) int8 to the bytes that linear.c reads: (panels, D / 4, 64, 4) uint8, with zeros added to both sizes."""
    num_outputs, width = integers.shape
    room = (0, -width % _SIDE_BY_SIDE, 0, -num_outputs % _PANEL)
    padded = F.pad(integers, room).to(torch.int16) + offset
    panels = padded.remainder_(256).to(torch.uint8).view(-1, _PANEL, padded.size(1) // 4, 4)
    return panels.transpose(1, 2).contiguous()


@dataclass(frozen=True, slots=True)
class NativeNorm:
    """(..., D) float32 to the same; see `torch.nn.LayerNorm`."""

    kernels: Kernels
    gain: Tensor
    bias: Tensor
    epsilon: float
    addresses: tuple[int, int]
    """Of gain and bias."""

    def __call__(self, x: Tensor) -> Tensor:
        """(..., D) float32 to the same."""
        rows = x.contiguous()
        found = torch.empty_like(rows)
        self.kernels.layer_norm(
            rows.data_ptr(),
            rows.numel() // rows.size(-1),
            rows.size(-1),
            *self.addresses,
            self.epsilon,
            found.data_ptr(),
        )
        return found


@dataclass(frozen=True, slots=True)
class Lists:
    """The positions that each row reads."""

    kernels: Kernels
    positions: Tensor  # (L, at least the longest) int32
    counts: Tensor  # (L,) int32
    row_lists: Tensor  # (R,) int32: the list of each row

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """What each query gathers.

        Args:
            queries: (R, H, K) float32; rows may be apart from each other in memory, heads may not.
            keys, values: (P, G, K), in the same form.

        Returns:
            (R, H K).
        """
        num_rows, num_heads, width = queries.shape
        num_groups = keys.size(1)
        # The kernel reads the numbers of a row side by side in memory.
        queries, keys, values = (
            each if each.stride(2) == 1 and each.stride(1) == width else each.contiguous()
            for each in (queries, keys, values)
        )
        found = torch.empty(num_rows, num_heads * width)
        inputs, stride, results = queries.data_ptr(), queries.stride(0), found.data_ptr()

        def compute(first: int, end: int) -> int:
            return self.kernels.attend(
                inputs + first * stride * 4,
                stride,
                end - first,
                num_groups,
                num_heads // num_groups,
                width,
                keys.data_ptr(),
                keys.stride(0),
                values.data_ptr(),
                values.stride(0),
                self.positions.data_ptr(),
                self.positions.stride(0),
                self.row_lists.data_ptr() + first * 4,
                self.counts.data_ptr(),
                results + first * num_heads * width * 4,
            )

        # The lists may be shorter than the room for them; this only chooses the number of threads.
        in_parts(num_rows, 2 * num_rows * num_heads * width * self.positions.size(1), compute)
        return found


_LANES = 16  # as in lanes.h
_WORK_OF_LOGIT = 32  # an exponential and what else a logit costs, in multiplications


class Labels(NamedTuple):
    """What the model shall learn: the true ids, and the probabilities of `SmoothedLabels`."""

    ids: Tensor  # (N,) int64, contiguous
    pad_id: int
    truth_weight: float
    symbol_weight: float
    pad_weight: float


def native_loss(
    predictions: Sequence[Tensor],
    bias: Tensor | None,
    bias_gradient: Tensor | None,
    labels: Labels,
    factor: float | None = None,
) -> tuple[Tensor, Tensor] | None:
    """Replace the logits of one or two predictions, (N, V) each, by the gradients of their objective.

    Args:
        predictions: their first rows are those of the labels; further ones stay as they are.
        bias: (V,), added to the logits.
        bias_gradient: (V,) float32; the sum of the gradients is added to it.
        labels: of the first rows.
        factor: of both KL divergences of two predictions, which are added to both cross-entropies (Liang et al. 2021,
            section 2.1); None: there is one prediction.

    Returns:
        For each row, or pair of rows, the objective and the (mean) negative log-likelihood, (N,) each. None: nothing is done,
        because there are no kernels, or they cannot read these logits and write gradients in their place.
    """
    kernels, is_narrow = find_kernels(), predictions[0].dtype == torch.bfloat16
    is_read = all(one.is_contiguous() for one in predictions) and (is_narrow or predictions[0].dtype == torch.float32)
    if kernels is None or not is_read:
        return None
    kernel, num_workspaces = (kernels.loss, 1) if factor is None else (kernels.twin_loss, 4)
    factors = () if factor is None else (factor,)
    ids, *probabilities = labels
    offsets = None if bias is None else bias.float().contiguous()
    results = torch.empty(2, len(ids))
    width, row_bytes = predictions[0].size(1), predictions[0].element_size() * predictions[0].size(1)
    # Each part of the rows has its own workspaces and its own sums, which are then added in the order of the parts.
    sums_of_parts: dict[int, Tensor] = {}

    def compute(first: int, end: int) -> int:
        workspaces = torch.empty(num_workspaces, -(-width // _LANES) * _LANES)
        sums = None if bias_gradient is None else sums_of_parts.setdefault(first, torch.zeros(width))
        kernel(
            *(one.data_ptr() + first * row_bytes for one in predictions),
            is_narrow,
            end - first,
            width,
            None if offsets is None else offsets.data_ptr(),
            None if sums is None else sums.data_ptr(),
            ids[first:end].data_ptr(),
            *probabilities,
            *factors,
            workspaces.data_ptr(),
            results[0, first:end].data_ptr(),
            results[1, first:end].data_ptr(),
        )
        return 0

    in_parts(len(ids), num_workspaces * len(ids) * width * _WORK_OF_LOGIT, compute)
    for _, sums in sorted(sums_of_parts.items(), key=lambda item: item[0]):
        assert bias_gradient is not None
        bias_gradient += sums
    return results[0], results[1]


def native_recurrence(kernels: Kernels, projected: Tensor, states: Tensor | None) -> tuple[Tensor, Tensor]:
    """One step of an SSRU.

    Args:
        kernels: of this processor.
        projected: (R, 2 D) float32: candidates, then gates.
        states: (R, D), the cells, into which the new ones are written; None: there are none yet.

    Returns:
        (R, D) the cells, and (R, D) the outputs.
    """
    inputs, is_first = projected.contiguous(), states is None
    num_rows, width = len(inputs), inputs.size(1) // 2
    cells = torch.empty(num_rows, width) if states is None else states.contiguous()
    found = torch.empty(num_rows, width)
    kernels.recurrence(inputs.data_ptr(), num_rows, width, cells.data_ptr(), is_first, found.data_ptr())
    return cells, found


def native_top_k(scores: Tensor, offsets: Tensor | None, k: int) -> tuple[Tensor, Tensor] | None:
    """See `decoding.search.beam.top_k`; without offsets, nothing is added. None: there are no kernels that can read these scores.

    Args:
        scores: (B, W, V); the kernels read contiguous float32 on a CPU.
        offsets: (B, W), of the same dtype.
        k: at most W * V.
    """
    is_readable = scores.device.type == "cpu" and scores.dtype == torch.float32 and scores.is_contiguous()
    kernels = find_kernels() if is_readable else None
    if kernels is None or (offsets is not None and offsets.dtype != torch.float32):
        return None
    row_offsets = None if offsets is None else offsets.contiguous()
    values = torch.empty(len(scores), k)
    positions = torch.empty(len(scores), k, dtype=torch.int64)
    kernels.top_k(
        scores.data_ptr(),
        *scores.shape,
        None if row_offsets is None else row_offsets.data_ptr(),
        k,
        values.data_ptr(),
        positions.data_ptr(),
    )
    return values, positions
