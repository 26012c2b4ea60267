"""A picture of the files of a run: of a real run with their sizes, or what each file is for."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from transformer_cli.checkpoint.run_folder import (
    AVERAGE,
    CHECKPOINTS,
    CONFIG_FILE,
    MODEL_FILE,
    OPTIMIZER_FILE,
    STATE_FILE,
    RunFolder,
)
from transformer_cli.data.preparation import FILE_NAME as FINGERPRINT
from transformer_cli.data.preparation import REPORT, TRAIN, VALIDATION
from transformer_cli.extensions.lessons.drawing.diagrams import Diagram, Point
from transformer_cli.extensions.lessons.drawing.theme import SMALL, Theme
from transformer_cli.process.errors import MissingInputError, StorageError
from transformer_cli.process.messages import on_one_line
from transformer_cli.storage import MANIFEST_NAME
from transformer_cli.storage.filesystem import size_in_words
from transformer_cli.text.tokenizer import SHARED, SOURCE, TARGET

_STEP = "step-"
_EXAMPLE = RunFolder(Path("NAME"))
_RUN_FILES = {
    _EXAMPLE.config_file.name: "all settings; training with it repeats the run",
    _EXAMPLE.environment_file.name: "versions, device, fingerprint of the data",
    _EXAMPLE.metrics_file.name: "a line for each report and validation",
    _EXAMPLE.learning_file.name: "the same few sentences at each validation",
    _EXAMPLE.log_file.name: "what the console has said",
    _EXAMPLE.tensorboard_folder.name: "event files of training and validation",
    _EXAMPLE.data_folder.name: "the corpus as token ids",
    CHECKPOINTS: "each appears whole or not at all",
}
_DATA_FILES = {
    TRAIN: "token ids of the training pairs",
    VALIDATION: "the validation pairs as text",
    SOURCE: "vocabulary and rules of the source",
    TARGET: "vocabulary and rules of the target",
    SHARED: "one tokenizer of both languages",
    REPORT: "what tfm data shows",
    FINGERPRINT: "the settings and files that made the ids",
}
_CHECKPOINT_FILES = {
    MODEL_FILE: "the weights",
    OPTIMIZER_FILE: "the state of the optimizer",
    STATE_FILE: "position in the data, best score, counters",
    CONFIG_FILE: "the settings, without paths of this machine",
    SOURCE: _DATA_FILES[SOURCE],
    TARGET: _DATA_FILES[TARGET],
    SHARED: _DATA_FILES[SHARED],
    MANIFEST_NAME: "size and SHA-256 of each file",
}
_CHECKPOINT_PHRASE = "everything to translate and to resume"
_LINK_MEANINGS = {"best": "the best score so far", "last": "the highest step"}
_NUM_SHOWN = 3
"""Of other checkpoints, at most this many have a line."""
_ROW, _INDENT, _MAX_NAME = 0.27, 0.3, 34


class FileLine(NamedTuple):
    """One line of the picture."""

    depth: int
    name: str
    phrase: str = ""
    num_bytes: int | None = None
    is_folder: bool = False


def draw_checkpoint(run: Path | None, theme: Theme) -> Figure:
    """The folder of a run as a tree.

    Args:
        run: the folder; None: the layout that every run has, without sizes.

    Raises:
        MissingInputError: the folder has no checkpoint.
    """
    entries = described_layout() if run is None else entries_of(run)
    height = _ROW * len(entries) + 0.4
    diagram = Diagram(height, theme)
    lasts: dict[int, float] = {}
    left = 3.5 if run is None else 4.88
    for number, entry in enumerate(entries):
        y = height - 0.2 - _ROW * (number + 0.5)
        _draw(diagram, entry, (left, y), lasts)
    return diagram.figure


def described_layout() -> list[FileLine]:
    """The files of any run, and what each of them is for."""
    step = f"{_STEP}00001000"
    entries = [FileLine(0, "runs/NAME", is_folder=True)]
    for name, phrase in _RUN_FILES.items():
        parts = _DATA_FILES if name == _EXAMPLE.data_folder.name else {}
        is_folder = not Path(name).suffix
        entries.append(FileLine(1, name, phrase, is_folder=is_folder))
        entries += [FileLine(2, part, text) for part, text in parts.items() if part != SHARED]
    entries.append(FileLine(2, step, _CHECKPOINT_PHRASE, is_folder=True))
    entries += [FileLine(3, part, text) for part, text in _CHECKPOINT_FILES.items() if part != SHARED]
    return entries + [FileLine(2, f"{link} → {_STEP}…", text) for link, text in _LINK_MEANINGS.items()]


def entries_of(run: Path) -> list[FileLine]:
    """The files of a run, or of one checkpoint, with their sizes; only the newest checkpoint of a run has its files.

    Raises:
        MissingInputError: the folder has no checkpoint.
        StorageError: a file cannot be read.
    """
    folder = RunFolder(run)
    try:
        if (run / MANIFEST_NAME).is_file():  # a checkpoint, perhaps copied elsewhere
            return [
                FileLine(0, run.absolute().name, "", _size(run), is_folder=True),
                *_files_in(run, 1, _CHECKPOINT_FILES),
            ]
        steps = sorted(
            (path for path in folder.checkpoints_folder.iterdir() if _is_checkpoint(path)),
            key=lambda path: (path.name.startswith(_STEP), path.name),
            reverse=True,
        )
        if not steps:
            raise MissingInputError(f"{run}: this run has no checkpoint yet", hint="train it: tfm train")
        name = "/".join(run.absolute().parts[-2:])
        total = FileLine(0, name, "", _size(run), is_folder=True)
        return [total, *_own_entries(run), *_checkpoint_entries(steps)]
    except OSError as error:
        raise StorageError(f"{run}: cannot be read: {error.strerror}") from error


def _own_entries(run: Path) -> list[FileLine]:
    """The files of a run beside its checkpoints, in the usual order, and the folder of the checkpoints."""
    entries = []
    for name, phrase in _RUN_FILES.items():
        path = run / name
        if not path.exists():
            continue
        entries.append(FileLine(1, name, phrase, _size(path), is_folder=path.is_dir()))
        if name == _EXAMPLE.data_folder.name:
            entries += _files_in(path, 2, _DATA_FILES)
    return entries


def _checkpoint_entries(steps: list[Path]) -> list[FileLine]:
    newest, *others = steps
    phrase = _CHECKPOINT_PHRASE if newest.name.startswith(_STEP) else ""
    entries = [FileLine(2, newest.name, phrase, _size(newest), is_folder=True)]
    entries += _files_in(newest, 3, _CHECKPOINT_FILES)
    for path in others[:_NUM_SHOWN]:
        phrase = "weights averaged over checkpoints" if path.name.startswith(AVERAGE) else ""
        entries.append(FileLine(2, path.name, phrase, _size(path), is_folder=True))
    if len(others) > _NUM_SHOWN:
        rest = others[_NUM_SHOWN:]
        entries.append(FileLine(2, f"{len(rest)} more", "", sum(map(_size, rest)), is_folder=True))
    for link, phrase in _LINK_MEANINGS.items():
        path = newest.parent / link
        if path.is_symlink():
            entries.append(FileLine(2, f"{link} → {os.readlink(path)}", phrase))
    return entries


def _files_in(folder: Path, depth: int, phrases: dict[str, str]) -> list[FileLine]:
    return [
        FileLine(depth, name, phrase, _size(folder / name))
        for name, phrase in phrases.items()
        if (folder / name).is_file()
    ]


def _is_checkpoint(path: Path) -> bool:
    name = rf"({_STEP}|{re.escape(AVERAGE)})[0-9]+"
    return path.is_dir() and not path.is_symlink() and re.fullmatch(name, path.name) is not None


def _size(path: Path) -> int:
    """The bytes of a file, or of all files below a folder; links are not followed."""
    if path.is_file():
        return path.stat().st_size
    files = (Path(parent) / name for parent, _, names in os.walk(path) for name in names)
    return sum(file.lstat().st_size for file in files if not file.is_symlink())


def _draw(diagram: Diagram, entry: FileLine, place: Point, lasts: dict[int, float]) -> None:
    """One line: the branch of the tree, a small box, the name, the size, and at this place the phrase."""
    theme, (left, y) = diagram.theme, place
    x = 0.2 + _INDENT * entry.depth
    if entry.depth:
        branch = x - _INDENT + 0.09
        diagram.line((branch, lasts[entry.depth - 1]), (branch, y), (x - 0.02, y), color=theme.muted)
    lasts[entry.depth] = y - 0.08
    kind = "norm" if entry.is_folder else "feed_forward"
    diagram.box((x, y - 0.075), (0.2, 0.15), [], "plain" if " → " in entry.name else kind)
    name = on_one_line(entry.name, _MAX_NAME)
    weight = "bold" if entry.is_folder else "normal"
    diagram.text((x + 0.29, y), name, size=SMALL, weight=weight, ha="left")
    if entry.num_bytes is not None:
        size = size_in_words(entry.num_bytes)
        diagram.text((4.72, y), size, ha="right", size=SMALL, weight=weight)
    diagram.text((left, y), entry.phrase, size=SMALL, color=theme.muted, ha="left")
