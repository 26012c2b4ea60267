"""The folder `tfm/` in an export: the config and the tokenizers of the run, and where its weights lie, for `tfm import`.

Other programs join matrices (queries, keys and values), transpose them, and lengthen tables. No value is changed, so each
of our tensors is found by comparing values.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from transformer_cli.checkpoint.checkpoints import portable_files
from transformer_cli.checkpoint.run_folder import CONFIG_FILE
from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config
from transformer_cli.config.loading import MAX_CONFIG_BYTES, stored_config
from transformer_cli.extensions.exchange.model_folder import MAX_TOKENIZER_BYTES, ModelFolder
from transformer_cli.process.errors import DataError
from transformer_cli.storage.filesystem import tensors_content
from transformer_cli.text.tokenizer import Tokenizers, read_tokenizers, tokenizer_names

RECORD = "tfm-export.json"
"""Beside the folder: says which run an export was made from, and how it was checked. A folder with this file may be replaced."""
OWN_FOLDER = "tfm"
PLACES_FILE = "weights.json"
"""For each tensor of our model, where it lies in the files of the format; and the SHA-256 of all tensors."""
REST_FILE = "weights.safetensors"
"""The tensors that lie nowhere in the files of the format: a format that bans tokens replaces the bias of the output."""
_Row = Annotated[int, Field(ge=0, lt=1 << 32)]


def own_files(trained: TrainedModel, stored: Mapping[str, Tensor] | None) -> dict[str, bytes]:
    """The files of the folder, by their names in the export.

    Args:
        trained: the run.
        stored: the tensors in the files of the format; None: `tfm import` knows how the format stores weights.
    """
    files = portable_files(trained.config, *trained.tokenizers)
    if stored is not None:
        files |= _files_of_weights(trained.model.state_dict(), stored)
    return {f"{OWN_FOLDER}/{name}": content for name, content in files.items()}


def _files_of_weights(state: Mapping[str, Tensor], stored: Mapping[str, Tensor]) -> dict[str, bytes]:
    weights = find_places(state, stored)
    facts = {
        "places": {name: list(place) for name, place in weights.places.items()},
        "sha256": weights_digest(state),
    }
    files = {PLACES_FILE: json.dumps(facts, indent=1).encode() + b"\n"}
    if weights.rest:
        files[REST_FILE] = b"".join(tensors_content(weights.rest).chunks)
    return files


class WeightPlace(NamedTuple):
    """The place of one of our tensors."""

    tensor: str
    """The name of the other program's tensor."""
    first_row: int
    """Our tensor begins at this row of it."""
    is_transposed: bool
    """Whether our tensor is the transposed one."""


class StoredWeights(NamedTuple):
    """The places of a model's tensors."""

    places: dict[str, WeightPlace]
    """By our names."""
    rest: dict[str, Tensor]
    """Our tensors that lie nowhere in the files."""


def find_places(state: Mapping[str, Tensor], stored: Mapping[str, Tensor]) -> StoredWeights:
    """Find each tensor of a model among those of another program.

    Args:
        state: the model's `state_dict`.
        stored: the tensors in the files of the other program.
    """
    found = StoredWeights({}, {})
    for name, ours in state.items():
        places = (_place(ours, theirs, tensor) for theirs, tensor in stored.items())
        place = next((one for one in places if one is not None), None)
        if place is None:
            found.rest[name] = ours
        else:
            found.places[name] = place
    return found


