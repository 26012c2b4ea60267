"""JSON: strings are translated; keys, numbers, order and white space stay byte for byte."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.character_encoding import decoded
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.repeated_keys import RepeatedKeys
from transformer_cli.extensions.documents.segments import (
    Edit,
    LineNumbers,
    Slot,
    SplicedDocument,
    TranslatedSegment,
)
from transformer_cli.extensions.documents.strings import (
    Path,
    is_metadata,
    is_translated,
    language_in_place_of,
    reads_apostrophes_as_quotes,
    require_chosen,
    string_of,
    tagged_segment,
    with_apostrophes_of,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import primary_language

# The language of a file of Flutter, which refuses a file whose name says another one.
_LANGUAGE_OF_ARB = ("@@locale",)
# A mapping whose first value is one; its key may be the language of all texts, as in {"en": {"title": "Title"}}.
_ONLY_KEY = re.compile(r'\s*\{\s*"([A-Za-z][\w-]*)"\s*:\s*\{')
# The key of the text of a message, and those of the notes for translators beside it: in browser extensions, FormatJS and Transifex.
_NOTES = {
    "message": frozenset(["description", "hash", "placeholders"]),
    "defaultMessage": frozenset(["description", "end", "file", "id", "start"]),
    "string": frozenset(["character_limit", "context", "developer_comment"]),
}
_TOKEN = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"|[{}\[\],:]')


def read_json(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """A JSON file, or a file with one JSON value per line."""
    content = decoded(data, given=options.encoding)
    text = content.text
    lines = LineNumbers(text)
    _check_depth(text, lines, options)
    _check(text)
    # A file that escapes all other letters gets its new ones escaped, too.
    is_ascii = text.isascii() and "\\u" in text
    slots: list[Slot] = []
    edits: list[Edit] = []
    keys = RepeatedKeys()
    strings = [
        (start, end, path, json.loads(text[start:end], strict=False))
        for start, end, path in options.watch.over(_strings(text, keys))
    ]
    keys.warn(text, options)
    quotes = reads_apostrophes_as_quotes(
        [value for *_, value in strings],
        is_flutter=any(is_metadata(path) for _, _, path, _ in strings),
    )
    key_of_text = _key_of_text(text)
    for start, end, path, value in strings:
        if path == _LANGUAGE_OF_ARB:
            edits.append(Edit(start, end, partial(_language, text[start:end], value)))
            continue
        is_note = key_of_text is not None and path[1:] != (key_of_text,)
        is_left_out = not options.values and (is_note or is_metadata(path))
        if is_translated(value, path, options.values) and not is_left_out:
            place = f"line {lines.number_at(start)}"
            segment = options.watch.counted(tagged_segment(value, place, quotes=quotes))
            render = partial(_written, is_ascii, value if quotes else None)
            slots.append(Slot(start, end, segment, render))
    require_chosen(options.values, has_values=bool(slots))
    only_key = _ONLY_KEY.match(text) if slots else None
    if only_key is not None and _num_keys(text) == 1:
        edits.insert(0, Edit(*only_key.span(1), partial(_language_key, only_key[1])))
    return SplicedDocument(content, tuple(slots), tuple(edits))


def _check_depth(text: str, lines: LineNumbers, options: ReadingOptions) -> None:
    depth = 0
    for match in options.watch.over(_TOKEN.finditer(text)):
        if match[0] in "{[":
            depth += 1
            options.limits.check_depth(depth, f"line {lines.number_at(match.start())}")
        elif match[0] in "}]":
            depth -= 1


def _check(text: str) -> None:
    """Refuse what is no JSON, and no lines of JSON either."""
    try:
        _loads(text)
    except ValueError as error:
        lines = [line for line in text.split("\n") if line.strip()]
        try:
            for line in lines if len(lines) > 1 else [text]:
                _loads(line)
        except ValueError:
            line_number = getattr(error, "lineno", 1)
            raise DataError(f"line {line_number}: no valid JSON: {error}") from error


def _loads(text: str) -> Any:
    """Read JSON; its numbers stay text, because Python refuses to read one of thousands of digits."""
    return json.loads(text, strict=False, parse_int=str, parse_float=str)


def _strings(text: str, keys: RepeatedKeys) -> Iterator[tuple[int, int, Path]]:
    """Where each string stands that is no key, and the keys and places that lead to it.

    Args:
        keys: gets all keys.
    """
    path: list[str | int] = []
    is_key = False
    for match in _TOKEN.finditer(text):
        sign = match[0]
        if sign == "{":
            path.append("")
            keys.begin_mapping()
            is_key = True
        elif sign == "[":
            path.append(0)
            is_key = False
        elif sign in "}]":
            if isinstance(path.pop(), str):
                keys.end_mapping()
            is_key = False
        elif sign == ",":
            is_key = bool(path) and isinstance(path[-1], str)
            if path and isinstance(path[-1], int):
                path[-1] += 1
        elif sign == ":":
            is_key = False
        elif is_key:
            path[-1] = key = json.loads(sign, strict=False)
            keys.add(key, match.start())
        else:
            yield match.start(), match.end(), tuple(path)


def _num_keys(text: str) -> int:
    """How many keys a file that begins with a mapping has; none if it has a JSON value per line."""
    try:
        return len(_loads(text))
    except ValueError:
        return 0


def _key_of_text(text: str) -> str | None:
    """The key of the text in each message, if a file is a mapping or list of messages with nothing but notes beside it."""
    try:
        root = _loads(text)
    except ValueError:
        return None
    messages = list(root.values()) if isinstance(root, dict) else root if isinstance(root, list) else []
    for key, notes in _NOTES.items():
        if messages and all(
            isinstance(each, dict) and isinstance(each.get(key), str) and each.keys() <= notes | {key}
            for each in messages
        ):
            return key
    return None


def _language_key(key: str, languages: Direction) -> str:
    return language_in_place_of(key, languages) or key


def _language(raw: str, value: str, languages: Direction) -> str:
    is_source = primary_language(value) == primary_language(languages.source)
    return f'"{languages.target}"' if is_source else raw


def _written(is_ascii: bool, message: str | None, translation: TranslatedSegment) -> str:
    """The string of a translation.

    Args:
        message: the source, if it may be a message of ICU.
    """
    text = string_of(translation)
    text = text if message is None else with_apostrophes_of(message, text)
    return json.dumps(text, ensure_ascii=is_ascii)
