"""How bytes become lines, by line feeds alone, and how many lines a batch has (J4, J5)."""

import bz2
import gzip
import logging
import lzma
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given, reject
from hypothesis import strategies as st

from transformer_cli.commands import input_lines
from transformer_cli.commands.input_lines import LineDecoder, check_input, opened_lines
from transformer_cli.decoding.translator import WINDOW_LINES
from transformer_cli.process.errors import DataError, MissingInputError, StorageError

pieces = st.sampled_from(
    [
        b"a",
        b"\n",
        b"\r",
        b"\r\n",
        b"\xff",
        b"\xc3",
        b"\xc3\xa8",
        b"\x00",
        b"\xef\xbb\xbf",
        "\u2028".encode(),
        b"\x85",
        b"\x0b",
        b"\x0c",
        b"\x1e",
        b" ",
    ]
)


def decode(data: bytes) -> list[str]:
    """The lines that a file with this content has."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.seek(0)
        with opened_lines(Path(f"/dev/fd/{file.fileno()}")) as batches:
            return [line for batch in batches for line in batch]


@pytest.mark.long
@given(st.lists(pieces, max_size=12).map(b"".join) | st.binary(max_size=40))
@example(b"")
@example(b"\n")
@example(b"no last newline")
def test_there_are_as_many_lines_as_line_feeds_say(data: bytes) -> None:
    try:
        lines = decode(data)
    except DataError as error:
        if "text" not in error.message and "old Mac" not in error.message:
            raise
        reject()  # bytes with which compressed files begin, others that are no text, and lines of old Macs
    assert len(lines) == data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))
    expected = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for line, raw in zip(lines, expected, strict=False):
        assert line == raw.decode("utf-8", errors="replace")  # a carriage return stays


def test_only_a_byte_order_mark_at_the_beginning_is_taken_away() -> None:
    assert decode(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n") == ["a", "\ufeffb"]


def test_replaced_bytes_are_told_once_for_all(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="transformer_cli"):
        assert decode(b"\xff\nfine\n\xfe\n") == ["\ufffd", "fine", "\ufffd"]
    (record,) = caplog.records
    told = record.getMessage()
    assert ": the bad bytes of lines that are not UTF-8 were replaced; number of lines: 2; " in told
    assert told.endswith("--encoding windows-1252, or convert it first: iconv -f WINDOWS-1252 -t UTF-8")


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_utf_16_is_told_once_and_as_soon_as_it_comes(mark: bytes, caplog: pytest.LogCaptureFixture) -> None:
    decoder = LineDecoder("x.txt")
    assert decoder.decode(b"fine") == "fine"
    assert not caplog.records
    assert decoder.decode(mark + b"a") == "\ufffd\ufffda"
    (record,) = caplog.records
    assert record.getMessage().startswith("x.txt:2: UTF-16 text, where UTF-8 is expected")
    assert "iconv -f UTF-16 -t UTF-8" in record.getMessage()
    assert decoder.decode(mark + b"b") == "\ufffd\ufffdb"
    decoder.finish()
    assert "UTF-16" not in "".join(record.getMessage() for record in caplog.records[1:])


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 2, 7])
@given(data=st.lists(pieces, max_size=12).map(b"".join))
def test_pieces_may_be_cut_anywhere(size: int, data: bytes) -> None:
    cut = [data[start : start + size] for start in range(0, len(data), size)]
    found = [line for batch in input_lines._batches(cut, lambda _: True) for line in batch]
    expected = data.split(b"\n")
    assert found == (expected if expected[-1] else expected[:-1])


@contextmanager
def piped() -> Iterator[tuple[int, Path]]:
    """The writing end of a pipe, and a path of its reading end."""
    reader, writer = os.pipe()
    try:
        yield writer, Path(f"/dev/fd/{reader}")
    finally:
        os.close(reader)


def test_a_line_is_there_before_the_next_one_is_written() -> None:
    with piped() as (writer, path), opened_lines(path) as batches:
        for number in range(3):
            os.write(writer, f"line {number}\n".encode())
            assert next(batches) == [f"line {number}"]
        os.write(writer, b"a line without its end")
        os.close(writer)
        assert [*batches] == [["a line without its end"]]


def test_the_beginning_of_a_line_does_not_hold_back_the_line_before_it() -> None:
    with piped() as (writer, path), opened_lines(path) as batches:
        os.write(writer, b"one\ntw")
        assert next(batches) == ["one"]
        os.write(writer, b"o\n")
        assert next(batches) == ["two"]
        os.close(writer)
        assert [*batches] == []


def test_lines_that_come_fast_are_one_batch() -> None:
    num_lines = 2 * WINDOW_LINES + 1
    with piped() as (writer, path), opened_lines(path) as batches:

        def write() -> None:
            with os.fdopen(writer, "w") as file:
                file.writelines(f"{number}\n" for number in range(num_lines))

        thread = threading.Thread(target=write)
        thread.start()
        found = [*batches]
        thread.join()
    assert [line for batch in found for line in batch] == [*map(str, range(num_lines))]
    assert max(map(len, found)) == WINDOW_LINES
    assert len(found) <= 5, "on a busy machine the writer may pause"


def test_a_line_is_not_held_back_for_ever_by_the_lines_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program that writes a line each 40 ms never pauses for 50 ms."""
    now = 0.0

    def more_comes(seconds: float) -> bool:
        nonlocal now
        now += 0.04
        return True

    monkeypatch.setattr(time, "monotonic", lambda: now)
    batches = [*input_lines._batches([b"line\n"] * 100, more_comes)]
    assert sum(map(len, batches)) == 100
    assert max(map(len, batches)) <= 1 + input_lines.LONGEST_WAIT_SECONDS / 0.04


