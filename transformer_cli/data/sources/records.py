"""Reads pairs from rows whose fields have names: JSON Lines, JSON arrays, Parquet, and saved data sets."""

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from transformer_cli.data.sources.lines import (
    COMPRESSIONS,
    MAX_LINE_BYTES,
    RawPair,
    open_regular_file,
    read_lines,
    read_text_chunks,
)
from transformer_cli.data.sources.tables import Fields, field_paths, kind_of, unknown_field, value_at
from transformer_cli.process.errors import DataError

_BATCH_ROWS = 1024
# A larger file is not read as one object; an object with more fields is no single pair.
_MAX_OBJECT_BYTES, _MAX_FIELDS = 1 << 26, 100


def read_jsonl(path: Path, fields: Fields, encoding: str | None = None) -> Iterator[RawPair]:
    """The pairs of a file with one JSON object per line, or of one JSON array of objects; a bad one is an error.

    Raises:
        DataError: a line or an item is not a JSON object, or a field is missing.
    """
    if is_json_array(path, encoding):
        yield from _pairs_of_array(path, fields, encoding)
        return
    paths: tuple[str, str] | None = None
    for number, line in enumerate(read_lines(path, encoding), start=1):
        where = f"{path}:{number}"
        if line is None:
            yield RawPair(number, None, None)
        elif not line.strip():
            yield RawPair(number, b"", b"")
        else:
            row = _parse(line, where)
            paths = paths or field_paths(list(row), fields, where)
            yield RawPair(number, *(value_at(row, field, where) for field in paths))


def _pairs_of_array(path: Path, fields: Fields, encoding: str | None) -> Iterator[RawPair]:
    paths: tuple[str, str] | None = None
    for number, item in enumerate(array_items(path, encoding), start=1):
        where = f"{path}:{number}"
        row = _required_object(item, where)
        paths = paths or field_paths(list(row), fields, where)
        yield RawPair.limited(number, *(value_at(row, field, where) for field in paths))


def first_records(path: Path, kind: str, num_rows: int, encoding: str | None = None) -> list[dict[str, Any]]:
    """The first rows of a JSON or Parquet file, with nested fields under paths such as translation.en.

    Raises:
        DataError: the file is not JSON or not Parquet.
    """
    if kind == "parquet":
        with _open_parquet(path) as file:
            batches = file.iter_batches(num_rows)
            return [_flat(row) for batch in islice(batches, 1) for row in batch.to_pylist()]
    if is_json_array(path, encoding):
        items = enumerate(islice(array_items(path, encoding), num_rows), start=1)
        return [_flat(_required_object(item, f"{path}:{number}")) for number, item in items]
    lines = ((line, f"{path}:{number}") for number, line in enumerate(read_lines(path, encoding), start=1) if line)
    filled = ((line, where) for line, where in lines if line.strip())
    try:
        records = [_parse(*line) for line in islice(filled, num_rows)]
    except DataError:
        whole = _whole_object(path, encoding)
        if whole is not None:
            raise _one_object(whole, path) from None
        raise
    if len(records) == 1 and _holds_many(records[0]):
        raise _one_object(records[0], path)
    return [_flat(record) for record in records]


def _whole_object(path: Path, encoding: str | None) -> dict[str, Any] | None:
    """The object that a whole file holds, over several lines; None if it holds anything else."""
    chunks, num_bytes = [], 0
    for chunk in read_text_chunks(path, encoding):
        chunks.append(chunk)
        num_bytes += len(chunk)
        if num_bytes > _MAX_OBJECT_BYTES:
            return None
    try:
        whole = json.loads(b"".join(chunks).decode(errors="surrogateescape"))
    except (ValueError, RecursionError):
        return None
    return whole if isinstance(whole, dict) else None


def _holds_many(record: Mapping[str, Any]) -> bool:
    """Whether an object holds many pairs, in a list or as its fields."""
    has_list = any(isinstance(value, list) and value for value in record.values())
    return has_list or len(record) > _MAX_FIELDS


