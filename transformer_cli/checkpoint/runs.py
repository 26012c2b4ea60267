"""Which run is meant when a command needs a trained model."""

import difflib
import logging
from pathlib import Path

from transformer_cli.checkpoint.listing import CHECKPOINTS, latest_saved_at
from transformer_cli.errors import MissingInputError
from transformer_cli.storage import MANIFEST_NAME

RUNS_FOLDER = Path("runs")
_TRAIN = "train one first: tfm train --config en-it.yaml"

logger = logging.getLogger(__name__)


def find_run(run: str | None = None, runs_folder: Path = RUNS_FOLDER) -> Path:
    """The folder of a run, or of a single checkpoint.

    Args:
        run: the name of a run, or the path of a run's or a checkpoint's folder; `None`: the run that
            saved last, by the order of saving that the checkpoints record.
        runs_folder: where runs are.

    Raises:
        MissingInputError: there is no such run, or it has no checkpoint yet.
    """
    return _newest(runs_folder) if run is None else _named(run, runs_folder)


def _newest(runs_folder: Path) -> Path:
    names = _run_names(runs_folder)
    saved_at = {name: latest_saved_at(runs_folder / name) for name in names}
    usable = [name for name in names if saved_at[name] > 0]
    if not usable:
        found = (
            "no run under"
            if not names
            else f"none of {', '.join(names[:5])} has a whole checkpoint under"
        )
        raise MissingInputError(f"{found} {runs_folder}/", hint=_TRAIN)
    return runs_folder / max(usable, key=lambda name: (saved_at[name], name))


def _named(run: str, runs_folder: Path) -> Path:
    places = [runs_folder / run, Path(run)]
    for place in places:
        if (place / CHECKPOINTS).is_dir() or (place / MANIFEST_NAME).is_file():
            return place
    if any(place.is_dir() for place in places):
        raise MissingInputError(f"{run}: this run has no checkpoint yet", hint=_TRAIN)
    close = difflib.get_close_matches(run, _run_names(runs_folder), n=1, cutoff=0.5)
    raise MissingInputError(
        f"{run}: no such run, neither under {runs_folder}/ nor as a path",
        hint=f"did you mean {close[0]}?" if close else _TRAIN,
    )


def _run_names(runs_folder: Path) -> list[str]:
    if not runs_folder.is_dir():
        return []
    return sorted(path.parent.name for path in runs_folder.glob(f"*/{CHECKPOINTS}"))
