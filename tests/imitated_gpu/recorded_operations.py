"""An imitated CUDA graph: the operations of some work, recorded, and repeated on the same tensors without its Python code.

As in a recording of CUDA, no value may be read, nothing may be copied between the device and the CPU, and what Python computed
once is repeated as it was. Random numbers are drawn anew. CUDA records without computing; here the work is done, so its
results are then overwritten by NaN: whoever reads them before the first repetition gets NaN.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Work = Callable[[], None]
READING = {
    *("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero"),
    *("_unique2", "unique_dim", "unique_consecutive", "repeat_interleave"),
}
REPEATED = Path("repeated")
"""A file of the current folder that gets a byte for each repetition."""


class Recording(TorchDispatchMode):
    """Records the operations in its block."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[Any, tuple[Any, ...], Mapping[str, Any], Any]] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        has_bool_index = name.startswith(("index.", "index_put")) or name == "index"
        is_read = has_bool_index and any(one.dtype == torch.bool for one in tensors_of(args[1]))
        assert not is_read, f"a recording cannot read a value: {func}"
        assert name not in READING, f"a recording cannot read a value: {func}"
        result = func(*args, **kwargs)
        for one in tensors_of((args, kwargs, result)):
            is_number = one.ndim == 0 and func is not torch.ops.aten._to_copy.default
            assert is_number or one.device.type != "cpu", f"a recording has no CPU: {func}"
        self.steps.append((func, args, kwargs, result))
        return result

    def forget_results(self) -> None:
        """Overwrite what has been computed by NaN, as far as it lies in memory of the recording."""
        for _, args, kwargs, result in self.steps:
            given = {one.untyped_storage().data_ptr() for one in tensors_of((args, kwargs))}
            for one in tensors_of(result):
                if one.is_floating_point() and one.untyped_storage().data_ptr() not in given:
                    one.detach().fill_(torch.nan)

    @torch.no_grad()
    def repeat(self) -> None:
        """Repeat all operations; each result goes to where it was at first."""
        with REPEATED.open("ab") as file:
            file.write(b".")
        for func, args, kwargs, result in self.steps:
            again = func(*args, **kwargs)
            for before, now in zip(tensors_of(result), tensors_of(again), strict=True):
                # Views, and results of operations in place, are where they were.
                if before.untyped_storage().data_ptr() != now.untyped_storage().data_ptr():
                    before.copy_(now)


def num_transfers() -> int:
    """How often a tensor was copied between the device and the CPU; the library of the device replaces this."""
    return 0


def tensors_of(tree: Any) -> Iterator[Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor))


def record(work: Work) -> Work:
    """As `capture.recorder_on` does it on a GPU: work runs once without a recording, and is then recorded, not done."""
    work()
    before, transfers = torch.get_rng_state(), num_transfers()
    with Recording() as recording:
        work()
    assert num_transfers() == transfers, "a recording copies nothing between the device and the CPU"
    recording.forget_results()
    torch.set_rng_state(before)
    return recording.repeat


def run_each_time(work: Work) -> Work:
    """No recording: the Python code runs each time."""
    return work
