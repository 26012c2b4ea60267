"""One checkpoint on disk: what it is made of, and how its parts are read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from transformer_cli.errors import DataError, TrainingStoppedError
from transformer_cli.storage import Content, Manifest, open_sealed
from transformer_cli.storage.manifest import encode_json, is_bare_name, parse_json
from transformer_cli.storage.tensors import (
    read_header,
    read_tensors,
    require_expected,
    require_finite,
    tensors_content,
)

MODEL_FILE = "model.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
STATE_FILE = "state.json"
MAX_STATE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A moment of training, whole enough to go on from there, and to translate."""

    step: int
    model: Mapping[str, Tensor]
    """`state_dict()` of the model: what is tied has one name."""
    optimizer: Mapping[str, Tensor]
    """Flat: the parameter's name, a dot, the name of the optimizer's state."""
    state: Mapping[str, Any]
    """What JSON can hold: the position in the data, the best score, counters."""
    files: Mapping[str, bytes]
    """config.yaml and the tokenizers: what `portable_files` gives."""

    def contents(self) -> dict[str, Content]:
        """The files of the checkpoint."""
        assert all(map(is_bare_name, self.files)), "files of a checkpoint have plain names"
        try:
            require_finite(self.model, f"step {self.step}")
        except DataError as error:
            raise TrainingStoppedError(
                f"{error.message}; they were not saved", hint="the checkpoint before is intact"
            ) from error
        return {
            MODEL_FILE: tensors_content(self.model),
            OPTIMIZER_FILE: tensors_content(self.optimizer),
            STATE_FILE: Content.of(encode_json(self.state)),
            **{name: Content.of(data) for name, data in self.files.items()},
        }


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint folder whose manifest is sound and whose files have the sizes that it lists.

    Every read compares the SHA-256 of the file first.
    """

    folder: Path
    manifest: Manifest

    @property
    def step(self) -> int:
        """How many updates the model has had."""
        return self.manifest.step

    @property
    def score(self) -> float | None:
        """By the run's best metric, on the validation split."""
        return self.manifest.score

    def verify(self) -> None:
        """Read every file.

        Raises:
            DamagedError: one has other bytes than were saved.
        """
        with open_sealed(self.folder) as sealed:
            sealed.verify()

    def has(self, name: str) -> bool:
        """Whether a file of that name belongs to the checkpoint."""
        return any(file.name == name for file in self.manifest.files)

    def file(self, name: str, *, max_bytes: int) -> bytes:
        """All bytes of a small file."""
        with open_sealed(self.folder) as sealed:
            return sealed.read(name, max_bytes=max_bytes)

    def state(self) -> dict[str, Any]:
        """What `Snapshot.state` held."""
        state = parse_json(
            self.file(STATE_FILE, max_bytes=MAX_STATE_BYTES), str(self.folder / STATE_FILE)
        )
        if not isinstance(state, dict):
            raise DataError(f"{self.folder / STATE_FILE}: not a mapping")
        return state

    def model(self, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights.

        Args:
            expected: `state_dict()` of the model that they are for, on any device, also meta.

        Raises:
            DamagedError: the file is not the one saved.
            DataError: it holds other tensors than expected, or numbers that are not finite.
        """
        weights = self._tensors(MODEL_FILE, expected)
        require_finite(weights, str(self.folder / MODEL_FILE))
        return weights

    def optimizer(self, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The optimizer's state, flat; raises as `model` does."""
        return self._tensors(OPTIMIZER_FILE, expected)

    def _tensors(self, name: str, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
        origin = str(self.folder / name)
        with open_sealed(self.folder) as sealed, sealed.open(name) as file:
            stored = read_header(file, sealed.size(name), origin)
            require_expected(stored, expected, origin)
            return read_tensors(file, stored, origin)


def open_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in a folder.

    Raises:
        DamagedError: the folder is not whole.
        StorageError: it cannot be read.
    """
    with open_sealed(folder) as sealed:
        return Checkpoint(folder, sealed.manifest)
