"""The lock file of fetched corpora, `data.lock`: addresses, checksums, numbers of rows, licences and citations."""

import json
import logging
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from transformer_cli.config import Direction
from transformer_cli.config.section import Section
from transformer_cli.data.sources.lines import (
    COMPRESSIONS,
    RawPair,
    compression_of,
    file_digest,
    read_lines,
)
from transformer_cli.data.unknown_files import GivenFacts
from transformer_cli.extensions.corpora.archives import UnusableFileError, extract, is_archive
from transformer_cli.extensions.corpora.catalogues import CatalogueEntry
from transformer_cli.extensions.corpora.downloads import Progress, download, remove_download
from transformer_cli.extensions.corpora.importing import (
    MAX_DROPPED_SHARE,
    open_segments,
    write_segments,
)
from transformer_cli.extensions.corpora.pairs import (
    ImportedPair,
    ImportReport,
    decoded_pair,
    one_line,
)
from transformer_cli.process.errors import DataError
from transformer_cli.storage import replace_file, temporary_folder

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


logger = logging.getLogger(__name__)

DOWNLOADS = ".downloads"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A corpus that is in the folder now."""

    locked: LockedCorpus
    is_new: bool
    """Whether anything was downloaded."""


def fetch(
    entry: CatalogueEntry,
    folder: Path,
    *,
    progress: Callable[[str], Progress],
    accept_change: bool = False,
    max_dropped_share: float = MAX_DROPPED_SHARE,
    first_wait_seconds: float = 1.0,
) -> Fetched:
    """Bring a corpus into a folder; one that is there already, and unchanged, is not downloaded again.

    Args:
        progress: makes a report of progress for a URL.
        accept_change: take a remote file that differs from the one in the lock file.
        max_dropped_share: the largest share of damaged pairs that may be left out.

    Raises:
        MissingInputError: the server has no such file.
        TryAgainError: the connection broke several times; the same call goes on from there.
        UnusableFileError: a remote file is damaged, or no corpus; the same call downloads it again.
        DataError: a remote file or a file here differs from the lock file, or cannot be read.
    """
    lock = read_lock(folder)
    known = lock.find(entry.name)
    if known is not None and _is_here(known, folder, accept_change=accept_change):
        return Fetched(_in_direction_of(entry, known), is_new=False)
    store = folder / DOWNLOADS
    store.mkdir(exist_ok=True)
    paths = [store / _download_name(url) for url in entry.urls]
    for url, path in zip(entry.urls, paths, strict=True):
        download(url, path, progress=progress(url), first_wait_seconds=first_wait_seconds)
    downloads = tuple(map(_locked, paths, entry.urls))
    if known is not None and {*known.entry.urls} == {*entry.urls} and not accept_change:
        _require_unchanged(known, downloads, paths)
    try:
        locked = _written(entry, paths, downloads, folder, max_dropped_share)
    except UnusableFileError:
        _remove_downloads(paths)
        raise
    write_lock(folder, read_lock(folder).with_corpus(locked))
    _remove_downloads(paths)
    return Fetched(locked, is_new=True)


def _remove_downloads(paths: Sequence[Path]) -> None:
    for path in paths:
        remove_download(path)
    with suppress(OSError):  # it holds another download
        paths[0].parent.rmdir()


def _in_direction_of(entry: CatalogueEntry, known: LockedCorpus) -> LockedCorpus:
    """A corpus that is in the folder, its sides exchanged if the entry has its languages the other way round."""
    wanted, turned = _direction(entry), known.entry.reversed()
    if wanted == _direction(known.entry) or wanted != _direction(turned):
        return known
    return known.model_copy(update={"entry": turned, "files": known.files[::-1]})


def _direction(entry: CatalogueEntry) -> Direction:
    return Direction(entry.source_language, entry.target_language)


def _is_here(known: LockedCorpus, folder: Path, *, accept_change: bool) -> bool:
    """Whether the files of a corpus are in the folder.

    Raises:
        DataError: a file is there, and differs from the lock file.
    """
    paths = [folder / file.name for file in known.files]
    if not all(path.is_file() for path in paths):
        return False
    for path, file in zip(paths, known.files, strict=True):
        if file_digest(path) != file.sha256:
            if accept_change:
                return False
            raise DataError(
                f"{path}: differs from the file that was fetched (its SHA-256 stands in the lock file)",
                hint="keep your version under another name, then run the same command; or add --accept-data-change",
            )
    return True


def _require_unchanged(known: LockedCorpus, downloads: Iterable[LockedFile], paths: Iterable[Path]) -> None:
    earlier = {file.name: file for file in known.downloads}  # the sides may be exchanged
    for now, path in zip(downloads, paths, strict=True):
        before = earlier[now.name]
        if before.sha256 != now.sha256:
            remove_download(path)
            raise DataError(
                f"{now.name}: the remote file has changed: it had {before.num_bytes:,} bytes with SHA-256 "
                f"{before.sha256[:12]}, now {now.num_bytes:,} bytes with {now.sha256[:12]}",
                hint="scores before and after would not be comparable; --accept-data-change takes the new file",
            )


def _written(
    entry: CatalogueEntry,
    paths: list[Path],
    downloads: tuple[LockedFile, ...],
    folder: Path,
    max_dropped_share: float,
) -> LockedCorpus:
    files = tuple(folder / f"{entry.name}.{language}" for language in _direction(entry))
    if files[0] == files[1]:
        files = (folder / f"{entry.name}.tsv",)
    report = ImportReport()
    with temporary_folder("tfm-corpora-") as scratch:
        groups, licence = _groups(entry, paths, scratch)
        segments = chain.from_iterable(
            _segments_of(group, entry, report, scratch / str(number)) for number, group in enumerate(groups)
        )
        try:
            write_segments(segments, files, report, entry.name, max_dropped_share)
        except DataError as error:
            if "--source-language" in (error.hint or ""):  # which chooses among the corpora of a catalogue
                error.hint = "correct its languages, members or columns in the catalogue"
            raise
    for doubt in report.doubts:
        logger.warning("%s: %s", entry.name, doubt)
    if licence is not None:
        replace_file(folder / f"{entry.name}.LICENSE", licence.encode())
    return LockedCorpus(
        entry=entry,
        downloads=downloads,
        files=tuple(_locked(path, path.name) for path in files),
        rows=report.num_written,
        skipped={reason: finding.count for reason, finding in report.skipped.items()},
        licence=entry.licence or _first_line(licence),
    )


def _groups(entry: CatalogueEntry, paths: list[Path], scratch: Path) -> tuple[list[list[Path]], str | None]:
    """The files that belong together: two of text, or one of another format; and the text of the licence.

    Raises:
        UnusableFileError: a server gave a web page, or an archive that is none or is damaged.
        DataError: the members of an archive are not those of the entry.
    """
    for path, url in zip(paths, entry.urls, strict=True):
        if _is_web_page(path):
            raise UnusableFileError(
                f"{url}: a web page, where the catalogue expects a corpus",
                hint="try again later; if the corpus has moved, look for it on its web page, and use tfm data import",
            )
    if not entry.members:
        return ([paths] if entry.kind == "txt" else [[path] for path in paths]), None
    if not is_archive(paths[0]):
        raise UnusableFileError(
            f"{entry.urls[0]}: no zip or tar archive, where the catalogue expects one",
            hint="try again later; if the corpus has moved, look for it on its web page, and use tfm data import",
        )
    found, licence = extract(paths[0], entry.members, scratch)
    if entry.kind == "txt":
        if len(found[0]) != len(found[1]):
            raise DataError(
                f"{entry.urls[0]}: {len(found[0])} members {entry.members[0]}, and {len(found[1])} members {entry.members[1]}",
                hint="a source and its target are matched in sorted order; correct the catalogue",
            )
        return [list(sides) for sides in zip(*found, strict=True)], licence
    return [[member] for members in found for member in members], licence


def _is_web_page(path: Path) -> bool:
    """Whether a file begins as HTML does: servers give such pages about errors and logins, with the status of success."""
    with path.open("rb") as file:
        beginning = file.read(1000).removeprefix(BOM_UTF8).lstrip().lower()
    return beginning.startswith((b"<!doctype html", b"<html"))


def _segments_of(
    group: list[Path], entry: CatalogueEntry, report: ImportReport, scratch: Path
) -> Iterator[ImportedPair]:
    """The pairs of one table or translation memory, or of two text files."""
    scratch.mkdir()
    endings = [entry.source_language, entry.target_language]
    if entry.kind != "txt":
        endings = [entry.kind]
    named = []  # links whose names tell formats and languages
    for path, ending in zip(group, endings, strict=True):
        link = scratch / f"corpus.{ending}{_compression(path)}"
        link.symlink_to(path.absolute())
        named.append(link)
    if entry.kind == "tsv":
        yield from _rows(named[0], entry, report)
        return
    facts = GivenFacts(None, None, entry.source_language, entry.target_language)
    yield from open_segments(named, facts, None, report, scratch).segments


def _rows(path: Path, entry: CatalogueEntry, report: ImportReport) -> Iterator[ImportedPair]:
    """The pairs of a table without a header; public tables have damaged rows, which are counted."""
    source, target = entry.columns or (0, 1)
    for number, line in enumerate(read_lines(path), start=1):
        report.num_units += 1
        cells = None if line is None else line.split(b"\t")
        if cells is not None and len(cells) <= max(source, target):
            report.skip("fewer columns", f"{entry.name}:{number}")
            continue
        sides = (None, None) if cells is None else (cells[source], cells[target])
        pair = decoded_pair(RawPair(number, *sides))
        if pair.damage:
            report.skip(pair.damage, f"{entry.name}:{number}")
        else:
            yield ImportedPair(number, one_line(pair.source), one_line(pair.target))


def _compression(path: Path) -> str:
    with path.open("rb") as file:
        found = compression_of(file.read(16))
    return found if found in COMPRESSIONS else ""


def _locked(path: Path, name: str) -> LockedFile:
    return LockedFile(name=name, sha256=file_digest(path), num_bytes=path.stat().st_size)


def _download_name(url: str) -> str:
    """A file name that differs for each URL, and still shows what it is."""
    last = re.sub(r"[^\w.-]", "_", url.split("?")[0].rstrip("/").rpartition("/")[2])[-60:]
    return f"{sha256(url.encode()).hexdigest()[:12]}-{last}"


def _first_line(licence: str | None) -> str | None:
    lines = (line.strip() for line in (licence or "").splitlines())
    return next((line[:200] for line in lines if line), None)
