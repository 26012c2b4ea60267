"""The dump of the interface: shapes of JSON, texts without the layout of the package, and the comparison."""

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from . import dump_interface
from .dump_interface import (
    REFERENCE,
    allowed_differences,
    as_lines,
    differences,
    entry,
    key_paths,
    parsed_json,
    shape_of,
    tensors_in,
)


def test_key_paths_name_every_key_and_the_kinds_of_its_values() -> None:
    value = {"text": "a", "tokens": [{"p": 0.5, "id": None}, {"p": 1}], "done": True, "none": []}
    assert key_paths(value) == {
        "text": {"string"},
        "tokens": {"array"},
        "tokens[]": {"object"},
        "tokens[].p": {"number"},
        "tokens[].id": {"null"},
        "done": {"boolean"},
        "none": {"array"},
    }


def test_a_key_that_only_some_lines_have_is_marked() -> None:
    assert shape_of([{"a": 1}, {"a": None, "b": ""}]) == {"a": "null|number", "b": "string (not always)"}


def test_json_is_one_value_or_one_per_line() -> None:
    assert parsed_json('{\n "a": 1\n}\n') == [{"a": 1}]
    assert parsed_json('{"a": 1}\n{"a": 2}\n') == [{"a": 1}, {"a": 2}]


def test_the_place_of_a_class_is_not_part_of_a_signature() -> None:
    def before(config: "transformer_cli.config.tree.Config", *, n: int = 1) -> "list[a.b.Line]": ...  # type: ignore[name-defined]  # noqa: F821
    def after(config: "transformer_cli.settings.Config", *, n: int = 1) -> "list[c.Line]": ...  # type: ignore[name-defined]  # noqa: F821
    def other(config: "transformer_cli.settings.Config", *, n: int = 2) -> "list[c.Line]": ...  # type: ignore[name-defined]  # noqa: F821

    assert dump_interface._signature(before) == dump_interface._signature(after)
    assert dump_interface._signature(before) != dump_interface._signature(other)


class Inner(BaseModel):
    depth: int = 2
    """How deep."""


class Outer(BaseModel):
    inner: Inner
    width: int = 3
    """How wide,
    in words."""


def test_settings_are_paths_with_their_sentences_whatever_their_class_is_called() -> None:
    schema = Outer.model_json_schema()
    classes = {one.__name__: one for one in dump_interface._models_in(Outer, set())}
    found = {
        one["what"]: one["value"] for one in dump_interface._settings_of(schema, schema["$defs"], classes, "", Outer)
    }
    assert found["setting: width"] == {
        "default": 3,
        "type": "integer",
        "required": False,
        "sentence": "How wide,\nin words.",
    }
    assert found["setting: inner.depth"]["sentence"] == "How deep."
    assert "Inner" not in json.dumps(found)


def test_a_difference_says_what_is_gone_new_or_changed() -> None:
    before = as_lines([entry("a", 1), entry("b", {"x": [1, 2], "y": 0}), entry("c", 0)])
    now = as_lines([entry("b", {"x": [1, 3], "y": 0}), entry("c", 0), entry("d", 0)])
    assert differences(before, before, ()) == []
    assert differences(before, now, ()) == [
        "gone     a",
        "changed  b\n    x - 2\n    x + 3",
        "new      d",
    ]


def test_an_allowed_difference_needs_a_reason_and_matches_whole_names() -> None:
    before, now = as_lines([entry("run: a [b] --json", 1)]), as_lines([])
    assert differences(before, now, allowed_differences("# comment\nrun: a [b]*  # wanted\n")) == []
    assert differences(before, now, allowed_differences("a [b]*  # another name\n")) != []
    with pytest.raises(SystemExit, match="line 1: no reason"):
        allowed_differences("run: a*\n")


def test_two_lines_of_one_name_are_a_fault_of_the_dump() -> None:
    with pytest.raises(AssertionError, match="twice"):
        as_lines([entry("twice", 1), entry("twice", 2)])


def test_tensors_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    header: dict[str, Any] = {
        "a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "__metadata__": {"x": "y"},
    }
    encoded = json.dumps(header).encode()
    (tmp_path / "x").write_bytes(struct.pack("<Q", len(encoded)) + encoded + bytes(8))
    assert tensors_in(tmp_path / "x") == [["b", "F32", [1]], ["a", "F32", [1]]]


def test_the_reference_has_lines_of_every_part_and_every_allowed_difference_a_reason() -> None:
    lines = gzip.decompress(REFERENCE.read_bytes()).decode().splitlines()
    parts = {json.loads(line)["what"].partition(":")[0] for line in lines}
    assert parts >= {
        "command",
        "option",
        "argument",
        "setting",
        "config",
        "error",
        "public name",
        "model",
        "run",
        "mistake",
    }
    allowed_differences(dump_interface.ALLOWED.read_text(encoding="utf-8"))
