"""The glossaries of a server: files of terms that it reads at its start, each for one direction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from transformer_cli.config import Direction
from transformer_cli.decoding import Glossary, read_glossary
from transformer_cli.process.errors import UsageError


@dataclass(frozen=True, slots=True)
class ServedGlossary:
    """A glossary that requests can name."""

    name: str
    languages: Direction
    terms: Glossary
    created_at: datetime
    num_terms: int

    def as_json(self) -> dict[str, Any]:
        """Its facts in the form of DeepL."""
        return {
            "glossary_id": self.name,
            "name": self.name,
            "ready": True,
            "source_lang": self.languages.source,
            "target_lang": self.languages.target,
            "creation_time": self.created_at.isoformat(),
            "entry_count": self.num_terms,
        }

    def as_json_of_v3(self) -> dict[str, Any]:
        """Its facts in the form of version 3 of DeepL's interface, where a glossary has a dictionary for each direction."""
        facts = self.as_json()
        dictionary = {
            name: facts.pop(name) for name in ("source_lang", "target_lang", "entry_count")
        }
        return {**facts, "dictionaries": [dictionary]}


Glossaries = dict[str, ServedGlossary]


def read_glossaries(given: Sequence[str]) -> Glossaries:
    """The glossaries of options such as en-it=terms.tsv; the name of each is that of its file, without the ending.

    Raises:
        UsageError: an option has another form, or two files have the same name.
        MissingInputError, DataError: as of `read_glossary`.
    """
    found: Glossaries = {}
    for option in given:
        languages, equals, file = option.partition("=")
        source, dash, target = languages.partition("-")
        if not (equals and dash and source and target and file):
            raise UsageError(
                f"--glossary {option}: the languages and a file are expected",
                hint="such as --glossary en-it=terms.tsv",
            )
        path = Path(file)
        terms = read_glossary(path)
        if path.stem in found:
            raise UsageError(f"--glossary: two files have the name {path.stem}")
        created_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        num_terms = len(terms.entries)
        direction = Direction(source, target)
        found[path.stem] = ServedGlossary(path.stem, direction, terms, created_at, num_terms)
    return found