def read_back(
    weights: StoredWeights, stored: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The `state_dict` of a model from the files of another program.

    Args:
        weights: what `find_places` found.
        stored: the tensors in the files of the other program.
        expected: tensors with the names and the shapes of the model, on any device.

    Raises:
        DataError: a tensor is missing, or has another shape.
    """
    state = {}
    for name, wanted in expected.items():
        ours = weights.rest.get(name)
        if name in weights.places:
            tensor, first_row, is_transposed = weights.places[name]
            theirs = stored.get(tensor)
            if theirs is None:
                raise DataError(f"the weights have no tensor {tensor}, in which {name} should be")
            theirs = theirs.T if is_transposed and theirs.dim() == 2 else theirs
            ours = theirs[first_row : first_row + len(wanted)] if wanted.dim() and theirs.dim() else theirs
        if ours is None:
            raise DataError(f"the weights do not have {name}")
        if ours.shape != wanted.shape:
            shapes = f"{list(ours.shape)} instead of {list(wanted.shape)}"
            raise DataError(f"the weights: {name} has the shape {shapes}")
        state[name] = ours.contiguous().clone()
    return state


def weights_digest(state: Mapping[str, Tensor]) -> str:
    """The SHA-256 of the names, shapes and values of a model's tensors."""
    found = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        found.update(f"{name} {list(tensor.shape)} {tensor.dtype}\n".encode())
        found.update(tensor.numpy().tobytes())
    return found.hexdigest()


def _place(ours: Tensor, name: str, theirs: Tensor) -> WeightPlace | None:
    if theirs.dtype != ours.dtype or theirs.dim() != ours.dim():
        return None
    for is_transposed in (False, True) if ours.dim() == 2 else (False,):
        first_row = _first_row(ours, theirs.T if is_transposed else theirs)
        if first_row is not None:
            return WeightPlace(name, first_row, is_transposed)
    return None


def _first_row(ours: Tensor, theirs: Tensor) -> int | None:
    """The row of `theirs` at which `ours` begins; joined matrices begin at multiples of their length."""
    if ours.dim() == 0:
        return 0 if bool(ours == theirs) else None
    num_rows = len(ours)
    if ours.shape[1:] != theirs.shape[1:] or not 0 < num_rows <= len(theirs):
        return None
    for row in range(0, len(theirs) - num_rows + 1, num_rows):
        # Most matrices differ in their first row already.
        if theirs[row].equal(ours[0]) and theirs[row : row + num_rows].equal(ours):
            return row
    return None


def own_config(own: ModelFolder) -> Config:
    """The config of the run from which an export was made.

    Args:
        own: the folder `tfm/` of the export.

    Raises:
        MissingInputError: there is no such file.
        ConfigError: it is no YAML mapping, or a setting is invalid.
    """
    text = own.text(CONFIG_FILE, max_bytes=MAX_CONFIG_BYTES)
    return stored_config(text, str(own.path / CONFIG_FILE))


def own_tokenizers(own: ModelFolder) -> Tokenizers:
    """The tokenizers of the run from which an export was made; `own` and errors as of `own_config`."""
    names = tokenizer_names({file.name for file in own.path.iterdir()})
    return read_tokenizers({name: own.bytes(name, max_bytes=MAX_TOKENIZER_BYTES) for name in names}, own.path)


class _Places(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    places: dict[str, tuple[str, _Row, bool]]
    sha256: str


def read_exported_weights(
    own: ModelFolder,
    stored_tensors: Callable[[], Mapping[str, Tensor] | None],
    expected: Mapping[str, Tensor],
    origin: Path,
) -> dict[str, Tensor]:
    """The `state_dict` of the exported model.

    Args:
        own: the folder `tfm/` of the export.
        stored_tensors: reads the tensors in the files of the other program.
        expected: tensors with the names and the shapes of the model, on any device.
        origin: what messages call the export.

    Raises:
        MissingInputError: a file is missing.
        DataError: the files do not belong to one model, or a weight was changed after the export.
    """
    described = _described(own)
    rest = own.safetensors(REST_FILE) if own.has(REST_FILE) else {}
    places = {name: WeightPlace(*place) for name, place in described.places.items()}
    try:
        state = read_back(StoredWeights(places, rest), stored_tensors() or {}, expected)
    except DataError as error:
        raise DataError(f"{origin}: {error.message}", hint="copy the whole export again") from error
    if weights_digest(state) != described.sha256:
        raise DataError(
            f"{origin}: the weights are not those that were exported (their SHA-256 differs)",
            hint="copy the whole export again",
        )
    return state


def _described(own: ModelFolder) -> _Places:
    # `tuple` in JSON is a list, which a strict model takes from JSON only.
    text = own.text(PLACES_FILE, max_bytes=64 << 20)
    try:
        return _Places.model_validate_json(text)
    except ValidationError as error:
        raise DataError(f"{own.path / PLACES_FILE}: not what tfm export writes", hint="copy the file again") from error
