"""Decompression of corpus files: a file that is cut short or damaged is an error, never a shorter corpus.

GzipFile raises such errors. The other libraries do not, so the members of their files are decompressed one
by one here. BZ2File and LZMAFile end silently at damaged data after the first member, LZMAFile has no
limit on memory, and the stream_reader of zstandard ends silently if a file is cut short.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from transformer_cli.errors import DataError, MissingInputError, StorageError, TryAgainError

CHUNK_BYTES = 1 << 18
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")

_XZ_MEMORY_BYTES = 1 << 28
_ZSTD_FRAMES = (b"\x28\xb5\x2f\xfd", *(bytes((0x50 + n, 0x2A, 0x4D, 0x18)) for n in range(16)))
_BEGINNINGS = {
    ".gz": (b"\x1f\x8b",),
    ".bz2": (b"BZh",),
    ".xz": (b"\xfd7zXZ\x00",),
    ".zst": _ZSTD_FRAMES,
}
_BZIP2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")  # a text may begin with BZh
_NOT_TEXT = {
    b"\x1f\x8b": "gzip data: its name should end in .gz",
    b"BZh91AY&SY": "bzip2 data: its name should end in .bz2",
    b"\xfd7zXZ\x00": "xz data: its name should end in .xz",
    b"\x28\xb5\x2f\xfd": "zstd data: its name should end in .zst",
    b"PK\x03\x04": "a zip archive, or a document or a spreadsheet in its own format: save it as plain text (UTF-8), a spreadsheet as CSV (UTF-8); tfm data import reads .xlsx, .tmx and .zip",
    b"\xd0\xcf\x11\xe0": "a document of an old Office program: save it as plain text (UTF-8), a spreadsheet as CSV (UTF-8)",
    b"<?xml": "XML, such as a translation memory: tfm data import makes text files of TMX and XLIFF",
    b"%PDF": "a PDF file: its sentences have to be saved as plain text",
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
    with open_file(path) as file:
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
            f"{path}: changed while it was read",
            hint="run the command again when no program writes to the file",
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
    for magic, kind in _NOT_TEXT.items():
        if beginning.removeprefix(codecs.BOM_UTF8).startswith(magic):
            what, _, remedy = kind.partition(": ")
            raise DataError(f"{path}: not text but {what}", hint=remedy)


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading bytes."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise DataError(
                f"{path}: a folder, where a file is expected",
                hint="for a folder of corpora write path: FOLDER",
            )
        if not stat.S_ISREG(mode):
            raise DataError(
                f"{path}: a pipe or device; a corpus is read more than once",
                hint="write it to a file first",
            )
        return path.open("rb")
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise MissingInputError(f"{path.absolute()}: no such file") from error
    except OSError as error:
        raise MissingInputError(f"{path.absolute()}: cannot be read: {error.strerror}") from error


def file_digest(path: Path) -> str:
    """SHA-256 of a file, without decompression, in hexadecimal."""
    digest = hashlib.sha256()
    with open_file(path) as file:
        while chunk := _read(file, CHUNK_BYTES, path):
            digest.update(chunk)
    return digest.hexdigest()


def beginning_digest(path: Path) -> str:
    """SHA-256 of the size of a file and of its first megabyte, for files that are too large to be read twice."""
    digest = hashlib.sha256(b"%d " % path.stat().st_size)
    with open_file(path) as file:
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
