import bz2
import gzip
import json
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transformer_cli.data.pairs import ReadingReport
from transformer_cli.data.sources.lines import (
    MAX_LINE_BYTES,
    Policy,
    RawPair,
    compression_of,
    decode_pairs,
    read_lines,
)
from transformer_cli.process.errors import DataError

PLACES = ("a.en", "a.it")


def _lines(folder: Path, content: bytes) -> list[bytes | None]:
    path = folder / "a.txt"
    path.write_bytes(content)
    return list(read_lines(path))


def _decode(source: bytes, target: bytes, policy: Policy = "error") -> tuple[list[tuple[str, str]], ReadingReport]:
    report = ReadingReport()
    return list(decode_pairs([RawPair(7, source, target)], PLACES, policy, report)), report


@pytest.mark.parametrize(
    "separator",
    ["\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u2028", "\u2029", "\0", "\ufeff"],
)
def test_nothing_but_a_line_feed_ends_a_line(separator: str, tmp_path: Path) -> None:
    line = f"one{separator}two"
    assert _lines(tmp_path, f"{line}\n{line}\n\n{line}".encode()) == [
        *(line.encode(), line.encode()),
        *(b"", line.encode()),
    ]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\r\r\nb\r\r", [b"a", b"b"]),
        (b"a\r", [b"a"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [b"a", b"\xef\xbb\xbfb"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb", [b"\xef\xbb"]),
    ],
)
def test_lines_are_cut_as_described(content: bytes, lines: list[bytes], tmp_path: Path) -> None:
    assert _lines(tmp_path, content) == lines


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    lines=st.lists(st.binary(max_size=12).map(lambda line: b"x" + line.replace(b"\n", b""))),
    chunk_bytes=st.integers(1, 9),
)
def test_pieces_in_which_a_file_is_read_do_not_matter(lines: list[bytes], chunk_bytes: int, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer_cli.data.sources.lines.CHUNK_BYTES", chunk_bytes)
        found = _lines(tmp_path, b"\n".join(lines))
    assert found == [line.rstrip(b"\r") for line in lines]


def test_a_line_that_is_too_long_is_left_out_in_its_place(tmp_path: Path) -> None:
    longest = b"x" * MAX_LINE_BYTES
    assert _lines(tmp_path, b"a\n" + longest + b"\r\nb\n" + longest + b"x\nc\n" + longest + b"yy") == [
        *(b"a", longest, b"b", None),
        *(b"c", None),
    ]


@pytest.mark.long
def test_an_endless_line_takes_no_more_memory_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    tracemalloc.start()
    try:
        assert list(read_lines(path)) == [None]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * MAX_LINE_BYTES


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_utf_16_is_recognised_with_and_without_its_mark(encoding: str, tmp_path: Path) -> None:
    content = "Il mare è blu.\nThe sea is blue.\n".encode(encoding)
    if encoding == "utf-32-le":
        content = b"\xff\xfe\0\0" + content
    with pytest.raises(DataError, match="UTF-16 text, where UTF-8 is expected") as caught:
        _lines(tmp_path, content)
    named = encoding if encoding in ("utf-16-le", "utf-16-be") else "utf-16"
    assert f"iconv -f {named.upper().replace('16-', '16')} -t UTF-8 a.txt" in str(caught.value.hint)
    assert f"--encoding {named};" in str(caught.value.hint)


def test_text_with_a_few_nul_bytes_is_not_utf_16(tmp_path: Path) -> None:
    assert _lines(tmp_path, b"a\0b\0\0c\n") == [b"a\0b\0\0c"]


BAD = {
    "latin-1": b"perch\xe9",
    "overlong": b"a\xc0\xafb",
    "surrogates of CESU-8": b"a\xed\xa0\xbd\xed\xb8\x80",
    "beyond Unicode": b"a\xf4\x90\x80\x80",
    "cut off": b"caff\xc3",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("side", [0, 1])
def test_text_that_is_not_utf_8_stops_with_file_line_and_byte(bad: bytes, side: int) -> None:
    with pytest.raises(UnicodeDecodeError) as decoding:
        bad.decode()
    byte = decoding.value.start + 1
    sides = (bad, b"good") if side == 0 else (b"good", bad)
    with pytest.raises(DataError, match=rf"{PLACES[side]}:7: byte {byte} of the sentence \(0x") as caught:
        _decode(*sides)
    assert caught.value.exit_code == 65
    assert "data.undecodable" in str(caught.value.hint)


def test_half_a_character_of_json_is_no_matter_of_the_encoding() -> None:
    with pytest.raises(DataError, match="is not UTF-8") as caught:
        _decode(json.loads(r'"a \ud800"').encode("utf-8", "surrogatepass"), b"good")
    assert "without its other half is no character" in str(caught.value.hint)
    assert "iconv" not in str(caught.value.hint)


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("side", [0, 1])
def test_a_pair_that_is_not_utf_8_can_be_skipped_as_a_whole(bad: bytes, side: int) -> None:
    pairs, report = _decode(*((bad, b"good") if side == 0 else (b"good", bad)), "skip")
    assert pairs == []
    assert report.skipped["not UTF-8"].count == 1
    assert report.skipped["not UTF-8"].example.startswith(f"{PLACES[side]}:7: byte ")


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_bad_bytes_can_be_replaced(bad: bytes) -> None:
    pairs, report = _decode(bad, "città".encode(), "replace")
    assert pairs == [(bad.decode(errors="replace"), "città")]
    assert "\ufffd" in pairs[0][0]
    assert report.unusual["not UTF-8, bad bytes replaced by U+FFFD"].count == 1


@pytest.mark.parametrize("sides", [(b"a\0", b"b"), (b"a", b"\0b")])
def test_a_nul_byte_on_one_side_skips_both(sides: tuple[bytes, bytes]) -> None:
    pairs, report = _decode(*sides)
    assert pairs == []
    place = PLACES[0] if b"\0" in sides[0] else PLACES[1]
    assert report.skipped["a NUL byte"].example == f"{place}:7"


@pytest.mark.parametrize("sides", [(None, b"b"), (b"a", None)])
def test_a_side_that_is_too_long_skips_both(sides: tuple[bytes | None, bytes | None]) -> None:
    report = ReadingReport()
    assert list(decode_pairs([RawPair(7, *sides)], PLACES, "error", report)) == []
    assert report.skipped["a side of more than 1,048,576 bytes"].example == f"{PLACES[sides[1] is None]}:7"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a\rb", "a carriage return inside a sentence"),
        ("a\nb", "a line end inside a sentence"),
        ("a\ufeffb", "a byte-order mark inside a file"),
    ],
)
def test_unusual_text_is_kept_and_reported(text: str, what: str) -> None:
    for side, sides in enumerate([(text, "good"), ("good", text)]):
        pairs, report = _decode(*(side.encode() for side in sides))
        assert pairs == [sides]
        assert {name: found.example for name, found in report.unusual.items()} == {what: f"{PLACES[side]}:7"}


def test_ordinary_text_is_not_reported() -> None:
    pairs, report = _decode("Perché? 👩\u200d🚀".encode(), b"Why?")
    assert pairs == [("Perché? 👩\u200d🚀", "Why?")]
    assert (report.num_rows, report.skipped, report.unusual) == (1, {}, {})


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstandard.compress)],
)
def test_compressed_data_is_known_by_its_beginning(suffix: str, compress: Callable[[bytes], bytes]) -> None:
    assert compression_of(compress(b"some text\n" * 9)[:16]) == suffix
    assert compression_of(compress(b"")[:16]) == suffix


@pytest.mark.parametrize("text", [b"", b"some text", b"BZh", b"BZh9 begins a tex", b"\x1f", b"PK\x03\x04"])
def test_text_is_not_compressed_even_if_it_begins_with_letters_of_a_compressed_file(
    text: bytes,
) -> None:
    assert compression_of(text[:16]) is None
