"""The checkpoints of one run: saving, finding the newest and the best, replacing, deleting old ones; their config and tokenizers, without any path of this machine."""

import itertools
import logging
import math
import secrets
import time
from collections.abc import Iterable
from pathlib import Path, PurePath, PureWindowsPath

from transformer_cli import storage
from transformer_cli.checkpoint.run_folder import (
    AVERAGE,
    CONFIG_FILE,
    REPLACED,
    Checkpoint,
    Listing,
    Retention,
    RunFolder,
    Snapshot,
    list_checkpoints,
    list_run,
    open_checkpoint,
    ranked,
    set_aside,
    undo_unfinished,
    unused_path,
)
from transformer_cli.config import Config, FileCorpus, FilesData, HubCorpus, HubData, to_yaml
from transformer_cli.process.errors import DataError, StorageError
from transformer_cli.storage import REAL, DamagedError, FileSystem, KnownFolder, Manifest, errors_explained, remove
from transformer_cli.storage.filesystem import FORMAT_VERSION, LATEST_SAVED_AT
from transformer_cli.text.tokenizer import Tokenizer, tokenizer_files

logger = logging.getLogger(__name__)


class Checkpoints:
    """The folder `checkpoints/` of a run.

    `save`, `sweep` and `move_away` need the run's lock; all other methods only read.
    """

    def __init__(
        self, run_folder: Path, retention: Retention | None = None, *, data_fingerprint: str = "", fs: FileSystem = REAL
    ) -> None:
        self.run_folder = run_folder
        self.folder = RunFolder(run_folder).checkpoints_folder
        self.retention = retention or Retention()
        self._data_fingerprint = data_fingerprint
        self._fs = fs
        self.found_folder: KnownFolder | None = None
        """The run folder as it was found: `save` notices if it is renamed or removed after that."""
        self._run_id: str | None = None
        self._saved_at = 0
        self._verified: dict[str, Manifest] = {}
        self.skipped: dict[str, str] = {}
        """The checkpoints that the last call of `newest_valid` skipped, each with the reason."""

    def newest_valid(self, known: Checkpoint | None = None) -> Checkpoint | None:
        """The valid checkpoint of the highest step, every checksum compared; None if the folder has none.

        Args:
            known: what was returned before, in this process; its files are not read again while they are the same.

        Raises:
            StorageError: there are checkpoints, but none is valid.
        """
        listing = list_checkpoints(self.folder)
        candidates = [known if known == one else one for one in listing.whole]
        newest = next((one for one in candidates if one and self._is_verified(one, listing)), None)
        if newest is None and listing.skipped:
            raise StorageError(
                f"{self.folder}: no checkpoint is valid:{listing.reasons()}",
                hint="restore the files; upgrade tfm if a reason above says so; or start again with "
                "--from-scratch, which keeps the old checkpoints",
            )
        self.skipped = listing.skipped
        return newest

    def best(self) -> Checkpoint | None:
        """The valid checkpoint with the best score; None if no checkpoint has a score."""
        listing = list_checkpoints(self.folder)
        averages = list_checkpoints(self.folder, AVERAGE).whole
        order = ranked(listing.whole, averages)
        return next((found for found in order if self._is_verified(found, listing)), None)

    def save(self, snapshot: Snapshot, score: float | None = None) -> Path:
        """Write a checkpoint, verify it, then delete checkpoints that the retention does not keep.

        When this returns, the checkpoint is durable on disk. If it raises, the older ones are intact.

        Args:
            snapshot: the state of training.
            score: the value of the run's metric; NaN and infinity count as no score.

        Raises:
            TryAgainError: the disk is full.
            CannotCreateError: no permission to write into the folder.
            StorageError: any other error of the disk; or the run folder was renamed or removed: then the
                checkpoint is saved in another place, which the message names; or a symbolic link took the place
                of `checkpoints/`, likewise.
        """
        if self.found_folder is not None and not self.found_folder.is_in_place():
            raise self._saved_elsewhere(self.found_folder, snapshot, score)
        if self.folder.is_symlink():
            raise self._saved_beside_link(snapshot, score)
        if self._run_id is None:  # before the first save: take the run's id from its newest checkpoint, or draw one
            newest = self.newest_valid()
            if newest is not None:
                step = snapshot.step
                assert step >= newest.step, f"step {step} after step {newest.step}: resume, or move_away()"
            self._run_id = secrets.token_hex(8) if newest is None else newest.manifest.run_id
            # A clock can jump back, so `saved_at` starts after the latest `saved_at` of all runs.
            runs = self.run_folder.absolute().parent.glob("*/")
            latest = max((one.manifest.saved_at for run in runs for one in list_run(run).whole), default=0)
            # A checkpoint from elsewhere may claim any time.
            self._saved_at = min(latest, LATEST_SAVED_AT)
        storage.make_folders(self.folder, fs=self._fs)
        self.found_folder = self.found_folder or KnownFolder(self.run_folder)
        final = self.folder / f"step-{snapshot.step:08d}"
        aside = place_aside(final, fs=self._fs)
        self._saved_at = max(int(time.time() * 1000), self._saved_at + 1)
        manifest = Manifest(
            format_version=FORMAT_VERSION,
            run_id=self._run_id,
            step=snapshot.step,
            data_fingerprint=self._data_fingerprint,
            metric=self.retention.metric,
            score=score if score is not None and math.isfinite(score) else None,
            saved_at=self._saved_at,
            files=(),
        )
        storage.write_folder(final, snapshot.contents(), manifest, aside=aside, fs=self._fs)
        self._verify_saved(final)
        if aside is not None and aside.name.startswith(REPLACED):
            storage.remove([aside], fs=self._fs)
        self._rotate()
        return final

    def require_space(self, checkpoint_bytes: int) -> None:
        """Raise TryAgainError if the disk has no space for the checkpoints to come, each of this size."""
        kept = self.retention
        most = kept.keep_last + kept.keep_best + kept.num_regular
        still_to_come = max(1, most + 1 - len(list_checkpoints(self.folder).whole))
        storage.require_space(self.folder, still_to_come * checkpoint_bytes, fs=self._fs)

    def sweep(self) -> None:
        """Delete temporary files of killed processes; finish a replacement, and undo a `move_away`, that came to nothing."""
        storage.sweep(self.run_folder, fs=self._fs)
        if (place := undo_unfinished(RunFolder(self.run_folder), fs=self._fs)) is not None:
            logger.info("no new run has started, so %s is %s again", place, self.folder)
        storage.sweep(self.folder, fs=self._fs)
        finish_replacements(self.folder, fs=self._fs)

    def move_away(self, along: Iterable[str] = ()) -> Path | None:
        """Rename the folder, so that the run can start from scratch; return the new path, if there was one.

        Args:
            along: names of other files and folders of the run that move into the folder before.
        """
        target = set_aside(RunFolder(self.run_folder), along, fs=self._fs)
        if target is not None:
            self._run_id = None
            self._verified.clear()
        return target

    def _saved_elsewhere(self, known: KnownFolder, snapshot: Snapshot, score: float | None) -> StorageError:
        """Save in the renamed folder, or in a new one of another name; return the error that says so."""
        renamed = known.find_nearby()
        what = "removed or moved away" if renamed is None else f"renamed to {renamed}"
        folder = renamed or unused_path(self.run_folder.with_name(f"{self.run_folder.name}-rescued"))
        saved = self._at(folder).save(snapshot, score)
        return StorageError(
            f"{self.run_folder}: this folder was {what} during the training; step {snapshot.step} is saved in {saved}",
            hint=f"to go on, rename {folder} to {self.run_folder}, then run the same command again",
        )

    def _saved_beside_link(self, snapshot: Snapshot, score: float | None) -> StorageError:
        """Save in a new folder, as a checkpoint of this run; return the error that says so."""
        elsewhere = self._at(unused_path(self.run_folder.with_name(f"{self.run_folder.name}-rescued")))
        elsewhere._run_id, elsewhere._saved_at = self._run_id, self._saved_at
        saved = elsewhere.save(snapshot, score)
        return StorageError(
            f"{self.folder}: a symbolic link took the place of this folder during the training, and a run writes "
            f"only into its own folder; step {snapshot.step} is saved in {saved}",
            hint=f"to go on, delete the link, move the earlier checkpoints back to {self.folder} and "
            f"{saved.name} into it, then run the same command again",
        )

    def _at(self, run_folder: Path) -> "Checkpoints":
        return Checkpoints(run_folder, self.retention, data_fingerprint=self._data_fingerprint, fs=self._fs)

    def _verify_saved(self, folder: Path) -> None:
        try:
            checkpoint = open_checkpoint(folder)
            checkpoint.verify()
        except DamagedError as error:
            raise StorageError(
                f"{folder}: reading back what was just written failed: {error.message}",
                hint="the disk or the memory is faulty; all older checkpoints are intact",
            ) from error
        self._verified[folder.name] = checkpoint.manifest

    def _is_verified(self, checkpoint: Checkpoint, listing: Listing) -> bool:
        try:
            checkpoint.verify()
        except (DamagedError, StorageError) as error:
            listing.skip(checkpoint.folder, error)
            return False
        self._verified[checkpoint.folder.name] = checkpoint.manifest
        return True

    def _rotate(self) -> None:
        """Delete superfluous checkpoints, and let the links `last` and `best` name those that are kept.

        All kept ones are verified: a damaged checkpoint never replaces a good one.
        """
        listing = list_checkpoints(self.folder)
        for name in listing.skipped.keys() & self._verified.keys():
            del self._verified[name]
            _warn_of_damage(listing.skipped[name])
        while True:
            own = [found for found in listing.whole if found.manifest.run_id == self._run_id]
            scored = [found.scored(self.retention.metric) for found in own]
            steps = self.retention.superfluous(scored)
            kept = [found for found in own if found.step not in steps]
            damaged = [
                found
                for found in kept
                # What this process has verified before is not read again.
                if self._verified.get(found.folder.name) != found.manifest and not self._is_verified(found, listing)
            ]
            if not damaged:
                break
            for found in damaged:
                _warn_of_damage(listing.skipped[found.folder.name])
        storage.remove([found.folder for found in own if found.step in steps], fs=self._fs)
        storage.point_link(self.folder / "last", kept[0].folder.name, fs=self._fs)  # the newest comes first
        for best in ranked(kept, list_checkpoints(self.folder, AVERAGE).whole)[:1]:
            storage.point_link(self.folder / "best", best.folder.name, fs=self._fs)


