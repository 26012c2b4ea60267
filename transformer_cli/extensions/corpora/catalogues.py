"""Catalogues of public corpora: where each is, which parts of its files hold the pairs, its licence and citation."""

import contextlib
import gzip
import importlib
import importlib.metadata
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, NonNegativeInt, ValidationError, field_validator, model_validator

from transformer_cli.config.data import Language
from transformer_cli.config.section import Section
from transformer_cli.data.sources.lines import read_lines
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.storage import staged_file, temporary_folder
from transformer_cli.text.languages import LANGUAGE_OF_NAME

FileKind = Literal["txt", "tsv", "tmx", "xlsx"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]{0,199}$")]
_Text = Annotated[str, Field(min_length=1, max_length=10_000)]


class CatalogueEntry(Section):
    """How to get one corpus."""

    name: Name
    """Its name, also that of its files here."""
    urls: Annotated[tuple[_Text, ...], Field(min_length=1, max_length=2)]
    """One file, or two text files: the source and the target."""
    kind: FileKind
    """What the files hold, or the members of the archive: txt (two files), tsv, tmx or xlsx."""
    source_language: Language
    target_language: Language
    members: tuple[_Text, ...] = ()
    """For a zip or tar archive: the members with the pairs, as names or patterns; of txt, the source first."""
    columns: tuple[NonNegativeInt, NonNegativeInt] | None = None
    """For tsv: the columns of source and target, from 0; absent: the first two."""
    licence: str | None = None
    citation: str | None = None
    """In BibTeX, or as people cite it."""

    @field_validator("urls")
    @classmethod
    def _urls_are_of_the_web(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
                raise ValueError(f"{url!r} does not begin with https:// or http://")
        return urls

    @model_validator(mode="after")
    def _both_sides_are_named(self) -> Self:
        num_sides = len(self.members) if self.members else len(self.urls)
        if self.kind == "txt" and num_sides != 2:
            raise ValueError("a corpus of kind txt needs two members of an archive, or two urls")
        if self.kind != "txt" and len(self.urls) != 1:
            raise ValueError(f"a corpus of kind {self.kind} has one url")
        return self

    def reversed(self) -> Self:
        """The same corpus in the other direction."""
        two_sides = self.kind == "txt"
        return self.model_copy(
            update={
                "source_language": self.target_language,
                "target_language": self.source_language,
                "urls": self.urls[::-1] if two_sides and not self.members else self.urls,
                "members": self.members[::-1] if two_sides else self.members,
                "columns": (self.columns or (0, 1))[::-1] if self.kind == "tsv" else None,
            }
        )


def read_catalogue(path: Path) -> Iterator[CatalogueEntry]:
    """The entries of a catalogue in JSON Lines: one object per line, with the fields of `CatalogueEntry`.

    Raises:
        MissingInputError: there is no such file.
        DataError: a line is no such object.
    """
    if not path.is_file():
        raise MissingInputError(f"{path.absolute()}: no such catalogue")
    for number, line in enumerate(read_lines(path), start=1):
        if not line or not line.strip():
            continue
        try:
            yield CatalogueEntry.model_validate(json.loads(line))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the entry"
            raise DataError(f"{path}:{number}: {place}: {first['msg']}") from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}:{number}: not a JSON object: {error}") from error


logger = logging.getLogger(__name__)

_KINDS = {
    "txt": "txt",
    "txt.gz": "txt",
    "tsv": "tsv",
    "tsv.gz": "tsv",
    "tsv.xz": "tsv",
    "tmx": "tmx",
    "tmx.gz": "tmx",
    "xlsx": "xlsx",
}
_ARCHIVES = {"zip", "tar", "tar.gz", "tgz"}


def mtdata_entries(folder: Path, *, words: tuple[str, ...] = ()) -> Iterator[CatalogueEntry]:
    """The corpora that mtdata knows, and whose format can be read; made once and kept in the folder.

    Args:
        words: only entries whose names contain all of these, in any case.
    """
    path = folder / f".mtdata-{importlib.metadata.version('mtdata')}.jsonl.gz"
    if not path.is_file():
        logger.info("making the list of the corpora that mtdata knows; this takes a minute, once")
        _store(path)
    wanted = [word.casefold() for word in words]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        citations = json.loads(next(lines))
        for line in lines:
            name, _, rest = line.partition("\t")
            if all(word in name.casefold() for word in wanted):
                fields = json.loads(rest)
                cited = [citations[key] for key in fields.pop("cite", []) if key in citations]
                citation = "\n".join(cited) or None
                yield CatalogueEntry(**fields, name=name, citation=citation)


def _store(path: Path) -> None:
    with staged_file(path.absolute()) as unfinished, _loaded_mtdata() as index:
        citations = {key: index.ref_db.get_bibtex(key) for key in index.ref_db.keys()}  # noqa: SIM118
        with gzip.open(unfinished, "wt", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(citations) + "\n")
            for entry in index.get_entries():
                fields = _fields(entry)
                if fields is not None:
                    file.write(f"{entry.did}\t{json.dumps(fields)}\n")


@contextlib.contextmanager
def _loaded_mtdata() -> Iterator[Any]:
    """The index of mtdata, made in an empty folder: mtdata runs files named mtdata*.py of the current folder."""
    root, silent = logging.getLogger(), logging.NullHandler()
    before = os.environ.get("MTDATA")
    with temporary_folder("tfm-corpora-") as scratch, contextlib.chdir(scratch):
        os.environ["MTDATA"] = str(scratch / "cache")
        root.addHandler(silent)  # with a handler, mtdata does not install its own
        try:
            yield importlib.import_module("mtdata.index").INDEX
        finally:
            root.removeHandler(silent)
            del os.environ["MTDATA"]
            if before is not None:
                os.environ["MTDATA"] = before


def _fields(entry: Any) -> dict[str, Any] | None:
    """The fields of a catalogue entry; None for one language only, and for formats that cannot be read here."""
    is_archive = entry.ext in _ARCHIVES
    kind = _KINDS.get((entry.in_ext if is_archive else entry.ext) or "")
    urls = [entry.url] if isinstance(entry.url, str) else list(entry.url)
    members = list(entry.in_paths or [])
    is_pair = len(members if is_archive else urls) == 2
    has_other_columns = kind == "txt" and entry.in_ext not in ("txt", None)
    if kind is None or len(entry.did.langs) != 2 or has_other_columns or (kind == "txt") != (is_pair and kind == "txt"):
        return None
    if kind != "txt" and len(urls) != 1:
        return None
    languages = [str(language) for language in entry.did.langs]
    fields: dict[str, Any] = {"urls": urls, "kind": kind}
    fields |= {"source_language": plain(languages[0]), "target_language": plain(languages[1])}
    fields |= {"members": members} if is_archive else {}
    fields |= {"columns": list(entry.cols)} if entry.cols and len(entry.cols) == 2 else {}
    return fields | ({"cite": list(entry.cite)} if entry.cite else {})


def plain(language: str) -> str:
    """The usual code of a language that mtdata writes with three letters: en for eng, pt-BR for por_BR."""
    first, *rest = language.split("_")
    return "-".join([LANGUAGE_OF_NAME.get(first, first), *rest])
