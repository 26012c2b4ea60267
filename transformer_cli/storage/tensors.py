"""Named tensors to safetensors files and back; the header is checked before memory is allocated.

The format (https://github.com/huggingface/safetensors): 8 bytes with the header's length, the header as
JSON, and the bytes of the tensors without gaps.

The safetensors library is not used, for three reasons. It writes to a path or to one string of bytes, so
a file cannot be hashed while it is written, and tensors on a GPU would all be copied first. It reads from
a path or from bytes, not from the open file whose checksum was compared. It allocates memory before it
can compare names, types and shapes with those of the model. The tests compare with the library.
"""

import itertools
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from io import FileIO
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from torch import Tensor

from transformer_cli.process.errors import DataError
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


def read_tensors(file: FileIO, expected: Mapping[str, Tensor], origin: str) -> dict[str, Tensor]:
    """Read the tensors of a model from a safetensors file; the whole header is checked first.

    Args:
        file: at its beginning.
        expected: tensors with the names, types and shapes that the file must have, on any device.
        origin: what messages call the file.

    Raises:
        DataError: the file is not safetensors, or its tensors are not the expected ones, or have
            gaps, overlaps or bytes after them.
        DamagedError: the file became shorter while it was read.
    """
    header, num_bytes = _read_header(file, origin)
    return _read_data(file, header, num_bytes, expected, origin)


def read_all_tensors(file: FileIO, origin: str) -> dict[str, Tensor]:
    """Read all tensors of a safetensors file, whatever their names and shapes; the whole header is checked first.

    Args:
        file: at its beginning.
        origin: what messages call the file.

    Raises:
        DataError: the file is not safetensors, or has tensors of unknown types, gaps, overlaps or bytes after them.
        DamagedError: the file became shorter while it was read.
    """
    header, num_bytes = _read_header(file, origin)
    expected = {}
    for name, entry in header.items():
        if entry.dtype not in DTYPES:
            raise DataError(
                f"{origin}: {name[:200]!r} is of the type {entry.dtype}, which is not supported"
            )
        itemsize = DTYPES[entry.dtype].itemsize
        if math.prod(entry.shape) * itemsize > num_bytes:
            raise DataError(f"{origin}: {name[:200]!r} is larger than the file")
        expected[name] = torch.empty(entry.shape, dtype=DTYPES[entry.dtype], device="meta")
    return _read_data(file, header, num_bytes, expected, origin)


def _read_data(
    file: FileIO,
    header: "dict[str, _Entry]",
    num_bytes: int,
    expected: Mapping[str, Tensor],
    origin: str,
) -> dict[str, Tensor]:
    for name in sorted(expected.keys() - header.keys()):
        raise DataError(f"{origin}: {name} is missing")
    for name in sorted(header.keys() - expected.keys()):
        raise DataError(f"{origin}: {name[:200]!r} is not a tensor of this model")
    names = sorted(header, key=lambda name: header[name].data_offsets)
    end = 0
    for name in names:
        entry, wanted = header[name], expected[name]
        dtype = DTYPES.get(entry.dtype, entry.dtype)
        if (dtype, entry.shape) != (wanted.dtype, list(wanted.shape)):
            raise DataError(
                f"{origin}: {name} is {_kind(dtype, entry.shape)} instead of {_kind(wanted.dtype, wanted.shape)}"
            )
        place = [end, end + wanted.nbytes]
        if entry.data_offsets != place:
            raise DataError(
                f"{origin}: {name}: the header places it at {entry.data_offsets}, not at {place}"
            )
        end += wanted.nbytes
    if end != num_bytes:
        raise DataError(f"{origin}: {num_bytes:,} bytes of data, but the header lists {end:,}")

    tensors = {}
    for name in names:
        tensors[name] = torch.empty(expected[name].shape, dtype=expected[name].dtype)
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
    data_offsets: Annotated[list[Annotated[int, Field(ge=0, le=2**50)]], Field(max_length=2)]


_HEADER = TypeAdapter(dict[str, _Entry])


def _read_header(file: FileIO, origin: str) -> tuple[dict[str, _Entry], int]:
    """The entries of the header, and the number of bytes after it."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, MAX_HEADER_BYTES):
        raise DataError(
            f"{origin}: not a safetensors file: a header of {length:,} bytes in a file of {size:,}"
        )
    try:
        header = parse_json(file.read(length), origin)
        if isinstance(header, dict):
            header.pop("__metadata__", None)
        return _HEADER.validate_python(header), size - 8 - length
    except DamagedError as error:
        raise DataError(f"{origin}: not a safetensors file: its header is not JSON") from error
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise DataError(f"{origin}: {where[:200]}: {problem['msg']}") from error


def _kind(dtype: torch.dtype | str, shape: Iterable[int]) -> str:
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