def _warn_of_damage(reason: str) -> None:
    logger.warning("a damaged checkpoint is not counted among those to keep: %s", reason)


# Replacing the checkpoint of a step: at any moment, the old or the new one is valid.
#
# A valid checkpoint is renamed to `.replaced-step-...`, where readers still find it, until the new one has
# its name. An invalid checkpoint is renamed to `invalid-step-...` and kept, so that a person can examine it.


def place_aside(final: Path, *, fs: FileSystem) -> Path | None:
    """The new name for a folder that has the name `final`; None if there is no such folder."""
    if not final.exists():
        return None
    if not _is_valid(final):
        return _path_for_invalid(final)
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
                fs.rename(final, _path_for_invalid(final))
            fs.rename(replaced, final)
            fs.flush_path(folder)


def _is_valid(folder: Path) -> bool:
    try:
        open_checkpoint(folder).verify()
    except (DataError, StorageError):
        return False
    return True


def _path_for_invalid(final: Path) -> Path:
    paths = (final.with_name(f"invalid-{final.name}-{number}") for number in itertools.count(1))
    path = next(path for path in paths if not path.exists())
    logger.warning("%s: not valid, moved to %s", final, path.name)
    return path


# Files for a checkpoint: its config and its tokenizers, without any path of this machine.


