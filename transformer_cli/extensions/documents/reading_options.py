"""What a person chooses about the reading of a document."""

from dataclasses import dataclass, field

from transformer_cli.extensions.documents.guards.reading_limits import (
    LIMITS,
    ReadingLimits,
    ReadingWatch,
)


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How a document is read; each format uses what concerns it."""

    columns: tuple[str, ...] = ()
    """For tables: the names or numbers (from 1) of the columns that are translated."""
    values: tuple[str, ...] = ()
    """For json and yaml: patterns of the values that are translated; nothing: all strings."""
    encoding: str | None = None
    """Of a text file, such as windows-1252; None: its byte-order mark or its own name of it decides, else it is UTF-8."""
    limits: ReadingLimits = LIMITS
    watch: ReadingWatch = field(default_factory=ReadingWatch)
    """Of this document: every reader shows it what it reads."""


DEFAULTS = ReadingOptions()
