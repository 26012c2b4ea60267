"""JSON files that are one array of objects."""

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.data.sources.lines import RawPair
from transformer_cli.data.sources.records import array_items, is_json_array, read_jsonl
from transformer_cli.data.sources.tables import Fields
from transformer_cli.process.errors import DataError

FIELDS = Fields(None, None, "en", "it", "data.corpora.0")


def read(folder: Path, content: str | bytes) -> list[RawPair]:
    path = folder / "a.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_jsonl(path, FIELDS))


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("around", ["", "\n\t ", "\ufeff"])
def test_the_objects_of_an_array_are_pairs(tmp_path: Path, indent: int | None, around: str) -> None:
    rows = [{"en": "sea", "it": "mare"}, {"en": "a\n[b]}", "it": "però"}]
    for shape in (rows, [{"id": 1, "translation": row} for row in rows]):
        text = around + json.dumps(shape, indent=indent, ensure_ascii=False) + around.strip("\ufeff")
        assert read(tmp_path, text) == [
            RawPair(1, b"sea", b"mare"),
            RawPair(2, b"a\n[b]}", "però".encode()),
        ]


def test_an_array_may_be_compressed_and_bad_bytes_come_out_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b'[{"en": "sea", "it": "mar\xff"}]'))
    assert list(read_jsonl(path, FIELDS)) == [RawPair(1, b"sea", b"mar\xff")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.long
@given(st.lists(st.dictionaries(st.text(), JSON, max_size=3)), st.booleans(), st.integers(1, 40))
def test_the_items_are_those_of_the_standard_reader_however_the_file_is_cut(
    items: list[dict[str, Any]], is_ascii: bool, chunk_bytes: int
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer_cli.data.sources.lines.CHUNK_BYTES", chunk_bytes)
        path = Path(folder) / "a.json"
        text = json.dumps(items, ensure_ascii=is_ascii, indent=1)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        assert is_json_array(path)
        assert list(array_items(path)) == json.loads(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"en": "a", "it": "b"}', "after item 1 of the array: , or ] is expected, found the end"),
        ('[{"en": "a", "it": "b"} {', "after item 1 of the array: , or ] is expected, found '{'"),
        ('[{"en": "a", "it": "b"}, {"en', "item 2 of the array is not JSON"),
        ('[{"en": "a", "it": "b"},]', "item 2 of the array is not JSON"),
        ('[{"en": "a", "it": "b"}] x', "text after the end of the array"),
        ('[{"en": "a", "it": "b"}, "c"]', ":2: text, where a JSON object is expected"),
        ('[["a", "b"]]', ":1: a list, where a JSON object is expected"),
        ("[" * 200_000, "item 1 of the array is not JSON: nested too deeply"),
        ('[{"en": "' + "a" * 5_000_000, "item 1 of the array is not JSON"),
    ],
)
def test_an_array_that_is_cut_short_or_damaged_is_an_error(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        read(tmp_path, content)
    assert message in refused.value.message


def test_an_empty_array_has_no_pairs_and_lines_of_objects_are_no_array(tmp_path: Path) -> None:
    assert read(tmp_path, " [ ] ") == []
    assert read(tmp_path, '{"en": "a", "it": "b"}\n') == [RawPair(1, b"a", b"b")]
    assert read(tmp_path, "") == []


@pytest.mark.long
def test_an_array_takes_no_more_memory_than_a_piece_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    row = json.dumps({"en": "a" * 500, "it": "b" * 500})
    path.write_text("[" + ",\n".join([row] * 20_000) + "]", encoding="utf-8")
    tracemalloc.start()
    assert sum(1 for _ in read_jsonl(path, FIELDS)) == 20_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 5
