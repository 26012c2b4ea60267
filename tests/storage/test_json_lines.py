"""metrics.jsonl and its like survive being cut off anywhere, and hold no step twice (C11)."""

import errno
import json
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from transformer_cli.process.errors import StorageError, TryAgainError
from transformer_cli.storage import append_json_line, cut_json_lines, read_json_lines
from transformer_cli.storage.writing import MAX_LINE_BYTES, broken_json_lines

from ..faults import FailingFileSystem


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.jsonl"
    for step in (1, 2, 3):
        append_json_line(path, {"step": step, "text": "più\n", "loss": step / 3})
    return path


def steps(path: Path) -> list[int]:
    return [record["step"] for record in read_json_lines(path)]


def test_lines_that_are_left_out_are_counted(path: Path) -> None:
    assert list(broken_json_lines(path)) == []
    long = b'"' + b"x" * (2 * MAX_LINE_BYTES) + b'"'
    with path.open("ab") as file:
        file.write(b"[]\n" + long + b'\n{"step": 4}\n{"step": 5}')
    assert (steps(path), list(broken_json_lines(path))) == ([1, 2, 3, 4], [4, 5, 7])


def test_what_is_appended_is_read(path: Path) -> None:
    assert list(read_json_lines(path)) == [{"step": step, "text": "più\n", "loss": step / 3} for step in (1, 2, 3)]
    assert len(path.read_bytes().splitlines()) == 3


def test_wherever_the_file_is_cut_off_whole_lines_are_read_and_appending_goes_on(
    path: Path,
) -> None:
    data = path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(data) if byte == ord("\n")]
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        whole = [step for step, end in enumerate(ends, start=1) if end <= size]
        assert steps(path) == whole
        append_json_line(path, {"step": 9})
        assert steps(path) == [*whole, 9]


def test_a_resumed_run_holds_no_step_twice(path: Path) -> None:
    append_json_line(path, {"note": "without a step"})
    assert cut_json_lines(path, after_step=2) == 1
    for step in (3, 4):
        append_json_line(path, {"step": step})
    assert [record.get("step") for record in read_json_lines(path)] == [1, 2, None, 3, 4]


def test_cutting_changes_nothing_where_there_is_nothing_to_cut(path: Path) -> None:
    before = path.stat().st_mtime_ns
    assert cut_json_lines(path, after_step=3) == 0
    assert path.stat().st_mtime_ns == before
    assert cut_json_lines(path.with_name("missing"), after_step=3) == 0


def test_lines_that_are_no_objects_are_left_out(path: Path) -> None:
    path.write_bytes(b'{"step": 1}\n[1]\n\xff\xfe\nnull\n' + b"[" * 100_000 + b'\n{"step": 2}\n')
    assert steps(path) == [1, 2]


def test_numbers_that_are_not_finite_become_null(path: Path) -> None:
    append_json_line(path, {"step": 4, "loss": float("nan"), "deep": [{"x": float("inf")}, 1.5]})
    line = path.read_text().splitlines()[-1]
    assert json.loads(line, parse_constant=pytest.fail) == {
        "step": 4,
        "loss": None,
        "deep": [{"x": None}, 1.5],
    }


def test_a_full_disk_leaves_whole_lines(path: Path) -> None:
    with pytest.raises(TryAgainError, match=r"metrics\.jsonl: No space left"):
        append_json_line(path, {"step": 4}, fs=FailingFileSystem("write", 1, errno.ENOSPC))
    assert path.read_bytes().endswith(b"\n")
    append_json_line(path, {"step": 5})
    assert steps(path) == [1, 2, 3, 5]


def test_a_failing_disk_is_an_error(path: Path) -> None:
    with pytest.raises(StorageError, match="Input/output error"):
        append_json_line(path, {"step": 4}, fs=FailingFileSystem("write", 1, errno.EIO))


@pytest.mark.long
def test_a_line_without_an_end_needs_no_memory_and_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with path.open("wb") as file:
        file.write(b'{"step": 1}\n{"step": ')
        file.truncate(1 << 28)  # zeros that take no place on the disk
        file.seek(0, 2)
        file.write(b'\n{"step": 2}\n')
    tracemalloc.start()
    records = list(islice(read_json_lines(path), 2))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert records == [{"step": 1}, {"step": 2}]
    assert peak < 20 * MAX_LINE_BYTES
