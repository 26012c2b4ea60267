import bz2
import gzip
import lzma
import os
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transformer_cli.data.sources.lines import CHUNK_BYTES, file_digest, read_chunks
from transformer_cli.process.errors import DataError, MissingInputError, StorageError, TryAgainError

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
TEXT = b"".join(b"line %d of some text\n" % number for number in range(2000))


def _read(path: Path) -> bytes:
    return b"".join(read_chunks(path))


def _written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.long
@pytest.mark.parametrize("suffix", COMPRESS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(members=st.lists(st.binary(max_size=2000), min_size=1, max_size=4))
def test_concatenated_members_give_all_their_bytes(suffix: str, members: list[bytes], tmp_path: Path) -> None:
    path = _written(tmp_path, f"a.txt{suffix}", b"".join(map(COMPRESS[suffix], members)))
    assert _read(path) == b"".join(members)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_file_cut_short_anywhere_is_an_error(suffix: str, tmp_path: Path) -> None:
    whole = COMPRESS[suffix](TEXT) + COMPRESS[suffix](TEXT[:100])
    boundary = len(COMPRESS[suffix](TEXT))
    for length in {1, 2, 8, len(whole) // 2, boundary - 1, boundary + 1, len(whole) - 1}:
        path = _written(tmp_path, f"a.txt{suffix}", whole[:length])
        with pytest.raises(DataError, match=r"cut short|damaged|does not hold such data"):
            _read(path)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_damaged_second_member_is_no_silent_short_read(suffix: str, tmp_path: Path) -> None:
    path = _written(tmp_path, f"a.txt{suffix}", COMPRESS[suffix](TEXT) + b"this is no member")
    with pytest.raises(DataError, match=r"damaged|cut short"):
        _read(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_a_flipped_bit_is_found_by_the_checksum(suffix: str, tmp_path: Path) -> None:
    content = bytearray(COMPRESS[suffix](TEXT))
    content[len(content) // 2] ^= 0x10
    with pytest.raises(DataError):
        _read(_written(tmp_path, f"a.txt{suffix}", bytes(content)))


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_padding_after_the_last_member_is_no_error(suffix: str, tmp_path: Path) -> None:
    assert _read(_written(tmp_path, f"a{suffix}", COMPRESS[suffix](TEXT) + bytes(512))) == TEXT


def test_skippable_frames_of_zstd_are_skipped(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"meta"
    content = skippable + zstandard.compress(b"one ") + skippable + zstandard.compress(b"two")
    assert _read(_written(tmp_path, "a.zst", content)) == b"one two"


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("content", [b"", b"plain text\n"])
def test_plain_data_under_a_compressed_name_is_an_error(suffix: str, content: bytes, tmp_path: Path) -> None:
    path = _written(tmp_path, f"a.txt{suffix}", content)
    with pytest.raises(DataError, match=rf"a\.txt{suffix}: its name ends in {suffix}, but"):
        _read(path)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_data_under_a_plain_name_is_an_error_that_names_the_suffix(suffix: str, tmp_path: Path) -> None:
    path = _written(tmp_path, "a.txt", COMPRESS[suffix](TEXT))
    with pytest.raises(DataError, match=f"its name should end in {suffix}"):
        _read(path)


def test_a_workbook_under_the_name_of_a_table_is_an_error_that_says_what_to_do(
    tmp_path: Path,
) -> None:
    with pytest.raises(DataError, match="a spreadsheet in its own format") as refusal:
        _read(_written(tmp_path, "a.csv", b"PK\x03\x04 and so on"))
    assert "tfm data import makes text files" in str(refusal.value.hint)


def test_text_that_merely_begins_like_a_format_is_text(tmp_path: Path) -> None:
    assert _read(_written(tmp_path, "a.txt", b"BZh is short for nothing\n")) == b"BZh is short for nothing\n"


@pytest.mark.long
@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_decompression_bomb_is_read_in_small_pieces(suffix: str, tmp_path: Path) -> None:
    path = _written(tmp_path, f"bomb{suffix}", COMPRESS[suffix](bytes(30_000_000)))
    num_bytes = 0
    tracemalloc.start()
    try:
        for chunk in read_chunks(path):
            num_bytes += len(chunk)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert num_bytes == 30_000_000
    assert peak < 25_000_000  # xz has a window of 8 MiB; zstd returns one chunk at a time


def test_a_missing_file_is_named_by_its_whole_path(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=rf"{tmp_path}/a\.txt: no such file") as caught:
        _read(tmp_path / "a.txt")
    assert caught.value.exit_code == 66


@pytest.mark.parametrize("name", ["a.txt/b.txt", "nul\0name", "broken"])
def test_a_path_that_leads_nowhere_is_a_missing_file(name: str, tmp_path: Path) -> None:
    _written(tmp_path, "a.txt", b"")
    (tmp_path / "broken").symlink_to("nowhere")
    with pytest.raises(MissingInputError, match="no such file"):
        _read(tmp_path / name)


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    _written(tmp_path, "a.txt", b"text")
    (tmp_path / "b.txt").symlink_to("a.txt")
    assert _read(tmp_path / "b.txt") == b"text"


def test_a_link_to_itself_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(MissingInputError, match="cannot be read"):
        _read(tmp_path / "loop")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a folder, where a file is expected"):
        _read(tmp_path)


def test_a_pipe_is_refused_at_once_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    errors: list[Exception] = []

    def read() -> None:
        try:
            _read(tmp_path / "pipe")
        except DataError as error:
            errors.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(timeout=5)
    assert len(errors) == 1
    assert "a pipe or device" in str(errors[0])


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may read everything")
def test_a_file_without_read_permission_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = _written(tmp_path, "a.txt", b"text")
    path.chmod(0)
    with pytest.raises(MissingInputError, match="cannot be read: Permission denied"):
        _read(path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file whose reading fails")
def test_a_failing_disk_is_a_storage_error() -> None:
    with pytest.raises(StorageError, match="reading failed"):
        _read(Path("/proc/self/mem"))


def test_a_file_that_grows_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = _written(tmp_path, "a.txt", b"x" * (2 * CHUNK_BYTES))
    chunks = read_chunks(path)
    next(chunks)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(TryAgainError, match="changed while it was read"):
        list(chunks)


def test_the_digest_of_a_file_is_that_of_its_stored_bytes(tmp_path: Path) -> None:
    path = _written(tmp_path, "a.gz", b"abc")
    # The first test vector of FIPS 180-2.
    assert file_digest(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
