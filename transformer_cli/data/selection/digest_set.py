"""A set of digests that takes 16 bytes for each and moves to the disk when it is large.

A Python set takes about 100 bytes for each digest of 16 bytes. This is a hash table with open addressing in one block of
bytes: the digest itself says where to look, and the next free slot takes it. A block of more than `MAX_BYTES_IN_MEMORY`
is a mapped file, of which the system may write parts to the disk when memory is short.
"""

import mmap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

DIGEST_BYTES = 16
MAX_BYTES_IN_MEMORY = 64 << 20
_FIRST_SLOTS = 1 << 10
_EMPTY = bytes(DIGEST_BYTES)  # no digest is expected to be zero in all of its 128 bits


class DigestSet:
    """Digests of 16 bytes, such as those of `pair_digest`.

    Args:
        folder: where to put a large table; None: all of it stays in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._size = 0
        self._file: Path | None = None
        self._table: bytearray | mmap.mmap = bytearray(_FIRST_SLOTS * DIGEST_BYTES)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        return _digests(self._table)

    def __contains__(self, digest: object) -> bool:
        return isinstance(digest, bytes) and self._place(digest)[1]

    def add(self, digest: bytes) -> bool:
        """Add a digest; whether it is new."""
        if not self._insert(digest):
            return False
        self._size += 1
        if 2 * self._size * DIGEST_BYTES > len(self._table):
            self._grow()
        return True

    def close(self) -> None:
        """Free the table and delete its file."""
        if isinstance(self._table, mmap.mmap):
            self._table.close()
        if self._file is not None:
            with suppress(FileNotFoundError):
                self._file.unlink()
        self._table, self._file = bytearray(), None

    def _insert(self, digest: bytes) -> bool:
        place, is_present = self._place(digest)
        if not is_present:
            self._table[place : place + DIGEST_BYTES] = digest
        return not is_present

    def _place(self, digest: bytes) -> tuple[int, bool]:
        """Where a digest stands or would be put, and whether it stands there."""
        table = self._table
        end = len(table)
        place = int.from_bytes(digest[:8], "little") * DIGEST_BYTES % end
        while (found := table[place : place + DIGEST_BYTES]) != digest:
            if found == _EMPTY:
                return place, False
            place = (place + DIGEST_BYTES) % end
        return place, True

    def _grow(self) -> None:
        old, old_file = self._table, self._file
        self._table = self._new_table(2 * len(old))
        for digest in _digests(old):
            self._insert(digest)
        if isinstance(old, mmap.mmap):
            old.close()
        if old_file is not None:
            old_file.unlink()

    def _new_table(self, num_bytes: int) -> bytearray | mmap.mmap:
        if self._folder is None or num_bytes <= MAX_BYTES_IN_MEMORY:
            return bytearray(num_bytes)
        self._file = self._folder / f"digests-{num_bytes}"
        with self._file.open("w+b") as file:
            # Written and not only reserved: a full disk must be an error here, not a signal at a later access.
            for _ in range(num_bytes // mmap.PAGESIZE):
                file.write(bytes(mmap.PAGESIZE))
            file.flush()
            return mmap.mmap(file.fileno(), num_bytes)


def _digests(table: bytearray | mmap.mmap) -> Iterator[bytes]:
    for place in range(0, len(table), DIGEST_BYTES):
        digest = bytes(table[place : place + DIGEST_BYTES])
        if digest != _EMPTY:
            yield digest
