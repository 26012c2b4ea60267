"""The lines of a config that read the files which a command has written."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from transformer_cli.config import Direction


class WrittenCorpus(NamedTuple):
    """The files of one corpus, relative to the root: two text files, or one TSV file without a header."""

    files: Sequence[str]
    split: str | None = None
    direction: Direction | None = None
    """Its languages; None: those of the section."""
    further: Mapping[str, Any] = {}
    """More of its settings, such as its weight."""


def config_lines(
    root: Path, direction: Direction, corpora: Sequence[WrittenCorpus], further: Mapping[str, Any] | None = None
) -> list[str]:
    """The section `data`, as YAML; `further` has more of its settings, such as both_directions."""
    entries: list[dict[str, Any]] = []
    for corpus in corpora:
        entry: dict[str, Any] = {}
        if len(corpus.files) == 2:
            entry |= {"source_path": corpus.files[0], "target_path": corpus.files[1]}
        else:
            entry |= {"path": corpus.files[0], "source_field": 0, "target_field": 1}
            entry["has_header"] = False
        if corpus.split:
            entry["split"] = corpus.split
        if corpus.direction not in (None, direction):
            entry |= _languages(corpus.direction)
        entries.append({**entry, **corpus.further})
    section: dict[str, Any] = {"source": "files", "root": str(root)}
    section |= _languages(direction) | dict(further or {})
    text = yaml.safe_dump({"data": section | {"corpora": entries}}, sort_keys=False, allow_unicode=True, width=200)
    return ["to read it, write into a config:", *text.rstrip("\n").split("\n")]


def _languages(direction: Direction) -> dict[str, str]:
    return {"source_language": direction.source, "target_language": direction.target}
