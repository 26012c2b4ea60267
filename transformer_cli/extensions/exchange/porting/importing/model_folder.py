"""The files of a model folder from elsewhere, each read with a limit of its size."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.storage import DamagedError
from transformer_cli.storage.manifest import is_bare_name, parse_json

if TYPE_CHECKING:
    from torch import Tensor

MAX_JSON_BYTES = 64 << 20
MAX_TEXT_BYTES = 1 << 20
MAX_TOKENIZER_BYTES = 100 << 20
WEIGHTS, INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"


class ModelFolder:
    """A folder, whose files are read by name."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            problem = "a file, where a folder is expected" if path.exists() else "no such folder"
            raise MissingInputError(
                f"{path}: {problem}", hint="give the folder that holds the files of the model"
            )
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def has(self, *names: str) -> bool:
        """Whether the folder has all these files."""
        return all((self.path / name).is_file() for name in names)

    def bytes(self, name: str, *, max_bytes: int) -> bytes:
        """The content of a file.

        Raises:
            MissingInputError: there is no such file, or it cannot be read.
            DataError: it is larger than `max_bytes`.
        """
        path = self.path / name
        try:
            with path.open("rb") as file:
                content = file.read(max_bytes + 1)
        except FileNotFoundError:
            raise MissingInputError(
                f"{path}: no such file", hint="copy the whole folder of the model"
            ) from None
        except OSError as error:
            raise MissingInputError(f"{path}: cannot be read: {error.strerror}") from error
        if len(content) > max_bytes:
            raise DataError(f"{path}: more than {max_bytes:,} bytes, the limit for this file")
        return content

    def text(self, name: str, *, max_bytes: int) -> str:
        """A file as text; raises the errors of `bytes`, and DataError if it is not UTF-8."""
        try:
            return self.bytes(name, max_bytes=max_bytes).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path / name}: not UTF-8 text") from error

    def json(self, name: str, *, max_bytes: int = MAX_JSON_BYTES) -> dict[str, Any]:
        """The JSON object in a file; raises the errors of `bytes`, and DataError if it is none."""
        origin = str(self.path / name)
        try:
            found = parse_json(self.bytes(name, max_bytes=max_bytes), origin)
        except DamagedError as error:
            raise DataError(error.message, hint="copy the file again") from error
        if not isinstance(found, dict):
            raise DataError(f"{origin}: not a JSON object")
        return found

    def json_or_empty(self, name: str) -> dict[str, Any]:
        """The JSON object in a file; empty if there is no such file."""
        return self.json(name) if self.has(name) else {}

    def tensors(self) -> "dict[str, Tensor]":
        """The weights: of model.safetensors, of the parts that its index names, or of pytorch_model.bin.

        Raises:
            MissingInputError: there are no weights.
            DataError: they cannot be used.
        """
        if self.has(WEIGHTS):
            return self.safetensors(WEIGHTS)
        if self.has(INDEX):
            return self._parts()
        if self.has(PICKLED):
            from transformer_cli.extensions.exchange.porting.importing.pickled_weights import (
                pickled_tensors,
            )

            return pickled_tensors(self.path / PICKLED)
        if self.has(f"{PICKLED}.index.json"):
            raise DataError(
                f"{self.path}: the weights are in several files, pytorch_model-*.bin, which cannot be read",
                hint="load the model with transformers and save it again: its save_pretrained writes safetensors files",
            )
        raise MissingInputError(
            f"{self.path}: there is no {WEIGHTS} and no {PICKLED}",
            hint="copy the whole folder of the model; weights of TensorFlow and Flax (tf_model.h5, flax_model.msgpack) cannot be read",
        )

    def _parts(self) -> "dict[str, Tensor]":
        names = self.json(INDEX).get("weight_map")
        if not isinstance(names, dict) or not all(map(_is_safetensors_name, names.values())):
            raise DataError(f"{self.path / INDEX}: not a map from tensors to safetensors files")
        tensors: dict[str, Tensor] = {}
        for name in sorted(set(names.values())):
            tensors |= self.safetensors(name)
        return tensors

    def safetensors(self, name: str) -> "dict[str, Tensor]":
        """The tensors of a safetensors file; raises the errors of `tensors`."""
        from transformer_cli.storage.tensors import read_all_tensors

        path = self.path / name
        try:
            with io.FileIO(path) as file:
                _require_memory(os.fstat(file.fileno()).st_size, path)
                return read_all_tensors(file, str(path))
        except FileNotFoundError:
            raise MissingInputError(f"{path}: no such file") from None
        except OSError as error:
            raise MissingInputError(f"{path}: cannot be read: {error.strerror}") from error


def _is_safetensors_name(name: Any) -> bool:
    return isinstance(name, str) and is_bare_name(name) and name.endswith(".safetensors")


def _require_memory(num_bytes: int, path: Path) -> None:
    import torch

    from transformer_cli.process.memory import require_memory

    hint = "close other programs, or use a machine with more memory"
    require_memory(2 * num_bytes, torch.device("cpu"), f"{path}: the weights", hint=hint)


def text_setting(settings: Mapping[str, Any], name: str) -> str | None:
    """A setting that is text, or the `content` of a token; None if it is absent or something else."""
    value = settings.get(name)
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None
