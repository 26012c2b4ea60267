"""The fingerprint of prepared data: the settings and files from which it was made."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from transformer_cli.config import Config, SplitName
from transformer_cli.config.section import flat_settings
from transformer_cli.data.sources import corpus
from transformer_cli.data.sources.hub import COMMIT_OF
from transformer_cli.data.sources.lines import file_digest
from transformer_cli.process.errors import DataError, MissingInputError, TfmError, TryAgainError

FILE_NAME = "fingerprint.json"
VERSION = "1"  # of the preparation; raised if the same config would give other ids
# These settings say where the corpus lies, or how the pairs are used later; they do not change the ids.
_WITHOUT_EFFECT = {"root", "weight", "temperature", "max_dropped_share"}
# Settings that came later, each with the value at which the ids are the same as before.
_ABSENT_AT = {
    "data.both_directions": "false",
    "data.cleaning.normalize_invisible": "null",
    "data.streaming": "false",
    "data.target_tag": "false",
}
_AGAIN = "run the command again when no program writes to the corpus"


def fingerprint(config: Config, *, split: SplitName | None = None) -> dict[str, str]:
    """Map each setting or file that decides the ids to its value, or to the SHA-256 of its content.

    Args:
        split: only the files that have pairs of this split; None: all files.
    """
    flat = flat_settings(
        {
            "data": config.data.model_dump(mode="json"),
            "tokenizer": config.tokenizer.model_dump(mode="json"),
            "model": {"max_length": config.model.max_length},
        }
    )
    settings = {
        name: json.dumps(value)
        for name, value in flat.items()
        if _WITHOUT_EFFECT.isdisjoint(name.split(".")) and json.dumps(value) != _ABSENT_AT.get(name)
    }
    training = config.training
    initial = {"training.init_from": training.init_from, "training.add_words": training.add_words}
    settings |= {name: json.dumps(value) for name, value in initial.items() if value is not None}
    sources = corpus.fingerprint(config.data, seed=config.seed, split=split)
    return {"version": VERSION} | settings | sources


class WatchedFiles:
    """Notices files of a corpus that change while data is prepared: each split opens them again.

    Make it before the fingerprint is computed. Sizes and times of all files are compared; the content only
    of those that differ in them, because copying a file anew may change nothing.
    """

    def __init__(self, config: Config) -> None:
        self._data = config.data
        self._stamps = self._current_stamps()

    @contextmanager
    def unchanged(self, made_from: Mapping[str, str]) -> Iterator[None]:
        """At the end of the block, also by an error about the data, compare the files.

        Args:
            made_from: the fingerprint of the files.

        Raises:
            TryAgainError: a file has changed, was removed or added.
        """
        try:
            yield
        except (DataError, MissingInputError):
            self._compare(made_from)
            raise
        self._compare(made_from)

    def _compare(self, made_from: Mapping[str, str]) -> None:
        try:
            now = self._current_stamps()
        except (DataError, MissingInputError) as error:
            raise TryAgainError(
                f"the corpus changed while it was read: {error.message}", hint=_AGAIN
            ) from error
        for name in {**self._stamps, **now}:
            before, (path, stamp) = self._stamps.get(name), now.get(name, (Path(name), None))
            is_same = before is not None and before[1] == stamp is not None
            if not is_same and (stamp is None or file_digest(path) != made_from.get(name)):
                what = "was removed" if stamp is None else "changed"
                raise TryAgainError(f"{path}: {what} while the corpus was read", hint=_AGAIN)

    def _current_stamps(self) -> dict[str, tuple[Path, tuple[int, ...] | None]]:
        files = corpus.local_files(self._data)
        return {name: (path, _stamp(path)) for name, path in files.items()}


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """One line for each setting or file that differs, with both values; null and an absent setting are equal.

    A commit on the hub that was not known, before or now, is no difference.
    """
    unknown = {name for name in before.keys() ^ now.keys() if name.startswith(COMMIT_OF)}
    values = (
        (name, before.get(name, "null"), now.get(name, "null"))
        for name in {*before, *now} - unknown
    )
    return [
        f"{name}: was {_short(old)}, now {_short(new)}"
        for name, old, new in sorted(values)
        if old != new
    ]


def seal(folder: Path, made_from: Mapping[str, str]) -> None:
    """Write the fingerprint of a folder, and the checksums of its files."""
    files = {file.name: file_digest(file) for file in sorted(folder.iterdir())}
    content = {"made_from": dict(made_from), "files": files}
    (folder / FILE_NAME).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_seal(folder: Path) -> dict[str, str] | None:
    """The fingerprint of a folder; None if a file is missing or damaged."""
    try:
        content = json.loads((folder / FILE_NAME).read_bytes())
        made_from, files = content["made_from"], content["files"]
        is_whole = all(file_digest(folder / name) == digest for name, digest in files.items())
    except (TfmError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    is_text = isinstance(made_from, dict) and all(isinstance(v, str) for v in made_from.values())
    return made_from if is_whole and is_text else None


def read_claim(folder: Path) -> dict[str, str] | None:
    """As `read_seal`, but the files of the folder are not read, so that they may be missing or damaged."""
    try:
        made_from = json.loads((folder / FILE_NAME).read_bytes())["made_from"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    is_text = isinstance(made_from, dict) and all(isinstance(v, str) for v in made_from.values())
    return made_from if is_text else None


def sealed_files(folder: Path) -> list[str]:
    """The names of the files of a folder that `seal` has finished, without any path in them."""
    try:
        names = list(json.loads((folder / FILE_NAME).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [Path(name).name for name in names] + [FILE_NAME]


def needs_other_tokenizers(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a setting of the tokenizers changed, so that they would have to be trained again."""
    return any(change.startswith("tokenizer.") for change in changes(before, now))


def refusal(folder: Path, before: Mapping[str, str], now: Mapping[str, str]) -> DataError:
    """The error for data that differs from the data on which a run was trained."""
    lines = "".join(f"\n    {line}" for line in changes(before, now))
    hint = "undo the change; or continue with the changed data: --accept-data-change"
    if _has_other_built_in_pairs(before, now):
        hint = (
            "an earlier version of tfm generated the built-in pairs of this run from its seed; this version has other "
            "pairs, the same for every seed. Continue the run with that version, or with the pairs of this one: "
            "--accept-data-change"
        )
    if any(line.strip().startswith(COMMIT_OF) for line in lines.splitlines()):
        hint += "; to stay with the earlier commit, also give it as data.corpora.N.revision"
    if needs_other_tokenizers(before, now):
        hint = "undo the change; or start again, with another name or with --from-scratch"
    return DataError(
        f"{folder}: the data differs from the data on which this run was trained:{lines}", hint=hint
    )


def _has_other_built_in_pairs(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether as many pairs of the built-in corpus are other ones."""
    names = ("phrasebook", "data.num_pairs")
    return all(name in before.keys() & now.keys() for name in names) and [
        before[name] == now[name] for name in names
    ] == [False, True]


def _short(value: str) -> str:
    if value == "null":
        return "not there"
    return f"{value[:12]}..." if len(value) == 64 else value
