"""The catalogue of mtdata (github.com/thammegowda/mtdata): OPUS, WMT, Tatoeba, FLORES, ParaCrawl and others.

mtdata makes its list when it is imported, which takes about a minute, and stores it with pickle in the home folder. Here it
makes the list in a temporary folder, and the list is kept as JSON in the folder of the corpora.
"""

import contextlib
import gzip
import importlib
import importlib.metadata
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformer_cli.extensions.corpora.fetching.catalogue_entry import CatalogueEntry
from transformer_cli.extensions.corpora.numbered_pairs import scratch_folder
from transformer_cli.storage import staged_file
from transformer_cli.text.languages import LANGUAGE_OF_NAME

logger = logging.getLogger(__name__)

_KINDS = {
    "txt": "txt", "txt.gz": "txt", "tsv": "tsv", "tsv.gz": "tsv", "tsv.xz": "tsv",
    "tmx": "tmx", "tmx.gz": "tmx", "xlsx": "xlsx",
}  # fmt: skip
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
    with scratch_folder() as scratch, contextlib.chdir(scratch):
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
    if (
        kind is None
        or len(entry.did.langs) != 2
        or has_other_columns
        or (kind == "txt") != (is_pair and kind == "txt")
    ):
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
