"""Folders that need not be trusted: wrong names, links, devices, false sizes (H3)."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.process.errors import DataError, StorageError
from transformer_cli.storage import (
    MANIFEST_NAME,
    DamagedError,
    Manifest,
    open_sealed,
    write_folder,
)
from transformer_cli.storage.filesystem import MAX_MANIFEST_BYTES, ListedFile, parse_manifest

FIELDS: dict[str, Any] = {
    "format_version": 1,
    "run_id": "0" * 16,
    "step": 1,
    "data_fingerprint": "",
    "metric": "loss",
    "score": None,
    "saved_at": 1,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "step-00000001"
    write_folder(
        path,
        {"a.json": b"[1]", "b.bin": bytes(1000)},
        Manifest(files=(), **FIELDS),
    )
    return path


def reseal(folder: Path, change: dict[str, Any]) -> None:
    """A manifest with a correct checksum of its own, and with any content."""
    fields = json.loads((folder / MANIFEST_NAME).read_text()) | change
    fields.pop("manifest_sha256")
    files = tuple(ListedFile.model_construct(**file) for file in fields.pop("files"))
    manifest = Manifest.model_construct(files=files, **fields)
    (folder / MANIFEST_NAME).write_bytes(manifest.encode())


def read_all(folder: Path) -> None:
    with open_sealed(folder) as sealed:
        for file in sealed.manifest.files:
            sealed.read(file.name, max_bytes=file.size)


def test_a_whole_folder_is_read(folder: Path) -> None:
    read_all(folder)
    with open_sealed(folder) as sealed:
        assert sealed.read("a.json", max_bytes=3) == b"[1]"


def test_resealing_alone_changes_nothing(folder: Path) -> None:
    reseal(folder, {})
    read_all(folder)


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/etc/passwd",
        "a/b",
        "..",
        ".",
        ".hidden",
        "",
        "a\0b",
        "a" * 300,
        "ä",
        "a b",
        "-x",
        "C:x",
        "a\n",
        MANIFEST_NAME,
        "\u202e",
    ],
)
def test_a_manifest_names_plain_files_of_its_folder_only(folder: Path, name: str) -> None:
    digest = "0" * 64
    reseal(folder, {"files": [{"name": name, "size": 1, "sha256": digest}]})
    with pytest.raises(DamagedError):
        read_all(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"step": -1},
        {"step": 10**13},
        {"step": "1"},
        {"step": True},
        {"score": "1"},
        {"run_id": "../../../../x"},
        {"metric": "/home/x"},
        {"saved_at": 2**60},
        {"data_fingerprint": "x"},
        {"more": 1},
        {"files": [{"name": "a.json", "size": 3, "sha256": "0" * 64}] * 2},
        {"files": [{"name": f"f{n}", "size": 0, "sha256": "0" * 64} for n in range(65)]},
        {"files": [{"name": "a.json", "size": -3, "sha256": "0" * 64}]},
        {"files": [{"name": "a.json", "size": 2**60, "sha256": "0" * 64}]},
        {"files": [{"name": "a.json", "size": 3, "sha256": "0" * 63}]},
        {"files": []},
    ],
)
def test_a_manifest_with_a_value_that_cannot_be_is_refused(folder: Path, change: dict[str, Any]) -> None:
    fields = json.loads((folder / MANIFEST_NAME).read_text()) | change
    (folder / MANIFEST_NAME).write_bytes(_sealed(fields))
    with pytest.raises(DamagedError):
        read_all(folder)


def _sealed(fields: dict[str, Any]) -> bytes:
    from transformer_cli.storage import filesystem

    fields = {name: value for name, value in fields.items() if name != "manifest_sha256"}
    return filesystem._with_checksum(fields)


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"a": 1, "a": 1}', b"1" * 10_000, b"{}"],
    ids=lambda text: repr(text[:10]),
)
def test_a_manifest_that_is_none_is_refused(folder: Path, text: bytes) -> None:
    (folder / MANIFEST_NAME).write_bytes(text)
    with pytest.raises(DamagedError, match=MANIFEST_NAME):
        read_all(folder)


def test_a_huge_manifest_is_refused(folder: Path) -> None:
    (folder / MANIFEST_NAME).write_bytes(b" " * (MAX_MANIFEST_BYTES + 1))
    with pytest.raises(DamagedError, match="more than"):
        read_all(folder)


@pytest.mark.parametrize("name", ["a.json", MANIFEST_NAME])
def test_links_are_not_followed(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / name).rename(tmp_path / "target")
    (folder / name).symlink_to(tmp_path / "target")
    with pytest.raises(DamagedError, match="a symbolic link; only regular files are read"):
        read_all(folder)


@pytest.mark.parametrize("name", ["a.json", MANIFEST_NAME])
def test_a_pipe_is_refused_and_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(DamagedError, match="not a regular file"):
        read_all(folder)  # or never returns


def test_a_device_is_refused(folder: Path) -> None:
    (folder / "b.bin").unlink()
    try:
        os.mknod(folder / "b.bin", 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("making a device needs root")
    with pytest.raises((DamagedError, StorageError)):
        read_all(folder)


def test_a_folder_in_place_of_a_file_is_refused(folder: Path) -> None:
    (folder / "a.json").unlink()
    (folder / "a.json").mkdir()
    with pytest.raises(DamagedError, match="not a regular file"):
        read_all(folder)


def test_sizes_are_compared_before_anything_is_read(folder: Path) -> None:
    os.truncate(folder / "b.bin", 2**40)  # a hole on the disk
    started_at = time.process_time()
    with pytest.raises(DamagedError, match=r"1,099,511,627,776 bytes instead of 1,000"):
        read_all(folder)
    assert time.process_time() - started_at < 1


def test_a_small_file_that_is_large_is_refused(folder: Path) -> None:
    with (
        open_sealed(folder) as sealed,
        pytest.raises(DataError, match="1,000 bytes, more than the 999"),
    ):
        sealed.read("b.bin", max_bytes=999)


def test_a_folder_may_be_renamed_while_it_is_read(folder: Path, tmp_path: Path) -> None:
    with open_sealed(folder) as sealed:
        folder.rename(tmp_path / "elsewhere")
        assert sealed.read("a.json", max_bytes=10) == b"[1]"


def test_a_file_that_is_not_listed_is_not_read(folder: Path) -> None:
    with open_sealed(folder) as sealed, pytest.raises(DamagedError, match=r"has no c\.json"):
        sealed.read("c.json", max_bytes=10)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DamagedError, match="not a folder"):
        read_all(tmp_path / "file")
    with pytest.raises(StorageError, match="cannot be read: No such file"):
        read_all(tmp_path / "missing")


def test_a_manifest_comes_back_as_it_was() -> None:
    manifest = Manifest(files=(ListedFile(name="a", size=1, sha256="0" * 64),), **FIELDS | {"score": 0.1 + 0.2})
    assert parse_manifest(manifest.encode(), "m") == manifest


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_no_score_is_infinite(score: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Manifest(files=(), **FIELDS | {"score": score})
