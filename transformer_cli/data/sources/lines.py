"""Reads the lines of a file as bytes and decodes them; only a line feed (0x0A) ends a line; decompression of files.

Python's own functions for text also end lines at a lone carriage return, and some of them at U+2028
or U+0085. One such character in the source or target file would shift every later sentence pair.
"""

import bz2
import codecs
import gzip
import hashlib
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

from transformer_cli.process.errors import DataError, MissingInputError, StorageError, TryAgainError
from transformer_cli.process.messages import for_shell

if TYPE_CHECKING:
    from transformer_cli.data.pairs import ReadingReport

MAX_LINE_BYTES = 1 << 20
TOO_LONG = f"a side of more than {MAX_LINE_BYTES:,} bytes"
"""The reason why a pair with such a side is skipped."""

Policy = Literal["error", "skip", "replace"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF_16_FOUND = "UTF-16 text, where UTF-8 is expected"
_BEGINNING_BYTES = 4096
# With so many carriage returns without a line feed, a file has the line ends of old Macs; a few of them are
# part of sentences.
_MIN_LONE_RETURNS = 3
_LONE_RETURNS_PER_FEED = 20
# Data is binary if its beginning has a zero byte, at least _FEWEST_BYTES bytes, and more than _LARGEST_SHARE of
# characters that text never contains.
_FEWEST_BYTES = 64
_LARGEST_SHARE = 0.3
_NEVER_IN_TEXT = "\ufffd" + "".join(map(chr, {*range(32)} - {*b"\t\n\v\f\r\x1b"}))
_TWO_LINES_OF_MACS = re.compile(rb"[^\r]+\r[^\r]+\r")
_RETURNS_BEFORE_FEED = re.compile(rb"\r+(?=\n)")
_UNUSUAL = (
    (b"\r", "a carriage return inside a sentence"),
    (b"\n", "a line end inside a sentence"),
    (_BYTE_ORDER_MARK, "a byte-order mark inside a file"),
)


class RawPair(NamedTuple):
    """Both sides of a pair as bytes, not decoded; None for a side longer than `MAX_LINE_BYTES`."""

    line_number: int
    source: bytes | None
    target: bytes | None

    @classmethod
    def limited(cls, line_number: int, *sides: bytes) -> "RawPair":
        """The pair of both sides, with None for a side that is too long."""
        return cls(line_number, *(side if len(side) <= MAX_LINE_BYTES else None for side in sides))


HALF_CHARACTER = r"in JSON, an escape from \ud800 to \udfff without its other half is no character: repair the row"
_HALF_CHARACTER = re.compile(rb"\xed[\xa0-\xbf]")
HOW_TO_CONVERT = (
    "convert the file (iconv -f WINDOWS-1252 -t UTF-8, if it is Western European; a spreadsheet: save as CSV UTF-8)"
)

_HOW_TO_NAME = "name the encoding of the corpus (encoding: windows-1252 under data.corpora; tfm init finds it out)"


class NotUtf8Error(DataError):
    """A pair of a corpus is not UTF-8."""


class UnequalLinesError(DataError):
    """The two sides of a corpus have different numbers of lines."""


def read_lines(path: Path, encoding: str | None = None) -> Iterator[bytes | None]:
    """The lines of a file, as `cut_lines` yields them; a file with the line ends of old Macs is a DataError.

    Args:
        encoding: of the file; its lines are UTF-8 all the same. None: UTF-8.
    """
    return cut_lines(_with_line_feeds(_as_utf_8(path, encoding), path), path)


def _with_line_feeds(chunks: Iterable[bytes], path: Path) -> Iterator[bytes]:
    beginning, remaining = _beginning(chunks)
    refuse_carriage_returns(beginning, path)
    yield beginning
    yield from remaining


def refuse_carriage_returns(beginning: bytes, source: Path | str, *, may_be_short: bool = False) -> None:
    """Raise DataError if the lines at the beginning of a text end with carriage returns alone.

    Args:
        source: the file, or the name of a stream.
        may_be_short: whether two lines that both end so are enough; a corpus has more.
    """
    num_feeds, num_lone = beginning.count(b"\n"), num_lone_returns(beginning)
    is_of_two = may_be_short and not num_feeds and _TWO_LINES_OF_MACS.fullmatch(beginning)
    if is_of_two or num_lone >= max(_MIN_LONE_RETURNS, _LONE_RETURNS_PER_FEED * num_feeds):
        raise carriage_return_error(str(source), source)


def num_lone_returns(text: bytes) -> int:
    """How many carriage returns belong to no line feed; of \\r\\r\\n, an accident of Windows, none is alone."""
    return text.count(b"\r") - sum(map(len, _RETURNS_BEFORE_FEED.findall(text)))


def carriage_return_error(where: str, source: Path | str, problem: str = "") -> DataError:
    """The error for a text whose lines, all or some, end with a carriage return and no line feed.

    Args:
        where: in which file, and in which line of it.
        source: the file, or the name of a stream.
        problem: what could not be read because of that.
    """
    cause = "its line ends are carriage returns (old Mac)"
    if problem:
        cause = f"{problem}; this line has carriage returns inside, the line ends of old Macs"
    return DataError(
        f"{where}: {cause}, where line feeds are expected",
        hint=f"convert it: tr '\\r' '\\n' < {_name_to_convert(source)} > new file (unpack a compressed file first); "
        "or save it with the line ends of Unix or Windows",
    )


def cut_lines(chunks: Iterable[bytes], path: Path) -> Iterator[bytes | None]:
    """Yield each line without its line end, of which all carriage returns before the line feed are part; None for a line of more than MAX_LINE_BYTES bytes.

    A UTF-8 byte-order mark at the start is removed; UTF-16 is a DataError, which names the path.
    """
    rest: list[bytes] = []  # pieces of a line that is not complete yet
    rest_bytes = 0
    for chunk in _without_byte_order_mark(chunks, path):
        first, *others = chunk.split(b"\n")
        rest_bytes += len(first)
        if rest_bytes <= MAX_LINE_BYTES + 1:  # + 1 for a carriage return, removed later
            rest.append(first)
        else:
            rest.clear()
        if not others:
            continue
        yield _line(b"".join(rest)) if rest_bytes <= MAX_LINE_BYTES + 1 else None
        last = others.pop()
        for line in others:
            yield _line(line)
        rest, rest_bytes = [last], len(last)
    if rest_bytes:
        yield _line(b"".join(rest)) if rest_bytes <= MAX_LINE_BYTES + 1 else None


def read_text_chunks(path: Path, encoding: str | None = None) -> Iterator[bytes]:
    """A file in pieces of UTF-8, decompressed, without a byte-order mark; UTF-16 is a DataError, unless it is the encoding."""
    return _without_byte_order_mark(_as_utf_8(path, encoding), path)


def _as_utf_8(path: Path, encoding: str | None) -> Iterator[bytes]:
    """The text of a file, in UTF-8; a byte that is no text in the encoding becomes 0xFF, which is no UTF-8 either."""
    if encoding is None:
        yield from read_chunks(path)
        return
    decoder = codecs.getincrementaldecoder(encoding)("tfm-damage")
    try:
        for chunk in read_chunks(path):
            yield decoder.decode(chunk).encode("utf-8", "surrogateescape")
        yield decoder.decode(b"", final=True).encode("utf-8", "surrogateescape")
    except UnicodeError as error:
        # No byte is wrong: the mark at the start is missing that tells the order of all bytes.
        raise DataError(
            f"{path}: the encoding {encoding} needs a byte-order mark at the start, and there is none",
            hint="name the encoding of the file; UTF-16 without the mark is utf-16-le or utf-16-be",
        ) from error


def _damage(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.start + 1


codecs.register_error("tfm-damage", _damage)


def _line(line: bytes) -> bytes | None:
    line = line.rstrip(b"\r")
    return line if len(line) <= MAX_LINE_BYTES else None


def _without_byte_order_mark(chunks: Iterable[bytes], path: Path) -> Iterator[bytes]:
    beginning, remaining = _beginning(chunks)
    refuse_utf_16(beginning, path)
    yield beginning.removeprefix(_BYTE_ORDER_MARK)
    yield from remaining


def _beginning(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """At least the first `_BEGINNING_BYTES` bytes if there are so many, and the chunks after them."""
    beginning = b""
    remaining = iter(chunks)
    for chunk in remaining:
        beginning += chunk
        if len(beginning) >= _BEGINNING_BYTES:
            break
    return beginning, remaining


def refuse_utf_16(beginning: bytes, source: Path | str) -> None:
    """Raise DataError if the first bytes of a text are UTF-16, with a byte-order mark or without.

    Args:
        source: the file, or the name of a stream.
    """
    beginning = beginning[:_BEGINNING_BYTES]
    even, odd = beginning[0::2], beginning[1::2]
    nul_shares = [half.count(0) / len(half) if half else 0.0 for half in (even, odd)]
    marked = beginning.startswith(UTF_16_MARKS)
    if marked or (min(nul_shares) < 0.1 and max(nul_shares) > 0.7):
        encoding = "utf-16" if marked else "utf-16-le" if nul_shares[1] > nul_shares[0] else "utf-16-be"
        known_to_iconv = encoding.upper().replace("16-", "16")
        raise DataError(
            f"{source}: {UTF_16_FOUND}",
            hint=f"convert it: iconv -f {known_to_iconv} -t UTF-8 {_name_to_convert(source)} > new file; or name it, where an encoding can be named: "
            f"--encoding {encoding}; or save it as UTF-8 with the program that wrote it",
        )


def refuse_binary(beginning: bytes, source: Path | str = "") -> None:
    """Raise DataError if the beginning of a file shows that it holds no text; text with some bad bytes is accepted.

    Args:
        beginning: in no encoding of two bytes; these have zero bytes in text.
        source: the file, or the name of a stream; empty: the caller names it.
    """
    beginning = beginning[:_BEGINNING_BYTES]
    if len(beginning) < _FEWEST_BYTES or b"\0" not in beginning:
        return
    text = beginning.decode("utf-8", errors="replace")
    if sum(map(text.count, _NEVER_IN_TEXT)) > _LARGEST_SHARE * len(text):
        raise DataError(
            f"{source}{': ' if source else ''}binary data, where text in UTF-8 is expected",
            hint="save it as plain text in UTF-8 with the program that wrote it",
        )


def _name_to_convert(source: Path | str) -> str:
    """What a command that converts a text reads; the name of a stream is no file."""
    return for_shell(source.name) if isinstance(source, Path) else "FILE"


def decode_pairs(
    rows: Iterable[RawPair],
    places: tuple[str, str],
    policy: Policy,
    report: "ReadingReport",
    *,
    encoding: str | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield both sides as text; a pair is kept or skipped as a whole, so the sides stay aligned.

    A carriage return at the end of a side is left out: it is part of a line end that was saved twice, and no text.

    Args:
        places: the names of the source file and of the target file, for messages.
        policy: for a pair that is not UTF-8: raise an error, skip it, or replace the bad bytes.
        encoding: of the files from which the rows were made; None: UTF-8.

    Raises:
        DataError: a pair is not UTF-8, and the policy is "error".
    """
    name = encoding or "UTF-8"
    for line, source, target in rows:
        report.num_rows += 1
        if source is None or target is None:
            place = places[0] if source is None else places[1]
            report.skip(TOO_LONG, f"{place}:{line}")
            continue
        source, target = source.rstrip(b"\r"), target.rstrip(b"\r")
        if b"\0" in source or b"\0" in target:
            place = places[0] if b"\0" in source else places[1]
            report.skip("a NUL byte", f"{place}:{line}")
            continue
        try:
            pair = source.decode(), target.decode()
        except UnicodeDecodeError:
            damage = _first_damage(source, f"{places[0]}:{line}", encoding)
            damage = damage or _first_damage(target, f"{places[1]}:{line}", encoding)
            if policy == "error":
                is_half = _HALF_CHARACTER.search(source) or _HALF_CHARACTER.search(target)
                how = HALF_CHARACTER if is_half else f"{_HOW_TO_NAME}; or {HOW_TO_CONVERT}"
                raise NotUtf8Error(
                    f"{damage} is not {name}", hint=f"{how}, or set data.undecodable to skip or replace"
                ) from None
            if policy == "skip":
                report.skip(f"not {name}", damage)
                continue
            report.notice(f"not {name}, bad bytes replaced by U+FFFD", damage)
            pair = source.decode(errors="replace"), target.decode(errors="replace")
        for mark, what in _UNUSUAL:
            if mark in source or mark in target:
                report.notice(what, f"{places[0] if mark in source else places[1]}:{line}")
        yield pair


def _first_damage(side: bytes, place: str, encoding: str | None) -> str:
    """The place and value of the first byte that is not UTF-8; empty if there is none."""
    try:
        side.decode()
    except UnicodeDecodeError as error:
        if encoding is not None:  # the byte of the file is not known any more
            return f"{place}: character {len(side[: error.start].decode()) + 1} of the sentence"
        byte = side[error.start]
        return f"{place}: byte {error.start + 1} of the sentence (0x{byte:02X})"
    return ""


# Decompression of corpus files: a file that is cut short or damaged is an error, never a shorter corpus.
#
# GzipFile raises such errors. The other libraries do not, so the members of their files are decompressed one
# by one here. BZ2File and LZMAFile end silently at damaged data after the first member, LZMAFile has no
# limit on memory, and the stream_reader of zstandard ends silently if a file is cut short.


CHUNK_BYTES = 1 << 18
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")

_XZ_MEMORY_BYTES = 1 << 28
_ZSTD_FRAMES = (b"\x28\xb5\x2f\xfd", *(bytes((0x50 + n, 0x2A, 0x4D, 0x18)) for n in range(16)))
_BEGINNINGS = {".gz": (b"\x1f\x8b",), ".bz2": (b"BZh",), ".xz": (b"\xfd7zXZ\x00",), ".zst": _ZSTD_FRAMES}
_BZIP2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")  # a text may begin with BZh
_NOT_TEXT = {
    b"\x1f\x8b": "gzip data: its name should end in .gz",
    b"BZh91AY&SY": "bzip2 data: its name should end in .bz2",
    b"\xfd7zXZ\x00": "xz data: its name should end in .xz",
    b"\x28\xb5\x2f\xfd": "zstd data: its name should end in .zst",
    b"PK\x03\x04": "a zip archive, or a document or a spreadsheet in its own format: save it as plain text (UTF-8); of a spreadsheet (.xlsx) or a zip of corpora, tfm data import makes text files",
    b"\xd0\xcf\x11\xe0": "a document of an old Office program: save it as plain text (UTF-8), a spreadsheet as CSV (UTF-8)",
    b"<?xml": "XML, such as a translation memory: tfm data import makes text files of TMX and XLIFF",
    b"%PDF": "a PDF file: its sentences have to be saved as plain text",
    b"\x89PNG": "a picture: its text has to be typed",
    b"\xff\xd8\xff": "a picture: its text has to be typed",
    b"PAR1": "a Parquet file: its name should end in .parquet",
    b"{\\rtf": "a document in Rich Text Format: save it as plain text in UTF-8",
}


def read_chunks(path: Path, *, by_content: bool = False) -> Iterator[bytes]:
    """Read a file in pieces; decompress it if its name ends in .gz, .bz2, .xz or .zst.

    Args:
        path: a regular file.
        by_content: also decompress a file whose content is compressed under another name, such as a link.

    Raises:
        MissingInputError: there is no such file, or no permission to read it.
        DataError: not a regular file, cut short, damaged, or in another format than its name says.
        TryAgainError: the file changed while it was read.
    """
    with open_regular_file(path) as file:
        before = os.fstat(file.fileno())
        beginning = _read(file, 16, path)
        suffix = (by_content and compression_of(beginning)) or path.suffix.lower()
        _check_beginning(beginning, suffix, path)
        file.seek(0)
        if suffix in _START:
            yield from _decompress(file, suffix, path)
        else:
            stream = gzip.GzipFile(fileobj=file) if suffix == ".gz" else file
            while chunk := _read(stream, CHUNK_BYTES, path):
                yield chunk
        after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise TryAgainError(
            f"{path}: changed while it was read", hint="run the command again when no program writes to the file"
        )


def compression_of(beginning: bytes) -> str | None:
    """.gz, .bz2, .xz or .zst if the first 16 bytes of a file are those of compressed data."""
    for suffix, beginnings in _BEGINNINGS.items():
        is_text = suffix == ".bz2" and not _BZIP2.match(beginning)
        if beginning.startswith(beginnings) and not is_text:
            return suffix
    return None


def _check_beginning(beginning: bytes, suffix: str, path: Path) -> None:
    if suffix in COMPRESSIONS:
        if not beginning.startswith(_BEGINNINGS[suffix]):
            raise DataError(f"{path}: its name ends in {suffix}, but it does not hold such data")
        return
    found = kind_without_text(beginning)
    if found is not None:
        raise DataError(f"{path}: not text but {found[0]}", hint=found[1])


def kind_without_text(beginning: bytes) -> tuple[str, str] | None:
    """What a file is that is no plain text, by its first 16 bytes, and what to do then; None if nothing is known."""
    for magic, kind in _NOT_TEXT.items():
        if beginning.removeprefix(codecs.BOM_UTF8).startswith(magic):
            what, _, remedy = kind.partition(": ")
            return what, remedy
    return None


def open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file for reading bytes."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise DataError(
                f"{path}: a folder, where a file is expected", hint="for a folder of corpora write path: FOLDER"
            )
        if not stat.S_ISREG(mode):
            raise DataError(
                f"{path}: a pipe or device; a corpus is read more than once", hint="write it to a file first"
            )
        return path.open("rb")
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise MissingInputError(f"{path.absolute()}: no such file") from error
    except OSError as error:
        raise MissingInputError(f"{path.absolute()}: cannot be read: {error.strerror}") from error


def file_digest(path: Path) -> str:
    """SHA-256 of a file, without decompression, in hexadecimal."""
    digest = hashlib.sha256()
    with open_regular_file(path) as file:
        while chunk := _read(file, CHUNK_BYTES, path):
            digest.update(chunk)
    return digest.hexdigest()


def beginning_digest(path: Path) -> str:
    """SHA-256 of the size of a file and of its first quarter of a megabyte, for files that are too large to be read twice."""
    digest = hashlib.sha256(b"%d " % path.stat().st_size)
    with open_regular_file(path) as file:
        digest.update(_read(file, CHUNK_BYTES, path))
    return digest.hexdigest()


class _Zstd:
    """A decompressor of zstandard with the interface of those of bz2 and lzma."""

    needs_input = True

    def __init__(self) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._stream: Any = zstandard.ZstdDecompressor().decompressobj()

    @property
    def eof(self) -> bool:
        return bool(self._stream.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._stream.unused_data)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        try:
            return bytes(self._stream.decompress(data))
        except self._error as error:
            raise OSError(str(error)) from error


_Decompressor = bz2.BZ2Decompressor | lzma.LZMADecompressor | _Zstd
_START: dict[str, Callable[[], _Decompressor]] = {
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES),
    ".zst": _Zstd,
}


def _decompress(file: BinaryIO, suffix: str, path: Path) -> Iterator[bytes]:
    # zstandard does not limit the output of one call, so each call gets little input.
    bite_bytes = 1 << 8 if suffix == ".zst" else 1 << 16
    decompressor: _Decompressor | None = None
    rest = b""
    while data := rest or _read(file, bite_bytes, path):
        rest = b""
        if decompressor is None:
            data = data.lstrip(b"\0")  # padding between members
            if not data:
                continue
            decompressor = _START[suffix]()
        yield _feed(decompressor, data, path)
        while not (decompressor.eof or decompressor.needs_input):
            yield _feed(decompressor, b"", path)
        if decompressor.eof:
            rest, decompressor = decompressor.unused_data, None
    if decompressor is not None:
        raise _unusable(path, f"cut short: the end of its {suffix} data is missing")


def _feed(decompressor: _Decompressor, data: bytes, path: Path) -> bytes:
    try:
        return decompressor.decompress(data, CHUNK_BYTES)
    except (lzma.LZMAError, OSError, EOFError) as error:
        raise _unusable(path, f"damaged compressed data: {error}") from error


def _read(file: BinaryIO | gzip.GzipFile, num_bytes: int, path: Path) -> bytes:
    try:
        return file.read(num_bytes)
    except EOFError as error:
        raise _unusable(path, "cut short: the end of its .gz data is missing") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _unusable(path, f"damaged compressed data: {error}") from error
    except OSError as error:
        raise StorageError(f"{path}: reading failed: {error.strerror}") from error


def _unusable(path: Path, problem: str) -> DataError:
    return DataError(f"{path}: {problem}", hint="copy or download the file again")
