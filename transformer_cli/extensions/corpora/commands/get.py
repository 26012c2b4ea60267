"""`tfm data get`: fetches public corpora by name, and notes what it fetched in a lock file."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_cli.commands.command_line import JsonOption
from transformer_cli.commands.output import fitting, show
from transformer_cli.config import Direction
from transformer_cli.extensions.corpora.catalogues import CatalogueEntry, mtdata_entries, read_catalogue
from transformer_cli.extensions.corpora.commands.config_lines import WrittenCorpus, config_lines
from transformer_cli.extensions.corpora.commands.given_corpus import DroppedShareOption
from transformer_cli.extensions.corpora.downloads import Progress
from transformer_cli.process.errors import CannotCreateError, MissingInputError, UsageError
from transformer_cli.process.imports import require_extra
from transformer_cli.process.messages import for_shell
from transformer_cli.storage import RunLock, make_folders
from transformer_cli.text.languages import primary_language

if TYPE_CHECKING:
    from transformer_cli.extensions.corpora.fetching import Fetched

_NUM_LISTED = 100
_NUM_CLOSE = 5


def get_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Names of corpora; none: all of the lock file. With --list: words in their names.",
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the corpora and their lock file.")
    ] = Path("corpora"),
    lists: Annotated[bool, typer.Option("--list", help="List names of corpora, and fetch nothing.")] = False,
    catalogue: Annotated[
        Path | None,
        typer.Option(
            "--catalogue",
            help="A list of corpora of your own (JSON Lines). Default: the list of mtdata.",
        ),
    ] = None,
    source_language: Annotated[
        str | None, typer.Option("--source-language", help="Only corpora with this source.")
    ] = None,
    target_language: Annotated[
        str | None, typer.Option("--target-language", help="Only corpora with this target.")
    ] = None,
    accept_change: Annotated[
        bool,
        typer.Option("--accept-data-change", help="Take a remote file that has changed since it was fetched."),
    ] = False,
    max_dropped_share: DroppedShareOption = 0.05,
    as_json: JsonOption = False,
) -> None:
    """Fetch public corpora by name. Licences, citations and checksums go into a lock file."""
    asked = CorporaRequest(names or [], folder, catalogue, (source_language, target_language))
    if lists:
        list_corpora(asked, as_json=as_json)
    else:
        get_corpora(
            asked,
            accept_change=accept_change,
            max_dropped_share=max_dropped_share,
            as_json=as_json,
        )


@dataclass(frozen=True, slots=True)
class CorporaRequest:
    """What a command line asks for."""

    names: Sequence[str]
    """Names of corpora; for a list, words in their names."""
    folder: Path
    catalogue: Path | None
    """A catalogue in JSON Lines; None: that of mtdata."""
    languages: tuple[str | None, str | None]

    def entries(self, words: Sequence[str] = ()) -> Iterator[CatalogueEntry]:
        """The entries of the catalogue with these words in their names, in these languages."""
        wanted = [word.casefold() for word in words]
        if self.catalogue is not None:
            found: Iterator[CatalogueEntry] = read_catalogue(self.catalogue)
        else:
            require_extra("corpora", ("mtdata",), purpose="tfm data get")

            make_folders(self.folder)
            found = mtdata_entries(self.folder, words=tuple(wanted))
        for entry in found:
            if all(word in entry.name.casefold() for word in wanted):
                turned = self._turned(entry)
                if turned is not None:
                    yield turned

    def _turned(self, entry: CatalogueEntry) -> CatalogueEntry | None:
        """The entry in the direction that is asked for; None if it is in other languages."""
        for one in (entry, entry.reversed()):
            codes = (one.source_language, one.target_language)
            if all(
                wanted is None or primary_language(wanted) == primary_language(code)
                for wanted, code in zip(self.languages, codes, strict=True)
            ):
                return one
        return None


def list_corpora(request: CorporaRequest, *, as_json: bool) -> None:
    """Print the names of the corpora with all given words, with their languages and addresses."""
    found = list(request.entries(request.names))
    lines = [
        f"{one.name}  {one.source_language}-{one.target_language}  {' '.join(one.urls)}" for one in found[:_NUM_LISTED]
    ]
    more = len(found) - _NUM_LISTED
    if more > 0:
        lines.append(f"and {more:,} more: give words in the name, or languages")
    facts = {"corpora": [one.model_dump(mode="json", exclude_none=True) for one in found]}
    show(facts, fitting(lines or ["no corpus has all of these words"]), as_json=as_json)


def get_corpora(request: CorporaRequest, *, accept_change: bool, max_dropped_share: float, as_json: bool) -> None:
    """Fetch corpora into a folder, and print what is there.

    Raises:
        UsageError: no name is given, and the folder has no lock file.
        MissingInputError: the catalogue has no corpus of a name, or a server has no such file.
        DataError: a remote file has changed since it was fetched first.
    """
    from transformer_cli.extensions.corpora.fetching import LOCK_FILE, fetch, read_lock

    if request.folder.exists() and not request.folder.is_dir():
        raise CannotCreateError(f"{request.folder}: no folder")
    lock = read_lock(request.folder)
    if not request.names and not lock.corpora:
        raise UsageError(
            f"give the name of a corpus; {request.folder} has no {LOCK_FILE} either",
            hint="tfm data get --list europarl --source-language en --target-language it shows names",
        )
    entries = [_entry(name, request) for name in request.names] or [one.entry for one in lock.corpora]
    make_folders(request.folder)
    with RunLock(request.folder):
        fetched = [
            fetch(
                entry,
                request.folder,
                progress=_progress,
                accept_change=accept_change,
                max_dropped_share=max_dropped_share,
            )
            for entry in entries
        ]
    facts = {
        "folder": str(request.folder),
        "corpora": [one.locked.model_dump(mode="json") | {"downloaded": one.is_new} for one in fetched],
    }
    lines = [line for one in fetched for line in _lines(one, request.folder)]
    show(facts, [*fitting(lines), "", *_config(fetched, request.folder)], as_json=as_json)


def _entry(name: str, request: CorporaRequest) -> CatalogueEntry:
    from transformer_cli.extensions.corpora.fetching import read_lock

    known = read_lock(request.folder).find(name)
    if known is not None and request.catalogue is None and not any(request.languages):
        return known.entry
    close = []
    for entry in request.entries([name]):
        if entry.name == name:
            return entry
        close.append(entry.name)
    hint = f"tfm data get --list {for_shell(name)} shows all names with this word"
    if close:
        hint = f"did you mean {', '.join(close[:_NUM_CLOSE])}? {hint}"
    where = request.catalogue or f"the list of mtdata {importlib.metadata.version('mtdata')}"
    raise MissingInputError(f"{name}: no corpus of this name in {where}", hint=hint)


def _progress(url: str) -> Progress:
    from tqdm import tqdm

    bar = tqdm(desc=url.rpartition("/")[2][:40], unit="B", unit_scale=True, disable=not sys.stderr.isatty())

    def report(num_bytes: int, size: int | None) -> None:
        bar.total = size
        bar.n = num_bytes
        bar.refresh()
        if num_bytes == size:
            bar.close()

    return report


def _lines(one: Fetched, folder: Path) -> list[str]:
    locked, entry = one.locked, one.locked.entry
    state = "fetched" if one.is_new else "already here, nothing downloaded"
    skipped = "".join(f"; {count:,} left out: {why}" for why, count in locked.skipped.items())
    licence = locked.licence or "not stated in the catalogue; look at the web page of the corpus"
    lines = [
        f"{entry.name}: {state}",
        f"  pairs     {locked.rows:,}{skipped}",
        f"  files     {', '.join(str(folder / file.name) for file in locked.files)}",
        f"  licence   {licence}",
    ]
    citation = " ".join((entry.citation or "not stated in the catalogue").split())
    return [*lines, f"  citation  {citation}"]


def _config(fetched: Sequence[Fetched], folder: Path) -> list[str]:
    first = fetched[0].locked.entry
    direction = Direction(first.source_language, first.target_language)
    corpora = [
        WrittenCorpus(
            [file.name for file in one.locked.files],
            direction=Direction(one.locked.entry.source_language, one.locked.entry.target_language),
        )
        for one in fetched
    ]
    return config_lines(folder, direction, corpora)
