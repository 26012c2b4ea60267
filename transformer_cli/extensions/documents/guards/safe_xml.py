"""XML that is read without harm: entities, external references and deep nesting are refused before it is parsed."""

from typing import Any
from xml.parsers import expat

from transformer_cli.extensions.documents.guards.reading_limits import (
    LIMITS,
    ReadingLimits,
    ReadingWatch,
)
from transformer_cli.process.errors import DataError

_OTHER_FILE = "open it in the program that made it, and save it again"


def check_xml(
    data: bytes, limits: ReadingLimits = LIMITS, watch: ReadingWatch | None = None
) -> None:
    """Refuse XML that is not well-formed, declares entities, or is nested too deeply.

    A DOCTYPE that names an external DTD is allowed, but this DTD is never read.

    Raises:
        DataError: with the line of the problem.
    """
    limits.check_size(data)
    parser = expat.ParserCreate()
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if watch is not None:
            watch.look()
        limits.check_depth(depth, f"line {parser.CurrentLineNumber}")

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse_entity(name: str, *_: Any) -> None:
        raise DataError(
            f"line {parser.CurrentLineNumber}: the XML declares an entity {name}",
            hint="documents with entities of their own are not read, because they can grow without limit or name other files",
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.EntityDeclHandler = refuse_entity
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code)
        raise DataError(f"line {error.lineno}: no well-formed XML: {message}", hint=_OTHER_FILE) from error  # fmt: skip
    except (LookupError, ValueError) as error:
        raise DataError(f"no readable XML: {error}", hint=_OTHER_FILE) from error