def _one_object(whole: Mapping[str, Any], path: Path) -> DataError:
    """The error for a file that is one object around all its pairs."""
    lists = [name for name, value in whole.items() if isinstance(value, list)]
    if lists:
        what = f"its field {lists[0]} holds a list of {len(whole[lists[0]]):,}"
        hint = f"write this list alone into a file, such as with: jq '.{lists[0]}'"
    else:
        what = f"it has {len(whole):,} field{'' if len(whole) == 1 else 's'}"
        hint = "if each field is a sentence and its value the translation, jq 'to_entries' makes pairs of them"
    return DataError(
        f"{path}: the whole file is one JSON object, where one object for each pair is expected; {what}",
        hint=f'{hint}; a corpus is one array of objects, such as [{{"en": "sea", "it": "mare"}}], or one object per line',
    )


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        is_section = isinstance(value, Mapping)
        flat |= _flat(value, f"{prefix}{name}.") if is_section else {f"{prefix}{name}": value}
    return flat


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        # Bytes that are not UTF-8 become surrogates here, and the same bytes again in `value_at`.
        row = json.loads(line.decode(errors="surrogateescape"))
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise DataError(
            f"{where}: not a JSON object: {reason}",
            hint="JSON Lines has one object per line, without commas between them; the whole file may also be one "
            "array of objects: [{...}, {...}]",
        ) from error
    return _required_object(row, where)


def _required_object(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise DataError(
            f"{where}: {kind_of(row)}, where a JSON object is expected",
            hint='each pair is an object, such as {"en": "sea", "it": "mare"}',
        )
    return row


def read_parquet(path: Path, fields: Fields) -> Iterator[RawPair]:
    """The pairs of a Parquet file, read in batches of rows.

    Raises:
        DataError: the file is not Parquet, or has no such column of text.
    """
    for number, sides in enumerate(_parquet_sides(path, fields), start=1):
        yield RawPair.limited(number, *(side or b"" for side in sides))


def _parquet_sides(path: Path, fields: Fields) -> Iterator[tuple[bytes | None, bytes | None]]:
    with _open_parquet(path) as file:
        schema = file.schema_arrow
        paths = field_paths(schema.names, fields, str(path))
        for field in paths:
            _check_column(schema, field, fields, str(path))
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(paths)):
            yield from zip(*(_texts(batch, field) for field in paths), strict=True)


@contextmanager
def _open_parquet(path: Path) -> Iterator[Any]:
    import pyarrow
    from pyarrow import parquet

    if path.suffix.lower() in COMPRESSIONS:
        raise DataError(
            f"{path}: a Parquet file is compressed inside, and cannot be read through {path.suffix}",
            hint="decompress the file",
        )
    with open_regular_file(path) as stream:
        try:
            yield parquet.ParquetFile(stream)
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: not a Parquet file, or a damaged one: {error}") from error


def _check_column(schema: Any, path: str, fields: Fields, where: str) -> None:
    import pyarrow

    kind: Any = pyarrow.struct(list(schema))
    for name in [path] if path in schema.names else path.split("."):
        names = [kind.field(number).name for number in range(kind.num_fields)]
        if not pyarrow.types.is_struct(kind) or name not in names:
            raise unknown_field(path, names or schema.names, fields, where)
        kind = kind.field(name).type
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
        raise DataError(
            f"{where}: column {path} holds {kind}, where text is expected",
            hint=f"set {fields.setting}.source_field and .target_field; columns: {', '.join(schema.names)}",
        )


def _texts(batch: Any, path: str) -> list[bytes | None]:
    import pyarrow
    from pyarrow import compute

    names = [path] if path in batch.schema.names else path.split(".")
    column = batch.column(names[0])
    for name in names[1:]:
        column = compute.struct_field(column, name)
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    # As bytes, because text in a Parquet file may be invalid UTF-8.
    texts: list[bytes | None] = column.cast(pyarrow.large_binary()).to_pylist()
    return texts


# A JSON file that is one array of objects, read item by item, so that memory does not grow with the file.


_BLANK = re.compile(r"[ \t\r\n]*")
_MAX_ITEM_CHARACTERS = 4 * MAX_LINE_BYTES


def is_json_array(path: Path, encoding: str | None = None) -> bool:
    """Whether the first character of a file, after white space, opens an array."""
    for chunk in read_text_chunks(path, encoding):
        if text := chunk.lstrip():
            return text.startswith(b"[")
    return False


def array_items(path: Path, encoding: str | None = None) -> Iterator[Any]:
    """The items of the array that a file holds; bytes that are not UTF-8 become surrogates.

    Raises:
        DataError: the file is not one whole array.
    """
    text = _Text(path, encoding)
    text.take("[")
    number = 0
    if text.next_character() == "]":
        text.take("]")
    else:
        while number == 0 or text.take(",]", number) == ",":
            number += 1
            yield text.take_value(number)
    if text.next_character():
        raise DataError(f"{path}: text after the end of the array", hint="remove it")