def portable_files(config: Config, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> dict[str, bytes]:
    """File names and contents, for `Snapshot.files`."""
    return {
        CONFIG_FILE: to_yaml(portable_config(config)).encode(),
        **tokenizer_files((source_tokenizer, target_tokenizer)),
    }


def portable_config(config: Config) -> Config:
    """The config with only the last part of each local path; the run's own config keeps the whole paths."""
    if config.training.init_from is not None:
        update = {"init_from": _last_part(config.training.init_from)}
        config = config.model_copy(update={"training": config.training.model_copy(update=update)})
    data = config.data
    corpora: tuple[FileCorpus | HubCorpus, ...]
    if isinstance(data, FilesData):
        corpora = tuple(map(_portable_file, data.corpora))
    elif isinstance(data, HubData):
        corpora = tuple(map(_portable_set, data.corpora))
    else:
        return config
    portable = data.model_copy(update={"root": ".", "corpora": corpora})
    return config.model_copy(update={"data": portable})


def _portable_file(corpus: FileCorpus) -> FileCorpus:
    fields = ("source_path", "target_path", "path", "alignment_path")
    return corpus.model_copy(update={name: _last_part(getattr(corpus, name)) for name in fields})


def _portable_set(corpus: HubCorpus) -> HubCorpus:
    """Keep `owner/name` of the hub, but only the last part of a local folder."""
    name = corpus.dataset
    is_local = name.startswith(("/", "~", ".")) or name.count("/") > 1 or "\\" in name or ":" in name
    dataset = _last_part(name) if is_local else name
    update = {"dataset": dataset, "data_files": _last_part(corpus.data_files)}
    return corpus.model_copy(update=update)


def _last_part(path: str | None) -> str | None:
    """The name at the end of a path of this or another system; Windows separates names by a backslash."""
    return None if path is None else PureWindowsPath(PurePath(path).name).name or "."
