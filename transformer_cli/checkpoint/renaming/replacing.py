"""Replacing the checkpoint of a step: at any moment, the old or the new one is valid.

A valid checkpoint is renamed to `.replaced-step-...`, where readers still find it, until the new one has
its name. An invalid checkpoint is renamed to `invalid-step-...` and kept, so that a person can examine it.
"""

import itertools
import logging
from pathlib import Path

from transformer_cli.checkpoint.listing import REPLACED
from transformer_cli.checkpoint.stored import open_checkpoint
from transformer_cli.process.errors import DataError, StorageError
from transformer_cli.storage import FileSystem, errors_explained, remove

logger = logging.getLogger(__name__)


def place_aside(final: Path, *, fs: FileSystem) -> Path | None:
    """The new name for a folder that has the name `final`; None if there is no such folder."""
    if not final.exists():
        return None
    if not _is_valid(final):
        return _place_for_invalid(final)
    aside = final.with_name(f"{REPLACED}{final.name}")
    if aside.exists():
        remove([aside], fs=fs)
    return aside


def finish_replacements(folder: Path, *, fs: FileSystem) -> None:
    """After a kill: delete the old checkpoint if the new one is valid, else restore the old name."""
    for replaced in sorted(folder.glob(f"{REPLACED}*")):
        final = replaced.with_name(replaced.name.removeprefix(REPLACED))
        if _is_valid(final):
            remove([replaced], fs=fs)
            continue
        with errors_explained(replaced, fs=fs):
            if final.exists():
                fs.rename(final, _place_for_invalid(final))
            fs.rename(replaced, final)
            fs.flush_path(folder)


def _is_valid(folder: Path) -> bool:
    try:
        open_checkpoint(folder).verify()
    except (DataError, StorageError):
        return False
    return True


def _place_for_invalid(final: Path) -> Path:
    places = (final.with_name(f"invalid-{final.name}-{number}") for number in itertools.count(1))
    place = next(place for place in places if not place.exists())
    logger.warning("%s: not valid, moved to %s", final, place.name)
    return place
