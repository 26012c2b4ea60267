"""`tfm translate --resume`: the output of an interrupted translation, which the same command continues."""

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from transformer_cli import __version__
from transformer_cli.checkpoint.run_folder import CALIBRATION_FILE
from transformer_cli.commands.output import opened_output
from transformer_cli.commands.translate_lines import TranslateOptions
from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.loading import LoadedRun
from transformer_cli.decoding.shortlist import shortlist_path
from transformer_cli.decoding.translation import SourceText
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.process.signals import cleaned_up, tell
from transformer_cli.storage import MANIFEST_NAME
from transformer_cli.storage.growing_files import GrowingFile

logger = logging.getLogger(__name__)

SUFFIX = ".unfinished"
"""What the name of the file with the output so far has behind the name of the output."""
_COPIED_BYTES = 1 << 20
_DIGESTS = re.compile(r"[0-9a-f]{64}( [0-9a-f]{64})*")
_FORGET = "to begin again from the first line, delete {path}"

Item = TypeVar("Item", SourceText, tuple[str], tuple[str, str])
"""What output belongs to: a line of the input, or texts that belong together, such as a source and its translation."""

# The folder of the run may move; the settings of decoding say what became of overrides.
_NOT_CONDITIONS = ("run", "overrides", "resume", "as_json")


class UnfinishedOutput:
    """The output so far, and how many lines of the input it stands for."""

    def __init__(self, file: GrowingFile, conditions: Mapping[str, Any]) -> None:
        """
        Args:
            file: the output so far; its first note holds the conditions, each later one is of a window of lines.
            conditions: what the translations depend on beside the input; plain values by name.

        Raises:
            ConfigError: the file was made under other conditions.
        """
        self._file = file
        self._digest = hashlib.sha256()
        self._num_read = 0
        self.num_done = 0
        """The number of lines of the input whose output is in the file."""
        self._done_digest = self._digest.hexdigest()
        if not file.notes:
            file.add(b"", {"conditions": dict(conditions)})
            return
        self._check_conditions(file.notes[0].get("conditions"), conditions)
        last = file.notes[-1]
        self.num_done = last.get("num_lines", 0)
        self._done_digest = last.get("sha256", self._done_digest)

    def remaining(self, windows: Iterator[list[Item]]) -> Iterator[list[Item]]:
        """The lines that are still to do; the caller writes the output of a window before it asks for the next one.

        Args:
            windows: all lines of the input, cut in the same places each time, so that batches and translations are the
                same.

        Raises:
            DataError: the lines that were translated before have changed.
        """
        for window in windows:
            num_old = min(len(window), max(0, self.num_done - self._num_read))
            if num_old:
                self._read(window[:num_old])
                if self._num_read == self.num_done:
                    self._check_input()
            if new := window[num_old:]:
                self._read(new)
                yield new
        if self._num_read < self.num_done:
            self._refuse_input(f"it has {self._num_read} lines, but {self.num_done} were translated")

    def write(self, data: bytes) -> None:
        """Keep the output of the window that was read last."""
        self.num_done = self._num_read
        note = {"num_lines": self.num_done, "sha256": self._digest.hexdigest()}
        self._file.add(data, note)

    def _read(self, lines: Sequence[SourceText | tuple[str, ...]]) -> None:
        self._num_read += len(lines)
        for line in lines:
            what: list[Any]
            what = (
                [line.line_number, line.text, line.prefix, line.line_end]
                if isinstance(line, SourceText)
                else list(line)
            )
            self._digest.update(json.dumps(what).encode() + b"\n")

    def _check_input(self) -> None:
        if self._digest.hexdigest() != self._done_digest:
            self._refuse_input(f"its first {self.num_done} lines are not the lines that were translated")

    def _refuse_input(self, problem: str) -> None:
        raise DataError(
            f"{self._file.path}: the input has changed: {problem}",
            hint=_FORGET.format(path=self._file.path),
        )

    def _check_conditions(self, before: Any, now: Mapping[str, Any]) -> None:
        before = before if isinstance(before, dict) else {}
        names = dict.fromkeys((*before, *now))
        changed = [
            _difference(name, before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)
        ]
        if changed:
            raise ConfigError(
                f"{self._file.path}: this output was begun with another model, setting or option: {'; '.join(changed)}",
                hint=f"use the same model and settings; {_FORGET.format(path=self._file.path)}",
            )


def _difference(name: str, before: Any, now: Any) -> str:
    """In words; digests of files would tell a person nothing. An earlier version did not note all of them."""
    is_file = [isinstance(one, str) and bool(_DIGESTS.fullmatch(one)) for one in (before, now)]
    if all(is_file):
        return f"{name}: other files than before"
    if any(is_file) and None in (before, now):
        return f"{name}: {'noted before, and none now' if is_file[0] else 'not noted before, and one is there now'}"
    return f"{name} was {before}, and is {now}"


@contextmanager
def opened_unfinished(output: Path, conditions: Mapping[str, Any]) -> Iterator[UnfinishedOutput]:
    """The output so far, in OUTPUT.unfinished; at the end of the block the output appears whole, and this file goes.

    If the block fails, or the process is killed at any moment, the file stays, and the next call continues it.

    Args:
        output: a new or regular file.
        conditions: as of `UnfinishedOutput`.
    """
    with GrowingFile(output.with_name(output.name + SUFFIX)) as file:
        unfinished = UnfinishedOutput(file, conditions)
        if unfinished.num_done:
            logger.info("%s: continuing after line %d", file.path, unfinished.num_done)
        else:
            logger.info("the output is written to %s until it is complete", file.path)
        with cleaned_up(lambda: tell(f"tfm: the same command continues after line {unfinished.num_done}\n")):
            yield unfinished
        with opened_output(output) as write, file.path.open("rb") as finished:
            while data := finished.read(_COPIED_BYTES):
                write(data)
        file.remove()


def translation_conditions(loaded: LoadedRun, decoding: DecodingConfig, options: TranslateOptions) -> dict[str, Any]:
    """Plain values by name; two translations of the same lines with equal conditions are equal.

    Device, precision and threads are not among them: they change the last digits of numbers, and a translation may go on
    with another device.

    Args:
        loaded: the run, or several of an ensemble; each manifest names the digests of its files.
        decoding: the settings that the translator uses.
        options: a file among them stands for its content.
    """
    values = {one.name: getattr(options, one.name) for one in fields(options) if one.name not in _NOT_CONDITIONS}
    # Beside the checkpoint: repairs and marks read the calibration, and a search may read the shortlist.
    beside = {"calibration": [one.run and one.run.path / CALIBRATION_FILE for one in loaded.members]}
    if decoding.shortlist is not None:
        beside["shortlist"] = [shortlist_path(one.folder) for one in loaded.members]
    found = {name: [one for one in paths if one and one.is_file()] for name, paths in beside.items()}
    return {
        "tfm": __version__,
        "model": " ".join(_digest(one.folder / MANIFEST_NAME) for one in loaded.members),
        **{name: " ".join(map(_digest, paths)) for name, paths in found.items() if paths},
        **{f"decoding.{name}": value for name, value in decoding.model_dump(mode="json").items()},
        **{name: _plain(value) for name, value in values.items() if value},
        "json": options.as_json,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return _digest(value) if value.is_file() else str(value)
    return value


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
