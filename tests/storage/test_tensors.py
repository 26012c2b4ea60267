"""Tensors to safetensors files and back, and files with false headers (H1, H2)."""

import io
import json
import os
import pickle
import resource
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.process.errors import DataError
from transformer_cli.storage.filesystem import (
    DTYPES,
    read_tensors,
    require_finite,
    tensors_content,
)

from ..faults import run_in_child


def encoded(tensors: dict[str, Tensor]) -> bytes:
    content = tensors_content(tensors)
    data = b"".join(bytes(chunk) for chunk in content.chunks)
    assert len(data) == content.num_bytes
    return data


def load(path: Path, expected: dict[str, Tensor]) -> dict[str, Tensor]:
    with io.FileIO(path) as file:
        return read_tensors(file, expected, "f")


def are_equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        (first[name].dtype, first[name].shape) == (second[name].dtype, second[name].shape)
        and torch.equal(first[name], second[name])
        for name in first
    )


shapes = st.lists(st.integers(0, 4), max_size=3)
tensors = st.builds(
    lambda dtype, shape: torch.randint(0, 2, shape).to(dtype),
    st.sampled_from([getattr(torch, name) for name in DTYPES.values()]),
    shapes,
)
tables = st.dictionaries(
    st.text(min_size=1, max_size=8).filter(lambda name: name != "__metadata__"), tensors, max_size=5
)


@pytest.mark.long
@settings(max_examples=100, deadline=None, derandomize=True)
@given(table=tables)
def test_we_write_what_the_safetensors_library_reads_and_read_what_it_writes(
    table: dict[str, Tensor], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert are_equal(safetensors.torch.load(encoded(table)), table)
    path = tmp_path_factory.mktemp("t") / "t"
    path.write_bytes(safetensors.torch.save(table, {"format": "pt"}))
    assert are_equal(load(path, table), table)


def test_weights_in_bfloat16_become_the_float32_of_the_model_and_nothing_else_is_converted(tmp_path: Path) -> None:
    whole = {"a": torch.tensor([1.0, -0.1, 3e38]), "b": torch.zeros(2, 0)}
    path = tmp_path / "t"
    path.write_bytes(safetensors.torch.save({name: one.bfloat16() for name, one in whole.items()}))
    assert are_equal(load(path, whole), {name: one.bfloat16().float() for name, one in whole.items()})
    for stored, expected in (
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float64),
        (torch.float32, torch.bfloat16),
    ):
        path.write_bytes(safetensors.torch.save({"a": torch.ones(3, dtype=stored)}))
        with pytest.raises(DataError, match=r"a is \[3\] \w+ instead of \[3\] "):
            load(path, {"a": torch.ones(3, dtype=expected)})


def test_columns_of_a_table_are_written_in_order() -> None:
    table = torch.arange(12.0).reshape(3, 4).t()
    assert torch.equal(safetensors.torch.load(encoded({"a": table}))["a"], table)


def test_tensors_on_the_way_to_the_disk_are_not_copied() -> None:
    table = torch.zeros(1000)
    chunk = list(tensors_content({"a": table}).chunks)[1]
    table[0] = 1.0
    assert bytes(chunk[:4]) == struct.pack("<f", 1.0)


@pytest.mark.parametrize("share", [lambda table: table, lambda table: table[1:], lambda table: table.t()])
def test_tensors_that_share_memory_are_an_internal_error(share: Callable[[Tensor], Tensor]) -> None:
    table = torch.zeros(3, 3)
    with pytest.raises(AssertionError, match="share memory"):
        tensors_content({"a": table, "b": torch.zeros(2), "c": share(table)})


def test_disjoint_parts_of_one_memory_may_be_saved() -> None:
    table = torch.arange(6.0)
    loaded = safetensors.torch.load(encoded({"a": table[:3], "b": table[3:]}))
    assert loaded["b"].tolist() == [3, 4, 5]


def file_of(header: Any, data: bytes = b"", *, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(shape: list[Any], begin: Any, end: Any, dtype: Any = "F32", **more: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end], **more}


