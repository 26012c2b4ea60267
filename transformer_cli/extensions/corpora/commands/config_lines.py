"""The lines of a config that read the files which a command has written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from transformer_cli.config import Direction


class WrittenCorpus(NamedTuple):
    """The files of one corpus, relative to the root: two text files, or one TSV file without a header."""

    files: Sequence[str]
    split: str | None = None


def config_lines(root: Path, direction: Direction, corpora: Sequence[WrittenCorpus]) -> list[str]:
    """The section `data`, as YAML."""
    entries: list[dict[str, Any]] = []
    for corpus in corpora:
        entry: dict[str, Any] = {}
        if len(corpus.files) == 2:
            entry |= {"source_path": corpus.files[0], "target_path": corpus.files[1]}
        else:
            entry |= {"path": corpus.files[0], "source_field": 0, "target_field": 1}
            entry["has_header"] = False
        entries.append(entry | ({"split": corpus.split} if corpus.split else {}))
    section: dict[str, Any] = {"source": "files", "root": str(root)}
    section |= {"source_language": direction.source, "target_language": direction.target}
    text = yaml.safe_dump(
        {"data": section | {"corpora": entries}}, sort_keys=False, allow_unicode=True, width=200
    )
    return ["to read it, write into a config:", *text.rstrip("\n").split("\n")]
