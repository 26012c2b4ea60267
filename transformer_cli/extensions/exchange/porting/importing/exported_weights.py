"""The weights of a folder that `tfm export` made for another program: they are read from that program's own files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from transformer_cli.extensions.exchange.interchange.stored_weights import (
    Place,
    StoredWeights,
    digest,
    read_back,
)
from transformer_cli.extensions.exchange.porting.exporting.own_folder import PLACES_FILE, REST_FILE
from transformer_cli.extensions.exchange.porting.importing.model_folder import ModelFolder
from transformer_cli.process.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

_Row = Annotated[int, Field(ge=0, lt=1 << 32)]


class _Places(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    places: dict[str, tuple[str, _Row, bool]]
    sha256: str


def read_exported_weights(
    own: ModelFolder,
    stored_tensors: "Callable[[], Mapping[str, Tensor] | None]",
    expected: "Mapping[str, Tensor]",
    origin: Path,
) -> "dict[str, Tensor]":
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
    places = {name: Place(*place) for name, place in described.places.items()}
    try:
        state = read_back(StoredWeights(places, rest), stored_tensors() or {}, expected)
    except DataError as error:
        raise DataError(f"{origin}: {error.message}", hint="copy the whole export again") from error
    if digest(state) != described.sha256:
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
        raise DataError(
            f"{own.path / PLACES_FILE}: not what tfm export writes", hint="copy the file again"
        ) from error
