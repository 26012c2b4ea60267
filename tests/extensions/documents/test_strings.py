"""Which values of a tree are translated."""

import pytest

from transformer_cli.extensions.documents.strings import Path, is_chosen, is_translated


@pytest.mark.parametrize(
    ("path", "pattern", "wanted"),
    [
        (("a",), "a", True),
        (("a", "b"), "a", False),
        (("a", 0, "b"), "a.*.b", True),
        (("a", 0, "b"), "a.0.b", True),
        (("a", 0, "b"), "**.b", True),
        (("b",), "**.b", True),
        (("a", "x", "y", "b"), "a.**", True),
        (("a", "title_en"), "a.title_*", True),
        (("a", "B"), "a.b", False),
        ((), "**", True),
    ],
)
def test_a_pattern_chooses_paths(path: Path, pattern: str, wanted: bool) -> None:
    assert is_chosen(path, [pattern]) is wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("Open", True), ("open the door", True), ("Stop.", True), ("en_US", False), ("menu.open", False),
        ("de-DE", False), ("zh-Hans", False), ("text/html", False), ("Europe/Rome", False), ("app/models/car.rb", False),
        (":year", False), ("rgba(0, 0, 0, .5)", False), ("#a0ff00", False), ("1.5rem", False), ("1.2.3-beta", False),
        ("123e4567-e89b-12d3-a456-426614174000", False), ("and/or", True), ("text / html", True), ("en", True), (":smile: now", True),
        (":thredded.form.create_btn", False), ("--share=network", False), ("-Wall", False), ("- share it", True),
        ("xdg-run/gvfs", False), ("$HOME/bin", False), ("/app/lib/*.so", False), ("*.la", False), ("lib*", False),
        ("*bold*", True), ("Name*", True), ("<b>Open</b>", True), ("Yes/No?", True), ("\u958b/\u95dc", True),
        ("item-2", False), ("camelCase", False), ("12", False), ("", False), ("e-mail", True), ("Wi-Fi", True),
    ],
)  # fmt: skip
def test_without_patterns_names_for_programs_stay(value: str, wanted: bool) -> None:
    assert is_translated(value, ("a",), ()) is wanted


def test_a_pattern_chooses_names_for_programs_too() -> None:
    assert is_translated("en_US", ("a",), ("a",))


@pytest.mark.parametrize(
    ("value", "path", "wanted"),
    [
        ("en", ("locale",), False),
        ("en", ("a", 0, "Language"), False),
        ("English", ("language",), True),
        ("Good day", ("hello",), True),
    ],
)
def test_a_key_tells_what_its_value_is_for(value: str, path: Path, wanted: bool) -> None:
    assert is_translated(value, path, ()) is wanted


def test_a_long_value_is_no_name_for_programs() -> None:
    assert is_translated("a_" * 200_000, ("a",), ())
