"""Finds the fields of a row that hold the source and the target text."""

import difflib
import logging
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from transformer_cli.config.data import FilesData, HubData
from transformer_cli.process.errors import DataError
from transformer_cli.process.escaping import shortened
from transformer_cli.text.languages import LANGUAGE_OF_NAME

logger = logging.getLogger(__name__)

# Usual column names of parallel corpora in lower case: roles, and languages by name and by code.
ROLES = frozenset(
    [
        "source",
        "target",
        "src",
        "tgt",
        "trg",
        "reference",
        "translation",
        "original",
        "sentence",
        "text",
    ]
)
_COLUMN_NAMES = ROLES | LANGUAGE_OF_NAME.keys()
_EXCERPT_CHARACTERS = 30


class Fields(NamedTuple):
    """The source and target field of the config; languages find a field that is not given."""

    source: int | str | None
    target: int | str | None
    source_language: str
    target_language: str
    setting: str
    """The entry of the config that names them, such as data.corpora.0."""

    @classmethod
    def of(cls, data: FilesData | HubData, index: int) -> "Fields":
        """The fields of `data.corpora[index]`."""
        corpus, languages = data.corpora[index], data.directions_of(index)[0]
        return cls(corpus.source_field, corpus.target_field, *languages, f"data.corpora.{index}")


def field_paths(names: Sequence[str], fields: Fields, where: str) -> tuple[str, str]:
    """The path of the source field and of the target field, in rows with fields of these names.

    A field that the config does not give is translation.LANGUAGE if rows have the field translation,
    as on the hub; else the field named like its language, if both exist; else the first or second.
    """
    sides = (fields.source, fields.target)
    if any(isinstance(side, int) for side in sides):
        raise DataError(
            f"{fields.setting}: columns of {where} must be given by name, not by number",
            hint=f"its columns are {', '.join(names)}",
        )
    languages = (fields.source_language, fields.target_language)
    if "translation" in names:
        defaults = tuple(f"translation.{language}" for language in languages)
    elif all(language in names for language in languages):
        defaults = languages
    elif len(names) >= 2:
        defaults = (names[0], names[1])
        places = [names.index(side) if side in names else place for place, side in enumerate(sides)]
        of_file = re.sub(r":\d+$", "", where)
        warn_of_unused_columns(names, places, fields, of_file, are_by_place=None in sides)
    elif None in sides:
        raise DataError(f"{where}: one column only, {names[0]}, where two are needed")
    else:
        defaults = ("", "")
    source, target = (str(side or default) for side, default in zip(sides, defaults, strict=True))
    for path in (source, target):
        if path not in names and path.split(".")[0] not in names:
            raise unknown_field(path, names, fields, where)
    if source == target:
        raise DataError(f"{where}: field {source} is both source and target", hint=_hint(fields))
    return source, target


def value_at(row: Mapping[str, Any], path: str, where: str) -> bytes:
    """The text at a path such as translation.en, as UTF-8 bytes; empty if the value is null.

    Raises:
        DataError: the row has no such field, or the field does not hold text.
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
    except UnicodeEncodeError:  # JSON can contain lone surrogates
        return value.encode("utf-8", "surrogatepass")


def unknown_field(name: str, found: Sequence[str], fields: Fields, where: str) -> DataError:
    """The error for a field that does not exist."""
    close = difflib.get_close_matches(name, found, n=1)
    return DataError(
        f"{where}: no column {name}, found {', '.join(found) or 'none'}",
        hint=(f"did you mean {close[0]}? " if close else "") + _hint(fields),
    )


def warn_of_likely_header(source: str, target: str, fields: Fields, path: str) -> None:
    """Log a warning if the two cells of a first row, read as a sentence pair, look like a header."""
    names = source.casefold(), target.casefold()
    # Two names of one language, such as English and Inglese, are a sentence pair and no header.
    meanings = [LANGUAGE_OF_NAME.get(name, name) for name in names]
    known = {*_COLUMN_NAMES, fields.source_language.casefold(), fields.target_language.casefold()}
    if meanings[0] != meanings[1] and all(
        name in known or name.replace("_", "-").split("-")[0] in known for name in names
    ):
        _warn_once(source, target, fields.setting, path)


def warn_of_unused_columns(
    names: Sequence[str], chosen: Sequence[int], fields: Fields, path: str, *, are_by_place: bool
) -> None:
    """Log a warning if columns were chosen by their place alone and others are not used.

    Args:
        names: the names of the columns, or their first cells.
        chosen: the numbers of the source column and of the target column.
        are_by_place: whether a chosen column was found by its place, not by the config or its name.
    """
    shown = [f"{number} ({_excerpt(name)})" for number, name in enumerate(names)]
    unused = [text for number, text in enumerate(shown) if number not in chosen]
    if not unused or not are_by_place:
        return
    others = ", ".join(unused[:5]) + (f" and {len(unused) - 5} more" if len(unused) > 5 else "")
    _warn_once_of_columns(path, *(shown[number] for number in chosen), others, fields.setting)


@cache
def _warn_once_of_columns(path: str, source: str, target: str, others: str, setting: str) -> None:
    logger.warning(
        "%s: the source is column %s, the target is column %s; not used: %s; to choose other columns, or to say "
        "that these are right, set source_field and target_field of %s",
        path,
        source,
        target,
        others,
        setting,
    )


def _excerpt(text: str) -> str:
    return repr(shortened(text, _EXCERPT_CHARACTERS))


@cache  # one warning is enough, although a corpus is read once for each split
def _warn_once(source: str, target: str, setting: str, path: str) -> None:
    logger.warning(
        "%s: the first row, %s and %s, looks like a header but is read as a sentence pair; "
        "if it is a header, set %s.has_header: true, or set source_field and target_field to these "
        "names; if it is a pair, set has_header: false",
        path,
        source,
        target,
        setting,
    )


def kind_of(value: Any) -> str:
    """The type of a JSON value in words, for messages."""
    if value is None:
        return "null"
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return kinds.get(type(value), "an object")


def _hint(fields: Fields) -> str:
    return f"set {fields.setting}.source_field and .target_field"
