"""Uploading an exported folder to the Hugging Face hub: what would go, and the upload itself."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.extensions.exchange.model_folder import ModelFolder
from transformer_cli.extensions.exchange.own_folder import RECORD
from transformer_cli.process.errors import (
    MissingInputError,
    StorageError,
    TryAgainError,
    UsageError,
)
from transformer_cli.process.imports import require_extra

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_TOO_MANY, _SERVER_ERROR = 429, 500
"""HTTP statuses: too many requests; and the first of those that say that the server failed."""
_HOW_TO_LOG_IN = "log in: hf auth login; or set the environment variable HF_TOKEN"


class PlannedFile(NamedTuple):
    """A file that would be uploaded."""

    name: str
    """Its path in the folder, and in the repository."""
    num_bytes: int


def planned_files(folder: Path) -> list[PlannedFile]:
    """The files of an exported folder.

    Raises:
        MissingInputError: there is no such folder.
        UsageError: `tfm export` did not make it, or it holds a link, whose target would be uploaded.
    """
    if not folder.is_dir():
        raise MissingInputError(
            f"{folder}: no such folder",
            hint="make one: tfm export --run NAME --to hf --output FOLDER",
        )
    if not (folder / RECORD).is_file():
        raise UsageError(
            f"{folder}: not an exported folder: it has no {RECORD}",
            hint="make one: tfm export --run NAME --to hf --output FOLDER",
        )
    paths = sorted(folder.rglob("*"))
    for path in paths:
        if path.is_symlink():
            raise UsageError(f"{path}: a link; only the files of the export are uploaded", hint="delete the link")
    files = [path for path in paths if path.is_file()]
    return [PlannedFile(path.relative_to(folder).as_posix(), path.stat().st_size) for path in files]


def check_repository(name: str) -> None:
    """Refuse a name that is not USER/NAME.

    Raises:
        UsageError: it is not.
    """
    if not _NAME.fullmatch(name) or "--" in name or ".." in name:
        raise UsageError(f"{name}: not a repository", hint="such as your-name/en-it")


def upload(folder: Path, repository: str, files: Sequence[PlannedFile], *, is_private: bool) -> str:
    """Upload files of a folder in one commit; the repository is made if it does not exist.

    Args:
        folder: of an export.
        repository: USER/NAME.
        files: those that were shown; what appears in the folder later is not uploaded.
        is_private: whether only its owner can see a repository that is made.

    Returns:
        The address of the repository.

    Raises:
        UsageError: a package is missing, or nobody is logged in, or the hub refuses.
        TryAgainError: the hub cannot be reached, or cannot take files now.
        DataError: the record of the export is damaged.
        StorageError: a file cannot be read.
    """
    require_extra("export", ("huggingface_hub",), purpose="tfm push")
    from huggingface_hub import HfApi, errors, get_token

    if get_token() is None:
        raise UsageError("nobody is logged in to the Hugging Face hub", hint=_HOW_TO_LOG_IN)
    api: Any = HfApi()
    run = ModelFolder(folder).json(RECORD)
    message = f"Export of {run.get('run')}, step {run.get('step')}, as {run.get('format')}"
    try:
        address = api.create_repo(repository, private=is_private, exist_ok=True)
        api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            commit_message=message,
            allow_patterns=[_literal(file.name) for file in files],
        )
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        if status == _TOO_MANY or (status or 0) >= _SERVER_ERROR:
            raise TryAgainError(f"{repository}: the hub cannot take the upload now ({status}): {error}") from error
        raise UsageError(
            f"{repository}: the hub refuses the upload ({status}): {error}", hint=_HOW_TO_LOG_IN
        ) from error
    except errors.HFValidationError as error:
        raise UsageError(f"{repository}: {error}", hint="such as your-name/en-it") from error
    except errors.OfflineModeIsEnabled as error:
        raise UsageError(str(error), hint="unset the environment variable HF_HUB_OFFLINE") from error
    except Exception as error:
        # The classes of connection errors differ between versions of the library; those of requests are OSErrors.
        is_of_network = type(error).__module__.startswith(("httpx", "httpcore", "requests"))
        if is_of_network or isinstance(error, ConnectionError | TimeoutError):
            raise TryAgainError(f"the hub cannot be reached: {error}") from error
        if isinstance(error, OSError):
            raise StorageError(f"{folder}: {error}") from error
        raise
    return str(address)


def _literal(name: str) -> str:
    """A pattern that matches this name only."""
    return re.sub(r"([*?\[])", r"[\1]", name)
