"""The checkpoints of a folder, according to their manifests; names and file times are not enough."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transformer_cli.checkpoint.rotation import Scored, best_first
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.checkpoint.stored import Checkpoint, open_checkpoint
from transformer_cli.errors import StorageError
from transformer_cli.storage import DamagedError

REPLACED = ".replaced-"
"""Prefix of the name of a checkpoint while a new one of the same step is written."""
_NAME = re.compile(rf"(?P<replaced>{re.escape(REPLACED)})?step-(?P<step>[0-9]{{1,12}})")


@dataclass(slots=True)
class Listing:
    """The usable and the unusable checkpoints of a folder."""

    whole: list[Checkpoint] = field(default_factory=list)
    """Newest first; the names and sizes of their files were compared, but not the checksums."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Folder name to the reason why the checkpoint is unusable."""

    def skip(self, folder: Path, error: DamagedError | StorageError) -> None:
        """Move a checkpoint from `whole` to `skipped`."""
        self.whole = [checkpoint for checkpoint in self.whole if checkpoint.folder != folder]
        self.skipped[folder.name] = error.message

    def reasons(self) -> str:
        """One line for each skipped checkpoint, for a message."""
        return "".join(f"\n    {reason}" for reason in self.skipped.values())


def folder_name(step: int) -> str:
    """The folder name of a checkpoint."""
    return f"step-{step:08d}"


def list_checkpoints(folder: Path) -> Listing:
    """The checkpoints of a folder, which need not exist."""
    listing = Listing()
    for path in _candidates(folder):
        step = _step_of(path)
        is_replaced = path.name.startswith(REPLACED)
        if is_replaced and any(checkpoint.step == step for checkpoint in listing.whole):
            continue
        try:
            if path.is_symlink():
                raise DamagedError(f"{path}: a symbolic link, where a folder is expected")
            checkpoint = open_checkpoint(path)
            if checkpoint.step != step:
                raise DamagedError(f"{path}: its manifest says step {checkpoint.step}")
        except (DamagedError, StorageError) as error:
            listing.skip(path, error)
        else:
            listing.whole.append(checkpoint)
    return listing


def ranked(checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints that have a score, best first; run and metric are those of the newest checkpoint."""
    if not checkpoints:
        return []
    newest = max(checkpoints, key=lambda checkpoint: checkpoint.step).manifest
    comparable = {
        found.step: found
        for found in checkpoints
        if (found.manifest.run_id, found.manifest.metric) == (newest.run_id, newest.metric)
    }
    scored = [Scored(step, found.score) for step, found in comparable.items()]
    return [comparable[step] for step in best_first(scored, newest.metric)]


def latest_saved_at(run_folder: Path) -> int:
    """The largest `saved_at` of a run's checkpoints; 0 if it has none."""
    try:
        whole = list_checkpoints(RunFolder(run_folder).checkpoints_folder).whole
    except StorageError:  # no permission to read the folder
        return 0
    return max((checkpoint.manifest.saved_at for checkpoint in whole), default=0)


def damage_in(run_folder: Path) -> list[str]:
    """The reasons why checkpoints of a run are unusable; empty if the run has not saved yet."""
    try:
        return list(list_checkpoints(RunFolder(run_folder).checkpoints_folder).skipped.values())
    except StorageError as error:
        return [error.message]


def _candidates(folder: Path) -> list[Path]:
    """Highest step first; of one step, the checkpoint that is being replaced comes last."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(f"{folder}: cannot be read: {error.strerror}") from error
    paths = [folder / name for name in names if _NAME.fullmatch(name)]
    return sorted(
        paths, key=lambda path: (-_step_of(path), path.name.startswith(REPLACED), path.name)
    )


def _step_of(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    assert match is not None
    return int(match["step"])
