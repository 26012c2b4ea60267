"""Finds the folder of a run by name or path, or the run that saved last."""

import difflib
import logging
from os.path import isdir, isfile
from pathlib import Path

from transformer_cli.checkpoint.listing import list_checkpoints, list_run
from transformer_cli.checkpoint.renaming.setting_aside import set_aside_before
from transformer_cli.checkpoint.run_folder import CHECKPOINTS, RUNS, RunFolder
from transformer_cli.process.errors import MissingInputError, StorageError
from transformer_cli.storage import MANIFEST_NAME
from transformer_cli.storage.lock import is_running

MAX_SHOWN = 8
"""The most names or reasons in one message."""
_TRAIN = "train one first: tfm train --config en-it.yaml"

logger = logging.getLogger(__name__)


def find_run(run: str | None = None, runs_folder: Path = RUNS) -> Path:
    """The folder of a run, or of a single checkpoint.

    Args:
        run: the name of a run, or the path of the folder of a run or a checkpoint, or of a file in it; None:
            the run that saved last, according to `saved_at` in the manifests.
        runs_folder: the folder of all runs.

    Raises:
        MissingInputError: there is no such run, or it has no checkpoint yet.
        StorageError: there are checkpoints, but none of any run is valid.
    """
    return _newest(runs_folder) if run is None else _named(run, runs_folder)


def _newest(runs_folder: Path) -> Path:
    listings = {name: list_run(runs_folder / name) for name in _run_names(runs_folder)}
    usable = [(found.latest_saved_at(), name) for name, found in listings.items() if found.whole]
    if usable:
        return runs_folder / max(usable)[1]
    if not listings:
        raise MissingInputError(f"no run under {runs_folder}/", hint=_TRAIN)
    damage = [reason for found in listings.values() for reason in found.skipped.values()]
    if not damage:
        shown = ", ".join([*listings][:MAX_SHOWN])
        raise MissingInputError(
            f"none of {shown} has a checkpoint under {runs_folder}/", hint=_TRAIN
        )
    lines = "".join(f"\n    {reason}" for reason in damage[:MAX_SHOWN])
    more = f"\n    and {len(damage) - MAX_SHOWN} more" if len(damage) > MAX_SHOWN else ""
    raise StorageError(
        f"{runs_folder}/: no checkpoint is valid:{lines}{more}",
        hint="restore the files named here, or train again: tfm train --from-scratch --config ...",
    )


def _named(run: str, runs_folder: Path) -> Path:
    if not run.strip():
        raise MissingInputError(
            "the name of the run is empty", hint=_hint_on_names(run, _run_names(runs_folder))
        )
    places = [runs_folder / run, Path(run)]
    for place in places:
        if _is_run(place):
            return place
        # The path of a file in a run or checkpoint means that run or checkpoint; `checkpoints/` means its run.
        if (isfile(place) or place.name == CHECKPOINTS) and _is_run(place.parent):
            return place.parent
    if any(map(isfile, places)):
        raise MissingInputError(
            f"{run}: a file, where a run is expected",
            hint="give the name of a run, or the folder of a run or of a checkpoint; "
            f"{_hint_on_names(run, _run_names(runs_folder))}",
        )
    for place in filter(isdir, places):
        if whole := list_checkpoints(place).whole:
            raise MissingInputError(
                f"{place}: a folder of checkpoints, where a run or one checkpoint is expected",
                hint=f"give one of them, such as {whole[0].folder}",
            )
    for place in places:
        if RunFolder(place).is_begun():
            earlier = set_aside_before(place)
            first = f"take one of its earlier checkpoints, in {earlier[-1]}, or " if earlier else ""
            what_next = (
                "wait for its first checkpoint; Ctrl-C in its training saves one, too"
                if is_running(place)
                else "start its training again with the same command; tfm train saves at the end, and on Ctrl-C"
            )
            raise MissingInputError(
                f"{run}: this run has no checkpoint yet", hint=f"{first}{what_next}"
            )
    found = [place for place in places if isdir(place)]
    raise MissingInputError(
        f"{found[0]}: not a run: this folder has no {CHECKPOINTS}/, and is not a checkpoint"
        if found
        else f"{run}: no such run: no folder of this name under {runs_folder}/, and no such path",
        hint=_hint_on_names(run, _run_names(runs_folder)),
    )


def _is_run(folder: Path) -> bool:
    """Whether a folder is a run or a single checkpoint."""
    # `os.path` returns False if a name is too long for the system; `Path` would raise an error.
    return isdir(RunFolder(folder).checkpoints_folder) or isfile(folder / MANIFEST_NAME)


def _hint_on_names(run: str, names: list[str]) -> str:
    # A person may give the path of a run that is not there, or the name of its config.
    meant = Path(run).name.removesuffix(".yaml").removesuffix(".yml")
    close = difflib.get_close_matches(meant, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]}?"
    if not names:
        return _TRAIN
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    return f"existing runs: {', '.join(names[:MAX_SHOWN])}{more}"


def _run_names(runs_folder: Path) -> list[str]:
    if not runs_folder.is_dir():
        return []
    return sorted(path.parent.name for path in runs_folder.glob(f"*/{CHECKPOINTS}"))
