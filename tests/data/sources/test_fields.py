import pytest

from transformer_cli.data.sources.tables import Fields, field_paths, kind_of, value_at
from transformer_cli.process.errors import DataError

DEFAULTS = Fields(None, None, "en", "it", "data.corpora.0")


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        (["id", "translation"], ("translation.en", "translation.it")),
        (["it", "id", "en"], ("en", "it")),
        (["en", "translation", "it"], ("translation.en", "translation.it")),
        (["a", "b", "c"], ("a", "b")),
        (["en", "b"], ("en", "b")),
    ],
)
def test_without_names_fields_are_found_by_what_rows_usually_have(names: list[str], paths: tuple[str, str]) -> None:
    assert field_paths(names, DEFAULTS, "a.jsonl") == paths


def test_one_name_leaves_the_default_of_the_other_side() -> None:
    fields = DEFAULTS._replace(source="text")
    assert field_paths(["text", "translation"], fields, "a.jsonl") == ("text", "translation.it")


def test_a_side_that_is_named_as_the_default_of_the_other_is_an_error() -> None:
    with pytest.raises(DataError, match="field a is both source and target") as caught:
        field_paths(["a", "b"], DEFAULTS._replace(target="a"), "a.jsonl")
    assert "data.corpora.0.source_field" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("row", "path", "text"),
    [
        ({"a": "x"}, "a", b"x"),
        ({"a": {"b": {"c": "citt\u00e0"}}}, "a.b.c", "città".encode()),
        ({"a.b": "x", "a": {"b": "y"}}, "a.b", b"x"),
        ({"a": None}, "a", b""),
    ],
)
def test_a_path_leads_to_text(row: dict[str, object], path: str, text: bytes) -> None:
    assert value_at(row, path, "a.jsonl:1") == text


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"b": "x", "c": "y"}, r"no field a\.b, found b, c"),
        ({"a": {"c": "x"}}, r"no field a\.b, found c"),
        ({"a": "x"}, r"no field a\.b, found text"),
        ({"a": None}, r"no field a\.b, found null"),
        ({"a": {"b": 1.5}}, r"field a\.b holds a number, where text is expected"),
        ({"a": {"b": True}}, r"field a\.b holds true or false, where text is expected"),
        ({"a": {"b": ["x"]}}, r"field a\.b holds a list, where text is expected"),
    ],
)
def test_a_path_that_leads_nowhere_stops_with_the_row_and_what_is_there(row: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=rf"^a\.jsonl:3: {message}"):
        value_at(row, "a.b", "a.jsonl:3")


def test_every_kind_of_value_has_a_word() -> None:
    values = [None, True, 1, 1.5, "x", [], {}]
    assert [kind_of(value) for value in values] == [
        *("null", "true or false", "a number", "a number", "text", "a list", "an object")
    ]


def test_fields_that_are_chosen_by_their_place_while_others_are_not_used_give_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for number in range(2):
        field_paths(["id", "text", "score"], DEFAULTS._replace(setting="x"), f"some.jsonl:{number}")
    [warning] = [record.getMessage() for record in caplog.records]
    assert warning.startswith("some.jsonl: the source is column 0 ('id')")
    assert "not used: 2 ('score')" in warning
    caplog.clear()
    field_paths(["id", "en", "it"], DEFAULTS, "b.jsonl:1")
    field_paths(["a", "b"], DEFAULTS, "c.jsonl:1")
    assert not caplog.records