def test_the_time_in_which_a_batch_is_translated_does_not_make_the_next_one_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    piece = b"line\n" * (WINDOW_LINES + 500)
    sizes = []
    for batch in input_lines._batches([piece, piece, piece], lambda _: True):
        sizes.append(len(batch))
        now += 60
    assert sizes == [WINDOW_LINES] * 3 + [1500]


def test_a_file_has_full_batches(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("x\n" * (2 * WINDOW_LINES + 5))
    for name in (path, None):
        with (
            path.open("rb") as file,
            opened_lines(name or Path(f"/dev/fd/{file.fileno()}")) as batches,
        ):
            assert [len(batch) for batch in batches] == [WINDOW_LINES, WINDOW_LINES, 5]


def test_a_pipe_that_another_program_set_to_non_blocking_is_waited_for() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with opened_lines(Path(f"/dev/fd/{reader}")) as batches:
        timer = threading.Timer(0.1, lambda: (os.write(writer, b"late\n"), os.close(writer)))
        timer.start()
        assert [*batches] == [["late"]]
        timer.join()
    os.close(reader)


def test_a_named_pipe_waits_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    check_input(tmp_path / "pipe")
    thread = threading.Timer(0.1, (tmp_path / "pipe").write_text, ("one\ntwo\n",))
    thread.start()
    with opened_lines(tmp_path / "pipe") as batches:
        assert [line for batch in batches for line in batch] == ["one", "two"]
    thread.join()


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}
each_compression = pytest.mark.parametrize("suffix", COMPRESS)


def lines_of(path: Path) -> list[str]:
    check_input(path)
    with opened_lines(path) as batches:
        return [line for batch in batches for line in batch]


@each_compression
@pytest.mark.parametrize("text", ["", "perché\nno\n", "no last line end"])
def test_a_compressed_file_is_read_as_its_text(tmp_path: Path, suffix: str, text: str) -> None:
    path = tmp_path / f"in.txt{suffix}"
    path.write_bytes(COMPRESS[suffix](text.encode()))
    (tmp_path / "link.txt").symlink_to(path.name)
    path.with_name("plain.txt").write_bytes(path.read_bytes())
    for name in (path.name, "link.txt", "plain.txt"):
        assert lines_of(tmp_path / name) == text.splitlines()


@pytest.mark.long
@each_compression
def test_a_compressed_file_that_is_cut_or_damaged_is_told(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"in.txt{suffix}"
    noise = random.Random(1).randbytes(300_000).hex().encode()
    data = COMPRESS[suffix](noise)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"in\.txt\.\w+: cut short"):
        lines_of(path)
    path.write_bytes(b"no such data")
    with pytest.raises(DataError, match=f"its name ends in {suffix}, but it does not hold"):
        lines_of(path)


def test_utf_16_in_a_compressed_file_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "in.txt.gz"
    path.write_bytes(gzip.compress("Hello\n".encode("utf-16")))
    with pytest.raises(DataError, match=r"in\.txt\.gz: UTF-16 text"):
        check_input(path)


