"""Which checkpoints a folder holds; the manifests decide, never names alone or times."""

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
"""Begins the name of a checkpoint while another of the same step takes its place."""
_NAME = re.compile(rf"(?P<replaced>{re.escape(REPLACED)})?step-(?P<step>[0-9]{{1,12}})")


@dataclass(slots=True)
class Listing:
    """What a look at a folder of checkpoints found."""

    whole: list[Checkpoint] = field(default_factory=list)
    """Newest first; sizes and names of their files are right, the bytes were not compared."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Folder name to reason."""

    def skip(self, folder: Path, error: DamagedError | StorageError) -> None:
        """Take a folder out, with the reason."""
        self.whole = [checkpoint for checkpoint in self.whole if checkpoint.folder != folder]
        self.skipped[folder.name] = error.message

    def reasons(self) -> str:
        """One line for each skipped folder, for a message."""
        return "".join(f"\n    {reason}" for reason in self.skipped.values())


def folder_name(step: int) -> str:
    """Of the checkpoint after that many updates."""
    return f"step-{step:08d}"


def list_checkpoints(folder: Path) -> Listing:
    """The checkpoints of a folder, newest first; there may be none, nor the folder."""
    listing = Listing()
    for path in _candidates(folder):
        step = _step_of(path)
        is_replaced = path.name.startswith(REPLACED)
        if is_replaced and any(checkpoint.step == step for checkpoint in listing.whole):
            continue
        try:
            if path.is_symlink():
                raise DamagedError(f"{path}: a link; checkpoints are folders")
            checkpoint = open_checkpoint(path)
            if checkpoint.step != step:
                raise DamagedError(f"{path}: its manifest says step {checkpoint.step}")
        except (DamagedError, StorageError) as error:
            listing.skip(path, error)
        else:
            listing.whole.append(checkpoint)
    return listing


def ranked(checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Those with a score, best first; the newest says by which metric, and of which run."""
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
    """When the newest checkpoint of a run was saved, in the order of saving; 0 if there is none."""
    try:
        whole = list_checkpoints(RunFolder(run_folder).checkpoints_folder).whole
    except StorageError:  # somebody else's folder
        return 0
    return max((checkpoint.manifest.saved_at for checkpoint in whole), default=0)


def damage_in(run_folder: Path) -> list[str]:
    """Why the checkpoints of a run that are not whole are none; nothing where it has not saved yet."""
    try:
        return list(list_checkpoints(RunFolder(run_folder).checkpoints_folder).skipped.values())
    except StorageError as error:
        return [error.message]


def _candidates(folder: Path) -> list[Path]:
    """By falling step; of one step, what is being replaced comes last."""
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
