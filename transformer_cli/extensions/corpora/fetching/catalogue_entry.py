"""An entry of a catalogue: where a corpus is, which parts of its files hold the pairs, its licence and citation."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator

from transformer_cli.config.data import Language
from transformer_cli.config.section import Section
from transformer_cli.data.sources.lines import read_lines
from transformer_cli.process.errors import DataError, MissingInputError

Kind = Literal["txt", "tsv", "tmx", "xlsx"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]{0,199}$")]
_Text = Annotated[str, Field(min_length=1, max_length=10_000)]


class CatalogueEntry(Section):
    """How to get one corpus."""

    name: Name
    """Its name, also that of its files here."""
    urls: Annotated[tuple[_Text, ...], Field(min_length=1, max_length=2)]
    """One file, or two text files: the source and the target."""
    kind: Kind
    """What the files hold, or the members of the archive: txt (two files), tsv, tmx or xlsx."""
    source_language: Language
    target_language: Language
    members: tuple[_Text, ...] = ()
    """For a zip or tar archive: the members with the pairs, as names or patterns; of txt, the source first."""
    columns: tuple[int, int] | None = None
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