class _Text:
    """The text of a file, read piece by piece; only the part that is not consumed yet is kept."""

    def __init__(self, path: Path, encoding: str | None) -> None:
        self._path = path
        self._chunks = read_text_chunks(path, encoding)
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._json = json.JSONDecoder()
        self._text = ""
        self._position = 0

    def next_character(self) -> str:
        """The next character that is no white space; empty at the end of the file."""
        while True:
            blank = _BLANK.match(self._text, self._position)
            self._position = blank.end() if blank else self._position
            if self._position < len(self._text) or not self._read_on():
                return self._text[self._position : self._position + 1]

    def take(self, characters: str, number: int = 0) -> str:
        """Consume the next character, which must be one of these."""
        found = self.next_character()
        if not found or found not in characters:
            expected = " or ".join(characters)
            problem = f"{found!r}" if found else "the end of the file: it is cut short"
            raise DataError(f"{self._path}: after item {number} of the array: {expected} is expected, found {problem}")
        self._position += 1
        return found

    def take_value(self, number: int) -> Any:
        """Consume the next JSON value, which may span several pieces of the file."""
        self.next_character()
        while True:
            try:
                value, self._position = self._json.raw_decode(self._text, self._position)
                return value
            except (ValueError, RecursionError) as error:
                # An item that is cut off by the end of the piece becomes whole with the next piece.
                is_short = len(self._text) - self._position <= _MAX_ITEM_CHARACTERS
                if isinstance(error, ValueError) and is_short and self._read_on():
                    continue
                reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
                raise DataError(f"{self._path}: item {number} of the array is not JSON: {reason}") from error

    def _read_on(self) -> bool:
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self._text = self._text[self._position :] + self._decoder.decode(chunk)
        self._position = 0
        return True


# Folders that the `datasets` library wrote with `save_to_disk`: recognising them, and reading their rows.


_SAVED_ROWS_AT_ONCE = 1000


def saved_splits(folder: Path) -> list[str] | None:
    """The splits of a saved DatasetDict; an empty list for a saved Dataset; None for any other folder."""
    if (folder / "dataset_dict.json").is_file():
        return sorted(path.name for path in folder.iterdir() if saved_splits(path) == [])
    names = ("state.json", "dataset_info.json")
    return [] if all((folder / name).is_file() for name in names) else None


def saved_files(folder: Path) -> list[Path]:
    """The files of a data set in a folder, sorted, without hidden ones."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part[0] == "." for part in path.relative_to(folder).parts)
    )


def load_saved(folder: Path, split: str) -> Any:
    """The `datasets.Dataset` of a split, or of a slice such as train[:10%].

    Raises:
        ValueError: there is no such split.
    """
    import datasets

    saved = datasets.load_from_disk(str(folder))
    if not isinstance(saved, dict):
        # A Dataset may store the name of its split; otherwise it is used as the requested split.
        name = str(saved.split) if saved.split else split.partition("[")[0].strip()
        saved = {name: saved}
    sizes = {name: len(rows) for name, rows in saved.items()}
    parts = [
        saved[part.splitname].select(range(part.from_ or 0, _end(part.to, sizes[part.splitname])))
        for part in datasets.ReadInstruction.from_spec(split).to_absolute(sizes)
    ]
    return datasets.concatenate_datasets(parts)


def rows_of_dataset(rows: Any) -> Iterator[Mapping[str, Any]]:
    """Each row of a `datasets.Dataset`, or of a streamed one."""
    for batch in rows.iter(batch_size=_SAVED_ROWS_AT_ONCE):
        for values in zip(*batch.values(), strict=True):
            yield dict(zip(batch, values, strict=True))


def pairs_of_records(rows: Iterator[Mapping[str, Any]], fields: Fields, name: str) -> Iterator[RawPair]:
    """The two sides of each row.

    Raises:
        DataError: a field is missing, or does not hold text.
    """
    paths: tuple[str, str] | None = None
    for number, row in enumerate(rows, start=1):
        paths = paths or field_paths(list(row), fields, name)
        yield RawPair.limited(number, *(value_at(row, path, f"{name}:{number}") for path in paths))


def read_saved(folder: Path, fields: Fields) -> Iterator[RawPair]:
    """The pairs of a saved Dataset.

    Raises:
        DataError: a file of the folder is damaged, or a field is missing.
    """
    import datasets

    try:
        yield from pairs_of_records(rows_of_dataset(datasets.load_from_disk(str(folder))), fields, str(folder))
    except DataError:
        raise
    except Exception as error:  # the library raises many types, those of Arrow included
        raise DataError(f"{folder}: a saved data set that cannot be read: {error}") from error


def _end(number: int | None, size: int) -> int:
    return size if number is None else number
