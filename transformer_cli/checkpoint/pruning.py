"""Deleting checkpoints that a finished or stopped run no longer needs."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from transformer_cli.checkpoint.listing import list_checkpoints
from transformer_cli.checkpoint.rotation import Retention
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.checkpoint.run_overview import folder_size
from transformer_cli.checkpoint.stored import Checkpoint
from transformer_cli.process.errors import StorageError
from transformer_cli.storage import DamagedError, RunLock, remove


@dataclass(frozen=True, slots=True)
class Pruned:
    """The checkpoints of a run that are deleted, and those that are kept."""

    folder: Path
    """Of the run."""
    deleted: list[int]
    """Their steps."""
    kept: list[int]
    freed_bytes: int


def prune(run_folder: Path, *, keep_last: int, keep_best: int, is_dry_run: bool) -> Pruned:
    """Delete all checkpoints of a run but the newest and the best ones.

    Before the first deletion, all checkpoints that stay are read and verified. Damaged checkpoints are not counted and
    are not deleted.

    Args:
        run_folder: runs/NAME.
        keep_last, keep_best: 1 or more.
        is_dry_run: only find out what would be deleted.

    Raises:
        TryAgainError: the run is being trained.
        StorageError: there are checkpoints, but none is whole.
    """
    if min(keep_last, keep_best) < 1:
        raise ValueError("the last and the best checkpoint are never deleted")
    with nullcontext() if is_dry_run else RunLock(run_folder):
        kept, superfluous = _kept_and_superfluous(run_folder, keep_last, keep_best)
        freed_bytes = sum(folder_size(found.folder) for found in superfluous)
        if not is_dry_run:
            remove([found.folder for found in superfluous])
    deleted, left = ([found.step for found in some] for some in (superfluous, kept))
    return Pruned(run_folder, deleted, left, freed_bytes)


def _kept_and_superfluous(
    run_folder: Path, keep_last: int, keep_best: int
) -> tuple[list[Checkpoint], list[Checkpoint]]:
    folder = RunFolder(run_folder).checkpoints_folder
    listing = list_checkpoints(folder)
    while listing.whole:
        newest = max(listing.whole, key=lambda found: found.step).manifest
        # This command does not delete checkpoints of another run that someone has copied here.
        own = [found for found in listing.whole if found.manifest.run_id == newest.run_id]
        retention = Retention(keep_last, keep_best, newest.metric)
        steps = retention.superfluous(found.scored(newest.metric) for found in own)
        kept = [found for found in own if found.step not in steps]
        num_whole = len(listing.whole)
        for found in kept:
            try:
                found.verify()
            except (DamagedError, StorageError) as error:
                listing.skip(found.folder, error)
        if len(listing.whole) == num_whole:
            return kept, [found for found in own if found.step in steps]
    if listing.skipped:
        raise StorageError(
            f"{folder}: no checkpoint is valid:{listing.reasons()}",
            hint="nothing was deleted; restore the files, or delete the folder of the run",
        )
    return [], []
