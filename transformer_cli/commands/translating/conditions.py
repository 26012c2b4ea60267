"""The conditions of a translated file: the model, settings and options that decide its translations."""

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from transformer_cli import __version__
from transformer_cli.commands.translating.wishes import Wishes
from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.loading import LoadedRun
from transformer_cli.storage import MANIFEST_NAME


def conditions_of(
    loaded: LoadedRun, decoding: DecodingConfig, wishes: Wishes, *, as_json: bool
) -> dict[str, Any]:
    """Plain values by name; two translations of the same lines with equal conditions are equal.

    Device, precision and threads are not among them: they change the last digits of numbers, and a translation may go on
    with another device.

    Args:
        loaded: the run, or several of an ensemble; each manifest names the digests of its files.
        decoding: the settings that the translator uses.
        wishes: a file among them stands for its content.
        as_json: whether the output is JSON.
    """
    options = {
        name: _plain(value) for name, value in asdict(wishes).items() if value and name != "resume"
    }
    return {
        "tfm": __version__,
        "model": " ".join(_digest(one.folder / MANIFEST_NAME) for one in loaded.members),
        **{f"decoding.{name}": value for name, value in decoding.model_dump(mode="json").items()},
        **options,
        "json": as_json,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return _digest(value) if value.is_file() else str(value)
    return value


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
