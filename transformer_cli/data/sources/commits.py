"""The commit of a data set on the Hugging Face hub, as far as it can be known."""

import re
from pathlib import Path

from transformer_cli.config.data import HubCorpus

_COMMIT = re.compile(r"[0-9a-f]{40}")
_TIMEOUT_SECONDS = 10.0


def commit_of(corpus: HubCorpus) -> str | None:
    """The commit that would be read now: the one of the hub, else the one of the copy on this machine.

    None for a format such as parquet, and if neither the hub nor a copy knows the data set.
    """
    if is_format(corpus.dataset) or Path(corpus.dataset).exists():
        return None
    if corpus.revision is not None and _COMMIT.fullmatch(corpus.revision):
        return corpus.revision
    return _commit_on_the_hub(corpus) or _commit_of_copy(corpus)


def is_format(dataset: str) -> bool:
    """Whether this is the name of a format that the library reads, such as parquet, and no data set."""
    from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES

    return dataset in _PACKAGED_DATASETS_MODULES


def _commit_on_the_hub(corpus: HubCorpus) -> str | None:
    from huggingface_hub import HfApi

    try:
        info = HfApi().dataset_info(
            corpus.dataset, revision=corpus.revision, timeout=_TIMEOUT_SECONDS
        )
    except Exception:  # no network, data set or permission: reading the data set raises the error
        return None
    return info.sha


def _commit_of_copy(corpus: HubCorpus) -> str | None:
    """The commit of the revision when its files were downloaded, else the newest downloaded commit."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    name = repo_folder_name(repo_id=corpus.dataset, repo_type="dataset")
    folder = Path(constants.HF_HUB_CACHE) / name
    try:
        return (folder / "refs" / (corpus.revision or "main")).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        pass
    if corpus.revision is not None or not (folder / "snapshots").is_dir():
        return None
    snapshots = [path for path in (folder / "snapshots").iterdir() if _COMMIT.fullmatch(path.name)]
    newest = max(snapshots, key=lambda path: path.stat().st_mtime, default=None)
    return newest.name if newest else None
