"""Columns of pyarrow from and to texts and numpy arrays.

pyarrow's own conversions import pandas, if it is installed, and with it 30 MB and 0.2 seconds: these do not.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # to import numpy takes longer than to translate a sentence
    from numpy.typing import NDArray


def text_column(texts: Sequence[str]) -> Any:
    """The texts as an array of `pyarrow.string()`.

    Args:
        texts: without lone surrogates; at most 2 GiB of UTF-8 together.
    """
    import numpy as np
    import pyarrow as pa

    encoded = list(map(str.encode, texts))
    data = b"".join(encoded)
    if len(data) > np.iinfo(np.int32).max:
        raise ValueError(f"{len(data):,} bytes of text do not fit in one column")
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, encoded), np.int32, len(encoded)), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def number_column(numbers: "Sequence[int] | NDArray[Any]", number_type: Any) -> Any:
    """The numbers as an array of a type of pyarrow, such as `pyarrow.uint16()`.

    Args:
        numbers: they fit in the type.
    """
    import numpy as np
    import pyarrow as pa

    values = np.ascontiguousarray(numbers, dtype=number_type.to_pandas_dtype())
    return pa.Array.from_buffers(number_type, len(values), [None, pa.py_buffer(values)])


def numbers_of(column: Any) -> "NDArray[Any]":
    """The numbers of an array of pyarrow without missing values, not copied."""
    import numpy as np

    return np.from_dlpack(column)