def _refusals(data: bytes, tmp_path: Path) -> list[str]:
    """What is said of a text in a file and of the same text in a pipe, without their names."""
    (tmp_path / "in").write_bytes(data)
    refusals = []
    with piped() as (writer, pipe):
        os.write(writer, data)
        os.close(writer)
        for path in (tmp_path / "in", pipe):
            with pytest.raises(DataError) as refused:
                lines_of(path)
            assert refused.value.hint is not None
            refusals.append(refused.value.message.removeprefix(f"{path}: "))
    return refusals


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_in_a_pipe_is_refused_as_in_a_file(encoding: str, tmp_path: Path) -> None:
    found = _refusals("The dog is big.\nThe cat is small.\n".encode(encoding), tmp_path)
    assert found == ["UTF-16 text, where UTF-8 is expected"] * 2


@pytest.mark.parametrize("text", [b"One.\rTwo.\r", b"One.\rTwo.\rThree.\rFour."])
def test_line_ends_of_old_macs_are_refused_in_a_file_and_in_a_pipe(text: bytes, tmp_path: Path) -> None:
    cause = "its line ends are carriage returns (old Mac), where line feeds are expected"
    assert _refusals(text, tmp_path) == [cause] * 2


@pytest.mark.parametrize("text", [b"One.\r", b"One.\rtwo", b"\r\r", b"One.\rTwo.\r\n", b"a\rb\rc\r\nd"])
def test_a_few_carriage_returns_are_no_line_ends(text: bytes) -> None:
    assert len(decode(text)) == 1 + text.count(b"\nd")


def test_the_hint_for_a_pipe_names_a_command_that_can_be_run() -> None:
    with piped() as (writer, path):
        os.write(writer, b"\xff\xfeH\0i\0\n\0")
        os.close(writer)
        with pytest.raises(DataError) as refused:
            lines_of(path)
    assert "iconv -f UTF-16 -t UTF-8 FILE > new file" in str(refused.value.hint)


BINARY = {
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xff\xfe" + bytes(range(256)), "not text but a picture"),
    "parquet": (b"PAR1\x15\x04\x15\xd0\0\0", "a Parquet file"),
    "a workbook": (b"PK\x03\x04\x14\0\x08\0\xff", "a zip archive, or a document"),
    "rich text": (b"{\\rtf1\\ansi Hello}", "Rich Text Format"),
}


@pytest.mark.parametrize("name", BINARY)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, name: str) -> None:
    content, says = BINARY[name]
    (tmp_path / "in").write_bytes(content)
    with pytest.raises(DataError, match=says):
        check_input(tmp_path / "in")


@pytest.mark.parametrize(
    "content",
    [BINARY["a picture"][0], *(c(b"text\n") for c in COMPRESS.values())],
    ids=["a picture", *COMPRESS],  # compressed data has the time in it
)
def test_a_stream_that_is_no_text_is_refused(content: bytes) -> None:
    with piped() as (writer, path), opened_lines(path) as batches:
        os.write(writer, content)
        os.close(writer)
        with pytest.raises(DataError, match=r"(binary|compressed) data.* where text"):
            next(batches)


def test_text_with_a_zero_byte_or_with_a_bad_byte_is_text(tmp_path: Path) -> None:
    for content in (b"1 \x00 2\n", b"1 \xff 2\n", "è".encode() * 4000, b"a" + "è".encode() * 4000):
        (tmp_path / "in").write_bytes(content)
        check_input(tmp_path / "in")
        decode(content)


def test_a_file_that_changes_while_it_is_read_is_told_and_read_to_its_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "in.txt"
    path.write_text("line\n" * WINDOW_LINES * 40)
    with opened_lines(path) as batches:
        num_lines = len(next(batches))
        with path.open("a") as file:
            file.write("one more\n")
        num_lines += sum(map(len, batches))
    assert num_lines == WINDOW_LINES * 40 + 1
    assert "in.txt: changed while it was read" in caplog.text


def test_a_descriptor_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    writer = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    with (
        opened_lines(Path(f"/dev/fd/{writer}")) as batches,
        pytest.raises(StorageError, match=f"/dev/fd/{writer}: cannot be read: "),
    ):
        next(batches)
    os.close(writer)
    with pytest.raises(MissingInputError, match="/dev/fd/999: cannot be read: Bad file descriptor"):
        check_input(Path("/dev/fd/999"))
