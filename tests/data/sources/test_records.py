import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from transformer_cli.data.sources.lines import MAX_LINE_BYTES, RawPair
from transformer_cli.data.sources.records import read_jsonl, read_parquet
from transformer_cli.data.sources.tables import Fields
from transformer_cli.process.errors import DataError


def _fields(source: int | str | None = None, target: int | str | None = None) -> Fields:
    return Fields(source, target, "en", "it", "data.corpora.0")


def _json(folder: Path, content: str | bytes, fields: Fields | None = None) -> list[RawPair]:
    path = folder / "a.jsonl"
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return list(read_jsonl(path, fields or _fields()))


def _parquet(folder: Path, columns: dict[str, Any], fields: Fields | None = None) -> list[RawPair]:
    path = folder / "a.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    return list(read_parquet(path, fields or _fields()))


ROWS: list[tuple[dict[str, Any], Fields]] = [
    ({"translation": {"it": "mare", "en": "sea"}, "id": 7}, _fields()),
    ({"id": 7, "it": "mare", "en": "sea"}, _fields()),
    ({"a": "sea", "b": "mare", "c": 7}, _fields()),
    ({"c": 7, "b": "mare", "a": "sea"}, _fields("a", "b")),
    ({"x": {"y": {"z": "sea"}}, "w": "mare"}, _fields("x.y.z", "w")),
    ({"x.y": "sea", "x": {"y": "wrong"}, "w": "mare"}, _fields("x.y", "w")),
]


@pytest.mark.parametrize(("row", "fields"), ROWS)
def test_json_fields_are_found_by_path_and_by_default(row: dict[str, Any], fields: Fields, tmp_path: Path) -> None:
    assert _json(tmp_path, json.dumps(row), fields) == [RawPair(1, b"sea", b"mare")]


@pytest.mark.parametrize(("row", "fields"), ROWS[:5])
def test_parquet_columns_are_found_by_path_and_by_default(row: dict[str, Any], fields: Fields, tmp_path: Path) -> None:
    columns = {name: [value] * 3 for name, value in row.items()}
    assert _parquet(tmp_path, columns, fields) == [RawPair(line, b"sea", b"mare") for line in (1, 2, 3)]


def test_blank_lines_are_empty_pairs_and_long_ones_are_left_out_in_their_place(
    tmp_path: Path,
) -> None:
    good = b'{"en": "sea", "it": "mare"}'
    content = good + b"\n \r\n" + b"x" * (MAX_LINE_BYTES + 1) + b"\n" + good
    assert _json(tmp_path, content) == [
        RawPair(1, b"sea", b"mare"),
        RawPair(2, b"", b""),
        RawPair(3, None, None),
        RawPair(4, b"sea", b"mare"),
    ]


def test_bytes_that_are_not_utf_8_come_out_as_they_are(tmp_path: Path) -> None:
    content = b'{"en": "sea", "it": "citt\xe0"}\n{"en": "\\ud83d", "it": "\\ud83d\\ude00"}'
    first, second = _json(tmp_path, content)
    assert first == RawPair(1, b"sea", b"citt\xe0")
    assert second == RawPair(2, b"\xed\xa0\xbd", "😀".encode())  # half of a pair is no UTF-8


def test_null_is_empty_text(tmp_path: Path) -> None:
    assert _json(tmp_path, '{"en": null, "it": "mare"}') == [RawPair(1, b"", b"mare")]
    assert _parquet(tmp_path, {"en": ["a", None], "it": [None, "b"]}) == [
        RawPair(1, b"a", b""),
        RawPair(2, b"", b"b"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1, 2]", "a list, where a JSON object is expected"),
        ('"sea"', "text, where a JSON object is expected"),
        ("{", "not a JSON object"),
        ('{"en": "a", "it": "b"},', "not a JSON object"),
        ('{"en": 1e999999, "it": ' + "1" * 5000 + "}", "not a JSON object"),
        ("[" * 200_000, "not a JSON object: nested too deeply"),
        ('{"en": 7, "it": "b"}', "field en holds a number, where text is expected"),
        ('{"en": "a", "it": {"x": "b"}}', "field it holds an object, where text is expected"),
        ('{"en": "a", "is": "b"}', "no field it, found en, is"),
    ],
)
def test_a_line_that_is_no_pair_stops_with_its_number(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"a\.jsonl:2: {message}"):
        _json(tmp_path, '{"en": "sea", "it": "mare"}\n' + line)


