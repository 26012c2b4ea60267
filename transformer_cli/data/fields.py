"""Which fields of a row hold the two sides of a pair."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from transformer_cli.errors import DataError


class Fields(NamedTuple):
    """The fields as the config names them, and what stands in for a name that is absent."""

    source: int | str | None
    target: int | str | None
    source_language: str
    target_language: str
    setting: str
    """Where the config names them, such as data.corpora.0."""


def field_paths(names: Sequence[str], fields: Fields, where: str) -> tuple[str, str]:
    """The paths of both sides in rows that have fields of these names.

    Where the config gives none: translation.LANGUAGE, as data sets on the hub have it; or else the
    field named as the language; or else the first two fields.
    """
    sides = (fields.source, fields.target)
    if any(isinstance(side, int) for side in sides):
        raise DataError(
            f"{fields.setting}: columns of {where} are given by name, not by number",
            hint=f"it has {', '.join(names)}",
        )
    languages = (fields.source_language, fields.target_language)
    if "translation" in names:
        defaults = tuple(f"translation.{language}" for language in languages)
    elif all(language in names for language in languages):
        defaults = languages
    elif len(names) >= 2:
        defaults = (names[0], names[1])
    elif None in sides:
        raise DataError(f"{where}: one column only, {names[0]}, where two are needed")
    else:
        defaults = ("", "")
    source, target = (str(side or default) for side, default in zip(sides, defaults, strict=True))
    for path in (source, target):
        if path not in names and path.split(".")[0] not in names:
            raise unknown_field(path, names, fields, where)
    if source == target:
        raise DataError(f"{where}: field {source} is named for both sides", hint=_hint(fields))
    return source, target


def value_at(row: Mapping[str, Any], path: str, where: str) -> bytes:
    """The text at a path such as translation.en; nothing where it is null.

    Raises:
        DataError: there is no such field, or what it holds is no text.
    """
    value: Any = row
    if path in row:
        value = row[path]
    else:
        for name in path.split("."):
            if not isinstance(value, Mapping) or name not in value:
                found = ", ".join(map(str, value)) if isinstance(value, Mapping) else kind_of(value)
                raise DataError(f"{where}: no field {path}, found {found}")
            value = value[name]
    if value is None:
        return b""
    if not isinstance(value, str):
        raise DataError(f"{where}: field {path} holds {kind_of(value)}, where text is expected")
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can write
        return value.encode("utf-8", "surrogatepass")


def unknown_field(name: str, found: Sequence[str], fields: Fields, where: str) -> DataError:
    """What to say about a field that does not exist."""
    close = difflib.get_close_matches(name, found, n=1)
    return DataError(
        f"{where}: no column {name}, found {', '.join(found) or 'none'}",
        hint=(f"did you mean {close[0]}? " if close else "") + _hint(fields),
    )


def kind_of(value: Any) -> str:
    """A word for what a value is."""
    if value is None:
        return "null"
    kinds = {bool: "a truth value", int: "a number", float: "a number", str: "text", list: "a list"}
    return kinds.get(type(value), "an object")


def _hint(fields: Fields) -> str:
    return f"set {fields.setting}.source_field and .target_field"
