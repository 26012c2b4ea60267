"""The walk counter, on a made package of three files."""

import importlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .walk import Counter, by_folder, by_function, num_lines, part_of, write_docx

FIRST = """\
import threading
from made.inner import second


def go():
    from made import third

    thread = threading.Thread(target=second.work)
    thread.start()
    thread.join()
    second.through_library(len)


def never():
    pass
"""
SECOND = """\
NAMES = [name for name in "ab"]
from dataclasses import dataclass
from made import first


def work():
    return Value(1)


def through_library(function):
    return sorted([2, 1], key=lambda one: back(one))


def back(one):
    return first_of(one)


def first_of(one):
    return one


@dataclass
class Value:
    number: int
"""
THIRD = """\
class OnlyABody:
    names = [name for name in "ab"]
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    package = tmp_path / "made"
    (package / "inner").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "first": FIRST,
        "inner/__init__": "",
        "inner/second": SECOND,
        "third": THIRD,
    }.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "made"]:
        del sys.modules[name]


def counted(package: Path) -> dict[str, Any]:
    before = sys.getprofile()
    counter = Counter(package)
    counter.install()
    counter.start()
    try:
        importlib.import_module("made.first").go()
    finally:
        counter.stop()
        sys.setprofile(before)
    return counter.result()


def test_only_files_with_a_called_function_count(package: Path) -> None:
    assert counted(package)["files"] == ["first.py", "inner/second.py"]


def test_a_file_of_which_only_the_body_of_a_class_ran_is_counted_apart(package: Path) -> None:
    assert counted(package)["with_classes"] == ["first.py", "inner/second.py", "third.py"]


def test_functions_of_all_threads_count_and_lambdas_are_no_functions(package: Path) -> None:
    names = ["back", "first_of", "through_library", "work"]
    expected = ["first.py:go", *(f"inner/second.py:{name}" for name in names)]
    assert counted(package)["functions"] == expected


def test_each_function_has_its_lines_its_calls_and_its_callers(package: Path) -> None:
    details = counted(package)["details"]
    found = {name: (lines, calls, callers) for _, name, lines, calls, callers in details}
    by_lambda = "inner/second.py:through_library.<locals>.<lambda>"
    assert found["inner/second.py:back"] == (2, 2, [by_lambda])
    assert found["inner/second.py:work"] == (2, 1, ["(outside)"]), "a thread calls it"
    assert by_function(details)[-1].split() == [
        *("2", "2", "1", "inner/second.py:first_of"),
        *("<-", "inner/second.py:back"),
    ]


def test_an_arrow_goes_from_the_file_of_the_caller_to_that_of_the_callee(package: Path) -> None:
    result = counted(package)
    assert result["arrows"] == result["direct_arrows"] == [["first.py", "inner/second.py"]]


def test_a_call_through_a_library_is_an_arrow_but_no_direct_one(package: Path) -> None:
    (package / "inner/second.py").write_text("def back(match):\n    return 'b'\n", encoding="utf-8")
    # The function that `singledispatch` returns is written in Python, and so stands between the two.
    (package / "first.py").write_text(
        "import functools\nfrom made.inner import second\n\n\n"
        "def go():\n    functools.singledispatch(second.back)('a')\n",
        encoding="utf-8",
    )
    result = counted(package)
    assert result["arrows"] == [["first.py", "inner/second.py"]]
    assert result["direct_arrows"] == []


def test_nothing_is_counted_before_the_start(package: Path) -> None:
    counter = Counter(package)
    counter.install()
    try:
        importlib.import_module("made.first").go()
    finally:
        counter.stop()
    assert counter.result()["files"] == []


def test_lines_and_folders_are_those_of_the_files(package: Path) -> None:
    files = ["first.py", "inner/second.py"]
    assert num_lines(package, files) == FIRST.count("\n") + SECOND.count("\n")
    assert by_folder(files) == ["  ./ (1): first.py", "  inner/ (1): second.py"]
    assert part_of(counted(package), "inner/")["files"] == ["inner/second.py"]


def test_the_small_document_holds_its_paragraphs(tmp_path: Path) -> None:
    write_docx(tmp_path / "small.docx", ["one", "two"])
    with zipfile.ZipFile(tmp_path / "small.docx") as archive:
        text = archive.read("word/document.xml").decode()
    assert text.count("<w:p>") == 2
    assert "<w:t>two</w:t>" in text
