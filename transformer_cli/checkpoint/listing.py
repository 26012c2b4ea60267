"""The checkpoints of a folder, by their manifests, because names and file times can be wrong."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transformer_cli.checkpoint.rotation import badness
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.checkpoint.stored import Checkpoint, open_checkpoint
from transformer_cli.process.errors import StorageError
from transformer_cli.storage import DamagedError

REPLACED = ".replaced-"
"""Prefix of the name of a checkpoint while a new one of the same step is written."""
AVERAGE = "average-"
"""Prefix of the name of the average that a run makes at its end; the number is that of its last step."""
_NAME = rf"(?P<replaced>{re.escape(REPLACED)})?%s(?P<step>[0-9]{{1,12}})"


@dataclass(slots=True)
class Listing:
    """The usable and the unusable checkpoints of a folder."""

    whole: list[Checkpoint] = field(default_factory=list)
    """Newest first; the names and sizes of their files were compared, but only the checksum of the state."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Folder name to the reason why the checkpoint is unusable."""

    def skip(self, folder: Path, error: DamagedError | StorageError) -> None:
        """Move a checkpoint from `whole` to `skipped`."""
        self.whole = [checkpoint for checkpoint in self.whole if checkpoint.folder != folder]
        self.skipped[folder.name] = error.message

    def latest_saved_at(self) -> int:
        """The largest `saved_at` of the usable checkpoints; 0 if there are none."""
        return max((checkpoint.manifest.saved_at for checkpoint in self.whole), default=0)

    def reasons(self) -> str:
        """One line for each skipped checkpoint, for a message."""
        return "".join(f"\n    {reason}" for reason in self.skipped.values())


def list_checkpoints(folder: Path) -> Listing:
    """The checkpoints of a folder, which need not exist."""
    return _listing(folder, "step-")


def list_averages(folder: Path) -> Listing:
    """The averages that runs made at their end: `tfm translate` can use them, but no training continues from them."""
    return _listing(folder, AVERAGE)


def _listing(folder: Path, prefix: str) -> Listing:
    listing = Listing()
    for step, is_replaced, path in _candidates(folder, prefix):
        if is_replaced and any(checkpoint.step == step for checkpoint in listing.whole):
            continue
        try:
            if path.is_symlink():
                raise DamagedError(f"{path}: a symbolic link, where a folder is expected")
            checkpoint = open_checkpoint(path)
            if checkpoint.step != step:
                raise DamagedError(f"{path}: its manifest says step {checkpoint.step}")
            checkpoint.verify_state()
        except (DamagedError, StorageError) as error:
            listing.skip(path, error)
        else:
            listing.whole.append(checkpoint)
    return listing


def ranked(
    checkpoints: Sequence[Checkpoint], averages: Sequence[Checkpoint] = ()
) -> list[Checkpoint]:
    """The checkpoints with a score, best first; only those with the run and metric of the newest one.

    An average stands directly before or behind the checkpoint that it was compared with. If it was compared with none, or if
    that one is not there, its score decides, and it comes before a checkpoint only if it is better.
    """
    both = [*checkpoints, *averages]
    if not both:
        return []
    newest = max(both, key=lambda found: found.step).manifest
    keys: dict[Path, tuple[float, ...]] = {
        found.folder: (*key[:2], 0, found.step)
        for found in both
        if found.manifest.run_id == newest.run_id
        and (key := badness(found.scored(newest.metric), newest.metric)) is not None
    }
    places = {found.step: keys[found.folder] for found in checkpoints if found.folder in keys}
    for found in averages:
        if found.folder in keys:
            score, loss, order = *keys[found.folder][:2], 1
            rival = found.rival()
            if rival is not None and rival[0] in places:
                score, loss, order = *places[rival[0]][:2], -1 if rival[1] else 1
            keys[found.folder] = (score, loss, order, found.step)
    return sorted((one for one in both if one.folder in keys), key=lambda one: keys[one.folder])


def list_run(run_folder: Path) -> Listing:
    """The checkpoints of one of many runs; a folder that cannot be read counts as a skipped checkpoint."""
    folder = RunFolder(run_folder).checkpoints_folder
    try:
        return list_checkpoints(folder)
    except StorageError as error:
        return Listing(skipped={folder.name: error.message})


def _candidates(folder: Path, prefix: str) -> list[tuple[int, bool, Path]]:
    """Step, whether it is replaced, and path; highest step first; of equal steps, the replaced one last."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(f"{folder}: cannot be read: {error.strerror}") from error
    found = [
        (int(match["step"]), match["replaced"] is not None, folder / match[0])
        for match in map(re.compile(_NAME % prefix).fullmatch, names)
        if match is not None
    ]
    return sorted(found, key=lambda candidate: (-candidate[0], *candidate[1:]))
