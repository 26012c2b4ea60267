"""The lock file of fetched corpora, `data.lock`: addresses, checksums, numbers of rows, licences and citations."""

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from transformer_cli.config.section import Section
from transformer_cli.extensions.corpora.fetching.catalogue_entry import CatalogueEntry
from transformer_cli.process.errors import DataError
from transformer_cli.storage import replace_file

LOCK_FILE = "data.lock"
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class LockedFile(Section):
    """A file and its checksum."""

    name: str
    """A URL, or the name of a file beside the lock file."""
    sha256: Sha256
    num_bytes: int


class LockedCorpus(Section):
    """A corpus as it was fetched."""

    entry: CatalogueEntry
    """How it was fetched: it can be fetched again without a catalogue."""
    downloads: tuple[LockedFile, ...]
    files: tuple[LockedFile, ...]
    """The source and the target."""
    rows: int
    """Pairs in the files."""
    skipped: dict[str, int] = Field(default_factory=dict)
    """Reason -> number of rows of the download that are no pairs."""
    licence: str | None = None
    """As the catalogue or the archive states it; None: not stated."""


class DataLock(Section):
    """All corpora of a folder."""

    version: Literal[1] = 1
    corpora: tuple[LockedCorpus, ...] = ()

    def find(self, name: str) -> LockedCorpus | None:
        """The corpus of this name."""
        return next((one for one in self.corpora if one.entry.name == name), None)

    def with_corpus(self, corpus: LockedCorpus) -> "DataLock":
        """This lock with another corpus, sorted by name."""
        others = [one for one in self.corpora if one.entry.name != corpus.entry.name]
        every = sorted([*others, corpus], key=lambda one: one.entry.name)
        return DataLock(corpora=tuple(every))


def read_lock(folder: Path) -> DataLock:
    """The lock of a folder; an empty one if it has none.

    Raises:
        DataError: the file is no lock file.
    """
    path = folder / LOCK_FILE
    try:
        return DataLock.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return DataLock()
    except (ValidationError, ValueError, RecursionError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else str(error)
        raise DataError(
            f"{path}: not a lock file: {reason}",
            hint="restore it, or remove it and get the corpora again",
        ) from error


def write_lock(folder: Path, lock: DataLock) -> None:
    """Replace the lock of a folder."""
    text = json.dumps(lock.model_dump(mode="json"), ensure_ascii=False, indent=1)
    replace_file(folder / LOCK_FILE, f"{text}\n".encode())
