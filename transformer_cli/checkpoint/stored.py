"""One checkpoint on disk: its files, and how each is read."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_cli.checkpoint.rotation import Scored
from transformer_cli.checkpoint.state_values import StateValues
from transformer_cli.process.errors import DataError, StorageError, TrainingStoppedError
from transformer_cli.storage import Content, Manifest, open_sealed
from transformer_cli.storage.manifest import encode_json, is_bare_name, parse_json

if TYPE_CHECKING:  # a list of checkpoints needs no PyTorch, whose import takes seconds
    from torch import Tensor

MODEL_FILE = "model.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
STATE_FILE = "state.json"
NEVER_NEGATIVE = (".step", ".exp_avg_sq", ".row_var", ".col_var", ".variance")
"""Suffixes of the names of counts and mean squares in the state of an optimizer."""
RAW = ".raw"
"""Suffix of the names of the raw weights, from which training goes on if model.safetensors holds averaged weights."""
IMPORTED = "imported"
"""The key of the origin of an imported model, in state.json and environment.json."""
MAX_STATE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of training at one step: enough to resume and to translate."""

    step: int
    model: "Mapping[str, Tensor]"
    """`state_dict()` of the model; a tied tensor has one name."""
    optimizer: "Mapping[str, Tensor]"
    """Keys are the parameter's name, a dot, and the name of the optimizer's state, or `raw` for a weight."""
    state: Mapping[str, Any]
    """Values for JSON: the position in the data, the best score, counters."""
    files: Mapping[str, bytes]
    """config.yaml and the tokenizers, from `portable_files`."""

    def contents(self) -> dict[str, Content]:
        """The files of the checkpoint."""
        from transformer_cli.storage.tensors import require_finite, tensors_content

        assert all(map(is_bare_name, self.files)), "a file of a checkpoint has a plain name"
        try:
            require_finite({**self.model, **_raw(self.optimizer)}, f"step {self.step}")
        except DataError as error:
            raise TrainingStoppedError(
                f"{error.message}; this step was not saved",
                hint="the previous checkpoint is intact",
            ) from error
        return {
            MODEL_FILE: tensors_content(self.model),
            OPTIMIZER_FILE: tensors_content(self.optimizer),
            STATE_FILE: Content.of(encode_json(self.state)),
            **{name: Content.of(data) for name, data in self.files.items()},
        }


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint folder with a valid manifest, whose files have the sizes that the manifest lists.

    Every read compares the SHA-256 of the file first.
    """

    folder: Path
    manifest: Manifest

    @property
    def step(self) -> int:
        """Number of updates of the model."""
        return self.manifest.step

    @property
    def score(self) -> float | None:
        """Score on the validation split, by `training.best_metric`."""
        return self.manifest.score

    def scored(self, metric: str) -> Scored:
        """Step, score and loss; a score of another metric is ignored."""
        if self.score is None or self.manifest.metric != metric:
            return Scored(self.step, None)
        return Scored(self.step, self.score, self._validation_loss())

    def rival(self) -> tuple[int, bool] | None:
        """The step of the checkpoint that an average was compared with, and whether the average was better; else None."""
        with suppress(DataError, StorageError, KeyError, TypeError):
            rival = self.state()["average"]["rival"]
            if isinstance(rival["step"], int) and isinstance(rival["is_worse"], bool):
                return rival["step"], rival["is_worse"]
        return None

    def _validation_loss(self) -> float:
        """The loss of the validation at this step; infinity if the state does not contain it."""
        try:
            validation = self.state()["validation"]
            loss = float(validation["loss"]) if validation["step"] == self.step else math.inf
        except (DataError, StorageError, KeyError, TypeError, ValueError):
            # The score alone counts; `list_checkpoints` skips a checkpoint whose state is damaged.
            return math.inf
        return math.inf if math.isnan(loss) else loss

    def verify(self) -> None:
        """Read every file and compare its checksum.

        Raises:
            DamagedError: a file has changed since it was saved.
        """
        with open_sealed(self.folder) as sealed:
            sealed.verify()

    def verify_state(self) -> None:
        """Compare the checksum of the state, which has the loss that decides between equal scores.

        Raises:
            DamagedError: the file has changed since it was saved.
        """
        sizes = {file.name: file.size for file in self.manifest.files}
        if sizes.get(STATE_FILE, MAX_STATE_BYTES + 1) <= MAX_STATE_BYTES:
            self.file(STATE_FILE, max_bytes=MAX_STATE_BYTES)

    def has(self, name: str) -> bool:
        """Whether the checkpoint has a file of this name."""
        return any(file.name == name for file in self.manifest.files)

    def file(self, name: str, *, max_bytes: int) -> bytes:
        """All bytes of a file of at most `max_bytes`."""
        with open_sealed(self.folder) as sealed:
            return sealed.read(name, max_bytes=max_bytes)

    def state(self) -> dict[str, Any]:
        """The saved `Snapshot.state`."""
        origin = str(self.folder / STATE_FILE)
        state = parse_json(self.file(STATE_FILE, max_bytes=MAX_STATE_BYTES), origin)
        if not isinstance(state, dict):
            raise DataError(f"{origin}: not a JSON object")
        return state

    def training_state(self) -> StateValues:
        """The saved `Snapshot.state`, for reading it field by field.

        Raises:
            DataError: the state and the manifest name different steps.
        """
        state = StateValues(self.state(), str(self.folder / STATE_FILE))
        progress = state.part("progress")
        if progress.count("step") != self.step:
            step = progress.count("step")
            raise progress.refusal("step", f"is {step}, but the checkpoint is of step {self.step}")
        return state

    def validation(self) -> StateValues:
        """The figures of the last validation before this checkpoint; empty before the first.

        Raises:
            DataError: there is no such part of the state.
        """
        return StateValues(self.state(), str(self.folder / STATE_FILE)).part("validation")

    def model(self, expected: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
        """The weights.

        Args:
            expected: `state_dict()` of the model to be loaded, on any device, also meta.

        Raises:
            DamagedError: the file has changed since it was saved.
            DataError: it has other tensors than expected, or values that are NaN or infinite.
        """
        from transformer_cli.storage.tensors import require_finite

        weights = self._tensors(MODEL_FILE, expected)
        require_finite(weights, str(self.folder / MODEL_FILE))
        return weights

    def optimizer(self, expected: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
        """The optimizer's state, as in `Snapshot.optimizer`; raises the errors of `model`."""
        from transformer_cli.storage.tensors import require_finite

        state = self._tensors(OPTIMIZER_FILE, expected)
        require_finite(_raw(state), str(self.folder / OPTIMIZER_FILE))
        for name, tensor in state.items():
            is_square = name.endswith(NEVER_NEGATIVE)
            if bool(tensor.isnan().any()) or (is_square and bool((tensor < 0).any())):
                raise DataError(
                    f"{self.folder / OPTIMIZER_FILE}: {name} has impossible values, NaN or negative",
                    hint="use another checkpoint, or start again with --from-scratch",
                )
        return state

    def _tensors(self, name: str, expected: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
        from transformer_cli.storage.tensors import read_tensors

        with open_sealed(self.folder) as sealed, sealed.open(name) as file:
            return read_tensors(file, expected, str(self.folder / name))


def _raw(state: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
    return {name: tensor for name, tensor in state.items() if name.endswith(RAW)}


def open_checkpoint(folder: Path) -> Checkpoint:
    """Open the checkpoint in a folder.

    Raises:
        DamagedError: a file is missing, added or damaged.
        StorageError: the folder cannot be read.
    """
    with open_sealed(folder) as sealed:
        return Checkpoint(folder, sealed.manifest)