def test_a_column_that_does_not_exist_is_an_error_that_names_those_found(tmp_path: Path) -> None:
    fields = _fields("english", "italiano")
    message = "no column italiano, found english, italian"
    with pytest.raises(DataError, match=message) as in_json:
        _json(tmp_path, '{"english": "a", "italian": "b"}', fields)
    with pytest.raises(DataError, match=message) as in_parquet:
        _parquet(tmp_path, {"english": ["a"], "italian": ["b"]}, fields)
    for caught in (in_json, in_parquet):
        assert "did you mean italian?" in str(caught.value.hint)


def test_a_missing_part_of_a_path_is_an_error_that_names_its_neighbours(tmp_path: Path) -> None:
    row = {"translation": {"en": "sea", "fr": "mer"}}
    with pytest.raises(DataError, match=r"no field translation\.it, found en, fr"):
        _json(tmp_path, json.dumps(row))
    with pytest.raises(DataError, match=r"no column translation\.it, found en, fr"):
        _parquet(tmp_path, {"translation": [row["translation"]]})
    with pytest.raises(DataError, match=r"no column en\.text"):
        _parquet(tmp_path, {"en": ["a"], "it": ["b"]}, _fields("en.text", "it"))


def test_columns_by_number_one_column_and_one_column_twice_are_errors(tmp_path: Path) -> None:
    row = '{"en": "sea", "it": "mare"}'
    with pytest.raises(DataError, match="must be given by name, not by number"):
        _json(tmp_path, row, _fields(0, 1))
    with pytest.raises(DataError, match="one column only, en, where two are needed"):
        _json(tmp_path, '{"en": "sea"}')
    with pytest.raises(DataError, match="field en is both source and target"):
        _json(tmp_path, row, _fields("en", "en"))


def test_a_parquet_column_must_hold_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="column id holds int64, where text is expected") as caught:
        _parquet(tmp_path, {"id": [1], "text": ["a"]})
    assert "columns: id, text" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
def test_every_kind_of_parquet_text_is_read(kind: str, tmp_path: Path) -> None:
    text = pyarrow.array(["città", "sì"] * 2000)
    column = text.dictionary_encode() if kind == "dictionary" else text.cast(kind)
    pairs = _parquet(tmp_path, {"en": column, "it": column})
    assert [pair.line_number for pair in pairs] == list(range(1, 4001))
    assert {(pair.source, pair.target) for pair in pairs} == {
        ("città".encode(),) * 2,
        ("sì".encode(),) * 2,
    }


def test_damaged_and_long_text_in_parquet_comes_out_as_in_other_files(tmp_path: Path) -> None:
    damaged = pyarrow.array([b"citt\xe0", b"x" * (MAX_LINE_BYTES + 1)]).view(pyarrow.string())
    assert _parquet(tmp_path, {"en": damaged, "it": ["a", "b"]}) == [
        RawPair(1, b"citt\xe0", b"a"),
        RawPair(2, None, b"b"),
    ]


@pytest.mark.parametrize("keep", [0, 3, 8, 100, -1])
def test_a_damaged_parquet_file_is_an_error(keep: int, tmp_path: Path) -> None:
    _parquet(tmp_path, {"en": ["a"] * 1000, "it": ["b"] * 1000})
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole[:keep])
    with pytest.raises(DataError, match="not a Parquet file, or a damaged one"):
        list(read_parquet(tmp_path / "a.parquet", _fields()))


def test_parquet_in_an_archive_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a Parquet file is compressed inside") as caught:
        list(read_parquet(tmp_path / "a.parquet.gz", _fields()))
    assert "decompress the file" in str(caught.value.hint)
