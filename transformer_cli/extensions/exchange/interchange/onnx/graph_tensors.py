"""The float32 tensors in the ONNX files of a model."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transformer_cli.extensions.exchange.interchange.onnx.onnx_files import DECODER, ENCODER
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.process.extras import require_extra


def read_graph_tensors(folder: Path) -> dict[str, Tensor]:
    """The constants of the graphs in float32, as `name of the file:name of the tensor`.

    Args:
        folder: with the files that `write_graphs` has written.

    Raises:
        MissingInputError: a file is missing.
        DataError: a file is no ONNX file.
        UsageError: the package onnx is missing.
    """
    require_extra("export", ("onnx",), purpose="reading ONNX files")
    import onnx
    from google.protobuf.message import DecodeError

    tensors = {}
    for graph in (ENCODER, DECODER):
        path = folder / f"{graph}.onnx"
        try:
            # Tensors in other files would be read from any path that the file names.
            model = onnx.load(path, load_external_data=False)
        except FileNotFoundError:
            raise MissingInputError(f"{path}: no such file", hint="copy the whole folder") from None
        except DecodeError as error:
            raise DataError(f"{path}: not an ONNX file", hint="copy the file again") from error
        for one in model.graph.initializer:
            is_here = one.data_location != onnx.TensorProto.EXTERNAL
            if is_here and one.data_type == onnx.TensorProto.FLOAT:
                values: np.ndarray = onnx.numpy_helper.to_array(one)
                tensors[f"{graph}:{one.name}"] = torch.from_numpy(values.copy())
    return tensors
