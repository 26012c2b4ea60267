"""The folder `tfm/` in an export: the config and the tokenizers of the run, and where its weights lie, for `tfm import`."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from transformer_cli.checkpoint import portable_files

if TYPE_CHECKING:  # the import of PyTorch takes seconds
    from torch import Tensor

    from transformer_cli.checkpoint import TrainedModel

OWN_FOLDER = "tfm"
PLACES_FILE = "weights.json"
"""For each tensor of our model, where it lies in the files of the format; and the SHA-256 of all tensors."""
REST_FILE = "weights.safetensors"
"""The tensors that lie nowhere in the files of the format: a format that bans tokens replaces the bias of the output."""


def own_files(trained: "TrainedModel", stored: "Mapping[str, Tensor] | None") -> dict[str, bytes]:
    """The files of the folder, by their names in the export.

    Args:
        trained: the run.
        stored: the tensors in the files of the format; None: `tfm import` knows how the format stores weights.
    """
    files = portable_files(trained.config, trained.source_tokenizer, trained.target_tokenizer)
    if stored is not None:
        files |= _files_of_weights(trained.model.state_dict(), stored)
    return {f"{OWN_FOLDER}/{name}": content for name, content in files.items()}


def _files_of_weights(
    state: "Mapping[str, Tensor]", stored: "Mapping[str, Tensor]"
) -> dict[str, bytes]:
    from transformer_cli.extensions.exchange.interchange.stored_weights import digest, find_places
    from transformer_cli.storage.tensors import tensors_content

    weights = find_places(state, stored)
    facts = {
        "places": {name: list(place) for name, place in weights.places.items()},
        "sha256": digest(state),
    }
    files = {PLACES_FILE: json.dumps(facts, indent=1).encode() + b"\n"}
    if weights.rest:
        files[REST_FILE] = b"".join(tensors_content(weights.rest).chunks())
    return files
