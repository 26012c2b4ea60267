"""How bytes become lines: by line feeds alone, and none is lost."""

import io
import logging

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_cli.commands.translate import decoded_lines

pieces = st.sampled_from(
    [b"a", b"\n", b"\r", b"\r\n", b"\xff", b"\xc3", b"\xc3\xa8", b"\x00", b"\xef\xbb\xbf",
     "\u2028".encode(), b"\x85", b"\x0b", b"\x0c", b"\x1e", b" "]
)  # fmt: skip


def decode(data: bytes) -> list[str]:
    return list(decoded_lines(io.BytesIO(data), "x.txt"))


@given(st.lists(pieces, max_size=12).map(b"".join) | st.binary(max_size=40))
@example(b"")
@example(b"\n")
@example(b"no last newline")
def test_there_are_as_many_lines_as_line_feeds_say(data: bytes) -> None:
    lines = decode(data)
    assert len(lines) == data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))
    expected = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for line, raw in zip(lines, expected, strict=False):
        assert line == raw.removesuffix(b"\r").decode("utf-8", errors="replace")


def test_only_a_byte_order_mark_at_the_beginning_is_taken_away() -> None:
    assert decode(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n") == ["a", "\ufeffb"]


def test_replaced_bytes_are_told_once_for_all(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="transformer_cli"):
        assert decode(b"\xff\nfine\n\xfe\n") == ["\ufffd", "fine", "\ufffd"]
    assert [record.getMessage() for record in caplog.records] == [
        "x.txt: lines that are not UTF-8, their bad bytes replaced: 2"
    ]
