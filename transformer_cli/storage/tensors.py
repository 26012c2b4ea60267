"""Named tensors to safetensors files and back; the header is checked before memory is allocated.

The format (https://github.com/huggingface/safetensors): 8 bytes with the header's length, the header as
JSON, and the bytes of the tensors without gaps.

This is better than the safetensors library in three points. The library writes only to a path, so the
bytes could not be hashed on their way to the disk, and tensors on a GPU would all be copied first. It
reads only from a path, not from the descriptor whose checksum was compared. It does not compare names,
types and shapes with those of the model before it allocates memory. The tests compare with the library.
"""

import itertools
import json
import math
import sys
from collections.abc import Iterator, Mapping
from io import FileIO
from typing import Annotated, Any, NamedTuple

import torch
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from torch import Tensor

from transformer_cli.errors import DataError
from transformer_cli.storage.manifest import DamagedError, parse_json
from transformer_cli.storage.writing import Content

MAX_HEADER_BYTES = 16 << 20
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}

assert sys.byteorder == "little", (
    "safetensors is little-endian, and the bytes of memory are written unchanged"
)


class StoredTensor(NamedTuple):
    """One tensor of a header; its bytes lie from `begin` to `end` after the header."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


def tensors_content(tensors: Mapping[str, Tensor]) -> Content:
    """The content of a safetensors file; tensors on a GPU are copied to the CPU one at a time."""
    _require_separate_memory(tensors)
    # Wide types first, as the safetensors library writes them: then every tensor is aligned in the file.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {}
    end = 0
    for name in names:
        begin, end = end, end + tensors[name].nbytes
        header[name] = {
            "dtype": _DTYPE_NAMES[tensors[name].dtype],
            "shape": list(tensors[name].shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)

    def chunks() -> Iterator[bytes | memoryview]:
        yield len(text).to_bytes(8, "little") + text
        for name in names:
            yield _bytes_of(tensors[name].detach().cpu())

    return Content(8 + len(text) + end, chunks)


def read_header(file: FileIO, size: int, origin: str) -> dict[str, StoredTensor]:
    """The names, types, shapes and places of a file's tensors; the file is then at the first one.

    Raises:
        DataError: the file is not safetensors, or its tensors have gaps, overlaps or bytes behind them.
    """
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, MAX_HEADER_BYTES):
        raise DataError(
            f"{origin}: not a safetensors file: a header of {length:,} bytes in a file of {size:,}"
        )
    try:
        entries = _HEADER.validate_python(_parse(file.read(length), origin))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise DataError(f"{origin}: {where[:200]}: {problem['msg']}") from error
    stored = {name: _stored(name, entry, origin) for name, entry in entries.items()}
    position = 0
    for name, tensor in sorted(stored.items(), key=lambda item: item[1][2:]):
        if tensor.begin != position:
            raise DataError(
                f"{origin}: {name}: a gap or an overlap at byte {position:,} of the data"
            )
        position = tensor.end
    if position != size - 8 - length:
        raise DataError(
            f"{origin}: {size - 8 - length:,} bytes of data, but the header lists {position:,}"
        )
    return stored


def require_expected(
    stored: Mapping[str, StoredTensor], expected: Mapping[str, Tensor], origin: str
) -> None:
    """Raise DataError unless a header lists exactly the tensors of a model, which may be on any device."""
    for name in sorted(expected.keys() - stored.keys()):
        raise DataError(f"{origin}: {name} is missing")
    for name in sorted(stored.keys() - expected.keys()):
        raise DataError(f"{origin}: {name[:200]!r} is not a tensor of this model")
    for name, tensor in stored.items():
        wanted = expected[name]
        if (tensor.dtype, tensor.shape) != (wanted.dtype, tuple(wanted.shape)):
            raise DataError(
                f"{origin}: {name} is {_kind(tensor.dtype, tensor.shape)}"
                f" instead of {_kind(wanted.dtype, wanted.shape)}"
            )


def read_tensors(
    file: FileIO, stored: Mapping[str, StoredTensor], origin: str
) -> dict[str, Tensor]:
    """Read the tensors of a header; the file stands at the end of the header."""
    tensors = {}
    for name, place in sorted(stored.items(), key=lambda item: item[1][2:]):
        tensors[name] = torch.empty(place.shape, dtype=place.dtype)
        rest = _bytes_of(tensors[name])
        while rest:
            count = file.readinto(rest)
            if not count:
                raise DamagedError(f"{origin}: ends inside {name}")
            rest = rest[count:]
    return tensors


def require_finite(tensors: Mapping[str, Tensor], origin: str) -> None:
    """Raise DataError if a value is NaN or infinite."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise DataError(
                f"{origin}: {name} has values that are NaN or infinite",
                hint="the training has diverged, or the file was changed; use another checkpoint",
            )


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    dtype: Annotated[str, Field(max_length=8)]
    shape: Annotated[list[Annotated[int, Field(ge=0, le=2**40)]], Field(max_length=8)]
    data_offsets: Annotated[
        list[Annotated[int, Field(ge=0, le=2**50)]], Field(min_length=2, max_length=2)
    ]


_HEADER = TypeAdapter(dict[str, _Entry])


def _parse(text: bytes, origin: str) -> Any:
    try:
        header = parse_json(text, origin)
    except DamagedError as error:
        raise DataError(f"{origin}: not a safetensors file: its header is not JSON") from error
    if isinstance(header, dict):
        header.pop("__metadata__", None)
    return header


def _stored(name: str, entry: _Entry, origin: str) -> StoredTensor:
    if entry.dtype not in DTYPES:
        raise DataError(f"{origin}: {name[:200]}: the type {entry.dtype!r} is not supported")
    dtype = DTYPES[entry.dtype]
    begin, end = entry.data_offsets
    if end - begin != math.prod(entry.shape) * dtype.itemsize:
        raise DataError(
            f"{origin}: {name[:200]}: {end - begin:,} bytes cannot be {_kind(dtype, entry.shape)}"
        )
    return StoredTensor(dtype, tuple(entry.shape), begin, end)


def _kind(dtype: torch.dtype, shape: Any) -> str:
    return f"{list(shape)} {str(dtype).removeprefix('torch.')}"


def _bytes_of(tensor: Tensor) -> memoryview:
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def _require_separate_memory(tensors: Mapping[str, Tensor]) -> None:
    """Two names for one tensor would be loaded as two tensors, so a tied tensor has one name."""
    used = sorted(
        (str(tensor.device), tensor.data_ptr(), tensor.nbytes, name)
        for name, tensor in tensors.items()
        if tensor.nbytes
    )
    for first, second in itertools.pairwise(used):
        is_shared = first[0] == second[0] and first[1] + first[2] > second[1]
        assert not is_shared, (
            f"{first[3]} and {second[3]} share memory: save a tied tensor under one name"
        )
