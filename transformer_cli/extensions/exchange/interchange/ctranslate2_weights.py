"""The tensors in the file with which CTranslate2 stores the weights of a model."""

import struct
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from transformer_cli.process.errors import DataError

VERSION = 6
"""The version of the file format that is read."""
_FLOAT32 = 0
"""The number of the type in the file; the types after it are int8, int16, int32, float16 and bfloat16."""
_MAX_DIMENSIONS = 8


def read_weights(content: bytes, origin: str) -> dict[str, Tensor]:
    """The float32 tensors of a model, by the names of CTranslate2; a name that means the tensor of another name is left out.

    The format (`ModelSpec._serialize` of CTranslate2 4): version; name of the model and its revision; number of tensors;
    for each tensor its name, dimensions, type, number of bytes, and bytes.

    Args:
        content: of the file.
        origin: what messages call the file.

    Raises:
        DataError: this is no such file, or it is cut off.
    """
    reader = _Reader(content)
    try:
        version = reader.number("I")
        if version != VERSION:
            raise DataError(
                f"{origin}: version {version} of the file format of CTranslate2; version {VERSION} can be read",
                hint="export the run again",
            )
        reader.text()
        reader.number("I")
        return dict(_tensors(reader))
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise DataError(f"{origin}: not a whole model.bin of CTranslate2", hint="copy the file again") from error  # fmt: skip


def _tensors(reader: "_Reader") -> Iterator[tuple[str, Tensor]]:
    for _ in range(reader.number("I")):
        name = reader.text()
        num_dimensions = reader.number("B")
        if num_dimensions > _MAX_DIMENSIONS:
            raise ValueError("too many dimensions")
        shape = [reader.number("I") for _ in range(num_dimensions)]
        kind = reader.number("B")
        values = reader.bytes(reader.number("I"))
        if kind == _FLOAT32:
            yield name, torch.from_numpy(np.frombuffer(values, "<f4").reshape(shape).copy())


class _Reader:
    """Reads one value after the other; raises struct.error beyond the end."""

    def __init__(self, content: bytes) -> None:
        self._content = memoryview(content)
        self._at = 0

    def number(self, kind: str) -> int:
        [value] = struct.unpack("<" + kind, self.bytes(struct.calcsize("<" + kind)))
        return int(value)

    def text(self) -> str:
        return bytes(self.bytes(self.number("H"))).rstrip(b"\0").decode()

    def bytes(self, length: int) -> memoryview:
        if length > len(self._content) - self._at:
            raise struct.error("beyond the end of the file")
        self._at += length
        return self._content[self._at - length : self._at]