HUGE = 2**40
LIES: dict[str, bytes] = {
    "empty": b"",
    "seven bytes": b"1234567",
    "length beyond the file": file_of({}, length=10**6),
    "length of 2^63": file_of({}, length=2**63),
    "a huge header": file_of(b" " * (17 << 20)),
    "not JSON": file_of(b"{'a': 1}"),
    "not UTF-8": file_of(b"\xff" * 20),
    "deep JSON": file_of(b"[" * 100_000),
    "a list": file_of([]),
    "an entry that is a number": file_of({"a": 1}),
    "an unknown key": file_of({"a": entry([1], 0, 4, more=1)}, bytes(4)),
    "a missing key": file_of({"a": {"dtype": "F32", "shape": [1]}}, bytes(4)),
    "a duplicate key": file_of(
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        bytes(4),
    ),
    "an overlap": file_of({"a": entry([2], 0, 8), "b": entry([2], 4, 12)}, bytes(12)),
    "the same bytes twice": file_of({"a": entry([2], 0, 8), "b": entry([2], 0, 8)}, bytes(8)),
    "a hole": file_of({"a": entry([1], 0, 4), "b": entry([1], 8, 12)}, bytes(12)),
    "a hole at the beginning": file_of({"a": entry([1], 4, 8)}, bytes(8)),
    "surplus at the end": file_of({"a": entry([1], 0, 4)}, bytes(5)),
    "an end beyond the file": file_of({"a": entry([2], 0, 8)}, bytes(4)),
    "2^40 elements": file_of({"a": entry([HUGE], 0, 4 * HUGE)}, bytes(4)),
    "2^40 elements in 4 bytes": file_of({"a": entry([HUGE], 0, 4)}, bytes(4)),
    "an overflowing shape": file_of({"a": entry([2**32, 2**32, 2**32], 0, 0)}),
    "a shape of zero times much": file_of({"a": entry([0, HUGE], 0, 0), "b": entry([1], 0, 4)}, bytes(4)),
    "more bytes than elements": file_of({"a": entry([1], 0, 8)}, bytes(8)),
    "a negative size": file_of({"a": entry([-1], 0, 4)}, bytes(4)),
    "a negative place": file_of({"a": entry([1], -4, 0)}, bytes(4)),
    "an end before the beginning": file_of({"a": entry([1], 4, 0)}, bytes(4)),
    "an end of 4,000 digits": file_of({"a": entry([1], 0, 10**4000)}, bytes(4)),
    "one end only": file_of({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, bytes(4)),
    "a boolean size": file_of({"a": entry([True], 0, 4)}, bytes(4)),
    "a fractional size": file_of({"a": entry([1.0], 0, 4)}, bytes(4)),
    "an unknown type": file_of({"a": entry([1], 0, 4, dtype="F31")}, bytes(4)),
    "a type that is no text": file_of({"a": entry([1], 0, 4, dtype=[])}, bytes(4)),
    "a long type": file_of({"a": entry([1], 0, 4, dtype="F" * 10**6)}, bytes(4)),
    "many dimensions": file_of({"a": entry([1] * 1000, 0, 4)}, bytes(4)),
    "a long name": file_of({"a" * 10**6: entry([2], 0, 4)}, bytes(4)),
    "another name": file_of({"b": entry([1], 0, 4)}, bytes(4)),
    "one more": file_of({"a": entry([1], 0, 4), "b": entry([1], 4, 8)}, bytes(8)),
    "none": file_of({}),
    "another type": file_of({"a": entry([1], 0, 4, dtype="I32")}, bytes(4)),
    "another shape": file_of({"a": entry([1, 1], 0, 4)}, bytes(4)),
    "a pickle": pickle.dumps({"a": [1.0]}),
    "a zip": b"PK\x03\x04" + bytes(100),
}


@pytest.mark.long
@pytest.mark.parametrize("lie", LIES)
def test_a_file_with_a_false_header_is_refused_before_a_tensor_is_allocated(
    tmp_path: Path, lie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(LIES[lie])
    expected = {"a": torch.zeros(1)}
    monkeypatch.setattr(torch, "empty", lambda *_, **__: pytest.fail("allocated"))
    with pytest.raises(DataError, match=r"^f: ") as caught:
        load(path, expected)
    assert len(caught.value.message) < 500


def test_a_file_with_a_true_header_is_read(tmp_path: Path) -> None:
    """The positive control of the false headers above."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(file_of({"a": entry([1], 0, 4)}, struct.pack("<f", 1.5)))
    assert load(path, {"a": torch.zeros(1)})["a"].tolist() == [1.5]


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_false_header_needs_memory(tmp_path: Path) -> None:
    for number, lie in enumerate(LIES.values()):
        (tmp_path / str(number)).write_bytes(lie)

    def work() -> int:
        in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (in_use + (200 << 20), resource.RLIM_INFINITY))
        refused = 0
        for number in range(len(LIES)):
            try:
                load(tmp_path / str(number), {"a": torch.zeros(1)})
            except DataError:
                refused += 1
        return 0 if refused == len(LIES) else 1

    assert run_in_child(work) == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_value_that_is_not_finite_is_refused(value: float) -> None:
    table = torch.zeros(100, 100)
    require_finite({"a": table, "n": torch.tensor(3)}, "f")
    table[99, 99] = value
    with pytest.raises(DataError, match="a has values that are NaN or infinite"):
        require_finite({"a": table}, "f")


def test_a_file_cut_off_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    table = {"a": torch.zeros(1000)}
    path.write_bytes(encoded(table))

    def allocate_and_cut(*_: Any, **__: Any) -> Tensor:
        os.truncate(path, 2000)
        return torch.zeros(1000)

    monkeypatch.setattr(torch, "empty", allocate_and_cut)
    with pytest.raises(DataError, match="ends inside a"):
        load(path, table)
