"""What prepared data was made from, and whether that is still what the config asks for."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from transformer_cli.config import Config
from transformer_cli.config.flat_settings import flat_settings
from transformer_cli.data.sources import corpus
from transformer_cli.errors import DataError

FILE_NAME = "fingerprint.json"
VERSION = "1"  # of how data is prepared: raised when the same config would give other ids
_TOKENIZER = "tokenizer."
# These say where the corpus is, or what is done with the pairs later.
_WITHOUT_EFFECT = ("root", "weight", "max_dropped_share")


def fingerprint(config: Config) -> dict[str, str]:
    """Each thing that decides the ids -> its value, or the SHA-256 of its content."""
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
        if not name.endswith(_WITHOUT_EFFECT)
    }
    return {"version": VERSION} | settings | corpus.fingerprint(config.data, seed=config.seed)


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """One line for each thing that is not as it was."""
    return [
        f"{name}: {_change(before.get(name), now.get(name))}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]


def seal(folder: Path, made_from: Mapping[str, str]) -> None:
    """Write down what the files of a folder were made from, and their checksums."""
    files = {file.name: _checksum(file) for file in sorted(folder.iterdir())}
    content = {"made_from": dict(made_from), "files": files}
    (folder / FILE_NAME).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_seal(folder: Path) -> dict[str, str] | None:
    """What the files of a folder were made from; None where one is missing or damaged."""
    try:
        content = json.loads((folder / FILE_NAME).read_bytes())
        made_from, files = content["made_from"], content["files"]
        is_whole = all(_checksum(folder / name) == digest for name, digest in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    is_text = isinstance(made_from, dict) and all(isinstance(v, str) for v in made_from.values())
    return made_from if is_whole and is_text else None


def needs_other_tokenizers(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether the change is one that trained tokenizers cannot outlive."""
    settings = {name for name in {*before, *now} if name.startswith(_TOKENIZER)}
    return any(before.get(name) != now.get(name) for name in settings)


def refusal(folder: Path, before: Mapping[str, str], now: Mapping[str, str]) -> DataError:
    """The error for data that is not what a run was trained on."""
    lines = "".join(f"\n    {line}" for line in changes(before, now))
    hint = "undo the change; or give --accept-data-change to train on with the data as it is now"
    if needs_other_tokenizers(before, now):
        hint = "undo the change, or start again: another name, or --from-scratch"
    return DataError(f"{folder}: the data is not what this run was trained on:{lines}", hint=hint)


def _change(before: str | None, now: str | None) -> str:
    return f"was {_short(before)}, now {_short(now)}"


def _short(value: str | None) -> str:
    if value is None:
        return "not there"
    return f"{value[:12]}..." if len(value) == 64 else value


def _checksum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
